"""Does a forecast for sound agree with what training shows? As `predict.py`, on other sources.

    python benchmarks/predict_sound.py pack digits FOLDER --out DIGITS.npz
    python benchmarks/predict_sound.py pack notes FOLDER --out NOTES.npz
    python benchmarks/predict_sound.py run DIGITS.npz [--cells 20] [--limit 110] [--out DIR]
    python benchmarks/predict_sound.py rank DIGITS.npz [--budget 300] [--device cpu] [--out DIR]
    python benchmarks/predict_sound.py table [--results DIR]
    python benchmarks/predict_sound.py page [--results DIR] [--out docs/prediction_sound.md]
    python benchmarks/predict_sound.py --quick

`pack` puts recordings into one file, a second each: spoken digits (DIGIT/DIGIT_SPEAKER_NUMBER.wav
in a FOLDER), or notes of instruments (INSTRUMENT/NOTE.mp3). `run` trains a network with every
candidate on three or four of the six speakers, or on every other note, several seeds, and tests
it on the others; the forecast is made from those alone, and holds speakers or notes out too. A
cell is one such choice; another is begun while less than the limit, in seconds, has passed.
`rank` ranks the default candidates of each cell in DIR as `augury.rank` does, in the time that it
takes by default or within a budget, and compares the order with what training showed. `table`
judges each cell by constants fitted to the other source; `page` writes the same as a page of the
docs.
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
from _truth import part_at_random, reachable, regret, self_forecast
from predict import arrays, fit, judge, read, real_gains, table
from scipy.stats import spearmanr

from augury._base.devices import resolve_device
from augury._base.files import write
from augury.augmentations import default_augmentations
from augury.data import Dataset, as_dataset, load
from augury.forecasting import rank
from augury.forecasting.effort import GPU, make_trial
from augury.forecasting.forecast import SMALL
from augury.forecasting.plan import TrainingPlan

RESULTS = Path(__file__).parent / "results" / "predict_sound"


PARTINGS = {
    "digits": ((2, 3, 4, 5), (0, 1, 4, 5), (0, 1, 2, 3), (0, 1, 2), (3, 4, 5), (0, 1, 3)),
    "notes": ((0,), (1,)),
}
"""The parts to train on: speakers, each of whom the first three choices test once; or a half."""
GROUPS = {"digits": r"_(\w+)_", "notes": r"([A-G]s?\d)"}
"""What belongs together, in the names of files."""
NOTES, FEWEST, CLIPS = 24, 9, 2
"""Notes of an instrument at most, and at least; clips of a note."""


def pack(name: str, folder: Path, out: Path) -> None:
    """Write recordings to one file: a second each, 16 bits a sample, with groups and parts."""
    data = load(folder, seconds=1.0, rate=8000, group=GROUPS[name])
    assert data.groups is not None
    assert data.preparation is not None
    y, group = data.y.numpy(), data.groups.numpy()
    kept, part = np.arange(len(y)), group
    if name == "notes":
        kept, part = choose_notes(y, group)
        group = 1000 * y + group
    loud = data.x[kept, 0].numpy() * data.preparation.deviation[0]
    x = np.clip(np.round(loud * 2**15), -(2**15), 2**15 - 1).astype(np.int16)
    np.savez_compressed(
        out, name=name, x=x, y=y[kept], part=part[kept], group=group[kept], rate=data.rate
    )


def choose_notes(y: np.ndarray, note: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which clips are kept, and the half of each: an instrument's notes, in turn."""
    kept, part = [], np.zeros(len(y), dtype=np.int64)
    for c in np.unique(y):
        own = np.array(list(dict.fromkeys(note[y == c])))
        if len(own) < FEWEST:
            continue
        chosen = np.linspace(0, len(own) - 1, min(NOTES, len(own))).round().astype(int)
        for k, n in enumerate(own[chosen]):
            rows = np.flatnonzero((y == c) & (note == n))[:CLIPS]
            kept.extend(rows)
            part[rows] = k % 2
    return np.sort(kept), part


def unpack(path: Path, trained: tuple[int, ...]) -> tuple[Dataset, Dataset, torch.Tensor]:
    """Return the recordings of some parts, with groups, those of the others, and their parts."""
    with np.load(path) as arrays:
        x, y, part, group = (arrays[key] for key in ("x", "y", "part", "group"))
        name, rate = str(arrays["name"]), int(arrays["rate"])
    own = np.isin(part, trained)
    train = as_dataset(x[own], y[own], rate=rate, groups=group[own], name=name)
    test = as_dataset(x[~own], y[~own], rate=rate, classes=train.classes)
    assert train.preparation is not None
    test = replace(test, x=torch.from_numpy(train.preparation.transform(x[~own])))
    whose = torch.from_numpy(part[~own].astype(np.int64))
    return train, test, whose if len(whose.unique()) > 1 else part_at_random(test.y)


