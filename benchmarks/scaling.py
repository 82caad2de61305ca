"""How the cost of the kernel classifier grows: with examples, with features, with pixels.

    python benchmarks/scaling.py [--quick] [--device cuda] [--out FOLDER]

Time to fit against the number of examples and against the number of features, at a fixed
allowance of memory, on MNIST (4,000 digits again and again where it is missing); and the time of
structured frequencies beside dense ones, against the number of pixels. The exponent printed is the
slope of a line through the logarithms: 1 is linear. On a CPU, time is the processor's time of one
thread, which other work on the machine changes little. On a GPU the solver factorises a matrix of
features × features, which is faster at these sizes and grows with their square and cube.

`python benchmarks/pages.py` draws the committed result.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _result import add_out, environment, save
from matplotlib.figure import Figure

from augury._base.devices import resolve_device
from augury.features import FourierFeatures
from augury.kernel import AugmentedKernelClassifier
from augury_paper.images import Library, default_folder
from augury_paper.settings import QUICK
from augury_paper.sgd import now as wall_clock

ROUNDS = 3
MEMORY = 4.0  # GiB
PIXELS = ((1, 28, 28), (3, 32, 32), (3, 64, 64), (3, 96, 96))
GRIDS: dict[str, dict[str, tuple[int, ...]]] = {
    "quick": {
        "examples": (1000, 2000, 4000),
        "features": (2000, 4000, 8000),
        "fixed": (1000, 2000),
    },
    "cpu": {
        "examples": (4000, 8000, 16_000, 32_000),
        "features": (4000, 8000, 16_000),
        "fixed": (4000, 4000),
    },
    "cuda": {
        "examples": (7500, 15_000, 30_000, 60_000),
        "features": (5000, 10_000, 20_000, 40_000),
        "fixed": (20_000, 10_000),
    },
}
"""What is tried; fixed: the examples while features grow, and the features while examples do."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data", default=str(default_folder()), help="the folder with MNIST")
    parser.add_argument("--quick", action="store_true", help="a small form, in under a minute")
    add_out(parser)
    options = parser.parse_args()
    device = resolve_device(options.device)
    if device.type == "cpu":
        torch.set_num_threads(1)
    grid = GRIDS["quick" if options.quick else device.type]
    x, y = images(Path(options.data).expanduser(), max(*grid["examples"], grid["fixed"][0]))
    count, features = grid["fixed"][:2]
    result: dict[str, Any] = {"environment": environment(device), "memory_gib": MEMORY}
    result["examples"] = sweep(
        "examples",
        grid["examples"],
        lambda n: fit_seconds(x[:n], y[:n], features, device),
    )
    result["features"] = sweep(
        "features",
        grid["features"],
        lambda d: fit_seconds(x[:count], y[:count], d, device),
    )
    result["structured"] = structured(device, 256 if options.quick else 2048)
    result["fixed"] = {"examples": count, "features": features}
    save(options.out, "scaling", result)
    ratios = [row["dense_seconds"] / row["structured_seconds"] for row in result["structured"][1:]]
    print(
        f"examples_exponent={result['examples']['exponent']:.2f} "
        f"features_exponent={result['features']['exponent']:.2f} "
        f"structured_speedup={min(ratios):.1f}..{max(ratios):.1f}"
    )


def now(device: torch.device) -> float:
    """Return the processor's time on a CPU, the wall clock's on a GPU."""
    return time.process_time() if device.type == "cpu" else wall_clock(device)


def images(folder: Path, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return as many images as are wanted, repeated where there are fewer."""
    settings = replace(QUICK, examples=4000, tests=500)
    library = Library(folder, settings)
    if library.source("mnist") == "mnist":
        library = Library(folder, replace(settings, examples=count))
    train = library.images("mnist").train
    index = np.arange(count) % len(train)
    return train.x.numpy()[index], train.y.numpy()[index]


def fit_seconds(x: np.ndarray, y: np.ndarray, features: int, device: torch.device) -> float:
    """Fit once, with γ and λ given, so that only the size differs."""
    model = AugmentedKernelClassifier(
        "rotation(15)",
        n_components=features,
        n_views=4,
        gamma=0.02,
        ridge=1e-4,
        memory=MEMORY if device.type == "cpu" else None,
        precision="tf32" if device.type == "cuda" else "float32",
        device=str(device),
    )
    started = now(device)
    model.fit(x, y)
    return now(device) - started


def sweep(name: str, sizes: Sequence[int], run: Callable[[int], float]) -> dict[str, Any]:
    """Time every size, and give the slope in logarithms."""
    run(sizes[0])
    rows = []
    for size in sizes:
        seconds = [run(size) for _ in range(ROUNDS)]
        rows.append({"size": size, "seconds": seconds})
        print(f"{name} {size:>7,}: {statistics.median(seconds):8.3f} s", flush=True)
    times = [statistics.median(row["seconds"]) for row in rows]
    slope = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
    return {"rows": rows, "exponent": slope}


def structured(device: torch.device, batch: int, features: int = 20_000) -> list[dict[str, Any]]:
    """Time the features of one batch, dense and structured."""
    rows = []
    for shape in PIXELS:
        x = torch.rand(batch, *shape, generator=torch.Generator().manual_seed(0)).to(device)
        row: dict[str, Any] = {"pixels": x[0].numel(), "features": features, "batch": batch}
        for sampling in ("iid", "hadamard"):
            phi = FourierFeatures(features, gamma=0.01, sampling=sampling).fit(x[:2])
            times = []
            for _ in range(2 + ROUNDS):
                started = now(device)
                phi(x)
                times.append(now(device) - started)
            name = "dense" if sampling == "iid" else "structured"
            row[f"{name}_seconds"] = statistics.median(times[2:])
        rows.append(row)
        print(
            f"{row['pixels']:>6,} pixels: dense {row['dense_seconds']:.4f} s, structured "
            f"{row['structured_seconds']:.4f} s",
            flush=True,
        )
    return rows


def draw(result: dict[str, Any]) -> Figure:
    """Draw the three measurements, each on logarithmic axes."""
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    axes, fixed = figure.subplots(1, 3), result["fixed"]
    titles = (
        f"examples, {fixed['features']:,} features",
        f"features, {fixed['examples']:,} examples",
    )
    for axis, name, title in zip(axes, ("examples", "features"), titles, strict=False):
        sizes = [row["size"] for row in result[name]["rows"]]
        times = [statistics.median(row["seconds"]) for row in result[name]["rows"]]
        axis.loglog(sizes, times, "o-", label=f"exponent {result[name]['exponent']:.2f}")
        axis.loglog(sizes, [times[0] * size / sizes[0] for size in sizes], "--", label="linear")
        axis.set(title=f"Time to fit against {title}", xlabel=name, ylabel="seconds")
    pixels = [row["pixels"] for row in result["structured"]]
    for name in ("dense", "structured"):
        times = [row[f"{name}_seconds"] for row in result["structured"]]
        axes[2].loglog(pixels, times, "o-", label=name)
    axes[2].set(title="Features of one batch", xlabel="pixels", ylabel="seconds")
    for axis in axes:
        axis.legend()
        axis.grid(alpha=0.3)
    return figure


if __name__ == "__main__":
    main()
