"""How close the approximate objectives are to the true one: Figure 1 of the paper, its appendix.

    python benchmarks/approximation.py [--quick] [--device cuda] [--trials 10] [--dataset mnist]
        [--base rbf] [--examples 5000] [--features 2000] [--versions 16]

The experiment is `augury.reproduce.approximation`, where its settings and its words are. For each
data set it writes `results/approximation_DATASET.json` with all numbers and `….svg`, drawn as the
paper's: the difference of objectives through training, in the mean and example by example, and the
divergence of test predictions, for Fourier features and LeNet under rotation, crop and blur.
`--base rbf` leaves LeNet out; `--versions` says how many versions of each image T is, if not four.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import torch
from _networks import RESULTS, environment, save
from matplotlib.figure import Figure

from augury.report.section import Plot
from augury.reproduce import PAPER, QUICK
from augury.reproduce.approximation import cells, section
from augury.reproduce.approximation.experiment import BASES, DATASETS, PER_VERSION, versions
from augury.reproduce.cells import Bench
from augury.reproduce.images import Library, default_folder


def draw(plots: tuple[Plot, ...], path: Path) -> None:
    """Draw objectives, example by example too, above predictions; a column for each panel."""
    rows = 3
    columns = len(plots) // rows
    figure = Figure(figsize=(3.1 * columns, 3.1 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for k, plot in enumerate(plots):
        own = axes[k % rows, k // rows]
        for series in plot.series:
            low, high = ([v + s * d for v, d in zip(series.y, series.spread, strict=True)]
                         for s in (-1, 1))  # fmt: skip
            (line,) = own.plot(series.x, series.y, label=series.label, linewidth=1.4)
            own.fill_between(series.x, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
        own.set_yscale("log" if plot.log else "linear")
        own.set_title(plot.title, fontsize=8)
        own.set_xlabel(plot.xlabel, fontsize=8)
        own.tick_params(labelsize=7)
    for row, plot in zip(axes, plots, strict=False):
        row[0].set_ylabel(plot.ylabel)
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=4, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "augury"}):  # the same drawing every time
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="1,000 images, 2 trials")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--data", type=Path, default=default_folder(), help="the data sets' folder")
    parser.add_argument("--dataset", action="append", choices=DATASETS)
    parser.add_argument("--base", action="append", choices=list(BASES))
    parser.add_argument("--trials", type=int, default=None)
    parser.add_argument("--examples", type=int, default=None, help="training images, 0 for all")
    parser.add_argument("--features", type=int, default=None, help="Fourier features")
    parser.add_argument("--versions", type=int, default=None, help="of each image; 4 or more")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where results are written")
    options = parser.parse_args()
    settings = QUICK if options.quick else PAPER
    given = {key: getattr(options, key) for key in ("trials", "examples", "features")}
    settings = replace(settings, **{k: v for k, v in given.items() if v is not None})
    if options.versions:
        settings = replace(settings, versions=PER_VERSION * options.versions)
    library, device = Library(options.data, settings), torch.device(options.device)
    bases, suffix = options.base or list(BASES), "_quick" if options.quick else ""
    suffix += f"_{options.versions}_versions" if options.versions else ""
    for dataset in options.dataset or DATASETS:
        if missing := library.missing(dataset):
            print(missing)
            continue
        found = {}
        for cell in cells(replace(settings, datasets=(dataset,))):
            if cell.setting["base"] in bases:
                bench = Bench(device, library.images, lambda share, words: None)
                found[cell.name] = cell.run(bench)
                print(f"{cell.name}: {found[cell.name]['training_seconds']:.1f} s", flush=True)
        shown = section(found, settings)
        for claim in shown.claims:
            if claim.verdict != "could not be checked":
                print(f"{claim.words}: {claim.ours} (paper: {claim.paper}): {claim.verdict}")
        about = {key: getattr(settings, key) for key in given} | {"versions": versions(settings)}
        result = {"environment": environment(device), "settings": about, "cells": found}
        print("wrote", save(options.out, f"approximation_{dataset}{suffix}.json", result))
        draw(shown.plots, options.out / f"approximation_{dataset}{suffix}.svg")


if __name__ == "__main__":
    main()
