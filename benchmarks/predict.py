"""Does a forecast agree with what training shows? Train every candidate, then compare.

    python benchmarks/predict.py run DATA.npz --source NAME --epochs N [--network cnn] [--seeds 2]
        [--pretrained] [--examples N] [--from-file SPECS] [--device auto] [--out DIR]
    python benchmarks/predict.py seeds DATA.npz --cell FILE [--seeds 2]
    python benchmarks/predict.py trial DATA.npz --cell FILE [--effort N] [--key KEY]
    python benchmarks/predict.py table [--results DIR]
    python benchmarks/predict.py page [--results DIR] [--out docs/prediction.md]
    python benchmarks/predict.py --quick

`run` trains every candidate on the whole of DATA (x_train, y_train, x_test, y_test), all at once as
one grouped network, runs the trial for the same plan on the training images alone, and writes one
JSON file for this cell. `seeds` trains every candidate of a known cell again with more seeds, and
`trial` runs its trial again. A network of one's own is MODULE:FUNCTION; for a cell that was made
with one, give it to `seeds` and `trial` too. `table` judges all cells, each by constants fitted to
the other sources; `page` writes the same as a page of the docs.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from _cell import Cell, make_parser, rounded, save_digits, summarise, train_all
from _result import environment
from matplotlib.figure import Figure
from scipy.optimize import minimize
from scipy.special import stdtr, stdtrit
from scipy.stats import spearmanr
from scipy.stats import t as student

from augury import load_network
from augury._base.devices import resolve_device
from augury._base.files import write
from augury.augmentations import default_augmentations, parse
from augury.data import Dataset, as_dataset
from augury.forecasting.effort import choose_level, make_trial
from augury.forecasting.forecast import PLANNED, SMALL, Calibration, Forecast, expect
from augury.forecasting.plan import TrainingPlan
from augury.forecasting.training.grouped import ARCHITECTURES
from augury.forecasting.training.own import OwnNetwork
from augury.forecasting.trial import run_folds, shrink
from augury.forecasting.verdicts import FAINT, POINTS, PROBABLE, SURE

RESULTS = Path(__file__).parent / "results" / "predict"
Judged = tuple[Cell, dict[str, float]]
"""A cell, and how its forecasts compare with what training showed."""
NOTHING = 0.3
"""Real gains of fewer points than these are neither help nor harm."""


def load(options: argparse.Namespace) -> tuple[Dataset, Dataset]:
    """Return the training and the test images."""
    with np.load(options.data) as arrays:
        train = as_dataset(arrays["x_train"], arrays["y_train"], max_examples=options.examples)
        test = as_dataset(arrays["x_test"], arrays["y_test"], classes=train.classes)
    return train, test


def run(options: argparse.Namespace) -> Path:
    """Train every candidate, forecast every candidate, and write the cell."""
    device, (train, test) = resolve_device(options.device), load(options)
    specs = [repr(a) for a in default_augmentations(train.kind, train.shape)]
    if options.from_file:
        specs = [line.strip() for line in options.from_file.read_text().splitlines() if line]
    network = options.network.split(":")[-1]
    name = f"{options.source}_{len(train)}_{options.epochs}_{network}".replace(" ", "_")
    cell = {
        "name": name, "source": options.source, "examples": len(train), "tests": len(test),
        "epochs": options.epochs, "network": network, "shape": list(train.shape),
        "pretrained": options.pretrained, "seconds": 0.0, "environment": environment(device),
        "accuracy": {spec: [] for spec in ("identity", *specs)},
    }  # fmt: skip
    path = Path(options.out) / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, json.dumps(cell, indent=1) + "\n")
    options.cell = path
    return try_again(more_seeds(options), train, options)


def more_seeds(options: argparse.Namespace) -> Path:
    """Train every candidate of a cell with other seeds than it has, and add what that showed."""
    device, (train, test) = resolve_device(options.device), load(options)
    cell = json.loads(options.cell.read_text())
    started = time.perf_counter()
    right = train_all(
        train, test, [parse(spec) for spec in cell["accuracy"]], chosen_network(cell, options),
        epochs=cell["epochs"], seeds=options.seeds, seed=len(cell["accuracy"]["identity"]),
        device=device,
    )  # fmt: skip
    for seen, new in zip(cell["accuracy"].values(), 100 * right.double().mean(0), strict=True):
        seen += rounded(new.tolist())
    cell["seconds"] = round(cell["seconds"] + time.perf_counter() - started, 1)
    write(options.cell, json.dumps(cell, indent=1) + "\n")
    return options.cell


def chosen_network(cell: Cell, options: argparse.Namespace) -> str | OwnNetwork:
    """Return the network of a cell: an architecture, or one's own that the options name."""
    if cell["network"] in ARCHITECTURES:
        return cell["network"]
    if options.network.split(":")[-1] != cell["network"]:
        raise SystemExit(f"give --network MODULE:{cell['network']}, with which the cell was made")
    network = load_network(options.network, tuple(cell["shape"]))
    return OwnNetwork(network, cell["pretrained"])


