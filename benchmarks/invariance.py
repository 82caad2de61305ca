"""Layerwise invariance: networks trained with an augmentation against one trained without.

    python benchmarks/invariance.py [--quick] [--device cuda] [--trials 1]
    python benchmarks/invariance.py --timm resnet18 --device cuda

The first form is the paper's last figure: a ResNet with three blocks of nine residual units is
trained on CIFAR-10 without augmentation and with each of rotation, crop and blur; then, for each
of them, the distance that it moves a layer's features is compared between the two networks:
below 1, training with the augmentation has made the layer more invariant to it. It draws
`results/invariance.svg`.

The second form runs 1,000 images of 224 by 224 pixels and 16 versions of each through a model of
timm in one pass, and measures the time and the peak memory for 250 and for 1,000 images.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from _networks import DATA, RESULTS, BlocksOfUnits, arrays, environment, save, seeded, synchronize
from matplotlib.figure import Figure
from torch import Tensor

from augury.augmentations import identity, parse
from augury.invariance import profile
from augury.rng import Rng

SPECS = ("rotation(15)", "resized_crop(0.64)", "blur(0.5,2.0)")


def train(
    augmentation, data: dict[str, Tensor], seed: int, options
) -> tuple[torch.nn.Module, dict]:
    """Train with one version of each image a step, by SGD with a one-cycle rate."""
    x, y = data["x_train"], data["y_train"]
    device, fast = x.device, x.device.type == "cuda"
    model = seeded(lambda: BlocksOfUnits(options.units), seed).to(device)
    if fast:
        model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(
        model.parameters(), options.rate, momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    per_epoch = len(x) // options.batch
    total = options.epochs * per_epoch
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.rate, total_steps=total)
    generator = torch.Generator().manual_seed(seed)
    synchronize(device)
    start = time.perf_counter()
    for epoch in range(options.epochs):
        order = torch.randperm(len(x), generator=generator).to(device)
        for rows in order[: per_epoch * options.batch].view(per_epoch, -1):
            rng = Rng(seed, rows + epoch * len(x))
            images = augmentation.views(x[rows].float() / 255, 1, rng)[0]
            if fast:
                images = images.contiguous(memory_format=torch.channels_last)
            with torch.autocast(device.type, torch.bfloat16, enabled=fast):
                loss = F.cross_entropy(model(images), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    synchronize(device)
    took = time.perf_counter() - start
    model.eval()
    right = 0
    with torch.no_grad():
        for images, labels in zip(
            data["x_test"].split(1000), data["y_test"].split(1000), strict=True
        ):
            right += int((model(images.float() / 255).argmax(1) == labels).sum())
    about = {"accuracy": right / len(data["y_test"]), "seconds": took, "loss": loss.item()}
    print(
        f"{augmentation}, seed {seed}: accuracy {about['accuracy']:.2%}, {took:.0f} s", flush=True
    )
    return model, about


def trained_with_against_without(options) -> dict:
    device = torch.device(options.device)
    data = arrays("cifar10", options.data, device)
    if options.quick:
        data = {k: v[: 1000 if k.endswith("train") else 500] for k, v in data.items()}
    sample = data["x_test"][: options.images].float() / 255
    units = [f"block{b}.{u}" for b in (1, 2, 3) for u in range(options.units)]
    layers = ["conv", *units, "pool", "fc"]
    measure = {"layers": layers, "versions": options.versions}
    runs, ratios = [], {spec: [] for spec in SPECS}
    for seed in range(options.trials):
        plain, about = train(identity(), data, seed, options)
        runs.append({"augmentation": None, "seed": seed, **about})
        before = profile(plain, sample, SPECS, **measure, name="without")
        for spec in SPECS:
            model, about = train(parse(spec), data, seed, options)
            after = profile(model, sample, spec, **measure, name="with").over(before)
            ratios[spec].append([(c.ratio, c.relative_ratio) for c in after.cells])
            runs.append({"augmentation": spec, "seed": seed, **about})
    table = {spec: torch.tensor(ratios[spec], dtype=torch.float64) for spec in SPECS}
    found = {
        "layers": layers,
        "ratio": {s: t[..., 0].mean(0).tolist() for s, t in table.items()},
        "ratio_sd": {s: t[..., 0].std(0, correction=0).tolist() for s, t in table.items()},
        "relative_ratio": {s: t[..., 1].mean(0).tolist() for s, t in table.items()},
        "not_more_invariant": {
            s: [la for la, r in zip(layers, t[..., 0].mean(0), strict=True) if r >= 1]
            for s, t in table.items()
        },
        "runs": runs,
    }
    for spec in SPECS:
        worse = found["not_more_invariant"][spec]
        print(
            f"{spec}: ratio {min(found['ratio'][spec]):.2f} to {max(found['ratio'][spec]):.2f}; "
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
    for axes, spec in zip(figure.subplots(1, 3, sharey=True), SPECS, strict=True):
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
    from augury.invariance.models import load_network

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
        found = profile(model, pictures[:count], "rotation(15)", versions=options.versions)
        peak = None
        if device.type == "cuda":
            peak = round(torch.cuda.max_memory_allocated(device) / 2**30, 3)
        resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        finite = all(c.relative == c.relative and c.distance == c.distance for c in found.cells)
        row = {"images": count, "versions": options.versions, "seconds": found.seconds}
        row |= {"peak_gib": peak, "resident_gib": resident, "layers": len(found.layers)}
        row |= {"finite": finite, "cells": [(c.layer, c.relative) for c in found.cells]}
        rows.append(row)
        print(
            f"{options.timm}: {count} images × {options.versions} versions, {len(found.layers)} "
            f"layers: {found.seconds:.1f} s, peak {peak} GiB on "
            f"the device, {resident:.2f} GiB resident, all finite: {finite}",
            flush=True,
        )
    two = profile(model, pictures[:2], "rotation(15)", versions=options.versions, batch_size=2)
    finite = all(c.relative == c.relative for c in two.cells)
    print(f"{options.timm}: 2 images in a batch of 2, all finite: {finite}")
    return {"model": options.timm, "passes": rows, "finite_at_batch_size_2": finite}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one unit a block, a few steps")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of cifar10.npz")
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
    usual = {"epochs": 15, "batch": 512, "rate": 0.4, "units": 9, "images": 1000}
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
    elif options.quick and not (options.data / "cifar10.npz").is_file():
        print("cifar10.npz is missing; nothing was measured")
    else:
        found |= trained_with_against_without(options)
        print("wrote", save(options.out, f"invariance{suffix}.json", found))


if __name__ == "__main__":
    main()
