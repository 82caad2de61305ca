"""What a budget costs: forecasts within 10 to 80 seconds against the whole trial and the truth.

    python benchmarks/budgets.py --data FOLDER [--jobs 7] [--out benchmarks/results]
    python benchmarks/budgets.py whole --data FOLDER --device cuda --whole FOLDER
    python benchmarks/budgets.py --data FOLDER --whole FOLDER
    python benchmarks/budgets.py --quick

For each data set the same command is run with every budget on two cores, as
`augury rank FILE.npz --from-file SPECS --epochs N --budget S`, timed from the start of its process,
and once with `--effort 7`, the whole trial of a small network. That takes minutes on two cores:
`whole` runs it on another device and keeps its rankings, and `--whole` then takes them.
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
from augury.forecasting.effort import CPU as WHOLE

BUDGETS = (10, 20, 40, 80)
CELLS = {
    "mnist": "mnist_1000_40_cnn",
    "fashion": "fashion_2000_20_cnn",
    "cifar10": "cifar10_5000_38_cnn",
}
CORES = 2
REFUSED = 2  # the exit code of input that is refused, such as a budget too short for any trial
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
    return [*said, *(["--budget", str(budget)] if budget else ["--effort", str(WHOLE)])]


def run_whole(jobs: list[dict[str, Any]], device: str, folder: Path) -> None:
    """Run the trial without a budget of each data set, elsewhere; keep the rankings."""
    folder.mkdir(parents=True, exist_ok=True)
    for job in jobs:
        path = folder / f"{job['data']}.json"
        words = list(job["words"])
        words[words.index("--json") + 1] = str(path)
        words[words.index("--device") + 1] = device
        subprocess.run(words, env=os.environ | _path(), check=True)
        print(f"wrote {path}", flush=True)


def _path() -> dict[str, str]:
    known = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(known)}


def run(words: list[str], cores: list[int]) -> float:
    """Run a command on these cores; return its seconds, the start of the process included."""
    threads = {"OMP_NUM_THREADS": str(len(cores)), "MKL_NUM_THREADS": str(len(cores))}
    paths = _path() | {"CUDA_VISIBLE_DEVICES": ""}
    started = time.perf_counter()
    found = subprocess.run(
        words, env=os.environ | threads | paths, capture_output=True, text=True, check=False,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )  # fmt: skip
    if found.returncode == REFUSED:
        raise ValueError(found.stderr.strip())
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
    whole = {one["data"]: one["gains"] for one in runs if one["budget"] is None}  # never refused
    for one in runs:
        other = whole.get(one["data"])
        if other and "refused" not in one:
            specs = list(one["gains"])
            pair = [one["gains"][s] for s in specs], [other[s] for s in specs]
            one["spearman_whole"] = float(spearmanr(*pair)[0])


def line(one: dict[str, Any]) -> str:
    """Return a run in a line."""
    budget = "whole" if one["budget"] is None else f"{one['budget']} s"
    if "refused" in one:
        return f"{one['data']:>8} {budget:>6}: {one['refused']}"
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
        except ValueError as refusal:
            return {"data": job["data"], "budget": job["budget"], "refused": str(refusal)}
        finally:
            free.put(cores)
        ranking = json.loads(job["out"].read_text())
        return {"data": job["data"]} | judge(ranking, seconds, job["budget"], job["truth"])

    with ThreadPoolExecutor(len(pairs)) as pool:
        for future in as_completed([pool.submit(work, job) for job in jobs]):
            try:
                done.append(future.result())
            except RuntimeError as error:
                print(error, flush=True)
                continue
            print(line(done[-1]), flush=True)
            keep(done)
    return done


def draw(result: dict[str, Any]) -> Figure:
    """Draw rank correlations, coverage, what was decided and the time against the budget."""
    figure = Figure(figsize=(9, 5), layout="constrained")
    panels = figure.subplots(2, 3)
    shown = {
        "spearman": "rank correlation with real gains",
        "spearman_whole": "rank correlation with the whole trial",
        "covered": "real gains inside the interval",
        "decided": "said to help or to hurt",
        "seconds": "seconds taken, start included",
    }
    limited = [one for one in result["runs"] if one["budget"] is not None]
    limited = [one for one in limited if "refused" not in one]
    for (name, title), axes in zip(shown.items(), panels.flat, strict=False):
        for data in dict.fromkeys(one["data"] for one in limited):
            own = sorted((o for o in limited if o["data"] == data), key=lambda o: o["budget"])
            known = [one for one in own if name in one]
            axes.plot([o["budget"] for o in known], [o[name] for o in known], "o-", label=data)
        axes.set_xscale("log", base=2)
        axes.set(title=title, xlabel="budget in seconds, two cores")
        axes.set_xticks(BUDGETS, [str(budget) for budget in BUDGETS])
        if name != "seconds":
            axes.set_ylim(0, 1.05)
    ends = [BUDGETS[0], BUDGETS[-1]]
    panels[0, 2].axhline(0.9, color="#6b7480", linewidth=0.8, linestyle="--")
    panels[1, 1].plot(
        ends, [ALLOWED[0] * b + ALLOWED[1] for b in ends], "--", color="#6b7480", linewidth=0.8,
    )  # fmt: skip
    panels[1, 2].axis("off")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    panels[1, 2].legend(handles, labels, loc="center", frameon=False)
    return figure


def table(result: dict[str, Any]) -> list[str]:
    """Return the runs as lines of a Markdown table."""
    lines = [
        "| data | budget | took | level | with real gains | with the full trial | covered "
        "| helps or hurts (wrong) | probably |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in result["runs"]:
        if "refused" in one:
            lines.append(f"| {one['data']} | {one['budget']} s | rejected |" + " |" * 6)
            continue
        whole = one["budget"] is None
        budget, took = ("none", "") if whole else (f"{one['budget']} s", f"{one['seconds']:.0f} s")
        other = "" if whole or "spearman_whole" not in one else f"{one['spearman_whole']:.2f}"
        lines.append(
            f"| {one['data']} | {budget} | {took} | {one['level']} | {one['spearman']:.2f} | "
            f"{other} | {100 * one['covered']:.0f} % | {100 * one['decided']:.0f} % "
            f"({one['wrong']}) | {100 * one['probably']:.0f} % |"
        )
    return lines


def prepare(
    folder: Path, data: Path, names: list[str], budgets: tuple[int | None, ...]
) -> list[dict[str, Any]]:
    """Write the data and the candidates of each cell; return what is to be run."""
    jobs = []
    for name in names:
        cell = CELLS[name]
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
    parser.add_argument("what", nargs="?", choices=["whole"], help="run the whole trials alone")
    parser.add_argument("--data", type=Path, help="folder with mnist.npz, fashion.npz, cifar10.npz")
    parser.add_argument("--only", nargs="+", choices=list(CELLS), default=list(CELLS))
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, on two cores each")
    parser.add_argument("--budgets", type=int, nargs="+", default=list(BUDGETS))
    parser.add_argument("--whole", type=Path, help="folder with rankings of the whole trials")
    parser.add_argument("--no-whole", action="store_true", help="leave the whole trial out")
    parser.add_argument("--device", default="cuda", help="where `whole` runs")
    parser.add_argument("--quick", action="store_true", help="one run on scikit-learn's digits")
    add_out(parser)
    options = parser.parse_args()
    if options.data is None and not options.quick:
        parser.error("--data is needed: the folder with mnist.npz, fashion.npz, cifar10.npz")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if options.what == "whole":
            run_whole(
                prepare(folder, options.data, options.only, (None,)), options.device, options.whole
            )
            return
        known = [] if options.whole is None else read_whole(options.whole, options.only)
        whole = () if options.no_whole or known else (None,)
        budgets = (*whole, *options.budgets)
        jobs = quick(folder) if options.quick else prepare(
            folder, options.data, options.only, budgets
        )  # fmt: skip
        jobs.sort(key=lambda job: -(job["budget"] or 10**6))  # the longest first
        _measure_all(jobs, known, options)


def _measure_all(
    jobs: list[dict[str, Any]], known: list[dict[str, Any]], options: argparse.Namespace
) -> None:
    """Run the jobs and write the result, beside whole trials that are known."""
    cores = sorted(os.sched_getaffinity(0))
    pairs = [cores[k : k + CORES] for k in range(0, len(cores) - CORES + 1, CORES)][: options.jobs]
    about = environment(torch.device("cpu"))
    path = Path(options.out) / "budgets.json"
    path.parent.mkdir(parents=True, exist_ok=True)

    def keep(done: list[dict[str, Any]]) -> None:
        done = sorted([*known, *done], key=lambda one: (one["data"], one["budget"] or 10**6))
        compare(done)
        write(path, compact({"environment": about, "cores": CORES, "runs": done}))

    done = measure(jobs, pairs or [cores], keep)
    finished = [one for one in done if "refused" not in one]
    if not finished:
        raise SystemExit("no run came to an end; the reasons are above")
    kept = sum(one["kept"] for one in finished)
    least = min(one["covered"] for one in finished)
    print(f"runs={len(done)} of {len(jobs)} kept={kept} least_covered={least:.2f}\nwrote {path}")


def read_whole(folder: Path, names: list[str]) -> list[dict[str, Any]]:
    """Return the whole trials that were run elsewhere, judged as the others are."""
    found = []
    for name in names:
        truth = json.loads((TRUTH / f"{CELLS[name]}.json").read_text())
        ranking = json.loads((folder / f"{name}.json").read_text())
        judged = judge(ranking, ranking["seconds"], None, real_gains(truth))
        found.append({"data": name} | judged)
    return found


if __name__ == "__main__":
    main()
