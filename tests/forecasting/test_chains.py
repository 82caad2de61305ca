"""Chains with learned rates, with rates that are made up."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from augury._base.errors import AuguryError
from augury.augmentations import parse
from augury.data import as_dataset
from augury.forecasting.policy import chains as module
from augury.forecasting.policy.chains import learned_chain

PARTS = [parse(spec) for spec in ("rotation(15)", "blur(0.5,2.0)", "flips")]


def images(count=300, side=32):
    x = np.random.default_rng(0).integers(0, 255, (count, side, side), np.uint8)
    return as_dataset(x, np.arange(count) % 2)


def learned(monkeypatch, rates):
    asked = {}

    def nearest(x, chain, *, n_views, seed):
        asked.update(x=x, chain=chain, n_views=n_views, seed=seed)
        return "start"

    def learn(start, y, steps):
        asked.update(start=start, y=y, steps=steps)
        return SimpleNamespace(rates=rates)

    monkeypatch.setattr(module, "nearest_chain", nearest)
    monkeypatch.setattr(module, "learn_rates", learn)
    return learned_chain(images(), PARTS, 5), asked


def test_what_is_learned_from(monkeypatch):
    found, asked = learned(monkeypatch, (0.6, 0.4, 0.2))
    assert repr(found) == "chain(rotation(15):0.6, blur(0.5,2.0):0.4, flips:0.2)"
    assert asked["x"].shape == (256, 1, 16, 16)  # few and small
    assert asked["chain"].rates == (1.0, 1.0, 1.0)
    assert repr(asked["chain"].parts[1]) == repr(PARTS[1].at_scale(0.5))
    assert (asked["n_views"], asked["seed"], asked["start"], asked["steps"]) == (4, 5, "start", 20)
    few = images().subsample(256, 5)
    assert torch.equal(asked["y"], few.y)


@pytest.mark.parametrize(
    ("rates", "kept"),
    [
        ((0.05, 0.5, 0.04), "chain(rotation(15):0.05, blur(0.5,2.0):0.5)"),
        ((2.0, 1.0, 0.0), "chain(rotation(15):2.0, blur(0.5,2.0):1.0)"),  # three steps in all
        ((4.0, 2.0, 0.0), "chain(rotation(15):2.0, blur(0.5,2.0):1.0)"),  # six are brought to three
        ((0.333, 0.0, 0.126), "chain(rotation(15):0.33, flips:0.13)"),  # to two digits
        ((0.2, 0.0, 0.0), "None"),  # one part is no chain
    ],
)
def test_rates_that_matter_are_kept_and_not_more_than_three_steps(monkeypatch, rates, kept):
    assert repr(learned(monkeypatch, rates)[0]) == kept


def test_a_chain_that_cannot_be_learned_is_none(monkeypatch):
    def refuse(*_, **__):
        raise AuguryError("not reversible")

    monkeypatch.setattr(module, "nearest_chain", refuse)
    assert learned_chain(images(), PARTS, 0) is None