def try_again(path: Path, train: Dataset, options: argparse.Namespace) -> Path:
    """Run the trial of a cell, on the training images alone, and write it into the cell."""
    cell, device = json.loads(path.read_text()), resolve_device(options.device)
    network = chosen_network(cell, options)
    own = network if isinstance(network, OwnNetwork) else None
    specs = [spec for spec in cell["accuracy"] if spec != "identity"]
    candidates = [parse(spec) for spec in specs]
    plan = TrainingPlan(
        epochs=cell["epochs"], network="own" if own else network, examples=cell["examples"]
    )
    level = options.effort
    if level is None:
        level = choose_level(plan, train, candidates, device, None, 0.0, own)
    trial = make_trial(plan, train, level, own is not None)
    started = time.perf_counter()
    data, fitted = shrink(train, candidates, trial.side)
    folds = run_folds(data, fitted, trial, range(trial.folds), seed=0, device=device, own=own)
    seconds = time.perf_counter() - started
    classes = len(train.classes or ())
    forecast = Forecast(folds, data.y, classes, trained=trial.examples, planned=cell["examples"])
    cell[options.key] = {
        **asdict(trial), "level": level, "seconds": round(seconds, 1),
        "environment": environment(device), **summarise(forecast, specs),
    }  # fmt: skip
    write(path, json.dumps(cell, indent=1) + "\n")
    return path


def real_gains(cell: Cell) -> dict[str, float]:
    """Return what training showed, in points over no augmentation."""
    base = np.mean(cell["accuracy"]["identity"])
    return {s: float(np.mean(v) - base) for s, v in cell["accuracy"].items() if s != "identity"}


def arrays(cell: Cell, calibration: Calibration) -> tuple[np.ndarray, ...]:
    """Return forecast gains, their spreads and real gains of the candidates that have both."""
    trial, real = cell["trial"], real_gains(cell)
    specs = [spec for spec in trial["shift"] if spec in real]
    found = [
        expect(
            trial["shift"][s], trial["error"][s], trial["expected"], not cell.get("real"),
            calibration,
        )
        for s in specs
    ]  # fmt: skip
    gain, spread = np.array(found).T
    return gain, spread, np.array([real[s] for s in specs])


def beyond(cell: Cell, level: float) -> np.ndarray:
    """Return which candidates' shifts surely exceed the noise of the trial's own runs."""
    trial, real = cell["trial"], real_gains(cell)
    folds, candidates = trial["folds"], len(trial["shift"])
    freedom = 4 + folds * (trial.get("replicas", 3) - 1) + (folds - 1) * (candidates - 1)
    specs = [spec for spec in trial["shift"] if spec in real]
    moved = np.array([abs(trial["shift"][s]) / trial["error"][s] for s in specs])
    return moved > float(stdtrit(freedom, level))


