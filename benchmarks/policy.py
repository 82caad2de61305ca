"""Is the policy that was chosen better than what people use? Train them all.

    python benchmarks/policy.py run DATA.npz --source NAME --epochs N [--network cnn] [--pretrained]
        [--seeds 3] [--examples N] [--also parts contended]
        [--stages search train again longer longest] [--out DIR]
    python benchmarks/policy.py table
    python benchmarks/policy.py page
    python benchmarks/policy.py --quick

`run` works in stages, each written into one JSON file as soon as it is done: *search* a policy on
the training images of DATA; *train* with the policy, with each of its parts left out, with the
usual recipes and without augmentation, for the same epochs; train them all *again*, with other
seeds, where those that there are differ too much; train the recipes *longer*, by as many epochs as
an ordinary loop has in the time that the search took, and *longest*, by as many as the loop of this
library has, which repeats recorded steps.
A network of one's own (MODULE:FUNCTION) is trained as `augury.rank` trains it.
"""

from __future__ import annotations

import argparse
import copy
import json
import tempfile
import textwrap
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from _cell import train_all
from _result import environment
from torch import Tensor, nn

from augury import load_network, search_policy
from augury._base.devices import resolve_device
from augury._base.files import write
from augury._base.rng import Rng
from augury._base.text import listed
from augury.augmentations import Augmentation, identity, parse
from augury.data import as_dataset
from augury.forecasting.policy.space import without
from augury.forecasting.training.grouped import ARCHITECTURES, Grouped
from augury.forecasting.training.members import Schedule, precision
from augury.forecasting.training.own import OwnNetwork

RESULTS = Path(__file__).parent / "results" / "policy"
RIVALS = {
    "trivial_augment(1)": "TrivialAugment",
    "trivial_augment(2)": "2 stacked",
    "trivial_augment(3)": "3 stacked",
    "trivial_augment(4)": "4 stacked",
    "(identity | trivial_augment(1)) ** 2": "UniformAugment",
    "rand_augment(2,9)": "RandAugment(2,9)",
    "horizontal_flip >> translation(0.125)": "flip and crop",
}
STAGES = ("search", "train", "longer", "longest")
AGAIN = "again"
BATCH = Schedule.batch
Found = dict[str, Any]


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


def read(folder: Path = RESULTS) -> list[Found]:
    """Return all results: training from scratch first, by network, and small sets first."""
    found = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    own = {"cnn": 0, "resnet": 1}
    return sorted(found, key=lambda f: (own.get(f["network"], 2), f["source"], f["examples"]))


def gains(found: Found) -> dict[str, float]:
    """Return real gains over no augmentation for the same epochs, by spec."""
    base = np.mean(found["accuracy"]["identity"])
    return {spec: float(np.mean(v) - base) for spec, v in found["accuracy"].items()}


def error(found: Found, spec: str | None = None) -> float:
    """Return the standard error of the gain of the choice over a rival, or over all on average.

    It has two parts: how far training runs with other seeds differ, pooled over policies, and how
    far test images do.
    """
    runs = np.array([v for s, v in found["accuracy"].items() if not s.startswith("without")])
    seeds = 2 * runs.var(1, ddof=1).mean() / runs.shape[1]
    sampling = found.get("sampling_error", {})
    over = [sampling[s] for s in ([spec] if spec else RIVALS) if s in sampling]
    return float(np.sqrt(seeds + np.mean(np.square(over or [0.0]))))


def on_gpu(found: Found) -> bool:
    """Return whether a policy was searched for on a GPU, with the planned network."""
    return "cuda" in found["search_environment"]["machine"]


