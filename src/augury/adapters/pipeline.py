"""What each step of a pipeline contributes: the pipeline without it."""

from __future__ import annotations

import copy
from typing import Any

import torch

from augury._base.errors import AuguryError
from augury.adapters.foreign import from_foreign
from augury.adapters.recognise import name_of, steps_of
from augury.adapters.usage import unique
from augury.augmentations import Augmentation, Then, identity

_CONVERSIONS = frozenset(
    {
        "ToTensor", "PILToTensor", "ToImage", "ToPureTensor", "ToDtype", "ConvertImageDtype",
        "ToPILImage", "Normalize", "ToTensorV2", "ToFloat", "Resize", "CenterCrop",
    }
)  # fmt: skip
"""Steps that prepare an image instead of augmenting it: never left out."""


def take_apart(pipeline: Any) -> dict[str, Augmentation]:
    """Return a pipeline, and the pipeline without each of its steps, by name.

    Parameters
    ----------
    pipeline
        A ``Compose`` of torchvision, Albumentations or audiomentations, an
        ``AugmentationSequential`` or ``nn.Sequential`` of kornia's, or an augmentation of augury
        of the form ``a >> b >> c``.

    Returns
    -------
    dict
        ``{"whole pipeline": …, "without RandomRotation(…)": …}``. Steps that only convert
        (``ToTensor``, ``Normalize``, …) stay in.

    Examples
    --------
    >>> from augury.augmentations import parse
    >>> take_apart(parse("rotation(15) >> flips"))
    {'whole pipeline': rotation(15) >> flips, 'without rotation(15)': flips,
     'without flips': rotation(15)}
    """
    if isinstance(pipeline, Augmentation):
        return _of_augury(pipeline)
    steps = steps_of(pipeline)
    if steps is None:
        raise AuguryError(
            "expected a pipeline with steps, such as v2.Compose([...]), "
            f"got {type(pipeline).__name__}; rank it with -a 'sampled(module:name)' instead"
        )
    left_out = [k for k, step in enumerate(steps) if type(step).__name__ not in _CONVERSIONS]
    if not left_out:
        raise AuguryError("the pipeline has no step that augments: it only converts")
    parts = {WHOLE: from_foreign(pipeline, name=WHOLE)}
    for k in left_out:
        name = unique(f"without {name_of(steps[k])}", parts)
        parts[name] = from_foreign(_without(pipeline, steps, k), name=name)
    return parts


WHOLE = "whole pipeline"


def _of_augury(pipeline: Augmentation) -> dict[str, Augmentation]:
    if not isinstance(pipeline, Then):
        raise AuguryError(f"expected a pipeline of several steps, a >> b, got {pipeline}")
    parts: dict[str, Augmentation] = {WHOLE: pipeline}
    for k, step in enumerate(pipeline.parts):
        rest = pipeline.parts[:k] + pipeline.parts[k + 1 :]
        parts[unique(f"without {step}", parts)] = Then.of(*rest) if rest[1:] else rest[0]
    return parts


def _without(pipeline: Any, steps: list[Any], k: int) -> Any:
    rest = steps[:k] + steps[k + 1 :]
    if isinstance(pipeline, torch.nn.Sequential):
        return type(pipeline)(*rest)
    if not rest:
        return identity()
    reduced = copy.copy(pipeline)
    reduced.transforms = rest
    return reduced
