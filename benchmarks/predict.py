"""Does a score foretell what training shows? Train every candidate, then judge every score.

    python benchmarks/predict.py DATA.npz… [--name NAME] [--architectures cnn,lenet,resnet]
        [--scores trial,ridge:patches,…] [--steps N] [--seeds N] [--device auto] [--quick]
    python benchmarks/predict.py --table

A data file holds x_train, y_train, x_test and y_test. Results go to benchmarks/results/predict/,
one JSON file a data file; what is there already is not computed again, so a run can be stopped and
gone on with. `--table` prints all of them; `docs/prediction.md` shows them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from judging import judge
from rivals import RIVALS

import augury
from augury._base.devices import resolve_device
from augury._base.files import write
from augury.augmentations import Mixture, default_augmentations, identity, parse
from augury.data import Dataset, as_dataset
from augury.forecasting.training import train_together

RESULTS = Path(__file__).parent / "results" / "predict"
SETTINGS = {"lenet": 0.002, "cnn": 0.003, "resnet": 0.003}
MIXTURE = "one of all at random"


def read(path: Path, most: int | None) -> tuple[Dataset, Dataset]:
    with np.load(path) as arrays:
        train = as_dataset(arrays["x_train"], arrays["y_train"], max_examples=most)
        test = as_dataset(arrays["x_test"], arrays["y_test"], classes=train.classes)
    return train, test


def truth(
    found: dict[str, Any], train: Dataset, test: Dataset, specs: list[str], options: Any, where: Any
) -> None:
    """Train every candidate, and a uniform mixture of all, with each architecture."""
    candidates = [parse(spec) for spec in specs]
    everything = dict(zip(["identity", *specs], [identity(), *candidates], strict=True))
    everything[MIXTURE] = Mixture.of(*candidates)
    for architecture in options.architectures.split(","):
        empty = {"accuracy": {}, "cross_entropy": {}, "steps": options.steps, "seconds": 0.0}
        known = found["truth"].setdefault(architecture, empty | {"device": _device(where)})
        names = [name for name in everything if name not in known["accuracy"]]
        if not names:
            continue
        started = time.perf_counter()
        curve = train_together(
            train, test, [everything[name] for name in names],
            architecture=architecture, seeds=options.seeds, steps=known["steps"],
            rate=SETTINGS[architecture], device=where,
        )  # fmt: skip
        known["accuracy"] |= dict(zip(names, curve.accuracy.tolist(), strict=True))
        known["cross_entropy"] |= dict(zip(names, curve.cross_entropy.tolist(), strict=True))
        if len(names) > len(specs):  # not where only what was missing was added
            known["seconds"] = time.perf_counter() - started
        yield_to(options, found)


def score(
    found: dict[str, Any], train: Dataset, specs: list[str], options: Any, where: Any
) -> None:
    """Judge every candidate by each score and rival."""
    for wanted in options.scores.split(","):
        if wanted in found["scores"]:
            continue
        name, _, features = wanted.partition(":")
        started = time.perf_counter()
        if name in RIVALS:
            values = RIVALS[name](train, [identity(), *map(parse, specs)], 0, where)
            gain = dict(zip(specs, (values[1:] - values[0]).tolist(), strict=True))
            row: dict[str, Any] = {"gain": gain}
        else:
            ranking = augury.rank(
                train, augmentations=specs, score=name, features=features or None,
                device=where, max_examples=None,
            )  # fmt: skip
            row = {
                "gain": {r.augmentation: r.gain for r in ranking.rows},
                "interval": {r.augmentation: [r.low, r.high] for r in ranking.rows},
                "baseline": ranking.baseline.score,
                "features": ranking.features,
            }
        row |= {"seconds": time.perf_counter() - started, "device": _device(where)}
        found["scores"][wanted] = row
        yield_to(options, found)
        print(f"{found['name']}: {wanted}: {row['seconds']:.1f} s", flush=True)


def yield_to(options: Any, found: dict[str, Any]) -> None:
    write(Path(options.out) / f"{found['name']}.json", json.dumps(found, indent=1) + "\n")


def _device(where: torch.device) -> str:
    return torch.cuda.get_device_name() if where.type == "cuda" else f"{os.cpu_count()} cores"


def table(folder: Path) -> list[dict[str, Any]]:
    """Judge all scores of all results; one row a data file, architecture and score."""
    rows = []
    for path in sorted(folder.glob("*.json")):
        found = json.loads(path.read_text())
        for architecture, real in found["truth"].items():
            accuracy = real["accuracy"]
            mean = np.mean(
                [np.mean(v) for k, v in accuracy.items() if k not in ("identity", MIXTURE)]
            )
            best = max(np.mean(v) for k, v in accuracy.items() if k != MIXTURE)
            about = {"data": found["name"], "network": architecture, "train": found["train"]}
            rows.append(
                about | {"score": "no choice (mean of all)", "regret@1": 100 * (best - mean)}
            )
            if MIXTURE in accuracy:
                mixed = 100 * (best - np.mean(accuracy[MIXTURE]))
                rows.append(about | {"score": f"no choice ({MIXTURE})", "regret@1": mixed})
            for name, guess in found["scores"].items():
                interval = guess.get("interval") if name == "trial" else None
                share = guess["seconds"] / real["seconds"]
                same = guess["device"] == real["device"]
                rows.append(
                    about | {"score": name} | judge(guess["gain"], accuracy, interval)
                    | {"time share": share if same else None}
                )  # fmt: skip
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    print(f"{'data':12} {'network':7} {'score':28} {'spearman':>20} {'signs':>6} "
          f"{'regret@1':>8} {'@3':>6} {'covered':>8} {'time':>6}")  # fmt: skip
    for row in rows:
        rho = row.get("spearman")
        text = f"{rho[0]:.2f} ({rho[1]:.2f} to {rho[2]:.2f})" if rho else ""
        cells = [
            f"{row[key]:.2f}" if row.get(key) is not None else ""
            for key in ("signs", "regret@1", "regret@3", "covered", "time share")
        ]
        print(f"{row['data']:12} {row['network']:7} {row['score']:28} {text:>20} {cells[0]:>6} "
              f"{cells[1]:>8} {cells[2]:>6} {cells[3]:>8} {cells[4]:>6}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", type=Path)
    parser.add_argument("--name")
    parser.add_argument("--augmentations", type=Path, help="a file with one spec a line")
    parser.add_argument("--max-train", type=int)
    parser.add_argument("--architectures", default="cnn")
    parser.add_argument(
        "--scores",
        default="trial,alignment,centred-alignment,ridge:patches,kernel-ridge:gradient,"
        "pixel distance,affinity,one epoch of LeNet",
    )
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", default=str(RESULTS))
    parser.add_argument("--quick", action="store_true", help="digits, six candidates, a minute")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    where = resolve_device(options.device)
    if where.type == "cuda":
        torch.backends.cudnn.benchmark = True
    if options.quick:
        options.steps, options.seeds, options.out = 150, 1, str(_quick_folder())
        options.data = [_quick_data(Path(options.out))]
    for path in options.data:
        train, test = read(path, options.max_train)
        name = options.name or path.stem
        target = Path(options.out) / f"{name}.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        specs = (
            [
                line.strip()
                for line in options.augmentations.read_text().splitlines()
                if line.strip()
            ]
            if options.augmentations
            else [repr(a) for a in default_augmentations(train.kind, train.shape)]
        )
        specs = [s for s in specs if s != "identity"][: 6 if options.quick else None]
        found = json.loads(target.read_text()) if target.exists() else {
            "name": name, "train": len(train), "test": len(test), "shape": list(train.shape),
            "truth": {}, "scores": {},
            "versions": {"augury": augury.__version__, "torch": torch.__version__,
                         "python": platform.python_version()},
        }  # fmt: skip
        truth(found, train, test, specs, options, where)
        score(found, train, specs, options, where)
    show(table(Path(options.out)))


def _quick_folder() -> Path:
    import tempfile

    return Path(tempfile.mkdtemp(prefix="augury-predict-"))


def _quick_data(folder: Path) -> Path:
    from sklearn.datasets import load_digits

    digits = load_digits()
    path = folder / "digits.npz"
    np.savez(
        path,
        x_train=digits.images[:600].astype(np.uint8) * 15,
        y_train=digits.target[:600],
        x_test=digits.images[600:].astype(np.uint8) * 15,
        y_test=digits.target[600:],
    )
    return path


if __name__ == "__main__":
    main()