def table(results: list[Found]) -> list[str]:
    """Return real gains over no augmentation, in Markdown."""
    columns = ["chosen", *RIVALS.values(), "error", "forecast"]
    lines = [
        "| source | network | examples | epochs | " + " | ".join(columns) + " |",
        "| --- | --- |" + " ---: |" * (2 + len(columns)),
    ]
    values = []
    for found in results:
        real = gains(found)
        forecast = next(row["gain"] for row in found["rows"] if row["role"] == "chosen")
        rivals = [real.get(spec, np.nan) for spec in RIVALS]
        row = [real[found["policy"]], *rivals, error(found), forecast]
        values.append(row)
        cells = [f"{v:+.1f}" if np.isfinite(v) else "" for v in row]
        cells[-2] = f"{row[-2]:.1f}"
        lines.append(
            f"| {found['source']} | {found['network']} | {found['examples']:,} | "
            f"{found['epochs']} | {' | '.join(cells)} |"
        )
    means = [f"{v:+.1f}" if np.isfinite(v) else "" for v in np.mean(values, axis=0)]
    means[-2] = ""
    return [*lines, f"| **mean** | | | | {' | '.join(means)} |"]


def longer_table(results: list[Found], stage: str) -> list[str]:
    """Return gains of recipes that trained longer, beside that of the choice, in Markdown."""
    columns = ["longer", "chosen", *RIVALS.values()]
    lines = [
        "| source | network | examples | epochs | " + " | ".join(columns) + " |",
        "| --- | --- |" + " ---: |" * (2 + len(columns)),
    ]
    values = []
    for found in results:
        base = np.mean(found["accuracy"]["identity"])
        row = [gains(found)[found["policy"]]]
        row += [float(np.mean(found[stage]["accuracy"][spec]) - base) for spec in RIVALS]
        values.append(row)
        lines.append(
            f"| {found['source']} | {found['network']} | {found['examples']:,} | "
            f"{found['epochs']} | {found[stage]['epochs']} | "
            f"{' | '.join(f'{v:+.1f}' for v in row)} |"
        )
    chosen, *means = np.mean(values, axis=0)
    shown = " | ".join(f"{v:+.1f}" for v in (chosen, *means))
    each = {name: mean - chosen for name, mean in zip(RIVALS.values(), means, strict=True)}
    behind = [f"{name} by {lost:.1f} points" for name, lost in each.items() if round(lost, 1) > 0]
    words = "On average, no recipe beats the chosen policy."
    if behind:
        words = f"On average, the chosen policy is beaten by {listed(behind)}."
    lost, where = max(
        (rival - row[0], f"{name} on {found['source']} ({found['network']})")
        for row, found in zip(values, results, strict=True)
        for name, rival in zip(RIVALS.values(), row[1:], strict=True)
    )
    if lost > 0:
        words += f" Its largest single loss is {lost:.1f} points, against {where}."
    return [*lines, f"| **mean** | | | | | {shown} |", "", _wrapped(words)]


def choices(results: list[Found]) -> list[str]:
    """Return what was chosen, and how long that took."""
    lines = ["| source | network | policy | search |", "| --- | --- | --- | ---: |"]
    for found in results:
        spec = found["policy"].replace("|", "\\|")
        where = f"{found['source']} | {found['network']}"
        shared = ", GPU shared" if found.get("shared") else ""
        lines.append(f"| {where} | `{spec}` | {found['search_seconds']:.0f} s{shared} |")
    return lines


def contributions(results: list[Found]) -> tuple[int, int]:
    """Return how many parts really add or cost over half a point, and how many signs agree."""
    clear = agree = 0
    for found in results:
        whole = np.mean(found["accuracy"][found["policy"]])
        forecast = next(row["gain"] for row in found["rows"] if row["role"] == "chosen")
        parts = [row for row in found["rows"] if row["role"] == "part"]
        for row in parts:
            if len(parts) > 1:  # else nothing is left without it
                real = whole - np.mean(found["accuracy"][f"without {row['part']}"])
                if abs(real) > 0.5:
                    clear += 1
                    agree += int(np.sign(real) == np.sign(forecast - row["gain"]))
    return clear, agree


