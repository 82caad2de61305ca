"""Pipelines for kornia's AugmentationSequential."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from augury import __version__
from augury import augmentations as ours
from augury.adapters.code import Call, call, function, write_module
from augury.adapters.to_torchvision import (
    LUMA,
    blur_differs,
    blur_kernel,
    crop_differs,
    crop_options,
)
from augury.adapters.walk import Dialect, Shape, Translation, may_have_colours, shares, unclipped


def copied(name: str, **options: float) -> list[Call]:
    """Return a step that applies a function which is copied into the code."""
    return [call("PerBatch", function(name, **options), needs=["PerBatch"])]


def _affine(**options: Any) -> list[Call]:
    return [call("K.RandomAffine", **{"degrees": 0.0, **options}, align_corners=False, p=1.0)]


def _blur(a: ours.blur, shape: Shape) -> list[Call] | None:
    size = blur_kernel(a.high, shape)
    return (
        None
        if size is None
        else [call("K.RandomGaussianBlur", (size, size), (a.low, a.high), p=1.0)]
    )


def _resized_crop(a: ours.resized_crop, shape: Shape) -> list[Call]:
    if shape is None:
        return copied("resized_crop", area=a.area)
    return [call("K.RandomResizedCrop", **crop_options(a, shape), align_corners=False, p=1.0)]


def _jitter(**options: float) -> list[Call]:
    ranges: dict[str, Any] = {
        name: (1 - strength, 1 + strength) for name, strength in options.items()
    }
    return [call("K.ColorJitter", **ranges, p=1.0)]


def _needs_colours(a: ours.hue, shape: Shape) -> str:
    """Return what kornia's hue does to images that may be grey; empty where they are not."""
    if shape is not None and len(shape) == 3:
        return ""
    return "it fails on grey images, which augury does not change; for these, pass image_shape"


class Kornia(Dialect):
    """Batches of float images ``(batch, channels, height, width)`` in [0, 1]."""

    name = "kornia"
    table: ClassVar = {
        ours.rotation: Translation(
            lambda a, shape: [
                call("K.RandomRotation", (-a.degrees, a.degrees), align_corners=False, p=1.0)
            ]
        ),
        ours.shear: Translation(lambda a, shape: _affine(shear=(-a.degrees, a.degrees))),
        ours.scaling: Translation(lambda a, shape: _affine(scale=(a.low, a.high))),
        ours.translation: Translation(lambda a, shape: _affine(translate=(a.fraction, a.fraction))),
        ours.resized_crop: Translation(_resized_crop, 0.0004, crop_differs),
        ours.elastic: Translation(
            lambda a, shape: copied("elastic", strength=a.strength) if a.cell == 4 else None
        ),
        ours.horizontal_flip: Translation(lambda a, shape: [call("K.RandomHorizontalFlip", p=0.5)]),
        ours.vertical_flip: Translation(lambda a, shape: [call("K.RandomVerticalFlip", p=0.5)]),
        ours.flips: Translation(
            lambda a, shape: [
                call("K.RandomHorizontalFlip", p=0.5),
                call("K.RandomVerticalFlip", p=0.5),
            ]
        ),
        ours.quarter_turns: Translation(lambda a, shape: copied("quarter_turns")),
        ours.pixel_shifts: Translation(lambda a, shape: copied("pixel_shifts")),
        ours.blur: Translation(_blur, 0.0005, blur_differs),
        ours.brightness: Translation(
            lambda a, shape: _jitter(brightness=a.strength) if a.clip else None
        ),
        ours.contrast: Translation(
            lambda a, shape: _jitter(contrast=a.strength) if a.clip else None, 0.0035, LUMA
        ),
        ours.noise: Translation(lambda a, shape: copied("noise", sd=a.sd)),
        ours.cutout: Translation(lambda a, shape: copied("cutout", fraction=a.fraction)),
        ours.invert: Translation(lambda a, shape: [call("K.RandomInvert", p=0.5)]),
        ours.solarize: Translation(
            lambda a, shape: [
                call(
                    "K.RandomSolarize",
                    thresholds=(a.threshold, 1.0),
                    additions=(0.0, 0.0),
                    p=1.0,
                )
            ]
        ),
        ours.posterize: Translation(lambda a, shape: copied("posterize", bits=a.bits)),
        ours.saturation: Translation(
            lambda a, shape: (
                _jitter(saturation=a.strength) if a.clip and may_have_colours(shape) else None
            )
        ),
        ours.hue: Translation(
            lambda a, shape: (
                [call("K.ColorJitter", hue=(-a.fraction, a.fraction), p=1.0)]
                if may_have_colours(shape)
                else None
            ),
            because=_needs_colours,
        ),
        ours.grayscale: Translation(
            lambda a, shape: (
                [call("K.RandomGrayscale", p=a.probability)] if may_have_colours(shape) else None
            )
        ),
        ours.sharpness: Translation(
            lambda a, shape: copied("sharpness", strength=a.strength) if a.clip else None
        ),
        ours.gamma: Translation(
            lambda a, shape: [call("K.RandomGamma", gamma=(1 - a.strength, 1 + a.strength), p=1.0)]
        ),
        ours.autocontrast: Translation(
            lambda a, shape: [call("K.RandomAutoContrast", p=a.probability)]
        ),
        ours.equalize: Translation(lambda a, shape: [call("K.RandomEqualize", p=a.probability)]),
        ours.perspective: Translation(
            lambda a, shape: [
                call("K.RandomPerspective", a.distortion, align_corners=False, p=1.0)
            ],
            0.0045,
            "moves the centres of the corner pixels instead of the corners",
        ),
        ours.erasing: Translation(lambda a, shape: copied("erasing", fraction=a.fraction)),
        ours.jpeg: Translation(lambda a, shape: copied("jpeg", quality=a.quality)),
        ours.jitter: Translation(lambda a, shape: copied("jitter", sd=a.sd)),
    }

    def augury(self, spec: str) -> Call:
        return call("PerBatch", call("augury.parse", spec), needs=["PerBatch"])

    def together(self, steps: list[Call]) -> Call:
        if not steps:
            return call("nn.Identity")
        return steps[0] if len(steps) == 1 else call("K.ImageSequential", *steps)

    def with_probability(self, steps: list[Call], p: float) -> Call:
        return self.choice([self.together(steps)], [1.0], p)

    def choice(self, branches: list[Call], weights: Sequence[float], p: float) -> Call:
        if p < 1:
            branches, weights = [call("nn.Identity"), *branches], [1 - p, *(p * w for w in weights)]
        return call("Choose", branches, weights=shares(weights), needs=["Choose"])

    def chain(self, branches: list[Call], rates: Sequence[float]) -> Call:
        return call("ChainOfBatches", branches, rates=list(rates), needs=["ChainOfBatches"])

    def write(self, augmentation: ours.Augmentation) -> str:
        steps = self.steps(augmentation) or [call("nn.Identity")]
        beyond = unclipped(augmentation)
        batch = "a batch of float images (batch, channels, height, width) in [0, 1]"
        taken = f"Takes {batch} and returns one" if beyond else f"Takes and returns {batch}"
        return write_module(
            f"{augmentation}, written by augury {__version__} for kornia.\n"
            f"{taken}; each image has its own draw.{beyond}",
            call("K.AugmentationSequential", *steps, data_keys=["input"]),
            "tensors",
        )
