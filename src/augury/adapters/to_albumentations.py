"""Pipelines for Albumentations: as code and as its JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from augury import __version__
from augury import augmentations as ours
from augury._base.errors import AuguryError
from augury.adapters.code import Call, call, children, function, write_module
from augury.adapters.to_torchvision import (
    REFLECTS,
    WHOLE_PIXELS,
    contrast_differs,
    crop_differs,
    crop_options,
    enhance,
)
from augury.adapters.walk import (
    Dialect,
    Shape,
    Translation,
    is_grey_or_rgb,
    may_have_colours,
    unclipped,
)


def copied(name: str, **options: float) -> list[Call]:
    """Return a step that applies a function which is copied into the code."""
    return [call("Draw", function(name, **options), p=1.0, needs=["Draw"])]


def _affine(**options: Any) -> list[Call]:
    return [call("A.Affine", **options, p=1.0)]


def _resized_crop(a: ours.resized_crop, shape: Shape) -> list[Call]:
    if shape is None:
        return copied("resized_crop", area=a.area)
    return [call("A.RandomResizedCrop", **crop_options(a, shape), p=1.0)]


def _jitter(**options: float) -> list[Call]:
    still: dict[str, Any] = {
        "brightness": (1.0, 1.0),
        "contrast": (1.0, 1.0),
        "saturation": (1.0, 1.0),
    }
    ranges: dict[str, Any] = {
        name: (1 - strength, 1 + strength) for name, strength in options.items()
    }
    return [call("A.ColorJitter", **{**still, **ranges}, hue=(0.0, 0.0), p=1.0)]


def _equalize(a: ours.equalize, shape: Shape) -> list[Call]:
    if is_grey_or_rgb(shape):
        return [call("A.Equalize", mode="pil", p=a.probability)]
    return [copied("equalize")[0].with_options(p=a.probability)]


def _jpeg(a: ours.jpeg, shape: Shape) -> list[Call]:
    if is_grey_or_rgb(shape):
        return [call("A.ImageCompression", quality_range=(a.quality, 100), p=1.0)]
    return copied("jpeg", quality=a.quality)


_WORKERS = (
    "Workers of a DataLoader repeat each other's draws unless they have worker_init_fn=lambda _: "
    "augment.set_random_seed(None); a number as seed makes all steps draw alike."
)


class Albumentations(Dialect):
    """Images as arrays ``(height, width, channels)``, uint8 or float32 in [0, 1]."""

    name = "albumentations"
    table: ClassVar = {
        ours.rotation: Translation(lambda a, shape: _affine(rotate=(-a.degrees, a.degrees))),
        ours.shear: Translation(
            lambda a, shape: _affine(shear={"x": (-a.degrees, a.degrees), "y": (0, 0)})
        ),
        ours.scaling: Translation(lambda a, shape: _affine(scale=(a.low, a.high), keep_ratio=True)),
        ours.translation: Translation(
            lambda a, shape: _affine(
                translate_percent=dict.fromkeys("xy", (-a.fraction, a.fraction))
            ),
            0.0155,
            WHOLE_PIXELS,
        ),
        ours.resized_crop: Translation(_resized_crop, 0.0004, crop_differs),
        ours.elastic: Translation(
            lambda a, shape: copied("elastic", strength=a.strength) if a.cell == 4 else None
        ),
        ours.horizontal_flip: Translation(lambda a, shape: [call("A.HorizontalFlip", p=0.5)]),
        ours.vertical_flip: Translation(lambda a, shape: [call("A.VerticalFlip", p=0.5)]),
        ours.flips: Translation(
            lambda a, shape: [call("A.HorizontalFlip", p=0.5), call("A.VerticalFlip", p=0.5)]
        ),
        ours.quarter_turns: Translation(lambda a, shape: [call("A.RandomRotate90", p=1.0)]),
        ours.pixel_shifts: Translation(lambda a, shape: copied("pixel_shifts")),
        ours.blur: Translation(
            lambda a, shape: [
                call("A.GaussianBlur", blur_limit=0, sigma_limit=(a.low, a.high), p=1.0)
            ],
            0.0005,
            REFLECTS,
        ),
        ours.brightness: Translation(
            lambda a, shape: enhance("brightness", a, shape, _jitter, copied),
        ),
        ours.contrast: Translation(
            lambda a, shape: enhance("contrast", a, shape, _jitter, copied),
            0.0035,
            contrast_differs,
        ),
        ours.noise: Translation(
            lambda a, shape: (
                [call("A.GaussNoise", std_range=(a.sd, a.sd), mean_range=(0.0, 0.0), p=1.0)]
                if a.sd <= 1
                else None
            )
        ),
        ours.cutout: Translation(lambda a, shape: copied("cutout", fraction=a.fraction)),
        ours.invert: Translation(lambda a, shape: [call("A.InvertImg", p=0.5)]),
        ours.solarize: Translation(
            lambda a, shape: [call("A.Solarize", threshold_range=(a.threshold, 1.0), p=1.0)]
        ),
        ours.posterize: Translation(lambda a, shape: copied("posterize", bits=a.bits)),
        ours.saturation: Translation(
            lambda a, shape: (
                _jitter(saturation=a.strength) if a.clip and is_grey_or_rgb(shape) else None
            )
        ),
        ours.hue: Translation(
            lambda a, shape: (
                [_jitter()[0].with_options(hue=(-a.fraction, a.fraction))]
                if is_grey_or_rgb(shape)
                else None
            )
        ),
        ours.grayscale: Translation(
            lambda a, shape: (
                [call("A.ToGray", p=a.probability)] if may_have_colours(shape) else None
            )
        ),
        ours.sharpness: Translation(
            lambda a, shape: copied("sharpness", strength=a.strength) if a.clip else None
        ),
        ours.gamma: Translation(
            lambda a, shape: [
                call(
                    "A.RandomGamma",
                    gamma_limit=(100 * (1 - a.strength), 100 * (1 + a.strength)),
                    p=1.0,
                )
            ]
        ),
        ours.autocontrast: Translation(
            lambda a, shape: [call("A.AutoContrast", cutoff=0, method="pil", p=a.probability)]
        ),
        ours.equalize: Translation(
            _equalize,
            0.0065,
            lambda a, shape: (
                "levels between two whole ones are rounded otherwise"
                if is_grey_or_rgb(shape)
                else ""
            ),
        ),
        ours.perspective: Translation(
            lambda a, shape: copied("perspective", distortion=a.distortion)
        ),
        ours.erasing: Translation(lambda a, shape: copied("erasing", fraction=a.fraction)),
        ours.jpeg: Translation(
            _jpeg,
            0.0125,
            lambda a, shape: (
                "red and blue are swapped while encoding" if is_grey_or_rgb(shape) else ""
            ),
        ),
        ours.jitter: Translation(lambda a, shape: copied("jitter", sd=a.sd)),
    }

    def augury(self, spec: str) -> Call:
        return call("Draw", function("augury_view", spec=spec), p=1.0, needs=["Draw"])

    def together(self, steps: list[Call]) -> Call:
        if not steps:
            return call("A.NoOp", p=1.0)
        return steps[0] if len(steps) == 1 else call("A.Sequential", steps, p=1.0)

    def with_probability(self, steps: list[Call], p: float) -> Call:
        return call("A.Sequential", steps, p=p)

    def choice(self, branches: list[Call], weights: Sequence[float], p: float) -> Call:
        # OneOf reads each branch's p as its weight and then applies it for certain: a branch
        # with a probability of its own must be inside a Sequential
        weighted = [
            branch.with_options(p=weight)
            if branch.options["p"] == 1
            else call("A.Sequential", [branch], p=weight)
            for branch, weight in zip(branches, weights, strict=True)
        ]
        return call("A.OneOf", weighted, p=p)

    def chain(self, branches: list[Call], rates: Sequence[float]) -> Call:
        return call("Chain", branches, rates=list(rates), p=1.0, needs=["Chain"])

    def write(self, augmentation: ours.Augmentation) -> str:
        beyond = unclipped(augmentation).replace("Values", "Values of float32")
        return write_module(
            f"{augmentation}, written by augury {__version__} for Albumentations.\n"
            'augment(image=array)["image"] takes and returns (height, width, channels), uint8 or '
            f"float32{beyond and ', given'} in [0, 1].{beyond}\n{_WORKERS}",
            call("A.Compose", self.steps(augmentation), p=1.0),
            "arrays",
        )


class AlbumentationsJson(Albumentations):
    """The same as the JSON of ``A.save``, for ``A.load`` and ``A.from_dict``."""

    name = "albumentations-json"

    def write(self, augmentation: ours.Augmentation) -> str:
        whole = call("A.Compose", self.steps(augmentation), p=1.0)
        for step in children(whole):
            if step.needs:
                raise AuguryError(
                    f"Albumentations' JSON cannot hold a function, but {augmentation} needs "
                    f"{step.needs[0]}; export it to albumentations, as code"
                )
        return json.dumps({"__version__": "2.0.8", "transform": _plain(whole)}, indent=2) + "\n"


def _plain(value: Any) -> Any:
    """Return a tree of calls as Albumentations serialises it."""
    if isinstance(value, Call):
        inner = {"transforms": _plain(value.args[0])} if value.args else {}
        name = value.name.removeprefix("A.")
        return {"__class_fullname__": name, **inner, **_plain(dict(value.options))}
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value
