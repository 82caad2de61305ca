"""Each family beside torchvision's operation (or Pillow's) with the same parameter."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import v2

from augury._base.rng import Rng
from augury.augmentations import (
    autocontrast,
    brightness,
    equalize,
    erasing,
    gamma,
    grayscale,
    hue,
    invert,
    jpeg,
    perspective,
    posterize,
    rand_augment,
    rotation,
    saturation,
    sharpness,
    solarize,
    trivial_augment,
)
from augury.augmentations.recipes import BINS, OPERATIONS

F = v2.functional
TOLERANCE = 2e-3


def photo(height=40, width=48, seed=0):
    """A smooth colour image with edges, of 8-bit levels."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.rand(1, 3, 6, 7, generator=generator)
    image = torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic")[0]
    image = (0.15 + 0.7 * image).clamp(0, 1)
    image[:, 10:20, 12:30] *= 0.4
    image[0, 25:32, 5:15] = 0.95
    return (image * 255).round().to(torch.uint8)


LEVELS = photo()
IMAGE = LEVELS.float() / 255


def apply(family, value, image=IMAGE):
    return family.apply(image[None, None], torch.tensor([[value]]))[0, 0]


def close(got, expected, tolerance=TOLERANCE):
    assert float((got - expected).abs().max()) <= tolerance


@pytest.mark.parametrize(
    ("family", "value", "operation"),
    [
        (brightness(1), 1.4, F.adjust_brightness),
        (brightness(1), 0.3, F.adjust_brightness),
        (saturation(1), 1.7, F.adjust_saturation),
        (saturation(1), 0.0, F.adjust_saturation),
        (hue(0.5), 0.13, F.adjust_hue),
        (hue(0.5), -0.4, F.adjust_hue),
        (hue(0.5), 0.5, F.adjust_hue),
        (gamma(0.9), 0.4, F.adjust_gamma),
        (gamma(0.9), 1.8, F.adjust_gamma),
        (sharpness(1), 1.9, F.adjust_sharpness),
        (sharpness(1), 0.2, F.adjust_sharpness),
        (grayscale(), 1, lambda x, _: F.rgb_to_grayscale(x, 3)),
        (grayscale(), 0, lambda x, _: x),
        (autocontrast(), 1, lambda x, _: F.autocontrast(x)),
        (autocontrast(), 0, lambda x, _: x),
        (equalize(), 1, lambda x, _: F.equalize(x)),
        (equalize(), 0, lambda x, _: x),
        (invert(), 1, lambda x, _: F.invert(x)),
        (solarize(0), 0.501, F.solarize),
        (rotation(180), 37.0, lambda x, v: F.rotate(x, v, v2.InterpolationMode.BILINEAR)),
    ],
    ids=lambda part: repr(part) if not callable(part) else "",
)
def test_equal_to_torchvision_on_floats(family, value, operation):
    close(apply(family, value), operation(IMAGE, value))


@pytest.mark.parametrize("bits", [1, 3, 8])
def test_posterize_equals_torchvision_on_levels(bits):
    close(apply(posterize(1), bits), F.posterize(LEVELS, bits) / 255, 1e-6)


def test_equalize_and_autocontrast_equal_torchvision_on_levels():
    close(apply(equalize(), 1), F.equalize(LEVELS) / 255, 1e-6)
    one_value = torch.full((3, 8, 8), 0.2)
    for family in (equalize(), autocontrast()):
        close(apply(family, 1, one_value), one_value, 1e-6)


def test_perspective_equals_torchvision_with_the_same_corners():
    height, width = IMAGE.shape[-2:]
    corners = [[0, 0], [width, 0], [width, height], [0, height]]
    inwards = torch.tensor([[0.3, 0.1], [0.5, 0.45], [0.0, 0.2], [0.15, 0.5]])
    inner = torch.tensor([[1, 1], [-1, 1], [-1, -1], [1, -1]]) * inwards
    moved = torch.tensor(corners) + inner * torch.tensor([width / 2, height / 2])
    expected = F.perspective(IMAGE, corners, moved.tolist())
    close(perspective(0.5).apply(IMAGE[None, None], inwards[None, None])[0, 0], expected)


def test_erasing_equals_torchvision_with_the_same_rectangle():
    family = erasing(0.5)
    where, keys = family.draw(20, Rng(0, torch.arange(1)))
    for k in range(20):
        params = (where[k : k + 1], keys[k : k + 1])
        top, bottom, left, right = (int(v) for v in family.rectangle(params[0], 40, 48))
        size = (bottom - top, right - left)
        got = family.apply(IMAGE[None, None], params)[0, 0]
        noise = got[:, top:bottom, left:right]
        close(got, F.erase(IMAGE, top, left, *size, noise), 0)
        assert size[0] * size[1] <= 0.5 * 40 * 48 * 1.05
    assert 0.25 < float(noise.std()) < 0.33  # uniform over the levels: 1/√12 = 0.29


