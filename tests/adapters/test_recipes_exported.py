"""TrivialAugment and RandAugment as exported code, and augury's own code."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from observed import EXACT, RECIPES, SIDE, differs, export, load, ours_with, photographs, run

import augury
from augury.augmentations import FAMILIES, parse
from augury.augmentations.recipes import OPERATIONS


@pytest.mark.parametrize("spec", RECIPES)
def test_recipes_of_torchvision(spec):
    torch.manual_seed(0)
    step = load(export(spec, "torchvision"))["augment"].transforms[2]
    family, seen, apply = parse(spec), [], step._apply_image_or_video_transform
    step._apply_image_or_video_transform = lambda image, name, magnitude, **options: (
        seen.append((name, magnitude)) or apply(image, name, magnitude, **options)
    )
    deviations = []
    for k in range(84):
        image = photographs()[k % 10]
        out = step(image)
        name, magnitude = seen[-1]
        make, _ = step._AUGMENTATION_SPACE[name]
        space = make(31, SIDE, SIDE)
        level = torch.zeros(())
        if space is not None:
            which = int((space - abs(magnitude)).abs().argmin())
            level = math.copysign(1, magnitude) * family.levels()[name][which]
        params = ((torch.tensor([[OPERATIONS.index(name)]]), level.reshape(1, 1)),)
        deviations.append(float((family.apply(image[None, None], params)[0, 0] - out).abs().mean()))
    assert np.mean(deviations) < differs(spec, "torchvision") * 1.25 + 1e-4


@pytest.mark.parametrize("library", ["kornia", "albumentations"])
@pytest.mark.parametrize("spec", RECIPES)
def test_recipes_are_a_call_to_augury(spec, library, monkeypatch):
    torch.manual_seed(0)
    augment = load(export(spec, library))["augment"]
    called = []
    apply = type(parse(spec)).apply
    monkeypatch.setattr(
        type(parse(spec)),
        "apply",
        lambda self, x, params: called.append((x, params, apply(self, x, params))) or called[-1][2],
    )
    image = photographs()[0]
    out = run(library, augment, image)
    (x, params, view), *_ = called
    assert torch.allclose(x.reshape(image.shape), image, atol=1e-6)
    assert float((view.reshape(image.shape).clamp(0, 1) - out).abs().mean()) < EXACT
    assert float((ours_with(spec, image, params) - out).abs().mean()) < EXACT


@pytest.mark.parametrize("name", [n for n, f in FAMILIES.items() if "image" in f.kinds])
def test_augurys_own_code_is_the_augmentation(name):
    family = parse(name)
    code = augury.export(name, to="augury")
    assert load(code)["augment"] == family