def fit(cells: list[Cell], like: Calibration | None = None) -> Calibration:
    """Fit slope, floor and share by likelihood, every source counting alike.

    Slope and share are those of `like` where that is given, and the floor alone is fitted.
    """
    counts: dict[str, int] = {}
    for cell in cells:
        counts[cell["source"]] = counts.get(cell["source"], 0) + 1
    freedom = PLANNED.freedom

    def settings_of(theta: np.ndarray) -> Calibration:
        if like is not None:
            return replace(like, floor=float(np.exp(theta[0])))
        slope, floor, share = np.exp(theta).tolist()
        return Calibration(slope=slope, floor=floor, share=share)

    def misfit(theta: np.ndarray) -> float:
        settings = settings_of(theta)
        total = 0.0
        for cell in cells:
            gain, spread, real = arrays(cell, settings)
            log = student.logpdf((real - gain) / spread, freedom) - np.log(spread)
            total -= float(log.mean()) / counts[cell["source"]]
        return total

    start = np.log([1.0, 0.02, 0.2] if like is None else [like.floor])
    corners = np.concatenate([start[None], start + 0.3 * np.eye(len(start))])  # log 1 takes no step
    options = {"maxiter": 120, "xatol": 0.02, "initial_simplex": corners}
    return settings_of(minimize(misfit, start, method="Nelder-Mead", options=options).x)


def judge(cell: Cell, calibration: Calibration) -> dict[str, float]:
    """Compare the forecasts of a cell with what training showed."""
    gain, spread, real = arrays(cell, calibration)
    large = np.abs(real) > 0.5
    order = np.argsort(-gain, kind="stable")
    probability = stdtr(calibration.freedom, gain / spread)
    sign = np.where(gain > 0, probability, 1 - probability)
    wrong = (np.sign(gain) != np.sign(real)) & (np.abs(real) > NOTHING)
    decided = (sign >= SURE) & (np.abs(gain) >= POINTS) & beyond(cell, calibration.clear)
    probable = (sign >= PROBABLE) & (np.abs(gain) >= POINTS) & beyond(cell, FAINT)
    half = float(stdtrit(calibration.freedom, 0.975)) * spread
    return {
        "spearman": float(spearmanr(gain, real)[0]),
        "signs": float(np.mean(np.sign(gain[large]) == np.sign(real[large]))),
        "regret@3": float(real.max() - real[order[:3]].max()),
        "bias": float(np.mean(gain - real)),
        "error": float(np.mean(np.abs(gain - real))),
        "covered": float(np.mean(np.abs(gain - real) <= half)),
        "decided": float(np.mean(decided)),
        "wrong": int(np.sum(decided & wrong)),
        "said": int(np.sum(decided)),
        "probably": float(np.mean(probable)),
        "probably wrong": int(np.sum(probable & wrong)),
        "probably said": int(np.sum(probable)),
    }


def read(folder: Path) -> list[Cell]:
    """Read all cells, small ones of a source first."""
    cells = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    return sorted(cells, key=lambda c: (c["source"], c["examples"], c["epochs"], c["network"]))


def judged(folder: Path, trial: str = "trial") -> list[Judged]:
    """Judge every cell that has a trial, by constants fitted to the other sources.

    `trial` is ``"trial"`` for trials of the planned network, ``"slim"`` and ``"small"`` for those
    of such a network in its place, ``"turn"`` for those of a small one with ten views of each image
    in turn, ``"quick"`` and ``"brief"`` for those of a small one with a quarter and an eighth of
    the default work. Fine-tuning is judged apart.
    """
    cells = tried(folder, trial)
    fitted = {source: constants(folder, trial, source) for source in {c["source"] for c in cells}}
    return [(cell, judge(cell, fitted[cell["source"]])) for cell in cells]


def constants(folder: Path, trial: str, without: str = "") -> Calibration:
    """Fit the constants of such trials to all cells but those of a source.

    Those of ``"quick"`` differ from ``"small"`` in the floor alone, and serve ``"brief"`` too;
    those of ``"small"`` serve ``"turn"``.
    """
    trial = {"brief": "quick", "turn": "small"}.get(trial, trial)
    cells = [cell for cell in tried(folder, trial) if cell["source"] != without]
    found = fit(cells, constants(folder, "small", without) if trial == "quick" else None)
    return found if trial == "trial" else replace(found, clear=SMALL.clear)


