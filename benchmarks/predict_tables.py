"""Does augmentation help on tables, and is that foreseen? Boosted trees and a small network.

    python benchmarks/predict_tables.py run [TABLES.npz] [--names A,B] [--splits 5] [--out DIR]
    python benchmarks/predict_tables.py linear [TABLES.npz] [--names A,B] [--results DIR]
    python benchmarks/predict_tables.py page [--results DIR] [--out docs/prediction_tables.md]
    python benchmarks/predict_tables.py --quick

Each table is split into halves several times. On the training half alone candidates are forecast;
then models are trained on all of it with each candidate and tested on the other half. `linear` adds
what a linear model reaches to results that lack it. TABLES.npz holds more tables than
scikit-learn's, as `pack` writes them.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _cell import make_parser, score_right
from _result import environment
from predict import Cell, arrays, beyond, fit, real_gains
from scipy.special import stdtr
from scipy.stats import spearmanr
from sklearn import datasets

from augury._base.devices import resolve_device
from augury._base.files import write
from augury.augmentations import default_augmentations, identity
from augury.data import Dataset, Preparation, as_dataset
from augury.forecasting.forecast import UNEQUAL, Calibration
from augury.forecasting.linear import linear_score
from augury.forecasting.scores.base import Setting
from augury.forecasting.scores.boosting import BEATEN, BoostingScore, fit_trees, trees_take
from augury.forecasting.tables import table_of
from augury.forecasting.training import train_together
from augury.forecasting.trial import stratified_order
from augury.forecasting.verdicts import FAINT, POINTS, UNDECIDED, verdict

RESULTS = Path(__file__).parent / "results" / "predict_tables"
HURTS = 0.5
"""Points from which a mean real gain over the splits contradicts a verdict."""
OWN = ("iris", "wine", "breast_cancer", "diabetes", "digits")
"""The tables that scikit-learn bundles; linnerud has 20 rows, too few to hold any out."""


def pack(tables: dict[str, Dataset], out: Path) -> None:
    """Write prepared tables to one file."""
    arrays: dict[str, np.ndarray] = {}
    for name, data in tables.items():
        assert data.preparation is not None
        arrays[f"{name}/x"], arrays[f"{name}/y"] = data.x.numpy(), data.y.numpy()
        arrays[f"{name}/about"] = np.array(json.dumps(data.preparation.to_dict()))
        if data.missing is not None:
            arrays[f"{name}/missing"] = data.missing.numpy()
    np.savez_compressed(out, **arrays)  # type: ignore[arg-type]  # arrays all


def unpack(path: Path | None, name: str) -> Dataset:
    """Return a table of the file, or scikit-learn's."""
    if name in OWN:
        bunch: Any = getattr(datasets, f"load_{name}")()
        target = bunch.target.astype(float) if name == "diabetes" else bunch.target
        return as_dataset(bunch.data, target, name=name)
    with np.load(path or Path()) as arrays:
        about = Preparation.from_dict(json.loads(str(arrays[f"{name}/about"])))
        x, y = (torch.from_numpy(arrays[f"{name}/{part}"]) for part in ("x", "y"))
        gone = arrays.get(f"{name}/missing")
    missing = None if gone is None else torch.from_numpy(gone)
    return Dataset(x, y, about.classes, name, preparation=about, missing=missing)


