"""How the cost of `rank` grows: with candidates, with examples used, with pixels.

    python benchmarks/scaling_rank.py [--quick] [--data FOLDER] [--out FOLDER]

Every size is ranked by the default score in a process of its own, on two threads, with a stated
amount of work (`effort=`), so that only the size differs. Measured are the processor time of the
ranking, which other work on the machine changes little, and the peak of the process's memory. A
line is fitted through each sweep; `off` is the greatest distance of a time from it, relative to the
largest time. Examples used are those that all folds train on: they decide, however many the data
set has. Images are those of CIFAR-10 where the folder has them, brought to each side.

`python benchmarks/pages.py` draws the committed result.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from _result import add_out, environment, save
from matplotlib.figure import Figure

import augury
from augury.augmentations import default_augmentations
from augury.forecasting.effort import make_trial
from augury.forecasting.plan import TrainingPlan
from augury_paper.images import default_folder

THREADS = 2
EPOCHS = 8
FIXED = {"candidates": 8, "effort": 3, "side": 32, "examples": 3000}
SWEEPS: dict[str, tuple[str, tuple[int, ...]]] = {
    "candidates": ("candidates", (4, 8, 16, 32)),
    "examples used": ("effort", (3, 4, 5, 6, 7)),
    "pixels": ("side", (8, 16, 24, 32)),
}
"""What grows, and what is set to make it grow."""
QUICK = {"candidates": (2, 4), "examples used": (0, 2), "pixels": (8, 16)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=default_folder(), help="with cifar10.npz")
    parser.add_argument("--quick", action="store_true", help="a small form, in under a minute")
    parser.add_argument("--one", help=argparse.SUPPRESS)  # what a process of its own measures
    add_out(parser)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.data, **json.loads(options.one))))
        return
    torch.set_num_threads(THREADS)
    result: dict[str, Any] = {"environment": environment(torch.device("cpu")), "fixed": FIXED}
    result["sweeps"] = []
    for name, (setting, sizes) in SWEEPS.items():
        rows = [
            run(options.data, **{**FIXED, setting: size})
            for size in (QUICK[name] if options.quick else sizes)
        ]
        result["sweeps"].append({"name": name, "rows": rows} | line(name, rows))
        save(options.out, "scaling_rank", result)  # after each, so that a stop loses little
        print(f"{name}: {json.dumps(result['sweeps'][-1])}", flush=True)


def run(data: Path, **settings: int) -> dict[str, Any]:
    """Measure one ranking in a process of its own."""
    command = [sys.executable, __file__, "--data", str(data), "--one", json.dumps(settings)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def measure(folder: Path, candidates: int, effort: int, side: int, examples: int) -> dict[str, Any]:
    """Rank once; return what was ranked, the processor's seconds and the peak of memory."""
    torch.set_num_threads(THREADS)
    x, y = images(folder, examples, side)
    data = augury.as_dataset(x, y)
    known = default_augmentations("image", data.shape)
    tried = [known[k * len(known) // candidates] for k in range(candidates)]  # some of each kind
    plan = TrainingPlan(epochs=EPOCHS)
    trial = make_trial(plan, data, effort)
    before, started = _processor_seconds(), time.perf_counter()
    augury.rank(
        data, None, tried, plan=plan, effort=effort, device="cpu", trends=False, progress=False
    )
    return {
        "candidates": len(tried),
        "examples used": trial.examples * trial.folds,
        "pixels": side * side,
        "seconds": round(_processor_seconds() - before, 3),
        "wall_seconds": round(time.perf_counter() - started, 3),
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 3),
    }


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


def images(folder: Path, count: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Return images as bytes, of CIFAR-10 if it is there and else smooth random ones."""
    path = folder.expanduser() / "cifar10.npz"
    if path.exists():
        with np.load(path) as held:
            x, y = held["x_train"][:count], held["y_train"][:count].reshape(-1)
        pixels = (
            torch.from_numpy(x).permute(0, 3, 1, 2) if x.shape[-1] == 3 else torch.from_numpy(x)
        )
    else:
        generator = torch.Generator().manual_seed(0)
        y = np.arange(count) % 10
        coarse = torch.rand(10, 3, 4, 4, generator=generator)[torch.from_numpy(y)]
        coarse = coarse + torch.rand(count, 3, 4, 4, generator=generator)
        pixels = F.interpolate(coarse * 127, 32, mode="bilinear")
    small = F.interpolate(pixels.float(), side, mode="bilinear", antialias=True)
    return small.round().clamp(0, 255).to(torch.uint8).numpy(), y


def line(name: str, rows: list[dict[str, Any]]) -> dict[str, float]:
    """Fit seconds = fixed + each · size, and say how far the times are off that line."""
    sizes, seconds = (np.array([row[key] for row in rows], float) for key in (name, "seconds"))
    each, fixed = np.polyfit(sizes, seconds, 1)
    off = np.abs(fixed + each * sizes - seconds).max() / seconds.max()
    return {"fixed_seconds": float(fixed), "each_seconds": float(each), "off": float(off)}


def draw(result: dict[str, Any]) -> Figure:
    """Draw the times of each sweep and the line through them."""
    figure = Figure(figsize=(12, 3.4), layout="constrained")
    axes = figure.subplots(1, len(result["sweeps"]))
    for axis, sweep in zip(axes, result["sweeps"], strict=True):
        sizes = [row[sweep["name"]] for row in sweep["rows"]]
        ends = np.array([0, max(sizes)])
        axis.plot(ends, sweep["fixed_seconds"] + sweep["each_seconds"] * ends, "--", label="a line")
        axis.plot(sizes, [row["seconds"] for row in sweep["rows"]], "o", label="measured")
        axis.set(title=f"Time to rank against {sweep['name']}", xlabel=sweep["name"])
        axis.set(ylabel="seconds of processor time", ylim=(0, None))
        axis.legend()
        axis.grid(alpha=0.3)
    return figure


if __name__ == "__main__":
    main()
