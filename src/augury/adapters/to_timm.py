"""Pipelines for timm: PIL images in and out, timm's own operations where it has them."""

from __future__ import annotations

from typing import ClassVar

from augury import __version__
from augury import augmentations as ours
from augury._base.errors import AuguryError
from augury.adapters.code import Call, call, write_module
from augury.adapters.to_torchvision import Torchvision
from augury.adapters.walk import Translation, is_grey_or_rgb, unclipped

ROUNDED = "timm works on 8-bit PIL images"


def _operation(name: str, magnitude: float, p: float = 1.0) -> list[Call]:
    """Return timm's operation, its magnitude (10 is its usual maximum) drawn evenly from 0."""
    return [call("operation", name, magnitude=magnitude, p=p, needs=["operation"])]


def _enhance(name: str, strength: float) -> list[Call] | None:
    """Return an operation whose factor is drawn from 1 ± strength; timm keeps it over 0.1."""
    return _operation(f"{name}Increasing", strength / 0.09) if strength <= 0.9 else None


def _argument(augmentation: ours.Augmentation) -> str:
    """Return a comment with the nearest ``--aa`` argument of timm's scripts, if there is one."""
    if isinstance(augmentation, ours.rand_augment):  # levels to 30 here, to 10 in timm
        text = f"rand-m{round(augmentation.level / 3)}-n{augmentation.operations}-p1-inc1"
    elif isinstance(augmentation, ours.trivial_augment):  # mstd over 100: drawn evenly from 0
        text = f"rand-m10-n{augmentation.operations}-mstd101-p1-inc1"
    else:
        return ""
    return f"--aa {text} is the nearest argument: it draws from timm's own 15 operations.\n"


class Timm(Torchvision):
    """Images of PIL; what timm lacks is torchvision's, or a function, on a tensor in between."""

    name = "timm"
    own: ClassVar = {
        ours.rotation: Translation(
            lambda a, shape: _operation("Rotate", a.degrees / 3), 0.0045, ROUNDED
        ),
        ours.translation: Translation(
            lambda a, shape: [
                step
                for name in ("TranslateXRel", "TranslateYRel")
                for step in _operation(name, a.fraction / 0.045)
            ],
            0.0030,
            ROUNDED,
        ),
        ours.brightness: Translation(
            lambda a, shape: _enhance("Brightness", a.strength) if a.clip else None, 0.0018, ROUNDED
        ),
        ours.contrast: Translation(
            lambda a, shape: _enhance("Contrast", a.strength) if a.clip else None, 0.0042, ROUNDED
        ),
        ours.solarize: Translation(
            lambda a, shape: _operation("SolarizeIncreasing", 10 * (1 - a.threshold))
        ),
        ours.saturation: Translation(
            lambda a, shape: _enhance("Color", a.strength) if a.clip else None, 0.0018, ROUNDED
        ),
        ours.sharpness: Translation(
            lambda a, shape: _enhance("Sharpness", a.strength) if a.clip else None, 0.0013, ROUNDED
        ),
        ours.autocontrast: Translation(
            lambda a, shape: _operation("AutoContrast", 0.0, a.probability)
        ),
        ours.equalize: Translation(lambda a, shape: _operation("Equalize", 0.0, a.probability)),
        ours.invert: Translation(lambda a, shape: _operation("Invert", 0.0, 0.5)),
    }

    def translate(self, family: ours.Augmentation) -> tuple[Translation | None, list[Call] | None]:
        entry = self.own.get(type(family)) if is_grey_or_rgb(self.shape) else None
        steps = None if entry is None else entry.steps(family, self.shape)
        if steps is not None:
            return entry, steps
        entry, steps = super().translate(family)
        return entry, None if steps is None else [self._on_tensor(step) for step in steps]

    def augury(self, spec: str) -> Call:
        return self._on_tensor(super().augury(spec))

    def _on_tensor(self, step: Call) -> Call:
        inner = step.args[0] if step.name == "v2.Lambda" else step
        return call("OnTensor", inner, needs=["OnTensor"])

    def write(self, augmentation: ours.Augmentation) -> str:
        if self.shape is not None and len(self.shape) == 3 and self.shape[0] > 4:
            raise AuguryError(
                f"timm works on PIL images, which have at most 4 channels, not {self.shape[0]}; "
                "export to torchvision, kornia or albumentations"
            )
        clipped = "Levels of 8 bits are clipped to [0, 1] where augury does not"
        return write_module(
            f"{augmentation}, written by augury {__version__} for timm.\n{_argument(augmentation)}"
            "Takes and returns a PIL image: put it before the tensor conversion, for instance "
            f"with transform.transforms.insert(0, augment).{unclipped(augmentation, clipped)}",
            call("v2.Compose", self.steps(augmentation) or [call("v2.Identity")]),
            "tensors",
        )
