"""Images of more than four channels, which may come first or last."""

from __future__ import annotations

import numpy as np
import pytest

from augury.data import as_dataset


def read(shape: tuple[int, ...], axes: tuple[int, ...] = (0, 1, 2, 3)) -> tuple[tuple, list[str]]:
    """Return the shape of images as they are taken, and what was noted about it."""
    x = np.random.default_rng(0).integers(0, 256, (4, *shape)).astype(np.uint8)
    data = as_dataset(x.transpose(axes), [0, 1, 0, 1])
    return tuple(data.shape), [note for note in data.notes if "channels of" in note]


@pytest.mark.parametrize(
    ("shape", "taken"),
    [((9, 9, 200), (200, 9, 9)), ((9, 9, 7), (7, 9, 9)), ((5, 5, 6), (6, 5, 5))],
)
def test_two_equal_sides_first_are_those_of_images(
    shape: tuple[int, ...], taken: tuple[int, ...]
) -> None:
    a, b, c = shape
    assert read(shape) == (
        taken,
        [
            f"images of shape {a} × {b} × {c} were taken as {c} channels of {a} × {b} pixels; if "
            "the first axis holds the channels, pass x.swapaxes(2, 3)"
        ],
    )
    other, notes = read(shape, (0, 1, 3, 2))  # as the note says
    assert other == (a, c, b)
    assert f"{a} channels of {c} × {b} pixels" in notes[0]


@pytest.mark.parametrize("shape", [(20, 30, 10), (10, 20, 30), (9, 9, 9), (20, 30, 20)])
def test_channels_first_where_it_is_in_doubt(shape: tuple[int, ...]) -> None:
    a, b, c = shape
    taken, notes = read(shape)
    assert taken == shape
    start = f"images of shape {a} × {b} × {c} were taken as {a} channels of {b} × {c} pixels; if "
    assert notes[0].startswith(start + "the last axis holds the channels, pass x.transpose(0, 3")
    axes = (0, 3, 2, 1) if shape == (20, 30, 20) else (0, 3, 1, 2)
    assert notes[0].endswith(f"x.transpose{axes}")
    assert read(shape, axes)[0] == tuple(shape[axis - 1] for axis in axes[1:])


@pytest.mark.parametrize("shape", [(13, 32, 32), (3, 9, 200), (4, 20, 30), (13, 5, 5)])
def test_no_doubt(shape: tuple[int, ...]) -> None:
    taken, notes = read(shape)
    assert taken[1:] == shape[1:]
    assert notes == []
