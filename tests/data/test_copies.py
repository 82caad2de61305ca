"""Copies of examples are left out, since a copy that was held out is known from memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from refusal import refused

from augury.data import as_dataset

Y6 = [0, 0, 0, 1, 1, 1]


def test_copies_are_left_out() -> None:
    x = np.arange(5 * 4 * 4, dtype=np.uint8).reshape(5, 4, 4)
    data = as_dataset(x[[0, 1, 0, 1, 2, 3, 3, 4]], list("acbbacca"))
    found = data.distinct()
    assert torch.equal(found.x, data.x[[0, 1, 4, 5, 7]])  # the first of each stays
    assert found.classes == ("a", "c")  # those of class b were copies
    assert found.labels().tolist() == ["a", "c", "a", "c", "a"]
    said = "3 of 8 examples are copies and were left out"
    assert found.notes[-1] == f"{said}; 2 had another label than the example that was kept"
    same = as_dataset(x[[0, 1, 0, 1, 2]], list("acaca")).distinct()
    assert same.notes[-1] == "2 of 5 examples are copies and were left out"
    assert found.total == 5
    assert found.distinct() is found


def test_copies_leave_the_total_and_the_groups_in_proportion() -> None:
    x = np.repeat(np.arange(8, dtype=np.uint8), 16 * 4).reshape(32, 4, 4)
    data = as_dataset(x, np.arange(32) / 7, groups=np.arange(32) // 3, max_examples=16)
    found = data.distinct()
    assert found.total == round(32 * len(found) / 16)
    assert float(found.y.mean()) == pytest.approx(0, abs=1e-12)
    assert found.groups is not None
    assert sorted(found.groups.unique().tolist()) == list(range(int(found.groups.max()) + 1))


def test_equal_rows_of_a_table_are_examples_of_their_own() -> None:
    data = as_dataset(np.zeros((6, 3)) + np.array([0, 0, 0, 1, 1, 1])[:, None], Y6)
    assert data.distinct() is data


def test_copies_of_one_example_are_refused() -> None:
    data = as_dataset(np.zeros((6, 4, 4), np.uint8), Y6)
    refused("expected different examples, but all 6 are the same", data.distinct)


def test_copies_that_leave_one_class_are_refused() -> None:
    x = np.arange(3 * 4 * 4, dtype=np.uint8).reshape(3, 4, 4)
    data = as_dataset(x[[0, 1, 2, 0, 1, 2]], Y6)
    refused("without copies, every example is of the class '0'", data.distinct)
