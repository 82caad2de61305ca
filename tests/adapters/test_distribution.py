"""Ten thousand draws: the exported pipeline applies each operation as often as augury does."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from observed import load, run, seed
from scipy.stats import chi2_contingency

import augury
from augury.augmentations import parse

DRAWS = 10_000
POLICIES = [
    "(0.5*identity | 0.3*(horizontal_flip >> invert) | 0.2*vertical_flip) >> invert ** 2",
    "(horizontal_flip | 0.25*(quarter_turns >> (0.4*identity | 0.6*invert)) | 0.5*identity)",
    "chain(quarter_turns:1, invert:0.7, (0.5*identity | 0.5*vertical_flip):0.3)",
    "0.3*identity | 0.7*(0.5*identity | 0.5*invert)",
]


def outcomes(image: torch.Tensor, outs: torch.Tensor) -> np.ndarray:
    """Count the maps that were applied: the symmetries of the square, inverted or not."""
    square = [image.rot90(k, (-2, -1)) for k in range(4)]
    maps = [*square, *(turned.flip(-1) for turned in square)]
    maps = torch.stack([*maps, *(1 - turned for turned in maps)])
    distance = torch.cdist(outs.flatten(1), maps.flatten(1), p=1) / image.numel()
    assert float(distance.min(1).values.max()) < 3e-3
    return np.bincount(distance.argmin(1).numpy(), minlength=len(maps))


@pytest.mark.parametrize("library", ["torchvision", "kornia", "albumentations", "timm"])
@pytest.mark.parametrize("spec", POLICIES)
def test_each_operation_is_applied_as_often(spec, library):
    torch.manual_seed(0)
    random.seed(0)
    image = torch.rand(3, 4, 4, generator=torch.Generator().manual_seed(3))
    image = (image * 255).round() / 255
    augment = load(augury.export(spec, to=library))["augment"]
    if library == "kornia":
        theirs = augment(image.expand(DRAWS, -1, -1, -1))
    else:
        if library == "albumentations":
            seed(augment)
        theirs = torch.stack([run(library, augment, image) for _ in range(DRAWS)])
    mine = parse(spec).views(image[None], DRAWS, augury.Rng(0, torch.arange(1)))[:, 0]
    counts = np.stack([outcomes(image, out) for out in (theirs, mine)])
    counts = counts[:, counts.sum(0) > 0]
    assert counts.shape[1] > 1
    assert chi2_contingency(counts).pvalue > 1e-3


def flags(outs: torch.Tensor) -> np.ndarray:
    """Count what happened to a series of ones: values dropped, scaled, noisy, in combination."""
    dropped = (outs == 0).any(-1)
    kept = outs.where(outs != 0, torch.nan)
    middle = kept.nanmedian(-1).values
    noisy = ((kept - middle[:, None]).abs() > 1e-6).any(-1)
    scaled = (middle - 1).abs() > 0.05
    return np.bincount((dropped.int() + 2 * noisy + 4 * scaled).numpy(), minlength=8)


def test_series_in_audiomentations():
    spec = (
        "(0.5*identity | 0.3*feature_dropout(0.5) | 0.2*(jitter(0.01) >> scaling(2.0,3.0))) >> "
        "(0.75*identity | 0.25*scaling(0.1,0.5)) >> "
        "chain(feature_dropout(0.3):0.5, jitter(0.01):0.2)"
    )
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002  # audiomentations draws from it
    augment = load(augury.export(spec, to="audiomentations"))["augment"]
    ones = np.ones((1, 64), dtype=np.float32)
    theirs = torch.from_numpy(np.stack([augment(ones, 16000)[0] for _ in range(DRAWS)]))
    mine = parse(spec).views(torch.ones(1, 1, 64), DRAWS, augury.Rng(0, torch.arange(1)))[:, 0, 0]
    counts = np.stack([flags(theirs), flags(mine)])
    counts = counts[:, counts.sum(0) > 0]
    assert counts.shape[1] >= 6
    assert chi2_contingency(counts).pvalue > 1e-3