def ahead(results: list[Found]) -> str:
    """Return how far the choice is ahead of the recipes, and where it is not, in sentences."""
    real = [gains(found) for found in results]
    names = ("trivial_augment(1)", "rand_augment(2,9)", "horizontal_flip >> translation(0.125)")
    mean = [
        np.mean([r[found["policy"]] - r[name] for r, found in zip(real, results, strict=True)])
        for name in names
    ]
    behind = []
    for found, r in zip(results, real, strict=True):
        best = max((spec for spec in (*RIVALS, "identity") if spec in r), key=lambda spec: r[spec])
        lost = r[best] - r[found["policy"]]
        if lost > 0.3:
            name = RIVALS.get(best, "no augmentation")
            behind.append(
                f"{name} by {lost:.1f} ± {error(found, best):.1f} points on {found['source']} "
                f"({found['network']}, {found['examples']:,} examples)"
            )
    said = "In no row of the table was an alternative better by more than 0.3 points."
    if behind:
        said = (
            f"In {len(behind)} of the {len(results)} rows of the table, an alternative was better "
            f"by more than 0.3 points: {listed(behind)}; ± is the standard error."
        )
    return (
        f"On average, the chosen policy gains {mean[0]:+.1f} points over TrivialAugment, "
        f"{mean[1]:+.1f} over RandAugment(2,9) and {mean[2]:+.1f} over flip and crop. {said}"
    )


_LONGER = """\
In the time that the search takes, the recipes could have been trained for more epochs. The next
table shows the gains of the chosen policy for the planned number of epochs, and the gains of the
recipes after longer training: by as many epochs as an ordinary PyTorch loop completes in that time
(one network, views computed on the GPU batch by batch, about 15 ms per step):"""
_LONGEST = """\
The same comparison with augury's own training loop, which replays recorded steps and trains a
network of this size several times faster:"""
_OLDER = (
    "The policies for {} were found by an earlier version of the search, which had no separate "
    "round for the contenders and did not compare with TrivialAugment × 4 and UniformAugment."
)
_NOT_LONGER = "Not measured: training the recipes longer, by the time that the search takes."


def page() -> str:
    """Return the page of the docs."""
    everything = read()
    results = [found for found in everything if on_gpu(found)]
    small = [found for found in everything if not on_gpu(found)]
    clear, agree = contributions(everything)
    words = (Path(__file__).parent / "policy_page.md").read_text()
    filled: dict[str, Any] = {
        "table": "\n".join(table(results)), "choices": "\n".join(choices(results)),
        "small": "\n".join(table(small)), "small_choices": "\n".join(choices(small)),
        "small_ahead": _wrapped(ahead(small)),
    }  # fmt: skip
    longer = []
    for stage, said in (("longer", _LONGER), ("longest", _LONGEST)):
        if those := [found for found in results if stage in found]:
            longer += [said, "\n".join(longer_table(those, stage))]
    filled["longer_words"] = "\n\n".join(longer or [_NOT_LONGER])
    older = [found["source"] for found in results if "note" in found]
    filled["older"] = _wrapped(_OLDER.format(", ".join(older))) + "\n\n" if older else ""
    kills = json.loads((RESULTS.parent / "policy_kills.json").read_text())
    clock = json.loads((RESULTS.parent / "policy_time.json").read_text())
    filled |= {name: clock[name]["seconds"] for name in ("gpu", "cpu")}
    return words.format(
        **filled, clear=clear, agree=agree, ahead=_wrapped(ahead(results)), same=kills["same"],
        kills=len(kills["kills"]), row=kills["in_a_row"]["kills"],
        kept=sum(kill["rounds_kept"] > 0 for kill in kills["kills"]),
    )  # fmt: skip


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 102, break_long_words=False, break_on_hyphens=False)


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
    parser.add_argument("--stages", nargs="+", choices=(*STAGES, AGAIN), default=STAGES)
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
        print("\n".join(table(read())))


if __name__ == "__main__":
    main()
