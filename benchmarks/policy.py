"""Is the policy that was chosen better than what people use? Train them all.

    python benchmarks/policy.py run DATA.npz --source NAME --epochs N [--network cnn] [--pretrained]
        [--seeds 3] [--examples N] [--also parts contended]
        [--stages search train again parts longer longest] [--out DIR]
    python benchmarks/policy.py table
    python benchmarks/policy.py page
    python benchmarks/policy.py --quick

`run` works in stages, each written into one JSON file as soon as it is done: *search* a policy on
the training images of DATA; *train* with the policy, with each of its parts left out, with the
common recipes and without augmentation, for the same epochs; train them all *again*, with other
seeds, where those that there are differ too much; train the policy and what is left without each
of its *parts* with further seeds; train the recipes *longer*, by as many epochs as an ordinary loop
has in the time that the search took, and *longest*, by as many as the loop of this library has,
which repeats recorded steps.
A network of one's own (MODULE:FUNCTION) is trained as `augury.rank` trains it.
"""

from __future__ import annotations

import argparse
import copy
import json
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from _cell import train_all
from _policy_page import RESULTS, RIVALS, Found, page, read, table
from _result import environment
from torch import Tensor, nn

from augury import load_network, search_policy
from augury._base.devices import resolve_device
from augury._base.files import write
from augury._base.rng import Rng
from augury.augmentations import Augmentation, identity, parse
from augury.data import as_dataset
from augury.forecasting.policy.space import without
from augury.forecasting.training.grouped import ARCHITECTURES, Grouped
from augury.forecasting.training.members import Schedule, precision
from augury.forecasting.training.own import OwnNetwork

STAGES = ("search", "train", "longer", "longest")
MORE = ("again", "parts")
BATCH = Schedule.batch


