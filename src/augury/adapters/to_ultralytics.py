"""Settings for ultralytics, as YAML and as arguments: text only, it is never imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from augury import __version__
from augury import augmentations as ours
from augury._base.errors import AuguryError
from augury.adapters.code import comment

_OFF: dict[str, Any] = {
    "hsv_h": 0.0,
    "hsv_s": 0.0,
    "hsv_v": 0.0,
    "degrees": 0.0,
    "translate": 0.0,
    "scale": 0.0,
    "shear": 0.0,
    "flipud": 0.0,
    "fliplr": 0.0,
    "mosaic": 0.0,
    "erasing": 0.0,
    "auto_augment": None,
}
"""Every setting that could change an image, switched off: several are on by default."""

Setting = tuple[dict[str, Any], str]
"""Arguments, and what they do otherwise than augury."""


def _grey(whole: float, inside: float) -> str:
    """Describe how a warp differs, as measured by tests/adapters/test_ultralytics.py."""
    return (
        f"by {whole:.4f} on average: what comes into view is grey instead of black ({inside:.4f} "
        "elsewhere); detect, segment and pose only"
    )


def _scaling(a: ours.scaling) -> Setting | None:
    if abs(a.low + a.high - 2) > 1e-9 or a.high >= 2:
        return None
    return {"scale": a.high - 1}, _grey(0.0538, 0.0044)


_TABLE: dict[type[ours.Augmentation], Callable[[Any], Setting | None]] = {
    ours.rotation: lambda a: ({"degrees": a.degrees}, _grey(0.0485, 0.0071)),
    ours.translation: lambda a: ({"translate": a.fraction}, _grey(0.0852, 0.0009)),
    ours.scaling: _scaling,
    ours.shear: lambda a: (
        {"shear": a.degrees},
        "shears both axes, on grey instead of black; detect, segment and pose only",
    ),
    ours.resized_crop: lambda a: (
        {"scale": 1 - a.area},
        "the crop's aspect ratio varies from 3:4 to 4:3; classify only",
    ),
    ours.brightness: lambda a: (
        {"hsv_v": a.strength},
        "by 0.0090 on average: rounds to 8 bits in HSV and clips the largest channel, not each",
    ),
    ours.horizontal_flip: lambda a: ({"fliplr": 0.5}, ""),
    ours.vertical_flip: lambda a: ({"flipud": 0.5}, ""),
    ours.flips: lambda a: ({"fliplr": 0.5, "flipud": 0.5}, ""),
}

_PROBABILITIES = {"fliplr", "flipud", "erasing"}
"""Settings that are probabilities; the others are always applied."""


class Ultralytics:
    """A stack of families as settings; ultralytics applies them in an order of its own."""

    name = "ultralytics"

    def __init__(self, shape: tuple[int, ...] | None = None) -> None:
        self.shape = shape

    def write(self, augmentation: ours.Augmentation) -> str:
        """Write YAML for ``cfg=``, the same as arguments, and what they leave out."""
        settings, notes, left = dict(_OFF), [], []
        taken: set[str] = set()
        for part in _stack(augmentation):
            found = _setting(part)
            if found is None or taken & set(found[0]):
                left.append(part)
                continue
            taken |= set(found[0])
            settings.update(found[0])
            notes += [f"{part}: {found[1]}"] if found[1] else []
        if left and not taken:
            raise AuguryError(
                f"ultralytics has no setting for {left[0]}; export it to albumentations or "
                "torchvision"
            )
        title = [
            f"{augmentation}, written by augury {__version__} for ultralytics: give this file as "
            "cfg=, or the arguments below. ultralytics applies them in an order of its own.",
            *(f"differs: {note}" for note in notes),
            *(f"NOT TRANSLATED: {part}: ultralytics has no setting for it" for part in left),
            "as arguments: " + " ".join(f"{key}={_text(v)}" for key, v in settings.items()),
        ]
        lines = [line for text in title for line in comment(text)]
        lines += [f"{key}: {_text(value)}" for key, value in settings.items()]
        return "\n".join(lines) + "\n"


def _stack(augmentation: ours.Augmentation) -> list[ours.Augmentation]:
    if isinstance(augmentation, ours.Then):
        return [inner for part in augmentation.parts for inner in _stack(part)]
    return [] if isinstance(augmentation, ours.identity) else [augmentation]


def _setting(part: ours.Augmentation) -> Setting | None:
    """Return the settings of a family, or of a family that is applied with a probability."""
    share = 1.0
    if isinstance(part, ours.Mixture):
        shares = zip(part.probabilities.tolist(), part.parts, strict=True)
        moving = [(s, p) for s, p in shares if not isinstance(p, ours.identity)]
        if len(moving) != 1:
            return None
        share, part = moving[0]
    made = _TABLE.get(type(part))
    found = None if made is None else made(part)
    if found is None or (share < 1 and not set(found[0]) <= _PROBABILITIES):
        return None
    return {key: value * share for key, value in found[0].items()} if share < 1 else found[0], (
        found[1]
    )


def _text(value: Any) -> str:
    return "null" if value is None else f"{value:.6g}"
