"""From what size on averaged features pay: time against examples and features, both alike.

    python benchmarks/nodes_against_views.py [--quick] [--data FOLDER] [--out FOLDER]

Kernel classifiers of MNIST in closed form, each size with as many features as images: trained on
8 random views of every image, and on features averaged over 8 nodes (`rotation(15)`), both with
the same λ, so that only the work differs. `setup` is what does not grow with the images: drawing
frequencies and transforming them. Times are the processor's, of one thread, the median of three.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _result import add_out, environment, save

from augury.data.dataset import Dataset
from augury.features import AugmentedFourier
from augury.kernel import AugmentedKernelClassifier
from augury_paper.images import Library, default_folder
from augury_paper.settings import CPU
from augury_paper.table1.closed import TraditionalClassifier

AUGMENTATION, VIEWS = "rotation(15)", 8
SIZES = (500, 1000, 2000, 4000)
ROUNDS = 3
OPTIONS: dict[str, Any] = {
    "n_views": VIEWS, "gamma": 0.038, "ridge": 1e-4, "precision": "float32", "device": "cpu",
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=default_folder(), help="folder with MNIST")
    parser.add_argument("--quick", action="store_true", help="the two smallest sizes")
    add_out(parser)
    options = parser.parse_args()
    torch.set_num_threads(1)
    train = Library(options.data, CPU).images("mnist").train
    result: dict[str, Any] = {"environment": environment(torch.device("cpu")), "views": VIEWS}
    result["rows"] = []
    for size in SIZES[: 2 if options.quick else None]:
        result["rows"].append(row := measure(train, size))
        print(row, flush=True)
        save(options.out, "nodes_against_views", result)


def measure(train: Dataset, size: int) -> dict[str, float]:
    """Return the seconds of each way, and of what they share whatever the number of images."""
    x, y = train.x[:size], train.y[:size]
    views = TraditionalClassifier(
        AUGMENTATION, n_components=size, objective="exact", prediction="plain", **OPTIONS
    )
    nodes = AugmentedKernelClassifier(AUGMENTATION, n_components=size, **OPTIONS)
    plain = AugmentedKernelClassifier("identity", n_components=size, **OPTIONS)
    found = {
        name: seconds(lambda model=model: model.fit(x, y))
        for name, model in (("views", views), ("nodes", nodes), ("no augmentation", plain))
    }
    phi: AugmentedFourier = nodes._psi
    sample = x[:2].float() / 255
    found["setup"] = seconds(lambda: phi.fit(sample, torch.eye(2)))
    return {"size": size} | found | {"times faster": found["views"] / found["nodes"]}


def seconds(run: Any) -> float:
    """Return the median processor time of a call, after one to warm up."""
    times = []
    for _ in range(1 + ROUNDS):
        started = time.process_time()
        run()
        times.append(time.process_time() - started)
    return float(np.round(statistics.median(times[1:]), 4))


if __name__ == "__main__":
    main()
