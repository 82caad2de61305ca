"""Averaging at a layer: the accuracy it keeps against the time it takes, and single steps.

    python benchmarks/averaging.py [--quick] [--device cuda] [--dataset mnist] [--part curve]

The curve: LeNet is trained on n versions of each image (rotation by up to 15 degrees, a rule of n
angles) in several ways, each with the same starts and the same order of examples in every trial:
without augmentation, in full (all versions through the whole network), with fewer versions, and
averaged at each of its layers 0 to 4. `kept` is the share of full augmentation's gain in clean
test accuracy, `time` the share of its training time, both measured; the time holds everything from
making the versions to the optimiser's step. KL is the mean divergence of the test predictions from
those of the network of the same trial that was trained in full.

The steps: time and peak memory of a training step of one version, of all of them and of averages
at layers, for LeNet, ResNet-18 and a small ViT, taking turns; and what `augury.plan` recommends.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from _networks import (
    DATA,
    LAYERS,
    RESULTS,
    ViT,
    arrays,
    environment,
    lenet,
    resnet18,
    save,
    seeded,
    synchronize,
)
from torch import Tensor, nn

from augury.augmentations import parse
from augury.averaging import Averaging, TangentPropagation, cuts
from augury.averaging.average import versions_of
from augury.objectives import multinomial
from augury.planning import plan
from augury.planning.measure import seconds

SPEC = "rotation(15)"
T = parse(SPEC)


@dataclass(frozen=True)
class Way:
    """One way of training: its name, its layer (0 to 4, where it averages) and its loss."""

    name: str
    layer: int | None
    how: object  # None, a number of versions, or an Averaging

    def loss(self, model: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
        if self.how is None:
            return F.cross_entropy(model(x), y)
        if isinstance(self.how, int):
            versions, weights = versions_of(T, x, self.how, None)
            each = multinomial(model(versions.flatten(0, 1)), y.repeat(len(versions)))
            return (weights @ each.view(len(versions), -1)).mean()
        return self.how.loss(model, x, y, seed=step)


def ways(n: int, quick: bool) -> list[Way]:
    out = [Way("none", None, None), Way("full", None, n)]
    out += [Way(f"{k} versions", None, k) for k in ((n // 2,) if quick else (n // 2, n // 4))]
    for k, layer in enumerate(LAYERS):
        if not quick or k in (0, 1):
            out.append(Way(f"layer {k}, order 1", k, Averaging(T, layer, n)))
        if not quick or k in (1, 4):
            second = Averaging(T, layer, n, order=2, directions=1)
            out.append(Way(f"layer {k}, order 2", k, second))
    for k, groups in ((0, n // 2), (0, n // 4), (1, n // 4)):
        if not quick or groups == n // 2:
            how = Averaging(T, LAYERS[k], n, groups=groups)
            out.append(Way(f"layer {k}, {groups} groups", k, how))
    if not quick:
        out.append(Way("layer 0, tangents", 0, TangentPropagation(T)))
    return out


def train(way: Way, data: dict[str, Tensor], trial: int, options) -> tuple[float, float, Tensor]:
    """Train once: test accuracy, seconds of training, test predictions."""
    x, y = data["x_train"], data["y_train"]
    device = x.device
    generator = torch.Generator().manual_seed(trial)
    kept = torch.randperm(len(x), generator=generator)[: options.examples].to(device)
    x, y = x[kept], y[kept]
    shape = tuple(x.shape[1:])
    model = seeded(lambda: lenet(shape[0], shape[1]), trial).to(device)
    optimizer = torch.optim.Adam(model.parameters(), options.rate, fused=device.type == "cuda")
    per_epoch = len(x) // options.batch
    steps = options.epochs * per_epoch
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.rate, total_steps=steps)
    scaled = x[: options.batch].float() / 255
    way.loss(model, scaled, y[: options.batch], 0)  # what happens once is not part of the time
    synchronize(device)
    start, step = time.perf_counter(), 0
    for _ in range(options.epochs):
        order = torch.randperm(len(x), generator=generator).to(device)
        for rows in order[: per_epoch * options.batch].view(per_epoch, -1):
            loss = way.loss(model, x[rows].float() / 255, y[rows], trial * steps + step)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            step += 1
    synchronize(device)
    took = time.perf_counter() - start
    model.eval()
    with torch.no_grad():
        parts = [model(part.float() / 255) for part in data["x_test"].split(2000)]
    logits = torch.cat(parts)
    accuracy = (logits.argmax(1) == data["y_test"]).float().mean().item()
    return accuracy, took, logits.log_softmax(1)


def curve(dataset: str, options) -> dict:
    """Train in every way, trial by trial, and say what each keeps and takes."""
    device = torch.device(options.device)
    data = arrays(dataset, options.data, device)
    todo = ways(options.versions, options.quick)
    if options.quick:
        data["x_test"], data["y_test"] = data["x_test"][:3000], data["y_test"][:3000]
    found: dict[str, list[tuple[float, float, float]]] = {way.name: [] for way in todo}
    for trial in range(options.trials):
        full = None
        for way in sorted(todo, key=lambda w: w.name != "full"):
            accuracy, took, logs = train(way, data, trial, options)
            full = logs if full is None else full
            divergence = F.kl_div(logs, full, log_target=True, reduction="batchmean").item()
            found[way.name].append((accuracy, took, divergence))
        print(f"{dataset}: trial {trial + 1} of {options.trials} done", flush=True)
    rows = [summary(way, found) for way in todo]
    print(f"{dataset}: {'way':22} {'accuracy':>16} {'kept':>13} {'time':>6} {'KL':>8}")
    for row in rows:
        print(
            f"{dataset}: {row['way']:22} {row['accuracy']:7.2%} ± {row['accuracy_sd']:5.2%} "
            f"{row['kept']:6.2f} ± {row['kept_se']:4.2f} {row['time']:6.2f} {row['kl']:8.5f}"
        )
    return {
        "dataset": dataset,
        "augmentation": SPEC,
        "versions": options.versions,
        "trials": options.trials,
        "examples": min(options.examples, len(data["x_train"])),
        "tested_on": len(data["x_test"]),
        "epochs": options.epochs,
        "batch": options.batch,
        "optimizer": f"Adam, one cycle to {options.rate}",
        "ways": rows,
    }


def summary(way: Way, found: dict[str, list[tuple[float, float, float]]]) -> dict:
    accuracy, took, kl = (
        torch.tensor(c, dtype=torch.float64) for c in zip(*found[way.name], strict=True)
    )
    none, full = (
        torch.tensor([r[0] for r in found[k]], dtype=torch.float64) for k in ("none", "full")
    )
    full_time = sum(r[1] for r in found["full"])

    def kept(rows: Tensor) -> float:
        return float((accuracy - none)[rows].mean() / (full - none)[rows].mean())

    everything = torch.ones(len(none), dtype=torch.bool)
    without = [kept(everything & (torch.arange(len(none)) != k)) for k in range(len(none))]
    spread = torch.tensor(without, dtype=torch.float64)
    error = (
        ((len(none) - 1) * spread.var(correction=0)).sqrt() if len(none) > 1 else torch.tensor(0)
    )
    return {
        "way": way.name,
        "layer": way.layer,
        "accuracy": accuracy.mean().item(),
        "accuracy_sd": accuracy.std().item() if len(accuracy) > 1 else 0.0,
        "accuracies": accuracy.tolist(),
        "kept": kept(everything),
        "kept_se": float(error),
        "time": float(took.sum() / full_time),
        "seconds": took.mean().item(),
        "kl": kl.mean().item(),
    }


def best(rows: list[dict]) -> dict:
    """Give the way to train: 95 % in half the time if there is one, else 92 % in 70 %, else the
    most that is kept in 70 % of the time."""
    averaged = [r for r in rows if r["layer"] is not None]
    for share, most in ((0.95, 0.5), (0.92, 0.7)):
        good = [r for r in averaged if r["kept"] >= share and r["time"] <= most]
        if good:
            return min(good, key=lambda r: r["time"])
    fits = [r for r in averaged if r["time"] <= 0.7] or averaged
    return max(fits, key=lambda r: r["kept"])


def steps(options) -> list[dict]:
    """Time single training steps, and measure their memory."""
    device = torch.device(options.device)
    if options.quick:
        cases = [("LeNet", lambda: lenet(), (1, 28, 28), [32])]
    else:
        sizes = [256, 2048, 16384] if device.type == "cuda" else [64]
        deep = [64, 256] if device.type == "cuda" else [8]
        cases = [
            ("LeNet", lambda: lenet(), (1, 28, 28), sizes),
            ("ResNet-18", lambda: resnet18(), (3, 32, 32), deep),
            ("ViT", lambda: ViT(), (3, 32, 32), deep),
        ]
    out = []
    for name, build, shape, batches in cases:
        for batch in batches:
            out.append(steps_of(name, seeded(build, 0).to(device), shape, batch, options))
    return out


def steps_of(name: str, model: nn.Module, shape: tuple[int, ...], batch: int, options) -> dict:
    n, device = options.versions, torch.device(options.device)
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(batch, *shape, generator=generator).to(device)
    y = torch.randint(0, 10, (batch,), generator=generator).to(device)
    names = cuts(model, x)
    if name == "LeNet":
        names = list(LAYERS[:3] if options.quick else LAYERS)
    elif len(names) > 8:
        names = names[:: len(names) // 8]
    if name == "LeNet":  # some training, so that the plan's errors mean something
        optimizer = torch.optim.Adam(model.parameters(), 2e-3)
        for _ in range(30):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    chosen = plan(model, x, T, y, n=n, layers=names, repeats=options.repeats)
    cheap = chosen.within(1.5) or min(chosen.choices, key=lambda c: c.step)
    runs = {"one version": Way("", None, 1), "all versions": Way("", None, n)}
    for layer in names:
        runs[f"averaged at {layer}"] = Way("", None, Averaging(T, layer, n))
    runs["recommended for 1.5"] = Way(
        "",
        None,
        Averaging(T, cheap.layer, n, order=cheap.order, groups=cheap.groups,
                  directions=1 if cheap.order == 2 else None),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)

    def step(way: Way):
        def run() -> None:
            optimizer.zero_grad()
            way.loss(model, x, y, 0).backward()
            optimizer.step()

        return run

    model.train()
    calls = {key: step(way) for key, way in runs.items()}
    took = seconds(calls, device, options.repeats)
    memory = {key: peak(call, device) for key, call in calls.items()}
    one = took["one version"]
    print(f"{name}, batch {batch}, {n} versions, {environment(device)['device']}:")
    for key in runs:
        gib = "" if memory[key] is None else f", {memory[key]:.2f} GiB"
        print(f"  {key:24} {1e3 * took[key]:9.2f} ms  {took[key] / one:6.2f} × one version{gib}")
    print(f"  plan for at most 1.5 × one version: {cheap.layer}, order {cheap.order}, "
          f"{cheap.groups} groups, error {cheap.error:.2f}")  # fmt: skip
    print(f"  plan for half of the time: {chosen.sentence()}", flush=True)
    return {
        "network": name,
        "batch": batch,
        "versions": n,
        "seconds": took,
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
    parser.add_argument(
        "--data", type=Path, default=DATA, help="the folder of mnist.npz, cifar10.npz"
    )
    parser.add_argument("--dataset", action="append", choices=["mnist", "cifar10"])
    parser.add_argument("--part", choices=["curve", "steps", "both"], default="both")
    parser.add_argument("--versions", type=int, default=None)
    parser.add_argument("--out", type=Path, default=RESULTS, help="where results are written")
    parser.add_argument("--trials", type=int, default=None)
    parser.add_argument("--examples", type=int, default=None, help="training images")
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--batch", type=int, default=None)
    parser.add_argument("--rate", type=float, default=None)
    parser.add_argument("--repeats", type=int, default=None)
    options = parser.parse_args()
    usual = {"versions": 16, "trials": 5, "examples": 60000, "epochs": 15, "batch": 1024}
    usual |= {"rate": 4e-3, "repeats": 20}
    quick = {"versions": 8, "trials": 2, "examples": 300, "epochs": 16, "batch": 50}
    quick |= {"rate": 3e-3, "repeats": 2}
    for key, value in (quick if options.quick else usual).items():
        if getattr(options, key) is None:
            setattr(options, key, value)
    datasets = options.dataset or (["mnist"] if options.quick else ["mnist", "cifar10"])
    where = environment(torch.device(options.device))
    suffix = "_quick" if options.quick else ""
    curves, chosen = [], None
    if options.part in ("steps", "both"):
        found = {"environment": where, "seed": 0, "steps": steps(options)}
        print("wrote", save(options.out, f"averaging_steps{suffix}.json", found))
    if options.part in ("curve", "both"):
        for dataset in datasets:
            curves.append(curve(dataset, options))
            found = {
                "environment": where,
                "seeds": list(range(options.trials)),
                "curve": curves[-1],
            }
            found["best"] = best(curves[-1]["ways"])
            chosen = chosen or found["best"]
            print("wrote", save(options.out, f"averaging_{dataset}{suffix}.json", found))
    if chosen is not None:
        print(f"{chosen['way']}")
        print(f"kept={chosen['kept']:.2f} time={chosen['time']:.2f} layer={chosen['layer']}")


if __name__ == "__main__":
    main()
