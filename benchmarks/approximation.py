"""How close the approximate objectives are to the true one: Figure 1 of the paper, its appendix.

    python benchmarks/approximation.py [--quick] [--device cuda] [--trials 10] [--dataset mnist]
        [--base rbf] [--examples 5000] [--features 2000] [--versions 16 | --authors]

The experiment is `augury_paper.approximation`, where its settings and its words are. For each
data set it writes `results/approximation_DATASET.json` with all numbers and `….svg`, drawn as the
paper's: the difference of objectives through training, in the mean and example by example, and the
divergence of test predictions, for Fourier features and LeNet under rotation, crop and blur.
`--base rbf` leaves LeNet out; `--versions` says how many versions of each image T is, if not four.

`--authors`, for Fourier features, takes what the paper leaves open from its authors' code: the
image itself is among its versions, which are 16 rotations, 31 crops or 20 weaker blurs; features
have amplitude 1, and weights a decay.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import torch
from _networks import RESULTS, environment, save
from matplotlib.figure import Figure

from augury.augmentations import parse
from augury_paper import PAPER, QUICK, Settings
from augury_paper.approximation import cells, section
from augury_paper.approximation.bases import FourierBase
from augury_paper.approximation.experiment import BASES, DATASETS, PER_VERSION, versions
from augury_paper.approximation.train import train
from augury_paper.cells import Bench
from augury_paper.images import Library, default_folder
from augury_paper.pool import Pool
from augury_paper.section import Plot

AUTHORS = {
    "rotation": ("rotation(15)", 16),
    "crop": ("resized_crop(0.64)", 31),
    "blur": ("blur(0.05,1.0)", 20),
}
"""The versions beside the image itself, in the authors' code."""
DECAY = 0.001


def as_authors(dataset: str, name: str, settings: Settings, bench: Bench) -> dict[str, Any]:
    """Train a cell's models on Fourier features as the authors' code does."""
    spec, n = AUTHORS[name]
    images = bench.images(dataset)
    pool = Pool.of(images.train, parse(spec), n, bench.device)
    weights = torch.cat([pool.weights.new_ones(1) / n, pool.weights]) * (n / (n + 1))
    versions = torch.cat([pool.x.unsqueeze(0), pool.versions])
    pool = replace(pool, versions=versions, weights=weights)
    models = FourierBase(images.train, settings, bench.device)
    models.size = math.sqrt(settings.features / 2)
    found = train(models, pool, images.test, settings, bench.tick, decay=DECAY)
    return {"gamma": models.gamma, "versions": n + 1, **found}


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
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--versions", type=int, default=None, help="of each image; 4 or more")
    how.add_argument("--authors", action="store_true", help="as in the paper's authors' code")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where results are written")
    options = parser.parse_args()
    if options.authors and "lenet" in (options.base or ()):
        parser.error("--authors is for Fourier features: leave --base lenet out")
    settings = QUICK if options.quick else PAPER
    given = {key: getattr(options, key) for key in ("trials", "examples", "features")}
    settings = replace(settings, **{k: v for k, v in given.items() if v is not None})
    if options.versions:
        settings = replace(settings, versions=PER_VERSION * options.versions)
    library, device = Library(options.data, settings), torch.device(options.device)
    bases = ["rbf"] if options.authors else options.base or list(BASES)
    suffix = "_quick" if options.quick else ""
    suffix += f"_{options.versions}_versions" if options.versions else ""
    suffix += "_authors" if options.authors else ""
    for dataset in options.dataset or DATASETS:
        if missing := library.missing(dataset):
            print(missing)
            continue
        found = {}
        for cell in cells(replace(settings, datasets=(dataset,))):
            if cell.setting["base"] in bases:
                bench = Bench(device, library.images, lambda share, words: None)
                if options.authors:
                    augmentation = cell.name.split("-")[-1]
                    found[cell.name] = as_authors(dataset, augmentation, settings, bench)
                else:
                    found[cell.name] = cell.run(bench)
                print(f"{cell.name}: {found[cell.name]['training_seconds']:.1f} s", flush=True)
        shown = section(found, settings)
        for claim in shown.claims:
            if claim.verdict != "could not be checked":
                print(f"{claim.words}: {claim.ours} (paper: {claim.paper}): {claim.verdict}")
        about = {key: getattr(settings, key) for key in given}
        about |= {"decay": DECAY} if options.authors else {"versions": versions(settings)}
        result = {"environment": environment(device), "settings": about, "cells": found}
        print("wrote", save(options.out, f"approximation_{dataset}{suffix}.json", result))
        draw(shown.plots, options.out / f"approximation_{dataset}{suffix}.svg")


if __name__ == "__main__":
    main()
