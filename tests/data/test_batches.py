"""Whether the items of an iterable are examples or batches of them, where both have arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import IterableDataset

from augury.data import as_dataset

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (40, 3, 12, 12), dtype=np.uint8)
TAGS = RNG.integers(0, 2, (40, 3))
TAGS[:2] = [[0, 0, 1], [1, 1, 0]]  # some have none of the labels, or several


class Stream(IterableDataset[Any]):
    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y

    def __iter__(self) -> Iterator[Any]:
        yield from zip(self.x, self.y, strict=True)


@pytest.mark.parametrize("convert", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.bool_])
def test_images_with_as_many_labels_as_channels(convert: Any, dtype: Any) -> None:
    data = as_dataset(Stream(convert(IMAGES), convert(TAGS.astype(dtype))))
    assert (len(data), data.shape, data.task) == (40, (3, 12, 12), "multi-label")
    assert (
        "items of shape 3 × 12 × 12 with 3 labels were read as single examples, not as batches "
        "of 3" in data.notes
    )


def batches(x: np.ndarray, y: np.ndarray, size: int) -> Iterator[Any]:
    for start in range(0, len(x), size):
        yield x[start : start + size], y[start : start + size]


@pytest.mark.parametrize(
    "x", [IMAGES, IMAGES[:, 0], IMAGES[:, 0, 0] / 7], ids=["colour", "grey", "vectors"]
)
@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_batches_with_labels_of_two_classes(x: np.ndarray, size: int) -> None:
    if size == 2 and x.ndim < 4:
        return  # nothing tells these from two channels with two labels
    data = as_dataset(batches(x, np.arange(40) % 2, size))  # of 3, the last one is smaller
    expected = as_dataset(x, np.arange(40) % 2)
    assert torch.equal(data.x, expected.x)
    assert torch.equal(data.y, expected.y)
    said = "with 8 labels were read as batches of 8, not as single examples"
    assert any(said in note for note in data.notes) == (size == 8 and x.ndim < 4)


@pytest.mark.parametrize("y", [np.arange(40) % 4, np.linspace(0.1, 4, 40)])
def test_batches_with_labels_that_are_not_0_and_1(y: np.ndarray) -> None:
    data = as_dataset(batches(IMAGES[:, 0], y, 8))
    assert torch.equal(data.x, as_dataset(IMAGES[:, 0], y).x)
    assert not any("single examples" in note for note in data.notes)


def test_labels_as_lists_are_of_single_examples() -> None:
    series, tags = RNG.normal(size=(40, 8, 20)), RNG.integers(0, 2, (40, 8))
    data = as_dataset(Stream(series, tags.tolist()))
    assert (data.shape, data.task) == ((8, 20), "multi-label")