def halves(data: Dataset, seed: int) -> tuple[Dataset, Dataset]:
    """Split a table into halves, each class in proportion."""
    order = stratified_order(data, seed)
    parts = order[: len(order) // 2], order[len(order) // 2 :]
    first, second = (
        replace(
            data, x=data.x[rows], y=data.y[rows],
            missing=None if data.missing is None else data.missing[rows],
        )
        for rows in parts
    )  # fmt: skip
    return first, second


def score_trees(train: Dataset, test: Dataset, candidate: Any, seed: int) -> float:
    """Return the accuracy, or R², in points of trees trained with a candidate.

    Classes count alike where they are very unequal, as in a forecast.
    """
    rows, table = torch.arange(len(train)), table_of(train)
    model = fit_trees(train, rows, candidate, table, seed, BoostingScore.copies)
    taken = trees_take(test.x, table)
    if train.classes is None:
        return 100 * float(model.score(taken, test.y.numpy()))
    right = torch.from_numpy(model.predict(taken)) == test.y
    return 100 * float(score_right(right, test.y, train.y))


def one_split(path: Path | None, name: str, split: int, seeds: int, effort: int) -> dict[str, Any]:
    """Forecast and train on one pair of halves, on one core."""
    torch.set_num_threads(1)
    train, test = halves(unpack(path, name), split)
    candidates = default_augmentations("vector", train.shape)
    table = table_of(train)
    setting = Setting(train, None, 1, split, torch.device("cpu"), effort=effort)
    forecast = BoostingScore(setting).forecast([c.bound(table) for c in candidates])
    moved = [forecast.shift(k) for k in range(len(forecast))]
    specs = [repr(c) for c in candidates]
    accuracy = {"identity": [score_trees(train, test, None, split)]} | {
        repr(c): [score_trees(train, test, c, 100 * split + k) for k in range(seeds)]
        for c in candidates
    }
    trial = {
        "folds": len(forecast.folds), "replicas": 1, "tried": forecast.baseline.tried,
        "expected": forecast.baseline.expected, "chance": forecast.baseline.chance,
        "shift": {s: m for s, (m, _) in zip(specs, moved, strict=True)},
        "error": {s: e for s, (_, e) in zip(specs, moved, strict=True)},
        "clear": {s: forecast.judge(k).clear for k, s in enumerate(specs)},
        "linear": linear_score(train, split, balanced=forecast.balanced),
    }  # fmt: skip
    return {
        "source": name, "real": train.classes is None, "accuracy": accuracy, "trial": trial
    }  # fmt: skip


def add_linear(path: Path | None, name: str, folder: Path) -> None:
    """Add what a linear model reaches on the training halves to the result of a table."""
    table = json.loads((folder / f"{name}.json").read_text())
    for number, split in enumerate(table["splits"]):
        train, test = halves(unpack(path, name), number)
        plain = score_trees(train, test, None, number)
        assert np.isclose(plain, split["accuracy"]["identity"][0]), "this is another table"
        counts = torch.ones(1) if train.classes is None else train.y.unique(return_counts=True)[1]
        balanced = bool(counts.max() >= UNEQUAL * counts.min())
        split["trial"]["linear"] = linear_score(train, number, balanced=balanced)
    write(folder / f"{name}.json", json.dumps(table, indent=1) + "\n")


def networks(data: Dataset, splits: int, device: torch.device) -> dict[str, list[float]]:
    """Return what candidates gain a small network, in points, on each split."""
    gains: dict[str, list[float]] = {}
    for split in range(splits):
        train, test = halves(data, split)
        candidates = default_augmentations("vector", train.shape)
        table = table_of(train)
        tried = [identity(), *(c.bound(table) for c in candidates)]
        found = train_together(
            train, test, tried, architecture="small", seeds=4, epochs=40, batch=16, device=device
        )
        points = (100 * score_right(found.right, test.y, train.y).mean(1)).tolist()
        for candidate, value in zip(candidates, points[1:], strict=True):
            gains.setdefault(repr(candidate), []).append(value - points[0])
        gains.setdefault("plain", []).append(points[0])
    return gains


def run(options: argparse.Namespace) -> None:
    """Run all splits of all tables on all cores, then the networks."""
    device = resolve_device(options.device)
    names = options.names.split(",") if options.names else list(OWN)
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    os.environ["OMP_NUM_THREADS"] = "1"  # of the processes: each has a core
    started = time.perf_counter()
    with ProcessPoolExecutor(options.jobs) as pool:
        jobs = {
            name: [
                pool.submit(one_split, options.data, name, k, options.seeds, options.effort)
                for k in range(options.splits)
            ]
            for name in names
        }
        for name, waiting in jobs.items():
            data = unpack(options.data, name)
            cell: dict[str, Any] = {
                "name": name, "rows": len(data), "columns": data.shape[0],
                "task": "regression" if data.classes is None else "classification",
                "environment": environment(device), "splits": [job.result() for job in waiting],
            }  # fmt: skip
            if data.classes is not None:
                cell["networks"] = networks(data, options.splits, device)
            write(out / f"{name}.json", json.dumps(cell, indent=1) + "\n")
            print(name, f"{time.perf_counter() - started:.0f} s", flush=True)


def read(folder: Path) -> list[dict[str, Any]]:
    """Read all tables."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def gains(table: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return what each candidate really gained boosting, ``(splits,)``."""
    each = [real_gains(split) for split in table["splits"]]
    return {spec: np.array([real[spec] for real in each]) for spec in each[0]}


def beaten(split: Cell) -> bool:
    """Return whether a linear model was better on the training half, so that nothing is said."""
    return bool(split["trial"]["linear"] > split["trial"]["tried"] + BEATEN)


def say(split: Cell, calibration: Calibration) -> dict[str, str]:
    """Return the verdict on each candidate, as a ranking gives it."""
    trial = split["trial"]
    if not split["real"] and trial["tried"] <= trial["chance"] + 0.015:
        return dict.fromkeys(trial["shift"], UNDECIDED)  # nothing was learnt
    if beaten(split):
        return dict.fromkeys(trial["shift"], UNDECIDED)
    gain, spread, _ = arrays(split, calibration)
    probability = stdtr(calibration.freedom, gain / spread)
    said, heard = {}, beyond(split, FAINT)
    for spec, g, p, audible in zip(trial["shift"], gain, probability, heard, strict=True):
        word = verdict(float(g), float(p), POINTS) if audible else UNDECIDED
        sure = word in ("helps", "hurts") and not trial["clear"][spec]
        said[spec] = f"probably {word}" if sure else word
    return said


def judged(tables: list[dict[str, Any]]) -> list[list[dict[str, str]]]:
    """Return the verdicts on each table's splits, by constants fitted to the other tables."""
    found = []
    for table in tables:
        others = [split for other in tables if other is not table for split in other["splits"]]
        constants = fit(others)
        found.append([say(split, constants) for split in table["splits"]])
    return found


def _mean(values: np.ndarray) -> str:
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{values.mean():+.1f} ± {error:.1f}"


def page(folder: Path) -> str:
    """Return the page of the docs."""
    tables = read(folder)
    lines = ["| table | rows | columns | plain | best | worst | ρ | linear | said | hurt |",
             "| --- |" + " --- |" * 9]  # fmt: skip
    nets = ["| table | plain | best | worst |", "| --- | --- | --- | --- |"]
    said = dict.fromkeys(("helps", "probably helps", "hurts", "probably hurts"), 0)
    wrong = dict(said)
    both = network_gains = 0
    for table, verdicts in zip(tables, judged(tables), strict=True):
        real = gains(table)
        mean = {spec: float(values.mean()) for spec, values in real.items()}
        best, worst = max(mean, key=mean.__getitem__), min(mean, key=mean.__getitem__)
        rho = np.mean([
            spearmanr(list(split["trial"]["shift"].values()), list(real_gains(split).values()))[0]
            for split in table["splits"]
        ])  # fmt: skip
        here, hurt = 0, 0
        for split in verdicts:
            for spec, word in split.items():
                if word not in said:
                    continue
                helps = word.endswith("helps")
                amiss = mean[spec] < -HURTS if helps else mean[spec] > HURTS
                said[word], wrong[word] = said[word] + 1, wrong[word] + amiss
                here, hurt = here + helps, hurt + (helps and amiss)
        plain = np.mean([split["accuracy"]["identity"] for split in table["splits"]])
        lines.append(
            f"| {table['name']} | {table['rows']:,} | {table['columns']} | {plain:.1f} | `{best}` "
            f"{_mean(real[best])} | `{worst}` {_mean(real[worst])} | {rho:.2f} | "
            f"{sum(map(beaten, table['splits']))} | {here} | {hurt} |"
        )
        if "networks" in table:
            own = {s: np.array(v) for s, v in table["networks"].items() if s != "plain"}
            means = {spec: float(values.mean()) for spec, values in own.items()}
            best, worst = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
            nets.append(
                f"| {table['name']} | {np.mean(table['networks']['plain']):.1f} | `{best}` "
                f"{_mean(own[best])} | `{worst}` {_mean(own[worst])} |"
            )
            network_gains += sum(value > HURTS for value in means.values())
            both += sum(value > HURTS and mean[spec] > HURTS for spec, value in means.items())
    words = (Path(__file__).parent / "predict_tables_page.md").read_text()
    counts = ["| verdict | given | wrong by more than half a point |", "| --- | --- | --- |"]
    counts += [f"| {word} | {said[word]} | {wrong[word]} |" for word in said]
    return words.format(
        splits=len(tables[0]["splits"]), table="\n".join(lines), networks="\n".join(nets),
        verdicts="\n".join(counts), shared=f"{both} of {network_gains}",
        harm=said["hurts"] + said["probably hurts"],
        harm_wrong=wrong["hurts"] + wrong["probably hurts"],
    )  # fmt: skip


def main() -> None:
    parser = make_parser(__doc__, ("run", "linear", "page"), RESULTS)
    parser.add_argument("data", nargs="?", type=Path)
    parser.add_argument("--names", help="tables to run, with commas between them")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--effort", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if options.quick:
        found = one_split(None, "iris", 0, 1, 0)
        assert np.isfinite(list(real_gains(found).values())).all()
    elif options.command == "run":
        options.out = options.out or str(RESULTS)
        run(options)
    elif options.command == "linear":
        for name in options.names.split(",") if options.names else OWN[:4]:
            add_linear(options.data, name, options.results)
    else:
        write(options.out or "docs/prediction_tables.md", page(options.results))


if __name__ == "__main__":
    main()
