"""Shrinking before augmentation gives what shrinking after it gives, from 64 to 32 pixels."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from augury import parse
from augury._base.errors import AuguryError
from augury._base.rng import Rng
from augury.augmentations import FAMILIES


def photos(count=24, side=64):
    generator = torch.Generator().manual_seed(0)
    images = torch.zeros(count, 3, side, side)
    for cells in (4, 8, 16, 32):  # detail at every scale, as photographs have it
        coarse = torch.rand(count, 3, cells, cells, generator=generator) - 0.5
        images += F.interpolate(coarse, (side, side), mode="bicubic") * (2 / cells) ** 0.7
    return (images + 0.5).clamp(0, 1)


def distances(augmentation, scaled):
    """The mean distance to shrinking after: of the scaled augmentation, and of the unscaled."""
    x, rng = photos(), Rng(0, torch.arange(24))
    after = F.avg_pool2d(augmentation.views(x, 4, rng).flatten(0, 1), 2)
    small = F.avg_pool2d(x, 2)
    return [
        float((a.views(small, 4, rng).flatten(0, 1) - after).abs().mean())
        for a in (scaled, augmentation)
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("blur(1.0,3.0)", "blur(0.5,1.5)"),
        ("sharpness(0.8)", "sharpness(0.2)"),
        ("elastic(0.05)", "elastic(0.05,cell=2.0)"),
        ("trivial_augment(1)", "trivial_augment(1,pixels=16.0)"),
        ("flips >> blur(1.0,3.0)", "flips >> blur(0.5,1.5)"),
        ("0.5*blur(1.0,3.0) | 0.5*identity", "0.5*blur(0.5,1.5) | 0.5*identity"),
        ("blur(1.0,3.0) ** 2", "blur(0.5,1.5) ** 2"),
        ("chain(blur(1.0,3.0):2, flips:1)", "chain(blur(0.5,1.5):2, flips:1)"),
    ],
)
def test_what_is_sized_in_pixels_is_scaled(spec, expected):
    scaled = parse(spec).at_scale(0.5)
    assert repr(scaled) == expected
    assert parse(repr(scaled)) == scaled
    near, far = distances(parse(spec), scaled)
    assert near < 0.6 * far
    assert near < 0.02


SIZED = {"blur", "sharpness", "elastic", "trivial_augment"}


@pytest.mark.parametrize("family", [f for n, f in FAMILIES.items() if n not in SIZED])
def test_other_families_stay(family):
    assert family().at_scale(0.5) is not None
    assert family().at_scale(0.5) == family()


@pytest.mark.parametrize("spec", ["rotation(30)", "perspective(0.4)", "cutout(0.5)", "hue(0.2)"])
def test_what_is_sized_in_sides_needs_no_scale(spec):
    near, far = distances(parse(spec), parse(spec).at_scale(0.5))
    assert near == far < 0.02


@pytest.mark.parametrize("factor", [0, -1, 1.5, float("nan")])
def test_a_factor_that_does_not_shrink_is_refused(factor):
    with pytest.raises(
        AuguryError,
        match=r"expected new side / old side, in \(0, 1\]|factor must be a number, got nan",
    ):
        parse("blur").at_scale(factor)