def pillow_jpeg(levels, quality):
    mode = levels.squeeze(0) if levels.shape[0] == 1 else levels.movedim(0, -1)
    buffer = io.BytesIO()
    Image.fromarray(mode.numpy()).save(buffer, "JPEG", quality=quality)
    read = np.array(Image.open(buffer))
    return torch.from_numpy(read if read.ndim == 3 else read[..., None]).movedim(-1, 0) / 255


@pytest.mark.parametrize("quality", [5, 25, 50, 75, 95, 100])
@pytest.mark.parametrize("side", [(40, 48), (29, 33), (28, 28), (8, 8)])
def test_jpeg_equals_pillow(quality, side):
    """On average to 2e-3; rounding can differ by a few levels in the odd pixel."""
    levels = photo(*side) if min(side) > 20 else photo()[:, 8:16, 10:18].contiguous()
    for image in (levels, levels[:1].contiguous()):
        got = apply(jpeg(1), quality, image.float() / 255)
        error = (got - pillow_jpeg(image, quality)).abs()
        assert float(error.mean()) <= TOLERANCE
        assert float(error.max()) <= 12 / 255


def test_jpeg_takes_a_quality_for_each_image():
    images = torch.stack([photo(seed=k).float() / 255 for k in range(3)])
    qualities = torch.tensor([[10, 50, 90]])
    batch = jpeg(1).apply(images[None], qualities)[0]
    for k in range(3):
        close(batch[k], apply(jpeg(1), int(qualities[0, k]), images[k]), 1e-6)


RECIPES = [
    (trivial_augment(), v2.TrivialAugmentWide(interpolation=v2.InterpolationMode.BILINEAR)),
    (rand_augment(1, 9), v2.RandAugment(1, 9, interpolation=v2.InterpolationMode.BILINEAR)),
]


@pytest.mark.parametrize(("recipe", "theirs"), RECIPES, ids=("trivial", "rand"))
@pytest.mark.parametrize("operation", range(len(OPERATIONS)), ids=OPERATIONS)
@pytest.mark.parametrize("sign", [1, -1])
def test_every_operation_of_a_recipe_equals_torchvision(recipe, theirs, operation, sign):
    name = OPERATIONS[operation]
    magnitudes, signed = theirs._AUGMENTATION_SPACE[name]
    values = magnitudes(BINS, *IMAGE.shape[-2:])
    for k in range(BINS):
        level = recipe.levels().get(name, torch.zeros(BINS))[k] * (sign if signed else 1)
        strength = 0.0 if values is None else float(values[k]) * (sign if signed else 1)
        got = recipe.apply(
            IMAGE[None, None], ((torch.tensor([[operation]]), level.reshape(1, 1)),)
        )[0, 0]
        whole = name in ("Posterize", "Solarize", "Equalize")  # these have levels of their own
        expected = theirs._apply_image_or_video_transform(
            LEVELS if whole else IMAGE, name, strength, theirs.interpolation, theirs._fill
        )
        close(got, expected / 255 if whole else expected)


@pytest.mark.parametrize(("recipe", "theirs"), RECIPES, ids=("trivial", "rand"))
def test_operations_and_levels_are_drawn_as_in_torchvision(recipe, theirs):
    assert tuple(theirs._AUGMENTATION_SPACE) == OPERATIONS
    ((operation, level),) = recipe.draw(4, Rng(0, torch.arange(7000)))
    count = torch.bincount(operation.flatten(), minlength=len(OPERATIONS)).double()
    expected = operation.numel() / len(OPERATIONS)
    chi_square = float(((count - expected) ** 2 / expected).sum())
    assert chi_square < 34.5  # 13 degrees of freedom, 0.1 %
    rotations = level[operation == OPERATIONS.index("Rotate")]
    assert abs(float((rotations < 0).double().mean()) - 0.5) < 0.05
    distinct = 61 if isinstance(recipe, trivial_augment) else 2
    assert len(rotations.abs().unique()) == (distinct + 1) // 2
    bits = level[operation == OPERATIONS.index("Posterize")]
    assert float(bits.min()) == (2 if isinstance(recipe, trivial_augment) else 7)


@pytest.mark.parametrize("spec", ["saturation", "hue", "grayscale", "trivial_augment", "jpeg"])
def test_images_of_one_channel_are_left_their_one_channel(spec):
    from augury.augmentations import parse

    grey = IMAGE[:1].expand(8, 1, -1, -1)
    views = parse(spec).views(grey, 3, Rng(0, torch.arange(8)))
    assert views.shape == (3, 8, 1, 40, 48)
    assert bool(views.isfinite().all())
    if spec in ("saturation", "hue", "grayscale"):
        close(views, grey, 1e-6)


def test_stacked_operations_are_independent():
    first, second = trivial_augment(2).draw(1, Rng(3, torch.arange(4000)))
    same = (first[0] == second[0]).double().mean()
    assert abs(float(same) - 1 / 14) < 4 * math.sqrt(1 / 14 / 4000)