def tried(folder: Path, trial: str) -> list[Cell]:
    """Return the cells that have such a trial, as their trial."""
    return [
        {**cell, "trial": cell[trial]}
        for cell in read(folder)
        if cell.get(trial) and not cell.get("pretrained")
    ]


def fine_tuned(folder: Path) -> list[Judged]:
    """Judge fine-tuning, by the constants of training from scratch."""
    return [(cell, judge(cell, PLANNED)) for cell in read(folder) if cell.get("pretrained")]


COLUMNS = ("spearman", "signs", "regret@3", "bias", "error", "covered", "decided")


def table(rows: list[Judged]) -> list[str]:
    """Return the table in Markdown, its means last."""
    lines = [
        "| source | examples | epochs | network | " + " | ".join(COLUMNS) + " |",
        "| --- |" + " --- |" * (3 + len(COLUMNS)),
    ]
    for cell, found in rows:
        values = " | ".join(f"{found[c]:.2f}" for c in COLUMNS)
        lines.append(
            f"| {cell['source']} | {cell['examples']:,} | {cell['epochs']} | {cell['network']} | "
            f"{values} |"
        )
    means = " | ".join(f"{np.mean([found[c] for _, found in rows]):.2f}" for c in COLUMNS)
    lines.append(f"| **mean** | | | | {means} |")
    return lines


def side_by_side(first: list[Judged], second: list[Judged]) -> list[str]:
    """Return a table in Markdown of what two kinds of trials of the same cells showed."""
    lines = [
        "| source | examples | epochs | network | spearman, new | ten | signs, new | ten |",
        "| --- |" + " --- |" * 7,
    ]
    pairs = [
        (found[key], other[key])
        for key in ("spearman", "signs")
        for (_, found), (_, other) in zip(first, second, strict=True)
    ]
    columns = np.array(pairs).reshape(2, -1, 2)
    names = [
        f"{c['source']} | {c['examples']:,} | {c['epochs']} | {c['network']}" for c, _ in first
    ]
    for name, (rho, signs) in zip(names, columns.swapaxes(0, 1), strict=True):
        lines.append(f"| {name} | " + " | ".join(f"{v:.2f}" for v in (*rho, *signs)) + " |")
    means = columns.mean(1).ravel()
    lines.append("| **mean** | | | | " + " | ".join(f"{v:.2f}" for v in means) + " |")
    return lines


def closed_forms(folder: Path) -> list[str]:
    """Return the mean rank correlation of the closed-form scores, where they were computed."""
    found: dict[str, list[float]] = {}
    for cell in read(folder):
        real = real_gains(cell)
        for name, gains in cell.get("scores", {}).items():
            specs = [s for s in gains if s in real]
            rho = spearmanr([gains[s] for s in specs], [real[s] for s in specs])[0]
            found.setdefault(name, []).append(float(rho))
    lines = ["| score | settings | mean rank correlation |", "| --- | --- | --- |"]
    for name, values in sorted(found.items(), key=lambda item: -np.mean(item[1])):
        lines.append(f"| {name} | {len(values)} | {np.mean(values):.2f} |")
    return lines


def draw(folder: Path = RESULTS) -> Figure:
    """Draw forecast against real gains, one panel per cell."""
    cells = [cell for cell in read(folder) if "trial" in cell and not cell.get("pretrained")]
    figure = Figure(figsize=(9, 2.4 * math.ceil(len(cells) / 4)), layout="constrained")
    panels = figure.subplots(math.ceil(len(cells) / 4), 4, squeeze=False).ravel()
    for cell, axes in zip(cells, panels, strict=False):
        gain, spread, real = arrays(cell, PLANNED)
        axes.errorbar(gain, real, xerr=spread, fmt="o", markersize=3, elinewidth=0.7)
        ends = [min(gain.min(), real.min()), max(gain.max(), real.max())]
        axes.plot(ends, ends, color="#6b7480", linewidth=0.8)
        axes.set_title(f"{cell['source']}, {cell['examples']:,}, {cell['epochs']} epochs", size=8)
    for axes in panels[len(cells) :]:
        axes.set_visible(False)
    figure.supxlabel("forecast gain in points, ± its standard deviation")
    figure.supylabel("real gain")
    return figure


