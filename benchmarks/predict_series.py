"""Does a forecast for series agree with what training shows? As `predict.py`, on sets of series.

    python benchmarks/predict_series.py pack FOLDER... --out SETS.npz
    python benchmarks/predict_series.py run SETS.npz [--names A,B] [--out DIR] [--device auto]
    python benchmarks/predict_series.py table [--results DIR]
    python benchmarks/predict_series.py page [--results DIR] [--out docs/prediction_series.md]
    python benchmarks/predict_series.py --quick

`pack` puts sets of the UCR and UEA archives (NAME/NAME_TRAIN.ts and NAME_TEST.ts in a FOLDER, as in
the wheels of aeon and sktime) into one file. `run` trains a network with every candidate on the
training half of each set, several seeds, tests it on the test half, and makes the forecast from the
training half alone; what `--results` already holds is not trained again. `table` judges each set by
constants fitted to the other sets.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from _cell import Cell, make_parser, run_trial, train_missing
from _result import environment
from _truth import ASKED, part_at_random, reachable, regret
from predict import arrays, fit, judge, read, table

from augury._base.devices import resolve_device
from augury._base.files import write
from augury.augmentations import default_augmentations
from augury.data import Dataset, as_dataset, load, load_new
from augury.forecasting.effort import CPU, GPU, make_trial
from augury.forecasting.forecast import Calibration
from augury.forecasting.plan import TrainingPlan
from augury.forecasting.series import BATCH, CALIBRATIONS
from augury.forecasting.trial import shrink

RESULTS = Path(__file__).parent / "results" / "predict_series"
LONGEST = 512
"""Longer series are averaged down to this many values, for training and forecast alike."""
VERDICTS = ("decided", "said", "wrong", "probably", "probably said", "probably wrong")
"""What is said of verdicts."""


def pack(folders: list[Path], out: Path) -> None:
    """Write all sets of labelled series of some folders to one file."""
    arrays: dict[str, np.ndarray] = {}
    for train in sorted(path for folder in folders for path in folder.glob("*/*_TRAIN.ts")):
        test = train.with_name(train.name.replace("_TRAIN", "_TEST"))
        if not test.exists() or f"{train.parent.name}/x_train" in arrays:
            continue
        data = load(train)
        assert data.preparation is not None
        real = data.classes is None
        new = load_new(test, data.preparation, shape=data.shape, real=real)
        if new.y is None:
            continue
        own = {
            "x_train": data.x.numpy(), "y_train": data.labels(), "x_test": new.x, "y_test": new.y
        }  # fmt: skip
        arrays |= {f"{train.stem.removesuffix('_TRAIN')}/{name}": a for name, a in own.items()}
    np.savez_compressed(out, **arrays)  # type: ignore[arg-type]  # arrays all


def unpack(path: Path, name: str) -> tuple[Dataset, Dataset]:
    """Return the training and the test half of a set, prepared as the training half is."""
    with np.load(path) as arrays:
        x, y, new, labels = (
            arrays[f"{name}/{part}"] for part in ("x_train", "y_train", "x_test", "y_test")
        )
        groups = arrays.get(f"{name}/groups")
    x, new = shorten(x), shorten(new)
    train = as_dataset(x, y, kind="series", name=name, groups=groups)
    assert train.preparation is not None
    test = as_dataset(new, labels, kind="series", classes=train.classes)
    return train, replace(test, x=torch.from_numpy(train.preparation.transform(new)))


def shorten(x: np.ndarray) -> np.ndarray:
    """Average series down to at most `LONGEST` values."""
    if x.shape[2] <= LONGEST:
        return x
    rows = torch.from_numpy(x.astype(np.float32)).unsqueeze(2)
    size = (1, LONGEST)
    out = torch.nn.functional.interpolate(rows, size, mode="bilinear", antialias=True)
    return out.squeeze(2).numpy()


def run(options: argparse.Namespace) -> list[Path]:
    """Train and forecast every candidate on each set, and write a cell for each."""
    device = resolve_device(options.device)
    with np.load(options.data) as arrays:
        names = sorted({key.split("/")[0] for key in arrays.files})
    names = options.names.split(",") if options.names else names
    return [_run(name, options, device) for name in names]


def _run(name: str, options: argparse.Namespace, device: torch.device) -> Path:
    train, test = unpack(options.data, name)
    candidates = default_augmentations("series", train.shape)
    if options.candidates:
        candidates = candidates[:: max(1, len(candidates) // options.candidates)]
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    truth = train_missing(
        options.results / f"{name}.json", train, test, candidates, part_at_random(test.y),
        seeds=options.seeds, architecture=options.network, epochs=options.epochs, batch=BATCH,
        device=device,
    )  # fmt: skip
    cell: Cell = {
        "name": name, "source": name, "examples": len(train), "tests": len(test),
        "epochs": options.epochs, "network": options.network, "shape": list(train.shape),
        "environment": environment(device), **truth,
        "seconds": [round(time.perf_counter() - started, 1)],
    }  # fmt: skip
    plan = TrainingPlan(epochs=options.epochs, network=options.network, examples=len(train))
    kept: dict[str, np.ndarray] = {}
    for level in map(int, options.levels.split(",")):
        trial = make_trial(plan, train, level)
        data, fitted = shrink(train, candidates, trial.side)
        kept |= run_trial(cell, data, fitted, trial, device)
        if trial.network != options.network:
            cell["small"] = cell["trial"]
        write(out / f"{name}.json", json.dumps(cell, indent=1) + "\n")
        if options.keep:
            np.savez_compressed(out / f"{name}.npz", **kept)  # type: ignore[arg-type]  # arrays all
        verdict = {k: round(v, 2) for k, v in judge(cell, CALIBRATIONS[trial.network]).items()}
        base = np.mean(truth["accuracy"]["identity"])
        print(f"{name} {level} {cell['seconds']} {base:.1f} % {verdict}", flush=True)
    return out / f"{name}.json"


def clear_signs(cell: Cell, calibration: Calibration) -> tuple[int, int]:
    """Return how many real gains are clear, and how many of these have the sign that was forecast.

    Clear are gains over half a point that exceed twice their standard error over the seeds.
    """
    base = np.array(cell["accuracy"]["identity"])
    runs = np.array([cell["accuracy"][spec] for spec in cell["trial"]["shift"]])
    variances = (values.var(-1, ddof=1) / values.shape[-1] for values in (runs, base))
    gain, _, real = arrays(cell, calibration)
    clear = np.abs(real) > np.maximum(0.5, 2 * np.sqrt(sum(variances)))
    return int(clear.sum()), int((clear & (np.sign(gain) == np.sign(real))).sum())


def differs(cell: Cell) -> bool:
    """Return whether candidates differ at all: where every test series is right, none can."""
    return bool(np.ptp([np.mean(v) for v in cell["accuracy"].values()]) > 0)


def learnt(cell: Cell) -> bool:
    """Return whether the network of the trial learnt more than the most frequent class."""
    return cell["trial"]["learnt"]


def tells(cell: Cell) -> bool:
    """Return whether constants can be fitted to a set.

    Its order must repeat, and something must have been right in the trial, but not everything.
    """
    known = learnt(cell) and cell["trial"]["tried"] < 1 - 0.5 / cell["examples"]
    return known and cell["reachable"] >= ASKED


def judged(folder: Path, trial: str = "trial") -> list[tuple[Cell, dict[str, float]]]:
    """Judge every set on which candidates differ, by constants fitted to the other such sets.

    `trial` is ``"trial"`` for trials of the planned network, ``"small"`` for those of a small one
    in its place.
    """
    cells = [{**cell, "trial": cell[trial]} for cell in read(folder) if cell.get(trial)]
    cells = [{**cell, "reachable": reachable(cell)} for cell in cells if differs(cell)]
    rows = []
    for cell in cells:
        constants = fit([other for other in cells if other is not cell and tells(other)])
        clear, right = clear_signs(cell, constants)
        found = judge(cell, constants)
        if not learnt(cell):  # then a ranking gives no verdicts
            found |= dict.fromkeys(VERDICTS, 0)
        first = np.argsort(-arrays(cell, constants)[0], kind="stable")[:3]
        found |= {"reachable": cell["reachable"], "regret": regret(cell, first)}
        rows.append((cell, {**found, "clear": clear, "right": right}))
    return rows


def means(rows: list[tuple[Cell, dict[str, float]]]) -> str:
    """Return the means over sets of what forecasts are asked for, in words."""
    rho, same, short = (
        np.mean([found[k] for _, found in rows]) for k in ("spearman", "regret@3", "regret")
    )
    shares = [found["right"] / found["clear"] for _, found in rows if found["clear"]]
    return (
        f"{rho:.2f} (spearman), {np.mean(shares):.2f} (signs of clear gains), {same:.2f} points "
        f"(regret@3) and {short:.2f} (regret@3 by halves) on {len(rows)} sets"
    )


def page(folder: Path) -> str:
    """Return the page of the docs."""
    rows, small = judged(folder), judged(folder, "small")
    said, wrong = (sum(found[k] for _, found in rows) for k in ("said", "wrong"))
    maybe, amiss = (sum(found[k] for _, found in rows) for k in ("probably said", "probably wrong"))
    repeats = [
        "| set | test series | seeds | reachable | regret@3 by halves | clear gains | right sign |",
        "| --- |" + " --- |" * 6,
    ]
    for cell, found in rows:
        seeds = len(cell["accuracy"]["identity"])
        repeats.append(
            f"| {cell['name']} | {cell['tests']} | {seeds} | {found['reachable']:.2f} | "
            f"{found['regret']:.2f} | {found['clear']} | {found['right']} |"
        )
    words = (Path(__file__).parent / "predict_series_page.md").read_text()
    return words.format(
        table="\n".join(table(rows)), repeats="\n".join(repeats), means=means(rows),
        ordered=means(ordered(rows)), asked=ASKED,
        best=np.mean([found["reachable"] for _, found in rows]),
        small="\n".join(table(small)), small_means=means(small),
        small_ordered=means(ordered(small)),
        said=said, right=100 * (1 - wrong / max(1, said)),
        maybe=maybe, maybe_right=100 * (1 - amiss / max(1, maybe)),
    )  # fmt: skip


def ordered(rows: list[tuple[Cell, dict[str, float]]]) -> list[tuple[Cell, dict[str, float]]]:
    """Return the sets on which what is asked can be reached, and on which something was learnt."""
    return [row for row in rows if row[1]["reachable"] >= ASKED and learnt(row[0])]


def quick() -> None:
    """Run one small set of made-up series, in a temporary directory."""
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    time_ = np.linspace(0, 6, 32)
    x = np.sin(time_ + y[:, None] + 0.4 * rng.normal(size=(80, 1)))
    x = (x + 0.3 * rng.normal(size=x.shape))[:, None]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sets.npz"
        parts = {"x_train": x[:40], "y_train": y[:40], "x_test": x[40:], "y_test": y[40:]}
        np.savez(path, **{f"toy/{name}": a for name, a in parts.items()})
        options = argparse.Namespace(
            data=path, names=None, epochs=5, network="fcn", levels="3", seeds=2, device="cpu",
            results=Path(folder), out=folder, candidates=5, keep=False,
        )  # fmt: skip
        cells = [json.loads(p.read_text()) for p in run(options)]
    assert np.isfinite(cells[0]["trial"]["expected"])


def main() -> None:
    commands = ("pack", "run", "table", "page")
    parser = make_parser(__doc__, commands, RESULTS, epochs=100, network="fcn", seeds=12)
    parser.add_argument("data", nargs="*", type=Path)
    parser.add_argument("--names", help="sets to run, with commas between them")
    parser.add_argument(
        "--levels",
        default=f"{CPU},{GPU}",
        help="levels of effort of the trial, the last one counts",
    )
    parser.add_argument("--candidates", type=int, help="about so many of the default ones")
    parser.add_argument("--keep", action="store_true", help="keep what each example showed")
    options = parser.parse_args()
    if options.quick:
        quick()
    elif options.command == "pack":
        pack(options.data, Path(options.out))
    elif options.command == "run":
        options.data, options.out = options.data[0], options.out or str(RESULTS)
        run(options)
    elif options.command == "page":
        write(options.out or "docs/prediction_series.md", page(options.results))
    else:
        for trial in ("trial", "small"):
            rows = judged(options.results, trial)
            print("\n".join([*table(rows), means(rows)]))


if __name__ == "__main__":
    main()