def run(options: argparse.Namespace) -> list[Path]:
    """Train and forecast every candidate for some partings, while there is time."""
    device = resolve_device(options.device)
    begun, done = time.perf_counter(), []
    with np.load(options.data) as arrays:
        name = str(arrays["name"])
    for trained in PARTINGS[name][: options.cells]:
        if time.perf_counter() - begun > options.limit:
            break
        done.append(_run(trained, options, device))
    return done


def _run(trained: tuple[int, ...], options: argparse.Namespace, device: torch.device) -> Path:
    train, test, parts = unpack(options.data, trained)
    candidates = default_augmentations("sound", train.shape)
    if options.candidates:
        candidates = candidates[:: max(1, len(candidates) // options.candidates)]
    name = f"{train.name}_{''.join(map(str, trained))}"
    started = time.perf_counter()
    truth = train_missing(
        options.results / f"{name}.json", train, test, candidates, parts, seeds=options.seeds,
        architecture=options.network, epochs=options.epochs, device=device,
    )  # fmt: skip
    cell: Cell = {
        "name": name, "source": train.name, "examples": len(train), "tests": len(test),
        "trained": list(trained), "epochs": options.epochs, "network": options.network,
        "shape": list(train.shape), "environment": environment(device), **truth,
        "seconds": [round(time.perf_counter() - started, 1)],
    }  # fmt: skip
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    plan = TrainingPlan(epochs=options.epochs, network=options.network, examples=len(train))
    kept = run_trial(cell, train, candidates, make_trial(plan, train, options.level), device)
    verdict = {k: round(v, 2) for k, v in judge(cell, SMALL).items()}
    base = np.mean(truth["accuracy"]["identity"])
    print(f"{name} {cell['seconds']} {base:.1f} % {verdict}", flush=True)
    path = out / f"{name}.json"
    write(path, json.dumps(cell, indent=1) + "\n")
    if options.keep:
        np.savez_compressed(out / f"{name}.npz", **kept)  # type: ignore[arg-type]  # arrays all
    return path


def ranked(options: argparse.Namespace) -> None:
    """Rank the default candidates of each cell, and add gains and seconds to it."""
    with np.load(options.data) as arrays:
        name = str(arrays["name"])
    for path in sorted(Path(options.out).glob(f"{name}_*.json"))[: options.cells]:
        cell = json.loads(path.read_text())
        train, _, _ = unpack(options.data, tuple(cell["trained"]))
        found = rank(train, epochs=cell["epochs"], device=options.device, budget=options.budget)
        real = real_gains(cell)
        gains = {row.augmentation: row.gain for row in found.rows if row.augmentation in real}
        best = max(real[spec] for spec in gains)
        entry = {
            "device": options.device, "budget": options.budget, "seconds": found.seconds,
            "spearman": float(spearmanr(list(gains.values()), [real[s] for s in gains])[0]),
            "regret@3": best - max(real[spec] for spec in list(gains)[:3]),
            "effort": found.effort, "gains": gains,
            "environment": environment(resolve_device(options.device)),
            "verdicts": {row.augmentation: row.verdict for row in found.rows},
        }  # fmt: skip
        cell.setdefault("ranked", []).append(entry)
        write(path, json.dumps(cell, indent=1) + "\n")
        shown = ("seconds", "spearman", "regret@3", "effort")
        print(cell["name"], {name: entry[name] for name in shown}, flush=True)


def judged(folder: Path) -> list[tuple[Cell, dict[str, float]]]:
    """Judge every cell by constants fitted to the other sources."""
    cells, rows = read(folder), []
    sources = {cell["source"] for cell in cells}
    fitted = {one: fit([cell for cell in cells if cell["source"] != one]) for one in sources}
    for cell in cells:
        constants = fitted[cell["source"]]
        first = np.argsort(-arrays(cell, constants)[0], kind="stable")[:3]
        rows.append((cell, judge(cell, constants) | {"regret": regret(cell, first)}))
    return rows


def page(folder: Path) -> str:
    """Return the page of the docs."""
    rows = judged(folder)
    said, wrong = (sum(found[k] for _, found in rows) for k in ("said", "wrong"))
    maybe, amiss = (sum(found[k] for _, found in rows) for k in ("probably said", "probably wrong"))
    lines = [
        "| trained on | plain | best | worst | seeds | reachable | regret@3 by halves |",
        "| --- |" + " --- |" * 6,
    ]
    for cell, found in rows:
        real = real_gains(cell)
        best, worst = max(real, key=real.__getitem__), min(real, key=real.__getitem__)
        lines.append(
            f"| {named(cell)} | {np.mean(cell['accuracy']['identity']):.1f} | "
            f"`{best}` {real[best]:+.1f} | `{worst}` {real[worst]:+.1f} | "
            f"{len(cell['accuracy']['identity'])} | {reachable(cell):.2f} | "
            f"{found['regret']:.2f} |"
        )
    timed = ["| trained on | device | seconds | spearman | regret@3 |", "|" + " --- |" * 5]
    timed += [
        f"| {named(cell)} | {entry['device']} | {entry['seconds']:.0f} | "
        f"{entry['spearman']:.2f} | {entry['regret@3']:.2f} |"
        for cell, _ in rows
        for entry in cell.get("ranked", ())
    ]
    words = (Path(__file__).parent / "predict_sound_page.md").read_text()
    return words.format(
        table="\n".join(table([({**cell, "source": named(cell)}, f) for cell, f in rows])),
        cells="\n".join(lines), timed="\n".join(timed),
        compared="\n".join(compare(rows)), gains="\n\n".join(mean_gains(rows)),
        said=said, right=said - wrong, maybe=maybe, maybe_right=maybe - amiss,
    )  # fmt: skip


def named(cell: Cell) -> str:
    """Return what a cell was trained on."""
    return f"{cell['source']} {' '.join(map(str, cell['trained']))}"


def compare(rows: list[tuple[Cell, dict[str, float]]]) -> list[str]:
    """Return the forecast beside real training that was tested on other parts, as a table."""
    lines = [
        "| source | forecast: spearman | regret@3 | training, other parts: spearman | regret@3 |",
        "|" + " --- |" * 5,
    ]
    for source in sorted({cell["source"] for cell, _ in rows}):
        own = [row for row in rows if row[0]["source"] == source and "tested" in row[0]]
        if not own:
            continue
        ours = np.mean([(found["spearman"], found["regret@3"]) for _, found in own], 0)
        theirs = np.mean([self_forecast(cell) for cell, _ in own], 0)
        values = " | ".join(f"{v:.2f}" for v in (*ours, *theirs))
        lines.append(f"| {source} | {values} |")
    return lines


def mean_gains(rows: list[tuple[Cell, dict[str, float]]]) -> list[str]:
    """Return the mean gain of each candidate over the cells of a source, the best first."""
    found = []
    for source in sorted({cell["source"] for cell, _ in rows}):
        gains = [real_gains(cell) for cell, _ in rows if cell["source"] == source]
        common = set(gains[0]).intersection(*gains)
        mean = {spec: np.mean([gain[spec] for gain in gains]) for spec in common}
        order = sorted(mean, key=lambda spec: -mean[spec])
        each = ", ".join(f"`{spec}` {mean[spec]:+.1f}" for spec in order)
        found.append(f"Mean gains in points, {source}: {each}.")
    return found


def quick() -> None:
    """Run a small cell of made-up speakers, in a temporary directory."""
    rng = np.random.default_rng(0)
    y, speaker = np.tile(np.arange(3), 80), np.repeat(np.arange(6), 40)
    time_ = np.arange(1000) / 2000
    hertz = (200 + 90 * y + 15 * speaker)[:, None] * rng.uniform(0.97, 1.03, (240, 1))
    x = (3000 * (np.sin(2 * np.pi * hertz * time_) + rng.normal(size=(240, 1000)) / 2)).astype(
        np.int16
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sound.npz"
        np.savez(path, name="digits", x=x, y=y, part=speaker, group=speaker, rate=2000)
        options = argparse.Namespace(
            data=path, cells=1, limit=60, candidates=4, seeds=1, epochs=12, network="small",
            level=3, device="cpu", results=Path(folder), out=folder, keep=False,
        )  # fmt: skip
        cell = json.loads(run(options)[0].read_text())
        found = judge(cell, SMALL)
    assert np.isfinite(found["error"])


def main() -> None:
    commands = ("pack", "run", "rank", "table", "page")
    parser = make_parser(__doc__, commands, RESULTS, seeds=3)
    parser.add_argument("data", nargs="*", type=Path)
    parser.add_argument("--cells", type=int, default=20)
    parser.add_argument("--limit", type=float, default=110)
    parser.add_argument("--candidates", type=int)
    parser.add_argument("--level", type=int, default=GPU, help="level of effort of the trial")
    parser.add_argument("--budget", type=float)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    if options.quick:
        quick()
    elif options.command == "pack":
        name, folder = options.data
        pack(str(name), folder, Path(options.out))
    elif options.command in ("run", "rank"):
        options.data, options.out = options.data[0], options.out or str(RESULTS)
        (run if options.command == "run" else ranked)(options)
    elif options.command == "page":
        write(options.out or "docs/prediction_sound.md", page(options.results))
    else:
        print("\n".join(table(judged(options.results))))


if __name__ == "__main__":
    main()