def page(folder: Path) -> str:
    """Return the page of the docs."""
    keys = ("trial", "slim", "small", "turn", "quick", "brief")
    rows, slim, small, turn, quick, brief = (judged(folder, key) for key in keys)
    repeated = {cell["name"] for cell, _ in turn}
    fresh = [(cell, found) for cell, found in small if cell["name"] in repeated]
    said, wrong = (sum(found[k] for _, found in rows) for k in ("said", "wrong"))
    maybe, amiss = (sum(found[k] for _, found in rows) for k in ("probably said", "probably wrong"))
    sources = sorted({cell["source"] for cell, _ in rows})
    less = next({**cell, "trial": cell["less"]} for cell in read(folder) if "less" in cell)
    words = (Path(__file__).parent / "predict_page.md").read_text()
    return words.format(
        table="\n".join(table(rows)),
        slim="\n".join(table(slim)),
        slim_said=sum(found["said"] for _, found in slim),
        slim_wrong=sum(found["wrong"] for _, found in slim),
        small="\n".join(table(small)),
        views="\n".join(side_by_side(fresh, turn)),
        quick="\n".join(table(quick)) if quick else "",
        quick_said=sum(found["said"] for _, found in quick),
        quick_wrong=sum(found["wrong"] for _, found in quick),
        brief="\n".join(table(brief)) if brief else "",
        brief_sure=sum(found["said"] for _, found in brief),
        brief_wrong=sum(found["wrong"] for _, found in brief),
        brief_said=sum(found["probably said"] for _, found in brief),
        brief_amiss=sum(found["probably wrong"] for _, found in brief),
        tuned="\n".join(table(fine_tuned(folder))),
        less=judge(less, PLANNED),
        higher=-next(found["bias"] for cell, found in slim if cell["examples"] == 1500),
        scores="\n".join(closed_forms(folder)),
        cells=len(rows),
        sources=f"{len(sources)} sources ({', '.join(sources)})",
        said=said,
        right=100 * (1 - wrong / max(1, said)),
        maybe=maybe,
        maybe_right=100 * (1 - amiss / max(1, maybe)),
    )


def quick() -> None:
    """Run one small cell from scikit-learn's digits, in a temporary directory."""
    with tempfile.TemporaryDirectory() as folder:
        path = save_digits(Path(folder), 600)
        specs = Path(folder) / "specs.txt"
        specs.write_text("rotation(10)\nflips\ntranslation(0.1)\nnoise(0.1)\n")
        options = argparse.Namespace(
            data=path, source="digits", epochs=10, network="cnn", seeds=1, examples=None,
            from_file=specs, device="cpu", out=folder, effort=3, pretrained=False, key="trial",
        )  # fmt: skip
        cell = json.loads(run(options).read_text())
    found = judge(cell, PLANNED)
    print(" ".join(f"{name}={value:.2f}" for name, value in found.items()))
    assert all(math.isfinite(value) for value in found.values())


def main() -> None:
    parser = make_parser(__doc__, ("run", "seeds", "trial", "table", "page"), RESULTS)
    parser.add_argument("data", nargs="?", type=Path)
    parser.add_argument("--source", default="data")
    parser.add_argument("--examples", type=int)
    parser.add_argument("--pretrained", action="store_true", help="keep the network's weights")
    parser.add_argument("--effort", type=int)
    parser.add_argument("--cell", type=Path)
    parser.add_argument("--key", default="trial", help="of the trial in the cell: small, quick, …")
    parser.add_argument("--from-file", type=Path)
    options = parser.parse_args()
    if options.quick:
        quick()
    elif options.command == "run":
        options.out = options.out or str(RESULTS)
        print(run(options))
    elif options.command == "seeds":
        print(more_seeds(options))
    elif options.command == "trial":
        print(try_again(options.cell, load(options)[0], options))
    elif options.command == "page":
        write(options.out or "docs/prediction.md", page(options.results))
    else:
        print("\n".join(table(judged(options.results))))


if __name__ == "__main__":
    main()
