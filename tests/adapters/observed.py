"""Run exported code in its real library, read what it drew, and draw the same in augury."""

from __future__ import annotations

import functools
import math

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_sample_images

import augury
from augury.adapters.export import FORMATS
from augury.augmentations import Augmentation, parse

SIDE = 64


@functools.cache
def photographs(channels: int = 3) -> torch.Tensor:
    """Two photographs, five crops of each, 64 pixels a side: (10, channels, 64, 64) in [0, 1]."""
    crops = []
    for photo in load_sample_images().images:
        image = Image.fromarray(photo)
        for left, top in ((0, 0), (200, 0), (0, 180), (350, 150), (180, 90)):
            crop = image.crop((left, top, left + 240, top + 240)).resize((SIDE, SIDE))
            crops.append(np.asarray(crop, dtype=np.float32) / 255)
    images = torch.from_numpy(np.stack(crops)).movedim(-1, 1).contiguous()
    return images if channels == 3 else images.mean(1, keepdim=True)


def load(code: str) -> dict:
    """Execute exported code as a module of its own."""
    space: dict = {"__name__": "exported"}
    exec(compile(code, "exported.py", "exec"), space)
    return space


def run(library: str, augment, image: torch.Tensor) -> torch.Tensor:
    """Apply a loaded pipeline to one image (channels, height, width) in [0, 1]."""
    if library == "torchvision":
        return augment(image)
    if library == "kornia":
        return augment(image[None])[0]
    if library == "timm":
        pixels = (image.movedim(0, -1) * 255).round().to(torch.uint8).numpy()
        given = Image.fromarray(pixels.squeeze(-1) if pixels.shape[-1] == 1 else pixels)
        out = np.asarray(augment(given), dtype=np.float32) / 255
        return torch.from_numpy(out.reshape(pixels.shape)).movedim(-1, 0)
    array = image.movedim(0, -1).contiguous().numpy()
    return torch.from_numpy(augment(image=array)["image"]).movedim(-1, 0)


def seed(augment, number: int = 0) -> None:
    """Seed every step of Albumentations by itself: its own seed makes all steps draw alike."""
    augment.set_random_seed(number)
    for k, step in enumerate(getattr(augment, "transforms", ())):
        if hasattr(step, "set_random_seed"):
            seed(step, 31 * number + k + 1)


class Draws:
    """What the functions of torch's global generator returned, while patched."""

    def __init__(self, monkeypatch) -> None:
        self.seen: list[torch.Tensor] = []
        for name in ("rand", "randn", "randn_like"):
            monkeypatch.setattr(torch, name, self._recorded(getattr(torch, name)))

    def _recorded(self, function):
        def recorded(*args, **kwargs):
            out = function(*args, **kwargs)
            self.seen.append(out)
            return out

        return recorded


class Generator:
    """A NumPy generator that keeps what it returned."""

    def __init__(self, seed: int) -> None:
        self.rng, self.seen = np.random.default_rng(seed), []

    def __getattr__(self, name):
        method = getattr(self.rng, name)

        def recorded(*args, **kwargs):
            out = method(*args, **kwargs)
            self.seen.append(np.asarray(out))
            return out

        return recorded


def ours(spec: str | Augmentation, image: torch.Tensor, params) -> torch.Tensor:
    """Apply augury's family to one image with given parameters."""
    params = torch.as_tensor(params, dtype=torch.float32)
    return parse(spec).apply(image[None, None], params.reshape(1, 1, *params.shape))[0, 0]


def nearest(family: Augmentation, image: torch.Tensor, outs: torch.Tensor) -> list:
    """Return each image's smallest difference to a map of a finite family, and which map it is."""
    rule = family.nodes(int(family.size or 0))
    assert rule is not None
    views = family.apply(image[None, None], rule.params)[:, 0]
    distances = [(views - out).abs().mean(dim=(1, 2, 3)) for out in outs]
    return [(float(d.min()), int(d.argmin())) for d in distances]


def sigma_of(kernel: np.ndarray) -> float:
    """Return the standard deviation of a sampled Gaussian kernel."""
    middle = len(kernel) // 2
    return math.sqrt(0.5 / math.log(kernel[middle] / kernel[middle + 1]))


def export(spec: str, library: str, channels: int = 3) -> str:
    return augury.export(spec, to=library, image_shape=(channels, SIDE, SIDE))


EXACT = 3e-3
"""The mean difference of pixels up to which two images are the same."""

RECIPES = ("trivial_augment(1)", "rand_augment(1,20)")


def differs(spec: str, library: str) -> float:
    return FORMATS[library].table[type(parse(spec))].differs


def ours_with(spec, image, params):
    return parse(spec).apply(image[None, None], params)[0, 0].clamp(0, 1)
