"""Arrays and datasets in Python: layouts, scales, labels, subsampling and what is refused."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from refusal import refused
from torch.utils.data import Subset, TensorDataset

from augury.data import Dataset, as_dataset
from augury.data.sampling import choose, shares

Y6 = [0, 0, 0, 1, 1, 1]


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def test_the_helper_itself_fails_on_other_words() -> None:
    with pytest.raises(AssertionError):
        refused("something else", as_dataset, np.zeros((0, 3)), [])


# Layouts


@pytest.mark.parametrize(
    ("shape", "dtype", "kind", "expected"),
    [
        ((6, 8, 9, 3), "u1", None, (3, 8, 9)),  # channels last
        ((6, 8, 9, 2), "u1", None, (2, 8, 9)),
        ((6, 9, 9, 7), "u1", None, (7, 9, 9)),  # square images, many channels last
        ((6, 7, 9, 9), "u1", None, (7, 9, 9)),
        ((6, 3, 8, 9), "u1", None, (3, 8, 9)),  # channels first
        ((6, 3, 8, 3), "u1", None, (3, 8, 3)),  # in doubt: channels first
        ((6, 8, 9, 4), "u1", None, (3, 8, 9)),  # alpha dropped
        ((6, 5, 8, 9), "u1", None, (5, 8, 9)),
        ((6, 8, 9), "u1", None, (1, 8, 9)),
        ((6, 8, 8), "f4", None, (1, 8, 8)),
        ((6, 8, 9), "f4", None, (8, 9)),  # series
        ((6, 5, 5), "f4", None, (5, 5)),  # square, but too small for a picture
        ((6, 8, 9), "f4", "image", (1, 8, 9)),
        ((6, 8, 8), "u1", "series", (8, 8)),
        ((6, 9), "f4", None, (9,)),
        ((6, 9), "f4", "series", (1, 9)),
        ((6, 2, 3, 3), "f4", "vector", (18,)),
    ],
)
def test_layouts(
    shape: tuple[int, ...], dtype: str, kind: str | None, expected: tuple[int, ...]
) -> None:
    x = (np.arange(np.prod(shape)).reshape(shape) % 251).astype(dtype)
    data = as_dataset(x, Y6, kind=kind)
    assert data.shape == expected
    assert data.kind == {1: "vector", 2: "series", 3: "image"}[len(expected)]
    assert data.x.dtype == (torch.uint8 if dtype == "u1" and len(expected) == 3 else torch.float32)


def test_channels_last_keeps_each_pixel() -> None:
    x = np.random.default_rng(0).integers(0, 256, (6, 8, 9, 4), dtype=np.uint8)
    data = as_dataset(x, Y6)
    np.testing.assert_array_equal(data.x.numpy(), x[..., :3].transpose(0, 3, 1, 2))
    assert "alpha" in data.notes[0]
    batch = data.batch(torch.tensor([4, 1]), torch.device("cpu"), torch.float64)
    assert batch.is_contiguous()
    np.testing.assert_array_equal(batch.numpy(), x[[4, 1], ..., :3].transpose(0, 3, 1, 2) / 255)


@pytest.mark.parametrize("how", ["numpy", "torch", "bfloat16", "list", "tensors", "frame"])
def test_any_array_like_gives_the_same(how: str) -> None:
    x = np.random.default_rng(0).integers(-8, 8, (6, 4)).astype(np.float32)
    given = {
        "numpy": lambda: x,
        "torch": lambda: torch.tensor(x, requires_grad=True),
        "bfloat16": lambda: torch.tensor(x).bfloat16(),
        "list": x.tolist,
        "tensors": lambda: list(torch.tensor(x)),
        "frame": lambda: pd.DataFrame(x),
    }[how]()
    y = pd.Series(Y6) if how == "frame" else Y6
    assert torch.equal(as_dataset(given, y).x, as_dataset(x, Y6).x)


# Scales


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [
        (0, 16, "f8"),
        (0, 255, "f4"),
        (0, 65535, "u2"),
        (3, 4095, ">i4"),
        (-2, 3, "f2"),
        (-9, -4, "i8"),
        (10, 21, "i4"),
    ],
)
def test_pixels_are_scaled_by_the_whole_span(low: int, high: int, dtype: str) -> None:
    x = np.random.default_rng(0).integers(low, high + 1, (6, 8, 8)).astype(dtype)
    x[0, 0, 0], x[0, 0, 1] = low, high
    before = x.copy()
    data = as_dataset(x, Y6, kind="image")
    base = min(low, 0)
    expected = (x.astype(float) - base) / (high - base)
    np.testing.assert_allclose(data.x[:, 0].numpy(), expected, atol=1e-6)
    assert float(data.x.min()) >= 0
    assert float(data.x.max()) == 1
    assert f"pixels from {base} to {high} were scaled" in " ".join(data.notes)
    np.testing.assert_array_equal(x, before)  # the user's array is left as it was


@pytest.mark.parametrize(("low", "high"), [(290.0, 300.0), (11.0, 21.0), (0.0, 1e-3), (0.0, 0.09)])
def test_pixels_far_from_black_and_faint_ones_use_all_levels(low: float, high: float) -> None:
    """Temperatures in kelvin, normalised histograms: else 256 levels would hold nearly one value.

    The model's own data, and a part of it, can be predicted.
    """
    x = np.random.default_rng(0).uniform(low, high, (6, 8, 8))
    x[0, 0, :2] = low, high
    data = as_dataset(x, Y6)
    assert (float(data.x.min()), float(data.x.max())) == (0, 1)
    assert f"pixels from {low:g} to {high:g} were scaled" in " ".join(data.notes)
    assert data.preparation is not None
    np.testing.assert_array_equal(data.preparation.transform(x[2:4]), data.x[2:4].numpy())


def test_faint_is_below_a_tenth() -> None:
    """What is dark, as photos of the night, stays as it is."""
    x = np.random.default_rng(0).uniform(0, 0.1, (6, 8, 8))
    x[0, 0, 0] = 0.1
    np.testing.assert_array_equal(as_dataset(x, Y6).x[:, 0].numpy(), x.astype(np.float32))
    assert as_dataset(np.zeros((6, 8, 8)), Y6).x.max() == 0


def test_pixels_in_the_unit_interval_and_bytes_stay() -> None:
    x = np.random.default_rng(0).uniform(0, 1, (6, 1, 8, 8)).astype(np.float32)
    assert as_dataset(x, Y6).x.data_ptr() == x.ctypes.data
    dark = np.full((6, 8, 8), 16, dtype=np.uint8)
    assert as_dataset(dark, Y6).x.max() == 16


@pytest.mark.parametrize("dtype", [np.uint8, np.bool_])
def test_pixels_of_zero_and_one_are_black_and_white(dtype: type) -> None:
    x = np.random.default_rng(0).integers(0, 2, (6, 1, 8, 8)).astype(dtype)
    data = as_dataset(x, Y6)
    np.testing.assert_array_equal(data.x.numpy(), x.astype(np.uint8) * 255)
    assert "black and white" in data.notes[0]


def test_constant_pictures_are_no_division_by_zero() -> None:
    assert as_dataset(np.full((6, 8, 8), -5.0), Y6).x.abs().max() == 0


def test_columns_are_standardised_and_constant_ones_are_zero() -> None:
    x = draw(50, 4) * [1, 1, 1e200, 1] + [0, 1.7e9, 0, 0]
    x[:, 3] = 0.1  # the mean of fifty 0.1s differs from 0.1 in its last digit
    data = as_dataset(x, [0, 1] * 25)
    np.testing.assert_allclose(data.x.numpy().mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(data.x.numpy().std(0), [1, 1, 1, 0], atol=1e-4)
    assert data.notes == (
        "each column was standardised to mean 0 and variance 1; 1 constant column became 0",
    )


def test_series_are_standardised_by_channel() -> None:
    data = as_dataset(draw(6, 3, 20) * [[5], [1], [2]] + [[1], [2], [3]], Y6)
    np.testing.assert_allclose(data.x.numpy().mean((0, 2)), 0, atol=1e-6)
    np.testing.assert_allclose(data.x.numpy().std((0, 2)), 1, atol=1e-6)
    assert "each channel" in data.notes[1]


def test_bytes_share_memory_and_nothing_else_is_allocated() -> None:
    x = np.random.default_rng(0).integers(0, 256, (4000, 28, 28), dtype=np.uint8)
    y = np.arange(4000) % 10
    as_dataset(x, y)  # what is imported on first use is not counted
    tracemalloc.start()
    data = as_dataset(x, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert data.x.data_ptr() == x.ctypes.data
    assert peak < x.nbytes / 4


@pytest.mark.filterwarnings("error")
def test_read_only_and_reversed_arrays_are_copied_without_a_warning() -> None:
    x = np.random.default_rng(0).integers(0, 256, (6, 1, 8, 8), dtype=np.uint8)
    x.flags.writeable = False
    assert as_dataset(x, Y6).x.data_ptr() != x.ctypes.data
    np.testing.assert_array_equal(as_dataset(x[..., ::-1], Y6).x.numpy(), x[..., ::-1])


# Labels


@pytest.mark.parametrize(
    ("y", "classes", "numbers"),
    [
        ([5, 2, 5, 2, 9, 9], ("2", "5", "9"), [1, 0, 1, 0, 2, 2]),
        (["b", "a", "b", "a", "a", "a"], ("a", "b"), [1, 0, 1, 0, 0, 0]),
        ([True, False] * 3, ("False", "True"), [1, 0] * 3),
        ([3.0, 1.0] * 3, ("1", "3"), [1, 0] * 3),
        (torch.tensor([[1], [0]] * 3), ("0", "1"), [1, 0] * 3),
        (pd.Series(["x", "y"] * 3, dtype="category"), ("x", "y"), [0, 1] * 3),
        (np.array([b"x", b"y"] * 3), ("x", "y"), [0, 1] * 3),
        (pd.Series([1, 0] * 3, dtype="Int64"), ("0", "1"), [1, 0] * 3),
    ],
)
def test_labels_become_class_numbers(
    y: object, classes: tuple[str, ...], numbers: list[int]
) -> None:
    data = as_dataset(draw(6, 2), y)
    assert data.classes == classes
    assert data.y.tolist() == numbers
    assert data.y.dtype == torch.int64


def test_given_names_order_the_classes_and_absent_ones_are_left_out() -> None:
    data = as_dataset(draw(6, 2), [2, 2, 0, 0, 2, 0], classes=["cat", "dog", "ape"])
    assert data.classes == ("cat", "ape")
    assert data.y.tolist() == [1, 1, 0, 0, 1, 0]
    data = as_dataset(draw(6, 2), ["cat", "ape"] * 3, classes=["cat", "dog", "ape"])
    assert data.classes == ("cat", "ape")
    assert data.y.tolist() == [0, 1] * 3


@pytest.mark.parametrize("y", [[0.5, 1.5, 2.0, 3.0, 1.0, 7.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]])
def test_other_floats_are_a_centred_real_target(y: list[float]) -> None:
    data = as_dataset(draw(6, 2), y)
    assert data.classes is None
    np.testing.assert_allclose(data.y.numpy(), np.array(y) - np.mean(y))
    assert data.notes[-1] == f"the target is real-valued, with mean {np.mean(y):g}"
    assert data.preparation is not None
    assert data.preparation.centre == np.mean(y)
    np.testing.assert_allclose(data.labels(), y)
    assert abs(float(data.subsample(4, 0).y.mean())) < 1e-12


# What is refused


def test_refused_labels() -> None:
    refused("5 labels|6 examples", as_dataset, draw(6, 2), Y6[:5])
    refused("belongs to the class|'1'", as_dataset, draw(6, 2), [1] * 6)
    refused(
        "class 'owl' has only one example|drop it",
        as_dataset,
        draw(6, 2),
        ["a", "a", "b", "b", "b", "owl"],
    )
    refused(
        "classes '1' and '2' have only one|--task regression", as_dataset, draw(4, 2), [0, 0, 1, 2]
    )
    refused(
        "2 labels are missing|example 1", as_dataset, draw(6, 2), [0.5, np.nan, 1, 2, np.inf, 3]
    )
    refused("1 label is missing|example 2", as_dataset, draw(4, 2), ["a", "b", None, "a"])
    refused("missing|example 1", as_dataset, draw(4, 2), pd.Series([1, pd.NA, 1, 2], dtype="Int64"))
    refused("shape (6, 3)|argmax", as_dataset, draw(6, 2), np.eye(3)[[0, 1, 2, 0, 1, 2]])
    refused("numbers or words|complex", as_dataset, draw(6, 2), np.ones(6) * 1j)
    refused("every target is 0.5", as_dataset, draw(6, 2), [0.5] * 6)
    refused(
        "label '7'|classes given (a and b)",
        as_dataset,
        draw(4, 2),
        [0, 0, 7, 7],
        classes=["a", "b"],
    )
    refused("class 'a" + "a" * 50, as_dataset, draw(5, 2), ["b", "b", "c", "c", "a" * 9000])
    refused("labels are missing", as_dataset, draw(6, 2))


def test_refused_examples() -> None:
    refused("2 to 4 dimensions|not 1|(6,)", as_dataset, draw(6), Y6)
    refused("not 5", as_dataset, draw(6, 1, 1, 2, 2), Y6)
    refused("images have 3 or 4|(6, 4)", as_dataset, draw(6, 4), Y6, kind="image")
    refused("series have 3", as_dataset, draw(6, 1, 4, 4), Y6, kind="series")
    refused("no examples|(0, 3)", as_dataset, np.zeros((0, 3)), [])
    refused("no examples|(6, 0)", as_dataset, np.zeros((6, 0)), Y6)
    refused("must be numbers|<U1", as_dataset, np.array([["a", "b"]] * 6), Y6)
    refused("complex", as_dataset, draw(6, 2) * 1j, Y6)
    refused("the same shape", as_dataset, [[1, 2], [3]], [0, 1])
    refused("one of image, sound, series, vector|'video'", as_dataset, draw(6, 2), Y6, kind="video")
    refused("labels were passed with the path digits", as_dataset, "digits", Y6)
    refused("one of classification, regression|'rank'", as_dataset, draw(6, 2), Y6, task="rank")
    refused("needs numbers|'a'", as_dataset, draw(4, 2), list("abab"), task="regression")
    refused("targets go up to 1e+200", as_dataset, draw(4, 2), [1e200, 0.5, 2, 3])
    refused("two classes have the name 'a'", as_dataset, draw(4, 2), [0, 1] * 2, classes="aa")


@pytest.mark.parametrize("shape", [(6, 3), (6, 8, 8), (6, 3, 8, 8)])
def test_values_that_are_not_finite_are_counted(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape)
    x[2].flat[1], x[2].flat[2], x[4].flat[0] = np.nan, np.inf, -np.inf
    refused("3 values in 2 examples|NaN or infinite|first of them in example 2", as_dataset, x, Y6)
    refused("example 2", as_dataset, x, Y6, max_examples=4)  # whichever are kept


# Map-style datasets


class Pictures:
    """A dataset that counts what is loaded."""

    def __init__(self, n: int = 40, modes: tuple[str, ...] = ("L",), ready: bool = True) -> None:
        self.loaded: list[int] = []
        self.modes = modes
        self.all = np.random.default_rng(1).integers(0, 256, (n, 6, 7), dtype=np.uint8)
        self.numbers = [i % 2 for i in range(n)]
        self.classes = ["cat", "dog"]
        if ready:
            self.targets = self.numbers

    def __len__(self) -> int:
        return len(self.all)

    def __getitem__(self, i: int) -> tuple[Image.Image, int]:
        self.loaded.append(i)
        picture = Image.fromarray(self.all[i]).convert(self.modes[i % len(self.modes)])
        return picture, self.numbers[i]


@pytest.mark.parametrize("ready", [True, False])
def test_only_what_is_kept_is_loaded(ready: bool) -> None:
    pictures = Pictures(ready=ready)
    data = as_dataset(pictures, max_examples=10, seed=3)
    whole = as_dataset(pictures.all, pictures.numbers, classes=["cat", "dog"])
    assert torch.equal(data.x, whole.subsample(10, 3).x)
    assert torch.equal(data.y, whole.subsample(10, 3).y)
    assert data.classes == ("cat", "dog")
    assert "10 of 40" in data.notes[-1]
    assert len(pictures.loaded) == (10 if ready else 50)


def test_a_whole_dataset_is_loaded_once() -> None:
    pictures = Pictures(ready=False)
    data = as_dataset(pictures)
    assert pictures.loaded == list(range(40))
    np.testing.assert_array_equal(data.x[:, 0].numpy(), pictures.all)


@pytest.mark.parametrize("modes", [("L", "RGB"), ("RGB", "L"), ("P", "LA"), ("L", "L", "CMYK")])
def test_one_picture_in_colour_makes_all_rgb(modes: tuple[str, ...]) -> None:
    pictures = Pictures(modes=modes)
    data = as_dataset(pictures)
    assert data.shape == (3, 6, 7)
    for c in range(3):
        np.testing.assert_array_equal(data.x[:, c].numpy(), pictures.all)


def test_torch_datasets_and_lists_of_pairs() -> None:
    x, y = torch.rand(6, 1, 8, 8, generator=torch.Generator().manual_seed(0)), torch.tensor(Y6)
    expected = as_dataset(x, y)
    pairs = [(x[i], int(y[i])) for i in range(6)]
    for given_as in (TensorDataset(x, y), pairs, Subset(TensorDataset(x, y), range(6))):
        data = as_dataset(given_as)
        assert torch.equal(data.x, expected.x)
        assert torch.equal(data.y, expected.y)
    part = as_dataset(Subset(Pictures(), [0, 1, 2, 3, 9, 8]))  # type: ignore[arg-type]  # as torch types it
    assert part.y.tolist() == [0, 1, 0, 1, 1, 0]
    assert part.classes == ("cat", "dog")
    np.testing.assert_array_equal(part.x[4, 0].numpy(), Pictures().all[9])


def test_refused_datasets() -> None:
    refused("example 3|(5,)|(4,)", as_dataset, [(np.ones(4 + (i == 3)), i % 2) for i in range(6)])
    refused("dataset is empty", as_dataset, Pictures(0))
    refused("which entry|label=|it has x", as_dataset, Subset([{"x": 1}], [0]))  # type: ignore  # wrong on purpose
    refused("item 0|int|(x, y)", as_dataset, Subset([3], [0]))  # type: ignore  # wrong on purpose
    refused("example 0|str|Pillow", as_dataset, [("a.png", 0), ("b.png", 1)])
    refused("labels are missing", as_dataset, [[1.0, 2.0], [3.0, 4.0]])
    pairs = [(np.full(3, np.nan if i > 6 else i), i % 2) for i in range(10)]
    refused("NaN", as_dataset, pairs)


def test_a_dataset_is_taken_as_it_is() -> None:
    data = as_dataset(draw(20, 2), [0, 1] * 10)
    assert as_dataset(data) is data
    assert len(as_dataset(data, max_examples=8)) == 8
    refused("pass it alone", as_dataset, data, Y6)
    refused("vector", as_dataset, data, kind="image")


# Subsampling


@settings(deadline=None, max_examples=25)
@given(
    counts=st.lists(st.integers(2, 60), min_size=2, max_size=6),
    fraction=st.floats(0.0, 1.0),
    seed=st.integers(-(2**70), 2**70),
)
def test_subsampling_is_in_proportion_and_reproducible(
    counts: list[int], fraction: float, seed: int
) -> None:
    n, C = sum(counts), len(counts)
    most = 2 * C + int(fraction * (n - 2 * C))
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(C), counts))
    data = as_dataset(np.arange(n, dtype=float)[:, None], y, max_examples=most, seed=seed)
    again = as_dataset(np.arange(n, dtype=float)[:, None], y, max_examples=most, seed=seed)
    assert torch.equal(data.x, again.x)
    assert torch.equal(data.y, again.y)
    assert len(data) == most
    assert bool((data.x[1:] > data.x[:-1]).all())  # in order, none twice
    kept = np.bincount(data.y.numpy(), minlength=C)
    exact = np.array(counts) * most / n
    assert kept.min() >= 2
    if exact.min() >= 2:
        assert np.abs(kept - exact).max() <= 1 + 1e-9


def test_the_seed_decides_and_the_choice_is_noted() -> None:
    data = Dataset(torch.arange(100.0)[:, None], torch.arange(100) % 2, ("a", "b"))
    one, two = data.subsample(20, 1), data.subsample(20, 2)
    assert not torch.equal(one.x, two.x)
    assert one.notes == (
        "20 of 100 examples were used, sampled with seed 1, proportionally by class",
    )
    assert data.subsample(100, 1) is data
    real = Dataset(data.x, torch.arange(100.0, dtype=torch.float64), None).subsample(20, 1)
    assert real.notes == ("20 of 100 examples were used, sampled with seed 1",)


def test_every_example_is_as_likely_as_the_others() -> None:
    y = np.repeat([0, 1], [10, 30])
    hits = np.zeros(40)
    for seed in range(400):
        hits[choose(y, 2, 20, seed)] += 1
    # Half of each class is kept: 200 hits each, with a standard deviation of 10.
    assert np.abs(hits - 200).max() < 50


def test_too_few_to_hold_every_class() -> None:
    refused(
        "3 examples|two of each of 2 classes|at least 4", as_dataset, draw(6, 2), Y6, max_examples=3
    )
    refused("1 example is too few|two|at least 2", as_dataset, draw(6, 2), draw(6), max_examples=1)
    assert shares(np.array([2, 2, 500]), 6).tolist() == [2, 2, 2]
