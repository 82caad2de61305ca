"""Is the policy that was chosen better than what people use? Train them all.

    python benchmarks/policy.py run DATA.npz --source NAME --epochs N [--network cnn] [--seeds 2]
        [--examples N] [--device auto] [--out DIR]
    python benchmarks/policy.py table
    python benchmarks/policy.py page
    python benchmarks/policy.py --quick

`run` searches a policy on the training images of DATA, then really trains with it, with each of its
parts left out, with the usual recipes and without augmentation, and writes one JSON file.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _cell import make_parser, save_digits
from _result import environment

from augury import search_policy
from augury._base.devices import resolve_device
from augury._base.files import write
from augury.augmentations import identity, parse
from augury.data import as_dataset
from augury.forecasting.policy.space import RIVALS, parts_of, without
from augury.forecasting.training import train_together

RESULTS = Path(__file__).parent / "results" / "policy"
SHOWN = {
    "trivial_augment": "TrivialAugment",
    "trivial_augment(2)": "TrivialAugment, 2 stacked",
    "rand_augment(2,9)": "RandAugment(2,9)",
    "horizontal_flip >> translation(0.125)": "flip and crop",
}


def run(options: argparse.Namespace) -> Path:
    """Search, train and write."""
    device = resolve_device(options.device)
    with np.load(options.data) as arrays:
        train = as_dataset(arrays["x_train"], arrays["y_train"], max_examples=options.examples)
        test = as_dataset(arrays["x_test"], arrays["y_test"], classes=train.classes)
    started = time.perf_counter()
    policy = search_policy(train, epochs=options.epochs, device=device)
    seconds = time.perf_counter() - started
    chosen = policy.augmentation
    parts = [part for part in dict.fromkeys(parts_of(chosen)) if part != chosen]
    everyone = {"identity": identity(), repr(chosen): chosen}
    everyone |= {f"without {part!r}": without(chosen, part) for part in parts}
    everyone |= {spec: parse(spec) for spec in RIVALS}
    found = train_together(
        train, test, list(everyone.values()), architecture=options.network, seeds=options.seeds,
        epochs=options.epochs, device=device,
    )  # fmt: skip
    accuracy = dict(zip(everyone, (100 * found.accuracy).tolist(), strict=True))
    own = [name for name in accuracy if name not in RIVALS]
    result = {
        "source": options.source, "examples": len(train), "epochs": options.epochs,
        "network": options.network, "seeds": options.seeds, "search_seconds": round(seconds, 1),
        "policy": repr(policy), "reason": policy.reason, "rows": policy.to_dict()["rows"],
        "accuracy": {name: accuracy[name] for name in own},
        "rivals": {name: accuracy[name] for name in ("identity", *RIVALS)},
        "environment": environment(device),
    }  # fmt: skip
    path = Path(options.out) / f"{options.source.replace(' ', '_')}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, json.dumps(result, indent=1) + "\n")
    return path


def gains(found: dict[str, Any]) -> tuple[float, dict[str, float]]:
    """Return the real gain of the choice and of each recipe; each against its own baseline."""
    own, rivals = found["accuracy"], found["rivals"]
    base = np.mean(rivals["identity"])
    if found["policy"] in own:
        chosen = np.mean(own[found["policy"]]) - np.mean(own["identity"])
    else:  # a usual recipe was chosen
        chosen = np.mean(rivals[found["policy"]]) - base
    return float(chosen), {
        s: float(np.mean(v) - base) for s, v in rivals.items() if s != "identity"
    }


def table(folder: Path = RESULTS) -> list[str]:
    """Return real gains over no augmentation, in Markdown."""
    lines = [
        "| source | examples | epochs | chosen | " + " | ".join(SHOWN.values()) + " | forecast |",
        "| --- |" + " --- |" * (4 + len(SHOWN)),
    ]
    columns: list[list[float]] = []
    for path in sorted(folder.glob("*.json")):
        found = json.loads(path.read_text())
        chosen, rivals = gains(found)
        forecast = next(row["gain"] for row in found["rows"] if row["role"] == "chosen")
        row = [chosen, *(rivals[spec] for spec in SHOWN), forecast]
        columns.append(row)
        values = " | ".join(f"{value:+.1f}" for value in row)
        lines.append(
            f"| {found['source']} | {found['examples']:,} | {found['epochs']} | {values} |"
        )
    means = " | ".join(f"{value:+.1f}" for value in np.mean(columns, axis=0))
    return [*lines, f"| **mean** | | | {means} |"]


def choices(folder: Path = RESULTS) -> list[str]:
    """Return what was chosen, and how long that took."""
    lines = ["| source | policy | search |", "| --- | --- | --- |"]
    for path in sorted(folder.glob("*.json")):
        found = json.loads(path.read_text())
        spec = found["policy"].replace("|", "\\|")
        lines.append(f"| {found['source']} | `{spec}` | {found['search_seconds']:.0f} s |")
    return lines


def contributions(folder: Path = RESULTS) -> tuple[int, int]:
    """Return how many parts really add or cost over half a point, and how many signs agree."""
    clear = agree = 0
    for path in folder.glob("*.json"):
        found = json.loads(path.read_text())
        whole = np.mean({**found["rivals"], **found["accuracy"]}[found["policy"]])
        forecast = next(row["gain"] for row in found["rows"] if row["role"] == "chosen")
        for row in found["rows"]:
            if row["role"] == "part":
                real = whole - np.mean(found["accuracy"][f"without {row['part']}"])
                if abs(real) > 0.5:
                    clear += 1
                    agree += int(np.sign(real) == np.sign(forecast - row["gain"]))
    return clear, agree


def page() -> str:
    """Return the page of the docs."""
    clear, agree = contributions()
    words = (Path(__file__).parent / "policy_page.md").read_text()
    return words.format(
        table="\n".join(table()), choices="\n".join(choices()), clear=clear, agree=agree
    )


def quick() -> None:
    """Run one small search on scikit-learn's digits, in a temporary directory."""
    with tempfile.TemporaryDirectory() as folder:
        path = save_digits(Path(folder), 300)
        options = argparse.Namespace(
            data=path, source="digits", epochs=4, network="lenet", seeds=1, examples=None,
            device="cpu", out=folder,
        )  # fmt: skip
        run(options)
        print("\n".join(table(Path(folder))))


def main() -> None:
    commands = ("run", "table", "page")
    parser = make_parser(__doc__, commands, RESULTS, out=str(RESULTS))
    parser.add_argument("data", nargs="?", type=Path)
    parser.add_argument("--source", default="data")
    parser.add_argument("--examples", type=int)
    options = parser.parse_args()
    if options.quick:
        quick()
    elif options.command == "run":
        print(run(options))
    elif options.command == "page":
        write("docs/policy.md", page())
    else:
        print("\n".join(table()))


if __name__ == "__main__":
    main()