class Bench:
    """One data set, one network and one length of training."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.device = options, resolve_device(options.device)
        with np.load(options.data) as arrays:
            self.data = as_dataset(
                arrays["x_train"], arrays["y_train"], max_examples=options.examples
            )
            self.tests = as_dataset(arrays["x_test"], arrays["y_test"], classes=self.data.classes)
        self.own: OwnNetwork | None = None
        if options.network not in ARCHITECTURES:
            network = load_network(options.network, self.data.shape)
            self.own = OwnNetwork(network, options.pretrained)
        self.label = options.network.split(":")[-1]
        name = f"{options.source}_{len(self.data)}_{options.epochs}_{self.label}"
        self.path = Path(options.out) / f"{name.replace(' ', '_')}.json"

    def run(self) -> Path:
        """Go through the stages that were asked for."""
        found = json.loads(self.path.read_text()) if self.path.exists() else {}
        for stage in self.options.stages:
            started = time.perf_counter()
            getattr(self, stage)(found)
            print(f"{self.path.stem} {stage}: {time.perf_counter() - started:.1f} s", flush=True)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write(self.path, json.dumps(found, indent=1) + "\n")
        return self.path

    def search(self, found: Found) -> None:
        """Search a policy on the training images alone."""
        options, started = self.options, time.perf_counter()
        policy = search_policy(
            self.data, epochs=options.epochs,
            network=options.network if self.own is None else self.own.network,
            pretrained=options.pretrained, device=self.device,
        )  # fmt: skip
        found |= {
            "source": options.source, "examples": len(self.data), "tests": len(self.tests),
            "epochs": options.epochs, "network": self.label, "policy": repr(policy),
            "reason": policy.reason, "rows": policy.to_dict()["rows"], "path": list(policy.path),
            "search_seconds": round(time.perf_counter() - started, 1),
            "search_environment": environment(self.device),
        }  # fmt: skip

    def train(self, found: Found) -> None:
        """Train with the policy, without its parts, with what contended, recipes and nothing."""
        chosen, rows, also = parse(found["policy"]), found["rows"], self.options.also
        contended = [r["spec"] for r in rows if r["role"] == "tried" and r["rounds"] == 3]
        parts = [r["part"] for r in rows if r["role"] == "part"] if "parts" in also else []
        contended = contended if "contended" in also else []
        names = ["identity", found["policy"], *RIVALS, *contended]
        names += [f"without {part}" for part in parts]
        everyone = {name: _named(name, chosen) for name in names}
        right, seconds = self.train_all(everyone.values(), self.options.epochs, self.options.seeds)
        gaps = right.double().mean(2)  # (tests, everyone), over seeds
        gaps = gaps - gaps[:, [list(everyone).index(found["policy"])]]
        sampling = 100 * gaps.std(0) / len(gaps) ** 0.5
        found |= {
            "accuracy": dict(zip(everyone, per_cent(right), strict=True)),
            "sampling_error": dict(zip(everyone, sampling.tolist(), strict=True)),
            "train_seconds": round(seconds, 1), "train_environment": environment(self.device),
        }  # fmt: skip

    def again(self, found: Found) -> None:
        """Train with all of them with as many other seeds, and add what that showed."""
        known, chosen = found["accuracy"], parse(found["policy"])
        everyone = [_named(name, chosen) for name in known]
        done = len(known["identity"])
        right, seconds = self.train_all(everyone, found["epochs"], self.options.seeds, seed=done)
        for seen, new in zip(known.values(), per_cent(right), strict=True):
            seen += new
        found["train_seconds"] = round(found["train_seconds"] + seconds, 1)

    def parts(self, found: Found) -> None:
        """Train the policy, and what is left without each of its parts, with further seeds."""
        parts = [row["part"] for row in found["rows"] if row["role"] == "part"]
        if len(parts) < 2:  # nothing is left without the only part
            return
        chosen, more = parse(found["policy"]), found.setdefault("parts", {})
        names = [found["policy"], *(f"without {part}" for part in parts)]
        done = len(found.get("accuracy", {}).get("identity", ())) + len(more.get(names[0], ()))
        everyone = [_named(name, chosen) for name in names]
        right, _ = self.train_all(everyone, found["epochs"], self.options.seeds, seed=done)
        for name, new in zip(names, per_cent(right), strict=True):
            more[name] = [*more.get(name, ()), *new]
        found["parts_environment"] = environment(self.device)

    def longer(self, found: Found) -> None:
        """Train the recipes longer, by what an ordinary loop does in the time of the search."""
        found["longer"] = self.train_on(found["search_seconds"], self.ordinary_epoch())

    def longest(self, found: Found) -> None:
        """Train the recipes longer, by what the loop of this library does in that time."""
        few, recipe = -(-100 // max(1, len(self.data) // BATCH)), [parse("trivial_augment")]
        self.train_all(recipe, few, 1)  # libraries warm up
        _, first = self.train_all(recipe, few, 1)
        _, second = self.train_all(recipe, 5 * few, 1)
        found["longest"] = self.train_on(found["search_seconds"], (second - first) / (4 * few))

    def train_on(self, seconds: float, epoch: float) -> Found:
        """Train the recipes for as many more epochs as fit into some seconds."""
        epochs = self.options.epochs + round(seconds / epoch)
        right, _ = self.train_all(map(parse, RIVALS), epochs, self.options.seeds)
        return {
            "epochs": epochs, "epoch_seconds": round(epoch, 4),
            "accuracy": dict(zip(RIVALS, per_cent(right), strict=True)),
        }  # fmt: skip

    def ordinary_epoch(self) -> float:
        """Return how long an epoch of one network takes that makes its views batch by batch."""
        data, device, steps = self.data, self.device, 40
        if self.own is None:
            network = nn.Sequential(
                nn.Unflatten(1, (1, -1)),
                Grouped(self.options.network, 1, data.shape, data.outputs, 0),
                nn.Flatten(0, 1),
            )
        else:
            network = copy.deepcopy(self.own.network)
        network.to(device).train()
        optimizer = torch.optim.AdamW(network.parameters(), 1e-3)
        recipe, times = parse("trivial_augment"), []
        for k in range(2 * steps + 1):
            if k % steps == 0:
                float(next(network.parameters()).detach().sum())  # waits for the device
                times.append(time.perf_counter())
            rows = torch.randint(len(data), (BATCH,), generator=torch.Generator().manual_seed(k))
            x = data.batch(rows, device, torch.float32)
            x = recipe.views(x, 1, Rng(k, rows.to(device)))[0]
            with precision(device, data.shape):
                out = network(x)
            F.cross_entropy(out.float(), data.y[rows].to(device)).backward()
            optimizer.step()
            optimizer.zero_grad()
        return (times[2] - times[1]) / steps * (len(data) // BATCH)  # the first steps warm up

    def train_all(
        self, candidates: Iterable[Augmentation], epochs: int, seeds: int, seed: int = 0
    ) -> tuple[Tensor, float]:
        """Return which test images are right, ``(tests, candidates, seeds)``, and seconds."""
        started = time.perf_counter()
        right = train_all(
            self.data, self.tests, list(candidates), self.own or self.options.network,
            epochs=epochs, seeds=seeds, seed=seed, device=self.device,
        )  # fmt: skip
        return right, time.perf_counter() - started


def _named(name: str, chosen: Augmentation) -> Augmentation:
    """Return what a name in the results was trained with."""
    if name == "identity":
        return identity()
    if name.startswith("without "):
        return without(chosen, parse(name.removeprefix("without ")))
    return parse(name)


def per_cent(right: Tensor) -> list[list[float]]:
    """Return the accuracies of each candidate, one for each seed."""
    return (100 * right.double().mean(0)).tolist()


def quick() -> None:
    """Run one small search on scikit-learn's digits, in a temporary directory."""
    from sklearn.datasets import load_digits

    digits: Any = load_digits()
    x, y = (15 * digits.images).astype(np.uint8), digits.target
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.npz"
        np.savez(path, x_train=x[:300], y_train=y[:300], x_test=x[600:], y_test=y[600:])
        out = Path(folder) / "out"
        options = argparse.Namespace(
            data=path, source="digits", epochs=1, network="lenet", seeds=2, examples=None,
            device="cpu", out=out, pretrained=False, stages=STAGES[:2], also=["parts"],
        )  # fmt: skip
        Bench(options).run()
        print("\n".join(table(read(out))))


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("command", nargs="?", choices=("run", "table", "page"))
    parser.add_argument("data", nargs="?", type=Path)
    parser.add_argument("--source", default="data")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--network", default="cnn")
    parser.add_argument("--pretrained", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--examples", type=int)
    parser.add_argument("--also", nargs="*", choices=("parts", "contended"), default=["parts"])
    parser.add_argument("--stages", nargs="+", choices=(*STAGES, *MORE), default=STAGES)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", default=str(RESULTS))
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.quick:
        quick()
    elif options.command == "run":
        print(Bench(options).run())
    elif options.command == "page":
        write("docs/policy.md", page())
    else:
        print("\n".join(table([found for found in read() if "accuracy" in found])))


if __name__ == "__main__":
    main()
