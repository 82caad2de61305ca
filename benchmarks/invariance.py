"""Layerwise invariance: networks trained with an augmentation against one trained without.

    python benchmarks/invariance.py [--quick] [--device cuda] [--trials 1]
    python benchmarks/invariance.py --timm resnet18 --device cuda

The first form is the paper's last figure (`augury_paper.invariance`): a ResNet with three
blocks of nine residual units is trained on CIFAR-10 without augmentation and with each of rotation,
crop and blur; then, for each of them, the distance that it moves a layer's features is compared
between the two networks: below 1, training with the augmentation has made the layer more invariant
to it. It draws `results/invariance.svg`.

The second form runs 1,000 images of 224 by 224 pixels and 16 versions of each through a model of
timm in one pass, and measures the time and the peak memory for 250 and for 1,000 images.
"""

from __future__ import annotations

import argparse
import resource
from pathlib import Path

import torch
import torch.nn.functional as F
from _networks import RESULTS, environment, save
from matplotlib.figure import Figure

from augury.networks.invariance import measure_invariance
from augury_paper import PAPER, QUICK
from augury_paper.images import Library, default_folder
from augury_paper.invariance.experiment import AUGMENTATIONS, Recipe, trial


def trained_with_against_without(options) -> dict:
    device = torch.device(options.device)
    few = QUICK if options.quick else PAPER
    images = Library(options.data, few).images("cifar10")
    recipe = Recipe(
        options.units, options.epochs, options.batch, options.rate, options.images, options.versions
    )
    trials = []
    for seed in range(options.trials):
        trials.append(trial(images, recipe, seed, device, lambda share, words: None))
        shown = (f"{k} {v:.2%}" for k, v in trials[-1]["accuracy"].items())
        took = sum(trials[-1]["training_seconds"].values())
        print(f"trial {seed}: {', '.join(shown)}; {took:.0f} s of training", flush=True)
    layers = trials[0]["layers"]
    tables = {
        key: {
            name: torch.tensor([t[key][name] for t in trials], dtype=torch.float64)
            for name in AUGMENTATIONS
        }
        for key in ("ratio", "relative_ratio")
    }
    ratio = {name: table.mean(0) for name, table in tables["ratio"].items()}
    found = {
        "layers": layers,
        "ratio": {name: mean.tolist() for name, mean in ratio.items()},
        "ratio_sd": {n: t.std(0, correction=0).tolist() for n, t in tables["ratio"].items()},
        "relative_ratio": {n: t.mean(0).tolist() for n, t in tables["relative_ratio"].items()},
        "not_more_invariant": {
            name: [la for la, r in zip(layers, mean, strict=True) if r >= 1]
            for name, mean in ratio.items()
        },
        "accuracy": {k: [t["accuracy"][k] for t in trials] for k in trials[0]["accuracy"]},
        "training_seconds": [t["training_seconds"] for t in trials],
    }
    for name in AUGMENTATIONS:
        worse = found["not_more_invariant"][name]
        print(
            f"{name}: ratio {min(found['ratio'][name]):.2f} to {max(found['ratio'][name]):.2f}; "
            f"below 1 in {len(layers) - len(worse)} of {len(layers)} layers"
            + (f", not in {', '.join(worse)}" if worse else "")
        )
    draw(found, options)
    return found


def draw(found: dict, options) -> None:
    figure = Figure(figsize=(15, 4.2), layout="constrained")
    layers = found["layers"]
    edges = [k - 0.5 for k, la in enumerate(layers) if la.endswith(".0") and la.startswith("block")]
    edges.append(max(k for k, la in enumerate(layers) if la.startswith("block")) + 0.5)
    for axes, spec in zip(figure.subplots(1, 3, sharey=True), AUGMENTATIONS, strict=True):
        for key, style in (("ratio", "o-"), ("relative_ratio", "x:")):
            label = "distance" if key == "ratio" else "relative distance"
            axes.plot(range(len(layers)), found[key][spec], style, markersize=4, label=label)
        axes.axhline(1, color="#1d2129", linewidth=1)
        for edge in edges:
            axes.axvline(edge, color="#6b7480", linewidth=1, linestyle="--")
        axes.set_title(spec)
        axes.set_xticks(range(len(layers)), labels=layers, rotation=90, fontsize=6)
    figure.axes[0].set_ylabel("trained with / trained without")
    figure.axes[0].legend(frameon=False)
    suffix = "_quick" if options.quick else ""
    options.out.mkdir(exist_ok=True, parents=True)
    figure.savefig(options.out / f"invariance{suffix}.svg")


