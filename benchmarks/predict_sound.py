"""Does a forecast for sound agree with what training shows? As `predict.py`, on other speakers.

    python benchmarks/predict_sound.py pack FOLDER --out SOUND.npz
    python benchmarks/predict_sound.py run SOUND.npz [--cells 20] [--limit 110] [--out DIR]
    python benchmarks/predict_sound.py rank SOUND.npz [--budget 300] [--device cpu] [--out DIR]
    python benchmarks/predict_sound.py table [--results DIR]
    python benchmarks/predict_sound.py page [--results DIR] [--out docs/prediction_sound.md]
    python benchmarks/predict_sound.py --quick

`pack` puts spoken digits (DIGIT/DIGIT_SPEAKER_NUMBER.wav in a FOLDER) into one file, a second each.
`run` trains a network with every candidate on three or four of the six speakers, several seeds, and
tests it on the others; the forecast is made from those alone, and holds speakers out too.
A cell is one way to part the speakers; another is begun while less than the limit, in seconds, has
passed. `rank` ranks the default candidates of each cell in DIR as `augury.rank` does, in the time
that it takes by default or within a budget, and compares the order with what training showed.
`table` judges each cell by constants fitted to the others; `page` writes the same as a page of the
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
from predict import fit, judge, read, real_gains, table
from predict_series import repeatable
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


def pack(folder: Path, out: Path) -> None:
    """Write all recordings to one file: 16 bits a sample, a second each, with their speakers."""
    data = load(folder, seconds=1.0, group=r"_(\w+)_")
    assert data.groups is not None
    assert data.preparation is not None
    loud = data.x[:, 0].numpy() * data.preparation.deviation[0]
    x = np.clip(np.round(loud * 2**15), -(2**15), 2**15 - 1).astype(np.int16)
    groups = data.groups.numpy().astype(np.uint8)
    np.savez_compressed(out, x=x, y=data.y.numpy(), speaker=groups, rate=data.rate)


PARTINGS = ((2, 3, 4, 5), (0, 1, 4, 5), (0, 1, 2, 3), (0, 1, 2), (3, 4, 5), (0, 1, 3))
"""The speakers to train on; of the first three, each speaker is tested on once."""


def unpack(path: Path, trained: tuple[int, ...]) -> tuple[Dataset, Dataset]:
    """Return the recordings of some speakers, with groups, and of the others."""
    with np.load(path) as arrays:
        x, y, speaker = (arrays[name] for name in ("x", "y", "speaker"))
        rate = int(arrays["rate"])
    own = np.isin(speaker, trained)
    train = as_dataset(x[own], y[own], rate=rate, groups=speaker[own], name="spoken digits")
    test = as_dataset(x[~own], y[~own], rate=rate, classes=train.classes)
    assert train.preparation is not None
    return train, replace(test, x=torch.from_numpy(train.preparation.transform(x[~own])))


def run(options: argparse.Namespace) -> list[Path]:
    """Train and forecast every candidate for some partings, while there is time."""
    device = resolve_device(options.device)
    begun, done = time.perf_counter(), []
    for trained in PARTINGS[: options.cells]:
        if time.perf_counter() - begun > options.limit:
            break
        done.append(_run(trained, options, device))
    return done


def _run(trained: tuple[int, ...], options: argparse.Namespace, device: torch.device) -> Path:
    train, test = unpack(options.data, trained)
    candidates = default_augmentations("sound", train.shape)
    if options.candidates:
        candidates = candidates[:: max(1, len(candidates) // options.candidates)]
    name = f"spoken_digits_{''.join(map(str, trained))}"
    started = time.perf_counter()
    accuracy = train_missing(
        options.results / f"{name}.json", train, test, candidates, seeds=options.seeds,
        architecture=options.network, epochs=options.epochs, device=device,
    )  # fmt: skip
    cell: Cell = {
        "name": name, "source": "spoken digits", "examples": len(train), "tests": len(test),
        "speakers": list(trained), "epochs": options.epochs, "network": options.network,
        "shape": list(train.shape), "environment": environment(device), "accuracy": accuracy,
        "seconds": [round(time.perf_counter() - started, 1)],
    }  # fmt: skip
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    plan = TrainingPlan(epochs=options.epochs, network=options.network, examples=len(train))
    kept = run_trial(cell, train, candidates, make_trial(plan, train, options.level), device)
    verdict = {k: round(v, 2) for k, v in judge(cell, SMALL).items()}
    base = np.mean(accuracy["identity"])
    print(f"{name} {cell['seconds']} {base:.1f} % {verdict}", flush=True)
    path = out / f"{name}.json"
    write(path, json.dumps(cell, indent=1) + "\n")
    if options.keep:
        np.savez_compressed(out / f"{name}.npz", **kept)  # type: ignore[arg-type]  # arrays all
    return path


def ranked(options: argparse.Namespace) -> None:
    """Rank the default candidates of each cell, and add gains and seconds to it."""
    for path in sorted(Path(options.out).glob("*.json"))[: options.cells]:
        cell = json.loads(path.read_text())
        train, _ = unpack(options.data, tuple(cell["speakers"]))
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
    """Judge every cell by constants fitted to the others."""
    cells = read(folder)
    return [(cell, judge(cell, fit([c for c in cells if c is not cell]))) for cell in cells]


def page(folder: Path) -> str:
    """Return the page of the docs."""
    rows = judged(folder)
    cells = [cell for cell, _ in rows]
    said, wrong = (sum(found[k] for _, found in rows) for k in ("said", "wrong"))
    maybe, amiss = (sum(found[k] for _, found in rows) for k in ("probably said", "probably wrong"))
    lines = [
        "| trained on speakers | plain | best | worst | seeds | repeats |",
        "| --- |" + " --- |" * 5,
    ]
    for cell in cells:
        real = real_gains(cell)
        best, worst = max(real, key=real.__getitem__), min(real, key=real.__getitem__)
        lines.append(
            f"| {' '.join(map(str, cell['speakers']))} | "
            f"{np.mean(cell['accuracy']['identity']):.1f} | `{best}` {real[best]:+.1f} | "
            f"`{worst}` {real[worst]:+.1f} | {len(cell['accuracy']['identity'])} | "
            f"{repeatable(cell):.2f} |"
        )
    timed = ["| trained on speakers | device | seconds | spearman | regret@3 |", "|" + " --- |" * 5]
    timed += [
        f"| {' '.join(map(str, cell['speakers']))} | {entry['device']} | {entry['seconds']:.0f} | "
        f"{entry['spearman']:.2f} | {entry['regret@3']:.2f} |"
        for cell in cells
        for entry in cell.get("ranked", ())
    ]
    mean = {
        spec: np.mean([real_gains(cell)[spec] for cell in cells])
        for spec in real_gains(cells[0])
        if all(spec in cell["accuracy"] for cell in cells)
    }
    order = sorted(mean, key=lambda spec: -mean[spec])
    words = (Path(__file__).parent / "predict_sound_page.md").read_text()
    return words.format(
        table="\n".join(table(rows)), cells="\n".join(lines), timed="\n".join(timed),
        gains=", ".join(f"`{spec}` {mean[spec]:+.1f}" for spec in order),
        said=said, right=said - wrong, maybe=maybe, maybe_right=maybe - amiss,
    )  # fmt: skip


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
        np.savez(path, x=x, y=y, speaker=speaker, rate=2000)
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
    parser.add_argument("data", nargs="?", type=Path)
    parser.add_argument("--cells", type=int, default=20)
    parser.add_argument("--limit", type=float, default=110)
    parser.add_argument("--candidates", type=int)
    parser.add_argument("--level", type=int, default=GPU, help="level of effort of the trial")
    parser.add_argument("--budget", type=float)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    if options.command in ("run", "rank"):
        options.out = options.out or str(RESULTS)
    if options.quick:
        quick()
    elif options.command == "pack":
        pack(options.data, Path(options.out))
    elif options.command == "run":
        run(options)
    elif options.command == "rank":
        ranked(options)
    elif options.command == "page":
        write(options.out or "docs/prediction_sound.md", page(options.results))
    else:
        print("\n".join(table(judged(options.results))))


if __name__ == "__main__":
    main()
