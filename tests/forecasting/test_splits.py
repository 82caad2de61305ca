"""Groups: examples of one source are never on both sides of a split."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusal import refused

from augury.cli.fit import _split
from augury.data import Dataset, as_dataset
from augury.forecasting.linear import linear_score
from augury.forecasting.splits import count_parts
from augury.forecasting.trial import Trial, make_fold


def dataset(groups: np.ndarray, classes: int | None, seed: int) -> Dataset:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(len(groups), 3))
    if classes is None:
        return as_dataset(x, rng.normal(size=len(groups)), groups=groups)
    return as_dataset(x, np.arange(len(groups)) % classes, groups=groups)


@given(st.integers(2, 9), st.sampled_from([None, 2, 3]), st.integers(0, 10**9), st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_no_group_is_on_both_sides(count, classes, seed, folds):
    rng = np.random.default_rng(seed)
    sizes = 3 * rng.integers(1, 8, count)  # every group has every class
    data = dataset(np.repeat(np.arange(count), sizes * (classes or 1)), classes, seed)
    assert data.groups is not None
    made = [make_fold(data, Trial(1, examples=40, folds=folds), seed, k) for k in range(folds)]
    for fold in made:
        assert not set(data.groups[fold.train].tolist()) & set(data.groups[fold.held].tolist())
        assert not set(fold.train.tolist()) & set(fold.held.tolist())
        assert len(fold.train) == len(made[0].train) >= 2
        assert len(fold.held) == len(made[0].held) >= 2


def test_each_group_is_held_out_in_turn_and_classes_stay_even():
    data = dataset(np.repeat(np.arange(6), 20), 2, 0)
    assert data.groups is not None
    trial = Trial(1, examples=1000, folds=3)
    folds = [make_fold(data, trial, 5, k) for k in range(3)]
    held = [sorted(set(data.groups[fold.held].tolist())) for fold in folds]
    assert sorted(g for part in held for g in part) == [0, 1, 2, 3, 4, 5]
    for fold in folds:
        assert torch.bincount(data.y[fold.train]).tolist() == [40, 40]
        assert len(fold.train) == 80
    again = make_fold(data, trial, 5, 1)
    assert torch.equal(again.train, folds[1].train)
    other = make_fold(data, Trial(1, examples=1000, folds=4), 5, 3)
    assert sorted(set(data.groups[other.held].tolist())) not in held


def test_few_groups_are_held_out_one_by_one():
    data = dataset(np.repeat(np.arange(4), 20), 2, 0)
    assert data.groups is not None
    folds = [make_fold(data, Trial(1, examples=1000, folds=4), 0, k) for k in range(4)]
    held = [set(data.groups[fold.held].tolist()) for fold in folds]
    assert sorted(held, key=min) == [{0}, {1}, {2}, {3}]
    assert {len(fold.train) for fold in folds} == {60}


def test_without_groups_nothing_changes():
    x, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    fold = make_fold(as_dataset(x, y), Trial(1, examples=20, folds=2), 0, 1)
    assert len(fold.train) == 20
    assert len(fold.held) == 40


@pytest.mark.parametrize("order", [1, -1])
def test_groups_of_unequal_size(order):
    sizes = [100, 10, 4][::order]
    data = dataset(np.repeat(np.arange(3), sizes), 2, 0)
    folds = [make_fold(data, Trial(1, examples=1000, folds=3), 0, k) for k in range(3)]
    assert {len(fold.held) for fold in folds} == {4}
    assert {len(fold.train) for fold in folds} == {14}


def test_too_few_groups_are_said_in_one_line():
    data = dataset(np.repeat(np.arange(3), [100, 1, 1]), None, 0)
    refused("cannot be split by group|smaller groups", make_fold, data, Trial(1, folds=3), 0, 0)
    one = replace(data, groups=torch.zeros(len(data), dtype=torch.int64))
    refused("all examples belong to one group", make_fold, one, Trial(1, folds=3), 0, 0)


def test_two_examples_of_a_part_are_enough():
    data = dataset(np.repeat(np.arange(3), [100, 2, 2]), None, 0)
    folds = [make_fold(data, Trial(1, folds=3), 0, k) for k in range(3)]
    assert {(len(fold.train), len(fold.held)) for fold in folds} == {(4, 2)}
    fewer = dataset(np.repeat(np.arange(3), [100, 2, 1]), None, 0)
    refused("one part would have only 1 example;", make_fold, fewer, Trial(1, folds=3), 0, 0)


@pytest.mark.parametrize(("count", "parts"), [(2, 2), (4, 4), (5, 3), (40, 3)])
def test_how_many_parts_there_are(count, parts):
    assert count_parts(dataset(np.arange(40) % count, None, 0)) == parts
    assert count_parts(as_dataset(np.zeros((40, 2)), np.arange(40) % 2)) == 1


def test_a_linear_model_is_judged_on_other_groups():
    """Each source has a place of its own, which tells its target, and says nothing of others."""
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(30), 8)
    x = rng.normal(size=(30, 40))[who]
    y = rng.permutation(np.arange(30) % 2)[who]
    noise = x + 0.01 * rng.normal(size=x.shape)
    assert linear_score(as_dataset(noise, y), 0) > 0.9
    assert linear_score(as_dataset(noise, y, groups=who), 0) < 0.75


def test_what_fit_leaves_out_is_whole_groups():
    data = dataset(np.repeat(np.arange(6), [5, 20, 11, 9, 30, 25]), 2, 0)
    assert data.groups is not None
    train, test = _split(data, 0.3, 1)
    assert len(train) + len(test) == 100
    assert 15 <= len(test) <= 45
    assert not set(data.groups[train].tolist()) & set(data.groups[test].tolist())
    assert len(_split(data, 0.0, 1)[1]) == 0


@pytest.mark.parametrize("seed", [-5, 2**40])
def test_any_whole_number_is_a_seed_of_groups(seed):
    data = dataset(np.repeat(np.arange(6), 20), 2, 0)
    found, again, other = (make_fold(data, Trial(1, folds=3), s, 0) for s in (seed, seed, seed + 1))
    assert torch.equal(found.held, again.held)
    assert not torch.equal(found.held, other.held)


def test_a_fold_past_the_planned_ones_is_dealt_too():
    data = dataset(np.repeat(np.arange(6), 20), 2, 0)
    one = make_fold(data, Trial(1, examples=1000, folds=1), 5, 2)
    three = make_fold(data, Trial(1, examples=1000, folds=3), 5, 2)
    assert torch.equal(one.held, three.held)
