"""Pipelines for torchvision's transforms v2."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from augury import __version__
from augury import augmentations as ours
from augury.adapters.code import Call, Name, call, function, write_module
from augury.adapters.walk import Dialect, Shape, Translation, is_grey_or_rgb, shares, unclipped
from augury.augmentations.colour import Blend

BILINEAR = Name("v2.InterpolationMode.BILINEAR")

EDGE = "the image's edge is blended otherwise"
REFLECTS = "the border is reflected instead of left out"
LUMA = "about the mean of the luma instead of that of all channels"
WHOLE_PIXELS = "moves by whole pixels"


def blur_kernel(high: float, shape: Shape) -> int | None:
    """Return an odd kernel of three standard deviations each way; None if the image is smaller."""
    reach = math.ceil(3 * high)
    return None if shape is not None and reach >= min(shape[-2:]) else 2 * reach + 1


def blur_differs(a: ours.blur, shape: Shape) -> str:
    """Return how the libraries' blur differs, and which images are too small for it."""
    if shape is not None:
        return REFLECTS
    least = math.ceil(3 * a.high) + 1
    return f"{REFLECTS}, which needs sides of {least} pixels or more; else pass image_shape"


def copied(name: str, **options: float) -> list[Call]:
    """Return a step that applies a function which is copied into the code."""
    return [call("v2.Lambda", function(name, **options))]


def _blur(a: ours.blur, shape: Shape) -> list[Call] | None:
    size = blur_kernel(a.high, shape)
    return (
        None if size is None else [call("v2.GaussianBlur", kernel_size=size, sigma=(a.low, a.high))]
    )


def _jitter(**options: float) -> list[Call]:
    ranges: dict[str, Any] = {
        name: (1 - strength, 1 + strength) for name, strength in options.items()
    }
    return [call("v2.ColorJitter", **ranges)]


def enhance(
    name: str,
    a: Blend,
    shape: Shape,
    own: Callable[..., list[Call]],
    other: Callable[..., list[Call]],
) -> list[Call] | None:
    """Return an operation whose factor is drawn from 1 ± strength.

    It is the library's `own`, or where that refuses the channels an `other`, copied into the code.
    """
    if not a.clip:
        return None
    if is_grey_or_rgb(shape):
        return own(**{name: a.strength})
    return other(name, strength=a.strength)


def contrast_differs(a: ours.contrast, shape: Shape) -> str:
    """Return how the libraries' contrast differs; the function that stands for it is exact."""
    return LUMA if is_grey_or_rgb(shape) else ""


def _affine(**options: Any) -> list[Call]:
    return [call("v2.RandomAffine", **{"degrees": 0, **options}, interpolation=BILINEAR)]


def crop_options(a: ours.resized_crop, shape: tuple[int, ...]) -> dict[str, Any]:
    """Return what the libraries' random crops of an image's own shape take."""
    height, width = shape[-2:]
    return {"size": (height, width), "scale": (a.area, 1.0), "ratio": (width / height,) * 2}


def crop_differs(a: ours.resized_crop, shape: Shape) -> str:
    """Return how the libraries' crops differ; where no shape is known, a function is exact."""
    return "" if shape is None else "crops at whole pixels"


def _resized_crop(a: ours.resized_crop, shape: Shape) -> list[Call]:
    if shape is None:
        return copied("resized_crop", area=a.area)
    return [call("v2.RandomResizedCrop", **crop_options(a, shape))]


def _quarter_turns(a: ours.quarter_turns, shape: Shape) -> list[Call]:
    turns = [call("v2.RandomRotation", degrees=(d, d)) for d in (90, 180, 270)]
    return [call("v2.RandomChoice", [call("v2.Identity"), *turns], p=[0.25] * 4)]


def _trivial_augment(a: ours.trivial_augment, shape: Shape) -> list[Call] | None:
    if a.pixels != 32 or not is_grey_or_rgb(shape):  # 32 is torchvision's longest translation
        return None
    step = call("v2.TrivialAugmentWide", num_magnitude_bins=31, interpolation=BILINEAR, fill=0)
    return [step] * a.operations


def _rand_augment(a: ours.rand_augment, shape: Shape) -> list[Call] | None:
    if not is_grey_or_rgb(shape):
        return None
    options: dict[str, Any] = {"num_ops": a.operations, "magnitude": a.level}
    options |= {"num_magnitude_bins": 31, "interpolation": BILINEAR, "fill": 0}
    return [call("v2.RandAugment", **options)]


