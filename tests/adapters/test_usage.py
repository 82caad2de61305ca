"""What a report shows of the user's own objects: code that runs, and names that differ."""

from __future__ import annotations

import albumentations as A
import audiomentations as am
import kornia.augmentation as K
import numpy as np
import own_transforms
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits
from timm.data.auto_augment import rand_augment_transform
from torchvision.transforms import v2

import augury
from augury.adapters import from_foreign
from augury.adapters.usage import usage
from augury.augmentations import parse

ARRAY = np.random.default_rng(0).integers(256, size=(16, 16, 3), dtype=np.uint8)
SAMPLES = np.random.default_rng(0).normal(size=400).astype(np.float32)
OBJECTS = [
    (v2.RandomRotation(15), "image", torch.rand(3, 16, 16)),
    (K.RandomAffine(15.0, p=1.0), "images", torch.rand(2, 3, 16, 16)),
    (A.HorizontalFlip(p=0.5), "image", ARRAY),
    (rand_augment_transform("rand-m9-n2", {}), "image", Image.fromarray(ARRAY)),
    (am.Shift(p=1.0), "samples", SAMPLES),
]


@pytest.mark.parametrize(("transform", "name", "given"), OBJECTS)
def test_the_code_shown_runs_on_what_the_library_takes(transform, name, given):
    found = from_foreign(transform)
    code = usage(found)
    assert code.startswith(f"# what you passed to augury: {found}\n")
    space = {"transform": transform, name: given}
    exec(code, space)
    assert type(space[name]) is type(given)


@pytest.mark.parametrize("name", ["flip", "pipeline", "brighter"])
def test_what_lies_in_a_module_is_imported(name):
    code = usage(parse(f"sampled(own_transforms:{name})", imports=True))
    assert code.startswith(f"from own_transforms import {name}\n\n")
    space = dict.fromkeys(("image", "example"), torch.rand(3, 16, 16))
    exec(code, space)
    assert space[name] is getattr(own_transforms, name)


def test_stacks_hold_what_can_be_parsed_again():
    code = usage(parse("rotation(15) >> sampled(own_transforms:brighter)", imports=True))
    assert repr(eval(code)) == "rotation(15) >> sampled(own_transforms:brighter)"
    whole = parse("rotation(15)") >> from_foreign(v2.RandomRotation(5))
    space = {"augmentation": whole, "example": ARRAY}
    exec(usage(whole), space)
    assert space["view"].shape == ARRAY.shape


def test_functions_without_names_get_different_ones_in_a_ranking():
    digits = load_digits()
    found = augury.rank(
        digits.images[:200] / 16,
        digits.target[:200],
        [lambda image: image.flip(-1), lambda image: image.flip(-2), v2.RandomRotation(15)],
        score="ridge",
        feature_map="flatten",
    )
    names = {row.augmentation for row in found.rows}
    assert len(names) == 3
    assert sum("<lambda>" in name for name in names) == 2
    assert all("augury.parse" not in row.code for row in found.rows)
    assert augury.Ranking.from_json(found.to_json()).rows == found.rows
