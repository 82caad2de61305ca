"""What a budget costs: forecasts within 10 to 80 seconds against the whole trial and the truth.

    python benchmarks/budgets.py --data FOLDER [--jobs 7] [--out benchmarks/results]
    python benchmarks/budgets.py --quick

For each data set the same command is run with every budget and once with none, on two cores, as
`augury rank FILE.npz --from-file SPECS --epochs N --budget S`, timed from the start of its process.
The truth is what training every candidate showed, in ``benchmarks/results/predict``. FOLDER holds
``mnist.npz``, ``fashion.npz`` and ``cifar10.npz``, with x_train, y_train of at least as many
examples as the cells have; the first examples of each class are taken, in order.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import torch
from _result import ROOT, add_out, compact, environment
from matplotlib.figure import Figure
from predict import RESULTS as TRUTH
from predict import real_gains
from scipy.stats import spearmanr

from augury._base.files import write

BUDGETS = (10, 20, 40, 80)
CELLS = {
    "mnist": "mnist_1000_40_cnn",
    "fashion": "fashion_2000_20_cnn",
    "cifar10": "cifar10_5000_38_cnn",
}
CORES = 2
ALLOWED = 1.2, 2.0
"""A budget is kept within 20 % and two seconds."""


def subset(path: Path, count: int, out: Path) -> Path:
    """Write the first examples of each class, `count` in all, as an archive."""
    with np.load(path) as arrays:
        x, y = arrays["x_train"], np.asarray(arrays["y_train"]).ravel()
    classes = np.unique(y)
    each = -(-count // len(classes))
    chosen = np.sort(np.concatenate([np.flatnonzero(y == c)[:each] for c in classes])[:count])
    np.savez(out, x=x[chosen], y=y[chosen])
    return out


def command(data: Path, specs: Path, epochs: int, budget: int | None, out: Path) -> list[str]:
    """Return the command of one run."""
    said = [sys.executable, "-m", "augury", "rank", str(data), "--from-file", str(specs)]
    said += ["--epochs", str(epochs), "--json", str(out), "--device", "cpu"]
    return [*said, "--budget", str(budget)] if budget else said


def run(words: list[str], cores: list[int]) -> float:
    """Run a command on these cores; return its seconds, the start of the process included."""
    threads = {"OMP_NUM_THREADS": str(len(cores)), "MKL_NUM_THREADS": str(len(cores))}
    known = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    paths = {"PYTHONPATH": os.pathsep.join(known), "CUDA_VISIBLE_DEVICES": ""}
    started = time.perf_counter()
    found = subprocess.run(
        words, env=os.environ | threads | paths, capture_output=True, text=True, check=False,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )  # fmt: skip
    if found.returncode:
        raise RuntimeError(f"{' '.join(words)}: {found.stderr.strip()[-500:]}")
    return time.perf_counter() - started


def judge(ranking: dict[str, Any], seconds: float, budget: int | None, truth: dict[str, float]):
    """Compare one ranking with the truth; the whole trial is compared in `summarise`."""
    rows = {row["augmentation"]: row for row in ranking["rows"]}
    shared = [spec for spec in rows if spec in truth]
    gains = [rows[spec]["gain"] for spec in shared]
    real = [truth[spec] for spec in shared]
    covered = [rows[s]["low"] <= truth[s] <= rows[s]["high"] for s in shared]
    sure = [s for s in shared if rows[s]["verdict"] in ("helps", "hurts")]
    likely = [s for s in shared if "help" in rows[s]["verdict"] or "hurt" in rows[s]["verdict"]]
    wrong = [s for s in sure if rows[s]["gain"] * truth[s] < 0 and abs(truth[s]) > 0.3]
    return {
        "budget": budget,
        "seconds": round(seconds, 1),
        "kept": budget is None or seconds <= ALLOWED[0] * budget + ALLOWED[1],
        "level": ranking["effort"].get("level"),
        "spearman": float(spearmanr(gains, real)[0]),
        "covered": float(np.mean(covered)),
        "decided": len(sure) / len(shared),
        "probably": (len(likely) - len(sure)) / len(shared),
        "wrong": len(wrong),
        "candidates": len(shared),
        "gains": {spec: round(rows[spec]["gain"], 3) for spec in shared},
    }


def compare(runs: list[dict[str, Any]]) -> None:
    """Add to each run its rank correlation with the whole trial of its data set."""
    whole = {one["data"]: one["gains"] for one in runs if one["budget"] is None}
    for one in runs:
        other = whole.get(one["data"])
        if other:
            specs = list(one["gains"])
            pair = [one["gains"][s] for s in specs], [other[s] for s in specs]
            one["spearman_whole"] = float(spearmanr(*pair)[0])


def line(one: dict[str, Any]) -> str:
    """Return a run in a line."""
    budget = "whole" if one["budget"] is None else f"{one['budget']} s"
    return (
        f"{one['data']:>8} {budget:>6}: {one['seconds']:6.1f} s kept={one['kept']} "
        f"level={one['level']} spearman={one['spearman']:.2f} "
        f"whole={one.get('spearman_whole', float('nan')):.2f} covered={one['covered']:.2f} "
        f"decided={one['decided']:.2f} probably={one['probably']:.2f} wrong={one['wrong']}"
    )


def measure(jobs: list[dict[str, Any]], pairs: list[list[int]], keep: Any) -> list[dict[str, Any]]:
    """Run all jobs, as many at a time as there are pairs of cores."""
    free: SimpleQueue[list[int]] = SimpleQueue()
    for pair in pairs:
        free.put(pair)
    done: list[dict[str, Any]] = []

    def work(job: dict[str, Any]) -> dict[str, Any]:
        cores = free.get()
        try:
            seconds = run(job["words"], cores)
        finally:
            free.put(cores)
        ranking = json.loads(job["out"].read_text())
        return {"data": job["data"]} | judge(ranking, seconds, job["budget"], job["truth"])

    with ThreadPoolExecutor(len(pairs)) as pool:
        for future in as_completed([pool.submit(work, job) for job in jobs]):
            try:
                done.append(future.result())
            except RuntimeError as error:
                print(error, flush=True)  # such as a budget that is too short for any trial
                continue
            print(line(done[-1]), flush=True)
            compare(done)
            keep(done)
    return done


def draw(result: dict[str, Any]) -> Figure:
    """Draw rank correlation, coverage and what was decided against the budget."""
    figure = Figure(figsize=(9, 2.8), layout="constrained")
    panels = figure.subplots(1, 3)
    names = ("spearman", "covered", "decided")
    titles = ("rank correlation with real gains", "real gains inside the interval", "decided")
    for name, title, axes in zip(names, titles, panels, strict=True):
        for data in dict.fromkeys(one["data"] for one in result["runs"]):
            own = [one for one in result["runs"] if one["data"] == data]
            own.sort(key=lambda one: one["seconds"])
            axes.semilogx([o["seconds"] for o in own], [o[name] for o in own], "o-", label=data)
        axes.set(title=title, xlabel="seconds on two cores", ylim=(0, 1.05))
    panels[1].axhline(0.9, color="#6b7480", linewidth=0.8, linestyle="--")
    panels[0].legend()
    return figure


def table(result: dict[str, Any]) -> list[str]:
    """Return the runs as lines of a Markdown table."""
    lines = [
        "| data | budget | took | with real gains | with the whole trial | covered | decided |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in result["runs"]:
        budget = "none" if one["budget"] is None else f"{one['budget']} s"
        lines.append(
            f"| {one['data']} | {budget} | {one['seconds']:.0f} s | {one['spearman']:.2f} | "
            f"{one['spearman_whole']:.2f} | {100 * one['covered']:.0f} % | "
            f"{100 * one['decided']:.0f} % |"
        )
    return lines


def prepare(folder: Path, data: Path, budgets: tuple[int | None, ...]) -> list[dict[str, Any]]:
    """Write the data and the candidates of each cell; return what is to be run."""
    jobs = []
    for name, cell in CELLS.items():
        truth = json.loads((TRUTH / f"{cell}.json").read_text())
        examples = subset(data / f"{name}.npz", truth["examples"], folder / f"{name}.npz")
        real = real_gains(truth)
        specs = folder / f"{name}.txt"
        specs.write_text("\n".join(real) + "\n")
        for budget in budgets:
            out = folder / f"{name}_{budget}.json"
            words = command(examples, specs, truth["epochs"], budget, out)
            jobs.append({"data": name, "budget": budget, "words": words, "out": out, "truth": real})
    return jobs


def quick(folder: Path) -> list[dict[str, Any]]:
    """Return one run on scikit-learn's digits, with made-up truth."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    np.savez(folder / "digits.npz", x=(15 * digits.images).astype(np.uint8), y=digits.target)
    specs = folder / "specs.txt"
    truth = {"rotation(10)": 0.5, "vertical_flip": -3.0, "translation(0.1)": 0.5}
    specs.write_text("\n".join(truth) + "\n")
    jobs = []
    for budget in (60, None):
        out = folder / f"{budget}.json"
        words = command(folder / "digits.npz", specs, 4, budget, out)
        jobs.append(
            {"data": "digits", "budget": budget, "words": words, "out": out, "truth": truth}
        )
    return jobs


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with mnist.npz, fashion.npz, cifar10.npz")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, on two cores each")
    parser.add_argument("--budgets", type=int, nargs="+", default=list(BUDGETS))
    parser.add_argument("--no-whole", action="store_true", help="leave the whole trial out")
    parser.add_argument("--quick", action="store_true", help="one run on scikit-learn's digits")
    add_out(parser)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    pairs = [cores[k : k + CORES] for k in range(0, len(cores) - CORES + 1, CORES)][: options.jobs]
    pairs = pairs or [cores]
    about = environment(torch.device("cpu"))
    path = Path(options.out) / "budgets.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = () if options.no_whole else (None,)

    def keep(done: list[dict[str, Any]]) -> None:
        done = sorted(done, key=lambda one: (one["data"], one["budget"] or 10**6))
        write(path, compact({"environment": about, "cores": CORES, "runs": done}))

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if options.quick:
            jobs = quick(folder)
        else:
            if options.data is None:
                parser.error(
                    "--data is needed: the folder with mnist.npz, fashion.npz, cifar10.npz"
                )
            jobs = prepare(folder, options.data, (*whole, *options.budgets))
        jobs.sort(key=lambda job: -(job["budget"] or 10**6))  # the longest first
        done = measure(jobs, pairs, keep)
    compare(done)
    keep(done)
    kept = sum(one["kept"] for one in done)
    least = min(one["covered"] for one in done)
    print(f"runs={len(done)} of {len(jobs)} kept={kept} least_covered={least:.2f}\nwrote {path}")


if __name__ == "__main__":
    main()
