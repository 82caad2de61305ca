"""Generated images in shards on disk: a pattern for each of ten classes, and noise."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path
from typing import Any

import numpy as np

SHARDS = 20
CANDIDATES = (
    "horizontal_flip", "vertical_flip", "rotation(15)", "translation(0.1)", "noise(0.1)",
    "blur(1)", "brightness(0.2)", "cutout(0.3)",
)  # fmt: skip


def write_shard(folder: str, k: int, rows: int, side: int) -> None:
    rng = np.random.default_rng(k)
    pattern = np.random.default_rng(1234).integers(0, 96, (10, 3, side, side), dtype=np.uint8)
    y = rng.integers(0, 10, rows)
    x = np.frombuffer(rng.bytes(rows * 3 * side * side), np.uint8).reshape(rows, 3, side, side) >> 1
    np.save(Path(folder) / f"x_{k:03}.npy", x + pattern[y])
    np.save(Path(folder) / f"y_{k:03}.npy", y)


def generate(folder: Path, examples: int, side: int = 32) -> Path:
    """Write examples in 20 shards, unless they are there."""
    if not folder.exists():
        folder.mkdir(parents=True)
        jobs = [(str(folder), k, examples // SHARDS, side) for k in range(SHARDS)]
        with multiprocessing.get_context("spawn").Pool(min(8, os.cpu_count() or 1)) as pool:
            pool.starmap(write_shard, jobs)
    return folder


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return scikit-learn's digits, in [0, 1], and their labels."""
    from sklearn.datasets import load_digits

    found: Any = load_digits()
    return found.images / 16, found.target
