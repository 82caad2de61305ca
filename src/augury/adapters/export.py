"""An augmentation, written for another library."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from augury._base.errors import AuguryError
from augury._base.given import as_list, is_one_of
from augury._base.text import listed, shown
from augury.adapters.to_albumentations import Albumentations, AlbumentationsJson
from augury.adapters.to_audiomentations import Audiomentations
from augury.adapters.to_augury import Augury
from augury.adapters.to_kornia import Kornia
from augury.adapters.to_timm import Timm
from augury.adapters.to_torchvision import Torchvision
from augury.adapters.to_ultralytics import Ultralytics
from augury.augmentations import Augmentation, parse

_DIALECTS = (
    Torchvision,
    Kornia,
    Albumentations,
    AlbumentationsJson,
    Timm,
    Ultralytics,
    Audiomentations,
    Augury,
)

FORMATS = {dialect.name: dialect for dialect in _DIALECTS}
"""What an augmentation can be written as, by name."""


def export(
    augmentation: str | Augmentation, to: str, image_shape: Sequence[int] | None = None
) -> str:
    """Write an augmentation as code, or as settings, of another library.

    Parameters
    ----------
    augmentation
        An augmentation or its spec.
    to
        ``"torchvision"``, ``"kornia"``, ``"albumentations"``, ``"albumentations-json"``,
        ``"timm"``, ``"ultralytics"``, ``"audiomentations"`` or ``"augury"``.
    image_shape
        The shape of one image, ``(channels, height, width)``. A few operations are written more
        plainly where it is known, such as a crop that is resized to it.

    Returns
    -------
    str
        Code that defines ``augment`` and runs as it stands. Comments name what differs from
        augury, with the mean difference measured on photographs of 64 pixels; what the library
        lacks is written as a function.

    Examples
    --------
    >>> print(export("horizontal_flip", to="albumentations"))
    # horizontal_flip, written by augury ... for Albumentations.
    # augment(image=array)["image"] takes and returns (height, width, channels), uint8 or
    # float32 in [0, 1].
    # Workers of a DataLoader repeat each other's draws unless they have
    # worker_init_fn=lambda _: augment.set_random_seed(None); a number as seed makes all
    # steps draw alike.
    import albumentations as A
    <BLANKLINE>
    augment = A.Compose([A.HorizontalFlip(p=0.5)], p=1.0)
    <BLANKLINE>
    """
    shape = None if image_shape is None else _check_shape(image_shape)
    if not is_one_of(to, FORMATS):
        near = difflib.get_close_matches(str(to).lower(), FORMATS, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]}?" if near else "."
        raise AuguryError(f"unknown format {shown(to)}{hint} Known formats: {', '.join(FORMATS)}")
    return FORMATS[to](shape).write(parse(augmentation, imports=True))


def _check_shape(shape: Sequence[int]) -> tuple[int, ...]:
    sides = tuple(as_list("image_shape", shape))
    if len(sides) not in (2, 3) or not all(isinstance(side, int) and side > 0 for side in sides):
        raise AuguryError(
            f"image_shape is (channels, height, width) or (height, width), whole numbers over 0, "
            f"not {listed(map(shown, sides))}"
        )
    return sides
