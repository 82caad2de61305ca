"""Averaging at a layer: the accuracy it keeps against the time it takes, and single steps.

    python benchmarks/averaging.py [--quick] [--device cuda] [--dataset mnist] [--part curve]

The curve (`augury_paper.layers`): LeNet is trained on n versions of each image (rotation by up
to 15 degrees, a rule of n angles) in several ways, all with the same starts and batches: without
augmentation, in full (all versions through the whole network), with fewer versions, and averaged at
each of its layers 0 to 4. `kept` is the share of full augmentation's gain in clean test accuracy,
`time` the share of its training time, both measured. KL is the mean divergence of test predictions
from those of the network of the same trial that was trained in full. It trains on 10,000 images
where the paper has 60,000: augmentation then gains about a point in place of a few tenths, so that
a share of the gain can be told from chance, and its rate falls to 0, so that accuracies do not have
the last steps' noise; `augury reproduce layers` has the paper's settings.

The steps: time and peak memory of a training step without augmentation, with one random version
of each image, with all of them and with averages at layers, for LeNet, ResNet-18 and a small ViT,
taking turns; and what `augury.plan_averaging` recommends.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from _networks import RESULTS, ViT, environment, resnet18, save, synchronize
from torch import Tensor, nn

from augury._base.rng import Rng
from augury.augmentations import parse
from augury.networks.averaging import Averaging
from augury.networks.averaging.views import views_of
from augury.networks.layers import cuts
from augury.networks.planning import plan_averaging
from augury.networks.planning.timing import seconds
from augury.objectives import multinomial
from augury_paper import Settings
from augury_paper.images import Library, default_folder
from augury_paper.layers.experiment import curve
from augury_paper.layers.page import best, summary
from augury_paper.layers.ways import AUGMENTATION, ways
from augury_paper.networks import LAYERS, lenet, seeded

T = parse(AUGMENTATION)


def kept_and_taken(dataset: str, settings: Settings, options) -> dict:
    """Train in every way, all trials at once, and say what each keeps and takes."""
    images = Library(options.data, settings).images(dataset)
    parts = ways(settings.versions, few=options.quick)
    todo = list(dict.fromkeys(way for part in parts.values() for way in part))
    wanted = ("full", "none", *(options.way or [""]))
    todo = [way for way in todo if way.name.startswith(wanted)]
    if options.quick:
        todo = [way for way in todo if way.layer not in (2, 3)]
    said = set()

    def tick(share: float, words: str) -> None:
        if words not in said:
            said.add(words)
            print(f"{dataset}: {words}", flush=True)

    device = torch.device(options.device)
    rows = summary(curve(images, todo, settings, device, tick, falling=True)["ways"])
    print(f"{dataset}: {'way':22} {'accuracy':>16} {'kept':>13} {'time':>6} {'KL':>8}")
    for row in rows:
        kept = float("nan") if row["kept"] is None else row["kept"]
        print(
            f"{dataset}: {row['way']:22} {np.mean(row['accuracy']):7.2%} ± "
            f"{np.std(row['accuracy'], ddof=1):5.2%} {kept:6.2f} ± {row['kept_se']:4.2f} "
            f"{row['time']:6.2f} {np.mean(row['kl']):8.5f}"
        )
    return {
        "dataset": dataset,
        "augmentation": AUGMENTATION,
        "settings": {k: v for k, v in asdict(settings).items() if k != "datasets"},
        "trained_on": len(images.train),
        "tested_on": len(images.test),
        "ways": rows,
    }


@dataclass(frozen=True)
class Step:
    """How a step trains: on so many versions, 0 for the images as they are, or by averaging."""

    how: int | Averaging

    def loss(self, model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        if self.how == 0:
            return F.cross_entropy(model(x), y)
        if self.how == 1:  # a random one of each image, as one usually trains
            rng = Rng(0, torch.arange(len(x), device=x.device))
            return F.cross_entropy(model(T.views(x, 1, rng)[0]), y)
        if isinstance(self.how, int):
            versions, weights = views_of(T, x, self.how, None)
            each = multinomial(model(versions.flatten(0, 1)), y.repeat(len(versions)))
            return (weights @ each.view(len(versions), -1)).mean()
        return self.how.loss(model, x, y, seed=0)


def steps(options) -> list[dict]:
    """Time single training steps, and measure their memory."""
    device = torch.device(options.device)
    if options.quick:
        cases = [("LeNet", lambda: lenet(), (1, 28, 28), [32])]
    else:
        sizes = [256, 2048, 8192] if device.type == "cuda" else [64]
        deep = [64] if device.type == "cuda" else [8]
        cases = [
            ("LeNet", lambda: lenet(), (1, 28, 28), sizes),
            ("ResNet-18", lambda: resnet18(), (3, 32, 32), deep),
            ("ViT", lambda: ViT(), (3, 32, 32), deep),
        ]
    if options.network:
        cases = [case for case in cases if case[0] == options.network]
    out = []
    for name, build, shape, batches in cases:
        for batch in batches:
            out.append(steps_of(name, seeded(build, 0).to(device), shape, batch, options))
    return out


def steps_of(name: str, model: nn.Module, shape: tuple[int, ...], batch: int, options) -> dict:
    n, device = options.versions, torch.device(options.device)
    repeats = options.repeats if name == "LeNet" else max(2, options.repeats // 4)
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(batch, *shape, generator=generator).to(device)
    y = torch.randint(0, 10, (batch,), generator=generator).to(device)
    names = cuts(model, x)
    if name == "LeNet":
        names = list(LAYERS[:3] if options.quick else LAYERS)
    else:
        names = names[:: -(-len(names) // 6)]  # six of them
    if name == "LeNet":  # some training, so that the plan's errors mean something
        optimizer = torch.optim.Adam(model.parameters(), 2e-3)
        for _ in range(30):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    chosen = plan_averaging(model, x, T, y, n_views=n, layers=names, repeats=repeats)
    # Asked for 1.3, since what a step takes varies by a tenth from one moment to the next.
    cheap = chosen.within(1.3) or min(chosen.choices, key=lambda c: c.step)
    runs = {"no augmentation": Step(0), "one version": Step(1), "all versions": Step(n)}
    for layer in names:
        runs[f"averaged at {layer}"] = Step(Averaging(T, layer, n))
    runs["recommended for 1.5"] = Step(
        Averaging(T, cheap.layer, n, order=cheap.order, groups=cheap.groups,
                  directions=1 if cheap.order == 2 else None),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)

    def step(way: Step):
        def run() -> None:
            optimizer.zero_grad()
            way.loss(model, x, y).backward()
            optimizer.step()

        return run

    model.train()
    calls = {key: step(way) for key, way in runs.items()}
    took = seconds(calls, device, repeats)
    memory = {key: peak(call, device) for key, call in calls.items()}
    none, one = took["no augmentation"], took["one version"]
    print(f"{name}, batch {batch}, {n} versions, {environment(device)['device']}:")
    for key in runs:
        gib = "" if memory[key] is None else f", {memory[key]:.2f} GiB"
        print(f"  {key:24} {1e3 * took[key]:9.2f} ms  {took[key] / none:6.2f} × no augmentation, "
              f"{took[key] / one:6.2f} × one version{gib}")  # fmt: skip
    print(f"  plan for at most 1.5 × one version: {cheap.layer}, order {cheap.order}, "
          f"{cheap.groups} groups, error {cheap.error:.2f}")  # fmt: skip
    print(f"  plan for half of the time: {chosen.sentence()}", flush=True)
    return {
        "network": name,
        "batch": batch,
        "versions": n,
        "seconds": took,
        "times_no_augmentation": {key: value / none for key, value in took.items()},
        "times_one_version": {key: value / one for key, value in took.items()},
        "peak_gib": memory,
        "recommended": {"layer": cheap.layer, "order": cheap.order, "groups": cheap.groups},
        "plan": chosen.to_dict(),
    }


def peak(call, device: torch.device) -> float | None:
    if device.type != "cuda":
        return None
    torch.cuda.reset_peak_memory_stats(device)
    call()
    synchronize(device)
    return torch.cuda.max_memory_allocated(device) / 2**30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a minute on two cores")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--data", type=Path, default=default_folder(), help="the data sets' folder")
    parser.add_argument("--dataset", action="append", choices=["mnist", "cifar10"])
    parser.add_argument("--part", choices=["curve", "steps", "both"], default="both")
    parser.add_argument("--network", choices=["LeNet", "ResNet-18", "ViT"], help="steps of one")
    parser.add_argument("--versions", type=int, default=None)
    parser.add_argument("--out", type=Path, default=RESULTS, help="where results are written")
    parser.add_argument("--way", action="append", help="of the curve: names that begin so")
    parser.add_argument("--trials", type=int, default=None)
    parser.add_argument("--examples", type=int, default=None, help="training images")
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--batch", type=int, default=None)
    parser.add_argument("--rate", type=float, default=None)
    parser.add_argument("--repeats", type=int, default=None)
    options = parser.parse_args()
    usual = Settings(trials=20, rate=0.05, batch=64, epochs=20, examples=10_000, versions=8)
    quick = Settings(trials=2, rate=0.05, batch=25, epochs=10, examples=300, tests=1000, versions=8)
    base = quick if options.quick else usual
    options.repeats = options.repeats or (2 if options.quick else 20)
    keys = ("versions", "trials", "examples", "epochs", "batch", "rate")
    given = {key: getattr(options, key) for key in keys if getattr(options, key) is not None}
    settings = replace(base, **given)
    options.versions = options.versions or (8 if options.quick else 16)  # of a step
    datasets = options.dataset or (["mnist"] if options.quick else ["mnist", "cifar10"])
    where = environment(torch.device(options.device))
    suffix = "_quick" if options.quick else ""
    chosen = None
    if options.part in ("steps", "both"):
        found = {"environment": where, "seed": 0, "steps": steps(options)}
        print("wrote", save(options.out, f"averaging_steps{suffix}.json", found))
    if options.part in ("curve", "both"):
        for dataset in datasets:
            found = kept_and_taken(dataset, settings, options)
            one = best(found["ways"])
            chosen = chosen or one
            result = {"environment": where, "curve": found, "best": one}
            print("wrote", save(options.out, f"averaging_{dataset}{suffix}.json", result))
    if chosen is not None:
        print(f"{chosen['way']}")
        print(f"kept={chosen['kept']:.2f} time={chosen['time']:.2f} layer={chosen['layer']}")


if __name__ == "__main__":
    main()
