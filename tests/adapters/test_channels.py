"""Code for images of two, four or six channels: functions stand for what libraries refuse."""

from __future__ import annotations

import pytest
import torch
from observed import EXACT, export, load, photographs, run, seed
from scipy.stats import kstest

import augury
from augury.augmentations import FAMILIES, parse

LIBRARIES = ("torchvision", "kornia", "albumentations")
ODD = ("brightness(0.5)", "contrast(0.5)", "saturation(0.5)", "hue(0.2)", "grayscale(1)")
ODD += ("autocontrast(1)", "equalize(1)", "jpeg(97)")


@pytest.mark.parametrize("channels", [2, 4, 6])
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("spec", ODD)
def test_images_that_are_neither_grey_nor_rgb(spec, library, channels):
    torch.manual_seed(0)
    image = torch.cat([photographs()[0], photographs()[7]])[:channels, :32, :32].contiguous()
    augment = load(export(spec, library, channels))["augment"]
    if library == "albumentations":
        seed(augment)
    outs = torch.stack([run(library, augment, image) for _ in range(30)])
    family = parse(spec)
    params = torch.arange(97, 101) if spec.startswith("jpeg") else torch.ones(1, dtype=torch.int64)
    if hasattr(family, "strength") or spec.startswith("hue"):
        params = torch.linspace(0.5, 1.5, 501)
    views = torch.cat([family.apply(image[None, None], p[None])[:, 0] for p in params[:, None]])
    found = [(views - out).abs().mean(dim=(1, 2, 3)).min(0) for out in outs]
    assert max(float(distance) for distance, _ in found) < EXACT
    if spec in ODD[:2]:
        factors = [float(params[which]) for _, which in found]
        assert kstest(factors, "uniform", args=(0.5, 1)).pvalue > 1e-3


@pytest.mark.parametrize("channels", [2, 4])
@pytest.mark.parametrize("spec", ODD)
def test_timm_on_images_that_are_neither_grey_nor_rgb(spec, channels):
    torch.manual_seed(0)
    image = torch.cat([photographs()[0], photographs()[7]])[:channels, :32, :32].contiguous()
    outs = []
    for library in ("torchvision", "timm"):
        torch.manual_seed(0)
        outs.append(run(library, load(export(spec, library, channels))["augment"], image))
    assert float((outs[0] - outs[1]).abs().mean()) < EXACT


@pytest.mark.parametrize("channels", [2, 6])
@pytest.mark.parametrize("library", LIBRARIES)
def test_every_family_runs_on_images_that_are_neither_grey_nor_rgb(library, channels):
    image = torch.rand(channels, 16, 16)
    for name in FAMILIES:
        if "image" not in FAMILIES[name].kinds:
            continue
        augment = load(augury.export(name, library, (channels, 16, 16)))["augment"]
        assert run(library, augment, image).shape == image.shape, name


def test_timm_has_no_images_of_more_than_four_channels():
    with pytest.raises(augury.AuguryError) as caught:
        augury.export("rotation(15)", to="timm", image_shape=(6, 32, 32))
    assert str(caught.value) == (
        "timm works on PIL images, which have at most 4 channels, not 6; export to torchvision, "
        "kornia or albumentations"
    )