class Torchvision(Dialect):
    """Images as float tensors ``(channels, height, width)`` in [0, 1]."""

    name = "torchvision"
    table: ClassVar = {
        ours.rotation: Translation(
            lambda a, shape: [
                call("v2.RandomRotation", degrees=(-a.degrees, a.degrees), interpolation=BILINEAR)
            ],
            0.0019,
            EDGE,
        ),
        ours.shear: Translation(
            lambda a, shape: _affine(shear=(-a.degrees, a.degrees)), 0.0010, EDGE
        ),
        ours.scaling: Translation(lambda a, shape: _affine(scale=(a.low, a.high)), 0.0018, EDGE),
        ours.translation: Translation(
            lambda a, shape: _affine(translate=(a.fraction, a.fraction)), 0.0155, WHOLE_PIXELS
        ),
        ours.resized_crop: Translation(_resized_crop, 0.0004, crop_differs),
        ours.elastic: Translation(
            lambda a, shape: copied("elastic", strength=a.strength) if a.cell == 4 else None
        ),
        ours.horizontal_flip: Translation(
            lambda a, shape: [call("v2.RandomHorizontalFlip", p=0.5)]
        ),
        ours.vertical_flip: Translation(lambda a, shape: [call("v2.RandomVerticalFlip", p=0.5)]),
        ours.flips: Translation(
            lambda a, shape: [
                call("v2.RandomHorizontalFlip", p=0.5),
                call("v2.RandomVerticalFlip", p=0.5),
            ]
        ),
        ours.quarter_turns: Translation(_quarter_turns),
        ours.pixel_shifts: Translation(lambda a, shape: copied("pixel_shifts")),
        ours.blur: Translation(_blur, 0.0005, blur_differs),
        ours.brightness: Translation(
            lambda a, shape: enhance("brightness", a, shape, _jitter, copied),
        ),
        ours.contrast: Translation(
            lambda a, shape: enhance("contrast", a, shape, _jitter, copied),
            0.0035,
            contrast_differs,
        ),
        ours.noise: Translation(
            lambda a, shape: [call("v2.GaussianNoise", mean=0.0, sigma=a.sd, clip=True)]
        ),
        ours.cutout: Translation(lambda a, shape: copied("cutout", fraction=a.fraction)),
        ours.invert: Translation(lambda a, shape: [call("v2.RandomInvert", p=0.5)]),
        ours.solarize: Translation(lambda a, shape: copied("solarize", threshold=a.threshold)),
        ours.posterize: Translation(lambda a, shape: copied("posterize", bits=a.bits)),
        ours.saturation: Translation(
            lambda a, shape: (
                _jitter(saturation=a.strength) if a.clip and is_grey_or_rgb(shape) else None
            )
        ),
        ours.hue: Translation(
            lambda a, shape: (
                [call("v2.ColorJitter", hue=(-a.fraction, a.fraction))]
                if is_grey_or_rgb(shape)
                else None
            )
        ),
        ours.grayscale: Translation(
            lambda a, shape: (
                [call("v2.RandomGrayscale", p=a.probability)] if is_grey_or_rgb(shape) else None
            )
        ),
        ours.sharpness: Translation(
            lambda a, shape: copied("sharpness", strength=a.strength) if a.clip else None
        ),
        ours.gamma: Translation(lambda a, shape: copied("gamma", strength=a.strength)),
        ours.autocontrast: Translation(
            lambda a, shape: (
                [call("v2.RandomAutocontrast", p=a.probability)]
                if is_grey_or_rgb(shape)
                else [call("v2.RandomApply", copied("autocontrast"), p=a.probability)]
            )
        ),
        ours.equalize: Translation(lambda a, shape: [call("v2.RandomEqualize", p=a.probability)]),
        ours.perspective: Translation(
            lambda a, shape: [
                call(
                    "v2.RandomPerspective",
                    distortion_scale=a.distortion,
                    interpolation=BILINEAR,
                    p=1.0,
                )
            ],
            0.0080,
            "corners move by whole pixels, and the edge is blended otherwise",
        ),
        ours.erasing: Translation(lambda a, shape: copied("erasing", fraction=a.fraction)),
        ours.jpeg: Translation(lambda a, shape: copied("jpeg", quality=a.quality)),
        ours.trivial_augment: Translation(_trivial_augment, 0.0005, EDGE),
        ours.rand_augment: Translation(_rand_augment, 0.0005, EDGE),
        ours.jitter: Translation(lambda a, shape: copied("jitter", sd=a.sd)),
    }

    def augury(self, spec: str) -> Call:
        return call("v2.Lambda", call("augury.parse", spec))

    def together(self, steps: list[Call]) -> Call:
        if not steps:
            return call("v2.Identity")
        return steps[0] if len(steps) == 1 else call("v2.Compose", steps)

    def with_probability(self, steps: list[Call], p: float) -> Call:
        return call("v2.RandomApply", steps, p=p)

    def choice(self, branches: list[Call], weights: Sequence[float], p: float) -> Call:
        if p < 1:
            branches, weights = [call("v2.Identity"), *branches], [1 - p, *(p * w for w in weights)]
        return call("v2.RandomChoice", branches, p=shares(weights))

    def chain(self, branches: list[Call], rates: Sequence[float]) -> Call:
        return call("v2.Lambda", call("Chain", branches, rates=list(rates), needs=["Chain"]))

    def write(self, augmentation: ours.Augmentation) -> str:
        start = [
            call("v2.ToImage"),
            call("v2.ToDtype", Name("torch.float32"), scale=True),
        ]
        beyond = unclipped(augmentation)
        return write_module(
            f"{augmentation}, written by augury {__version__} for torchvision (transforms v2).\n"
            "Takes a PIL image, an array or a tensor; returns a float tensor"
            f"{'.' + beyond if beyond else ' in [0, 1].'}",
            call("v2.Compose", [*start, *self.steps(augmentation)]),
            "tensors",
        )
