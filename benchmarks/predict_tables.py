"""Does augmentation help on tables, and is that foreseen? Boosted trees and a small network.

    python benchmarks/predict_tables.py run [TABLES.npz] [--names A,B] [--splits 5] [--out DIR]
    python benchmarks/predict_tables.py page [--results DIR] [--out docs/prediction_tables.md]
    python benchmarks/predict_tables.py --quick

Each table is split into halves several times. On the training half alone candidates are forecast;
then models are trained on all of it with each candidate and tested on the other half. TABLES.npz
holds more tables than scikit-learn's, as `pack` writes them.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _result import environment
from scipy.stats import spearmanr
from sklearn import datasets

from augury._base.devices import resolve_device
from augury._base.files import write
from augury.augmentations import default_augmentations, identity
from augury.data import Dataset, Preparation, as_dataset
from augury.forecasting.rank import rank
from augury.forecasting.scores.boosting import BoostingScore, fit_trees, trees_take
from augury.forecasting.tables import table_of
from augury.forecasting.training import train_together
from augury.forecasting.trial import stratified_order

RESULTS = Path(__file__).parent / "results" / "predict_tables"
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
    """Return the accuracy, or R², in points of trees trained with a candidate."""
    rows, table = torch.arange(len(train)), table_of(train)
    model = fit_trees(train, rows, candidate, table, seed, BoostingScore.copies)
    return 100 * float(model.score(trees_take(test.x, table), test.y.numpy()))


def one_split(path: Path | None, name: str, split: int, seeds: int, effort: int) -> dict[str, Any]:
    """Forecast and train on one pair of halves, on one core."""
    torch.set_num_threads(1)
    train, test = halves(unpack(path, name), split)
    candidates = default_augmentations("vector", train.shape)
    found = rank(train, augmentations=candidates, seed=split, effort=effort)
    plain = score_trees(train, test, None, split)
    real = {
        repr(c): np.mean([score_trees(train, test, c, 100 * split + k) for k in range(seeds)])
        - plain
        for c in candidates
    }
    rows = {row.augmentation: row for row in found.rows}
    return {
        "plain": plain, "expected": found.baseline.score,
        "real": {spec: float(gain) for spec, gain in real.items()},
        "forecast": {s: asdict(rows[s])["gain"] for s in real},
        "probability": {s: rows[s].probability for s in real},
        "verdict": {s: rows[s].verdict for s in real},
    }  # fmt: skip


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
        points = (100 * found.accuracy.mean(1)).tolist()
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


def gains(cell: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return what each candidate really gained boosting, ``(splits,)``."""
    splits = cell["splits"]
    return {spec: np.array([split["real"][spec] for split in splits]) for spec in splits[0]["real"]}


def said_to_help(cell: dict[str, Any], least: str = "probably helps") -> list[str]:
    """Return the candidates that were said to help, once for each split."""
    words = ("helps",) if least == "helps" else ("helps", "probably helps")
    return [s for split in cell["splits"] for s, v in split["verdict"].items() if v in words]


def _mean(values: np.ndarray) -> str:
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{values.mean():+.1f} ± {error:.1f}"


def page(folder: Path) -> str:
    """Return the page of the docs."""
    cells = read(folder)
    lines = ["| table | rows | columns | plain | best | worst | ρ | said | hurt |",
             "| --- |" + " --- |" * 8]  # fmt: skip
    nets = ["| table | plain | best | worst |", "| --- | --- | --- | --- |"]
    sure = wrong = all_said = all_wrong = 0
    both = network_gains = 0
    for cell in cells:
        real = gains(cell)
        mean = {spec: float(values.mean()) for spec, values in real.items()}
        best, worst = max(mean, key=mean.__getitem__), min(mean, key=mean.__getitem__)
        rho = np.mean([
            spearmanr(list(split["forecast"].values()), list(split["real"].values()))[0]
            for split in cell["splits"]
        ])  # fmt: skip
        said = said_to_help(cell)
        hurt = [spec for spec in said if mean[spec] < -0.5]
        certain = said_to_help(cell, "helps")
        sure, all_said = sure + len(certain), all_said + len(said)
        wrong += sum(mean[spec] < -0.5 for spec in certain)
        all_wrong += len(hurt)
        plain = np.mean([split["plain"] for split in cell["splits"]])
        lines.append(
            f"| {cell['name']} | {cell['rows']:,} | {cell['columns']} | {plain:.1f} | `{best}` "
            f"{_mean(real[best])} | `{worst}` {_mean(real[worst])} | {rho:.2f} | {len(said)} | "
            f"{len(hurt)} |"
        )
        if "networks" in cell:
            own = {s: np.array(v) for s, v in cell["networks"].items() if s != "plain"}
            means = {spec: float(values.mean()) for spec, values in own.items()}
            best, worst = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
            nets.append(
                f"| {cell['name']} | {np.mean(cell['networks']['plain']):.1f} | `{best}` "
                f"{_mean(own[best])} | `{worst}` {_mean(own[worst])} |"
            )
            network_gains += sum(value > 0.5 for value in means.values())
            both += sum(value > 0.5 and mean[spec] > 0.5 for spec, value in means.items())
    words = (Path(__file__).parent / "predict_tables_page.md").read_text()
    verdicts = (
        f"“Helps” was said {sure} times, {wrong} times of what hurts by over half a point; with "
        f"“probably helps”, {all_said} times, {all_wrong} of them of what hurts that much."
    )
    return words.format(
        splits=len(cells[0]["splits"]), table="\n".join(lines), networks="\n".join(nets),
        verdicts=verdicts, shared=f"{both} of {network_gains}",
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", nargs="?", choices=("run", "page"))
    parser.add_argument("data", nargs="?", type=Path)
    parser.add_argument("--names", help="tables to run, with commas between them")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--effort", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--device", default="auto")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.quick:
        found = one_split(None, "iris", 0, 1, 0)
        assert np.isfinite(list(found["real"].values())).all()
    elif options.command == "run":
        options.out = options.out or str(RESULTS)
        run(options)
    else:
        write(options.out or "docs/prediction_tables.md", page(options.results))


if __name__ == "__main__":
    main()
