"""Augmentations of rows of a table: noise, swaps, gaps and mixtures that keep columns valid."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from refusal import refused

import augury
from augury._base.rng import Rng
from augury.augmentations import (
    column_dropout,
    column_noise,
    default_augmentations,
    neighbour_mix,
    parse,
    swap_noise,
)
from augury.forecasting.tables import table_of


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    n = 240
    frame = pd.DataFrame(
        {
            "size": rng.normal(20, 5, n),
            "rooms": rng.integers(1, 6, n),
            "colour": rng.choice(["red", "green", "blue"], n),
            "age": np.where(rng.random(n) < 0.2, np.nan, rng.gamma(3, 2, n)),
            "y": rng.integers(0, 2, n),
        }
    )
    return augury.as_dataset(frame, label="y")


@pytest.fixture(scope="module")
def table(data):
    return table_of(data)


def raw(data, views):
    mean, deviation = (np.array(v) for v in (data.preparation.mean, data.preparation.deviation))
    return views.double().numpy() * deviation + mean


def views_of(augmentation, data, table, n=3):
    return augmentation.bound(table).views(data.x, n, Rng(0, torch.arange(len(data))))


def test_what_columns_are_is_found(data, table):
    assert table.column.tolist() == [0, 1, 2, 2, 2, 3]
    assert table.words.tolist() == [False, False, True, True, True, False]
    assert list(table.levels) == [1]
    np.testing.assert_allclose(raw(data, data.x)[:, 1].round(), raw(data, data.x)[:, 1], atol=1e-5)
    assert table.missing.tolist() == [False] * 5 + [True]


@pytest.mark.parametrize(
    "augmentation", [a for a in default_augmentations("vector", (6,)) if a.magnitude], ids=repr
)
def test_views_are_rows_that_could_be(augmentation, data, table):
    """Levels stay levels, at most one word is chosen, and what is missing stays missing."""
    views = views_of(augmentation, data, table)
    values = raw(data, views)
    emptied = np.isclose(values[..., 1], data.preparation.mean[1], atol=1e-4)
    levels = np.isclose(values[..., 1], values[..., 1].round(), atol=1e-4)
    assert (levels | (emptied & isinstance(augmentation, column_dropout))).all()
    chosen = values[..., 2:5]
    assert (np.isclose(chosen, 0, atol=1e-5) | np.isclose(chosen, 1, atol=1e-5)).all()
    total = chosen.sum(-1).round()
    assert (total <= 1).all()
    if not isinstance(augmentation, column_dropout):
        assert (total == 1).all()
        gone = table.is_missing(views)[..., 5]
        assert torch.equal(gone, data.missing[:, 5].expand_as(gone))
    assert not torch.equal(views[0], data.x)


def test_swaps_come_from_the_column_at_the_rate(data, table):
    views = views_of(swap_noise(0.3), data, table, 20)
    changed = (views[..., 0] != data.x[:, 0]).double().mean()
    assert float(changed) == pytest.approx(0.3, abs=0.02)
    assert set(views[..., 0].unique().tolist()) <= set(data.x[:, 0].tolist())


def test_noise_is_in_standard_deviations(data, table):
    views = views_of(column_noise(0.2), data, table, 20)
    assert float((views - data.x)[..., 0].std()) == pytest.approx(0.2, rel=0.05)


def test_mixing_goes_towards_a_neighbour_of_the_same_class(data, table):
    share = 0.5
    views = views_of(neighbour_mix(share), data, table, 8)
    for k in (0, 17, 101):
        near = data.x[table.neighbours[k]]
        assert (data.y[table.neighbours[k]] == data.y[k]).all()
        distance = (data.x - data.x[k]).square().sum(1)
        same = (data.y == data.y[k]) & (torch.arange(len(data)) != k)
        nearest = distance.masked_fill(~same, torch.inf).topk(5, largest=False).indices
        assert set(nearest.tolist()) == set(table.neighbours[k].tolist())
        way = (views[:, k, 0, None] - data.x[k, 0]) / (near[:, 0] - data.x[k, 0])  # of each of five
        fits = ((way >= -1e-5) & (way <= share + 1e-5)).any(1)
        assert fits.all()


def test_a_row_alone_in_its_class_stays(data):
    y = data.y.clone()
    y[3] = 2
    lone = table_of(augury.data.Dataset(data.x, y, ("a", "b", "c"), preparation=data.preparation))
    assert lone.neighbours[3].unique().tolist() == [3]


def test_parts_of_a_composite_are_bound(data, table):
    for spec in ("swap_noise(0.2) >> column_noise(0.1)", "swap_noise(0.2) | identity",
                 "swap_noise(0.2) ** 2", "chain(swap_noise(0.2):1)"):  # fmt: skip
        views = views_of(parse(spec), data, table)
        assert views.shape == (3, *data.x.shape)
        assert repr(parse(spec).bound(table)) == repr(parse(spec))


def test_an_unbound_family_says_so():
    x = torch.zeros(3, 4)
    for family in (swap_noise(), neighbour_mix()):
        refused(
            "takes values from a table|bind it first", family.views, x, 1, Rng(0, torch.arange(3))
        )
    assert column_noise().views(x, 1, Rng(0, torch.arange(3))).std() > 0
