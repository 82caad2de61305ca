"""What is done to inputs: fitted once, applied to new data, saved as plain values."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from refusal import refused

from augury.data import Preparation, as_dataset, describe

Y6 = [0, 0, 0, 1, 1, 1]
RNG = np.random.default_rng(0)
CASES: dict[str, np.ndarray] = {
    "bytes": RNG.integers(0, 256, (6, 8, 9, 3), dtype=np.uint8),
    "binary": RNG.integers(0, 2, (6, 8, 8)).astype(np.uint8),
    "unit": RNG.uniform(size=(6, 8, 8)),
    "span": RNG.uniform(-3, 200, (6, 8, 8)),
    "series": RNG.normal(3, 7, (6, 3, 20)),
    "vector": RNG.normal(3, 7, (6, 4)) * [1, 1e-3, 1e200, 1] + [0, 1e9, 0, 5],
}


def fitted(case: str) -> tuple[Any, Preparation]:
    data = as_dataset(CASES[case], Y6)
    assert data.preparation is not None
    return data, data.preparation


@pytest.mark.parametrize("case", CASES)
def test_new_data_is_prepared_as_the_first_was(case: str) -> None:
    data, preparation = fitted(case)
    written = json.loads(json.dumps(preparation.to_dict()))
    again = Preparation.from_dict(written)
    assert again == preparation
    np.testing.assert_array_equal(again.transform(CASES[case]), data.x.numpy())
    np.testing.assert_array_equal(again.transform(CASES[case][2:4]), data.x[2:4].numpy())
    assert again.transform(CASES[case]).dtype == data.x.numpy().dtype


def test_pixels_keep_the_scale_of_the_first() -> None:
    _, preparation = fitted("span")
    low, high = preparation.span or (0, 0)
    dark = np.full((1, 8, 8), low + 0.4 * (high - low))
    dark[0, 0, 0] = low + 0.6 * (high - low)
    out = preparation.transform(dark)
    np.testing.assert_allclose([out.min(), out.max()], [0.4, 0.6], atol=1e-6)
    _, preparation = fitted("bytes")
    night = np.ones((2, 8, 9, 3), dtype=np.uint8)  # of 0 and 1, but not black and white here
    assert preparation.transform(night).max() == 1
    refused("scale of the pixels|0 to 1000", preparation.transform, night * np.array([0, 1, 1000]))


def test_a_constant_column_becomes_zero_and_new_values_stay_finite() -> None:
    x = np.column_stack([np.full(6, 0.1), RNG.normal(size=6)])
    data = as_dataset(x, Y6)
    assert data.preparation is not None
    assert data.preparation.deviation[0] == 0
    assert data.x[:, 0].abs().max() == 0
    refused("too far", data.preparation.transform, np.array([[0.1, 1e300]]))
    refused("column 2|2e+307", as_dataset, x * [1, 2e307 / np.abs(x[:, 1]).max()], Y6)


@pytest.mark.parametrize("largest", [1e39, -1e39, 1e308])
def test_pixels_beyond_single_precision_are_refused(largest: float) -> None:
    x = CASES["unit"].copy()
    x[2, 3, 3] = largest  # one wild pixel is enough
    refused(f"pixels hold numbers up to {abs(largest):.0e}|rescale", as_dataset, x, Y6)
    refused("too large to compute with", as_dataset, (CASES["unit"] - 0.5) * 6e38, Y6)
    refused("too little to compute with", as_dataset, (CASES["unit"] - 0.5) * 1e-50, Y6)
    top = as_dataset(CASES["unit"] * 3e38, Y6).x
    assert 0.9 < float(top.max()) <= 1


def test_other_layouts_are_refused() -> None:
    _, preparation = fitted("vector")
    refused("expects 4 columns|has 3", preparation.transform, np.zeros((2, 3)))
    refused("vector data|(2, 2)", preparation.transform, np.zeros((5, 2, 2)), kind="series")
    _, preparation = fitted("unit")
    refused("(1, 8, 8)|(1, 9, 9)", preparation.transform, np.zeros((2, 9, 9)))
    refused("image data|(64,)", preparation.transform, np.zeros((2, 64)))
    refused("NaN", preparation.transform, np.full((2, 8, 8), np.nan))


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("kind", "video"), ("kind", None), ("shape", [4, 4]), ("shape", [True]), ("shape", 4),
        ("shape", [0]), ("classes", ["a"]), ("classes", ["a", 3]), ("classes", ["a", "a"]),
        ("classes", "ab"), ("centre", "0"), ("centre", float("nan")), ("centre", 10**400),
        ("mean", [0.0]), ("mean", [0, 0, 0, float("inf")]), ("mean", None),
        ("deviation", [1, 1, 1, -1]), ("columns", [["a", None]]), ("columns", [1, 2, 3, 4]),
        ("columns", [["a", 1], ["b", 2], ["c", 3], ["d", 4]]), ("label", 3), ("more", 1),
    ],
)  # fmt: skip
def test_a_damaged_preparation_is_refused_when_it_is_read(entry: str, value: Any) -> None:
    written = fitted("vector")[1].to_dict()
    refused("preparation of data is damaged", Preparation.from_dict, written | {entry: value})


@pytest.mark.parametrize(
    ("entry", "value"),
    [("pixels", "bytes"), ("pixels", 1), ("span", None), ("span", [3, 3]), ("span", [1, 2, 3])],
)
def test_damaged_pixels_are_refused_when_they_are_read(entry: str, value: Any) -> None:
    written = fitted("span")[1].to_dict()
    refused("preparation of data is damaged", Preparation.from_dict, written | {entry: value})
    refused("not a mapping", Preparation.from_dict, [written])


# The task


def test_whole_numbers_can_be_a_real_target() -> None:
    x, y = RNG.normal(size=(8, 2)), [1, 2, 3, 4, 1, 2, 3, 4]
    assert as_dataset(x, y).classes == ("1", "2", "3", "4")
    data = as_dataset(x, y, task="regression")
    assert data.classes is None
    assert data.labels().tolist() == y
    halves = [0.5, 1.5] * 4
    assert as_dataset(x, halves).classes is None
    assert as_dataset(x, halves, task="classification").classes == ("0.5", "1.5")
    part = as_dataset(x, y, task="regression", max_examples=4)
    assert set(part.labels()) <= set(y)


# What the data is


def warned(counts: list[int], **options: Any) -> list[str]:
    y = np.repeat(np.arange(len(counts)), counts)
    about = describe(as_dataset(RNG.normal(size=(len(y), 2)), y), **options)
    assert json.loads(json.dumps(about)) == about
    assert about["counts"] == counts
    assert all(sentence for _, sentence in about["warnings"])
    return [code for code, _ in about["warnings"]]


def test_warnings_have_a_code_and_a_sentence() -> None:
    assert warned([200, 150]) == []
    assert warned([15, 15]) == ["few-examples"]
    assert warned([800, 30, 6, 2]) == ["unequal-classes", "few-in-class"]
    assert warned([20] * 200, seen=128) == ["many-classes"]
    assert warned([20] * 200) == []
    refused("data must be a Dataset, such as augury.load returns, got a number", describe, 3)
    about = describe(as_dataset(RNG.normal(size=(30, 2)), RNG.normal(size=30)))
    assert (about["task"], about["counts"]) == ("regression", None)
    assert about["warnings"] == [["few-examples", "there are only 30 examples"]]
