"""What augury standardises before it augments is named where exported code depends on it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from observed import load

import augury
from augury import Rng
from augury.adapters.units import OF_OFFSET, OF_SCALE
from augury.augmentations import FAMILIES

WAVES = [name for name, family in FAMILIES.items() if {"series", "sound"} & family.kinds]


def changes(name: str, mean: float, deviation: float) -> bool:
    """Return whether views of data in other units are other views."""
    family = FAMILIES[name]()
    x = torch.randn(20, 3, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    views = [
        family.views(given, 4, Rng(0, torch.arange(20))) for given in (x, x * deviation + mean)
    ]
    return not torch.allclose(views[0] * deviation + mean, views[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", [name for name in WAVES if name != "background"])
def test_the_families_that_depend_on_units_are_those_that_are_listed(name):
    assert changes(name, 0, 7) == (FAMILIES[name] in OF_SCALE)
    if "series" in FAMILIES[name].kinds:  # recordings have a mean near zero
        assert changes(name, 5, 1) == (FAMILIES[name] in OF_OFFSET)


def written(spec: str) -> str:
    return " ".join(augury.export(spec, to="audiomentations").replace("#", " ").split())


@pytest.mark.parametrize("name", WAVES)
def test_code_says_which_units_it_expects(name):
    family = FAMILIES[name]
    listed = family in OF_SCALE or family in OF_OFFSET
    assert ("standardised" in written(name)) == listed


def test_only_the_parts_that_depend_on_units_are_named():
    text = written("shift(0.1) >> (drift(0.5) | 0.3*sign_flip)")
    assert (
        "drift(0.5) and sign_flip expect examples that are standardised as augury does: subtract "
        "each channel's mean in the training data, then divide by its standard deviation "
        "(preparation.mean and .deviation of augury.load(...))."
    ) in text


def test_recordings_have_no_offset():
    text = written("time_mask(0.1) >> jitter(0.2) >> gain(3)")
    assert "float32. jitter(0.2) expects examples that are standardised" in text


def test_standardised_series_are_changed_as_in_the_trial():
    raw = 3517 + 719 * np.random.default_rng(0).normal(size=(40, 1, 200)).astype(np.float32)
    data = augury.as_dataset(raw, np.arange(40) % 2, kind="series")
    mean, deviation = data.preparation.mean[0], data.preparation.deviation[0]
    augment = load(augury.export("jitter(0.1)", to="audiomentations"))["augment"]
    given = ((raw[0] - mean) / deviation).astype(np.float32)
    changed = float(np.std(augment(given, 100) * deviation + mean - raw[0]))
    assert changed == pytest.approx(0.1 * 719, rel=0.2)