def timm_model(options) -> dict:
    """Measure time and peak memory of one pass, for a quarter of the images and for all."""
    from augury.networks.load import load_network

    device = torch.device(options.device)
    model = load_network(options.timm, (3, 224, 224)).to(device)
    generator = torch.Generator().manual_seed(0)
    # Smooth random pictures, kept as bytes: what a layer makes of them does not matter here.
    coarse = torch.rand(options.images, 3, 14, 14, generator=generator)
    pictures = (F.interpolate(coarse, 224, mode="bilinear") * 255).to(torch.uint8)
    rows = []
    for count in (options.images // 4, options.images):
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        found = measure_invariance(
            model, pictures[:count], "rotation(15)", n_views=options.versions
        )
        peak = None
        if device.type == "cuda":
            peak = round(torch.cuda.max_memory_allocated(device) / 2**30, 3)
        resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        finite = all(c.relative == c.relative and c.distance == c.distance for c in found.rows)
        row = {"images": count, "versions": options.versions, "seconds": found.seconds}
        row |= {"peak_gib": peak, "resident_gib": resident, "layers": len(found.layers)}
        row |= {"finite": finite, "cells": [(c.layer, c.relative) for c in found.rows]}
        rows.append(row)
        print(
            f"{options.timm}: {count} images × {options.versions} versions, {len(found.layers)} "
            f"layers: {found.seconds:.1f} s, peak {peak} GiB on "
            f"the device, {resident:.2f} GiB resident, all finite: {finite}",
            flush=True,
        )
    two = measure_invariance(
        model, pictures[:2], "rotation(15)", n_views=options.versions, batch_size=2
    )
    finite = all(c.relative == c.relative for c in two.rows)
    print(f"{options.timm}: 2 images in a batch of 2, all finite: {finite}")
    return {"model": options.timm, "passes": rows, "finite_at_batch_size_2": finite}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one unit a block, a few steps")
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--data", type=Path, default=default_folder(), help="the folder of cifar10.npz"
    )
    parser.add_argument("--timm", metavar="MODEL", help="measure one pass through a timm model")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where results are written")
    parser.add_argument("--trials", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--batch", type=int, default=None)
    parser.add_argument("--rate", type=float, default=None)
    parser.add_argument("--units", type=int, default=None)
    parser.add_argument("--images", type=int, default=None, help="that invariance is measured on")
    parser.add_argument("--versions", type=int, default=16)
    options = parser.parse_args()
    usual = {"epochs": 10, "batch": 512, "rate": 0.4, "units": 9, "images": 1000}
    quick = {"epochs": 1, "batch": 100, "rate": 0.1, "units": 1, "images": 64}
    for key, value in (quick if options.quick else usual).items():
        if getattr(options, key) is None:
            setattr(options, key, value)
    device = torch.device(options.device)
    settings = {k: str(v) if isinstance(v, Path) else v for k, v in vars(options).items()}
    del settings["data"], settings["out"]
    found = {"environment": environment(device), "settings": settings}
    suffix = "_quick" if options.quick else ""
    if options.timm:
        found |= timm_model(options)
        print("wrote", save(options.out, f"invariance_{options.timm}{suffix}.json", found))
    elif missing := Library(options.data, PAPER).missing("cifar10"):
        print(missing)
    else:
        found |= trained_with_against_without(options)
        print("wrote", save(options.out, f"invariance{suffix}.json", found))


if __name__ == "__main__":
    main()
