"""Transforms of other libraries as augmentations, recognised without importing a library."""

from __future__ import annotations

import functools
import inspect
import random
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.pixels import to_bytes
from augury.augmentations import Augmentation, Sampled, parse

_LONGEST_NAME = 60


@dataclass(frozen=True, repr=False)
class Foreign(Sampled):
    """A transform, or a whole pipeline, of another library.

    Each view of each example is a call of its own, with the generators that the library uses
    seeded for the call and put back after it. Normalisation inside a pipeline is undone after it,
    so that views stay in the units of the data.
    """

    name: str = ""

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, repr=False)
class ForeignImages(Foreign):
    """A transform of images."""

    kinds = frozenset({"image"})


@dataclass(frozen=True, repr=False)
class ForeignSeries(Foreign):
    """A transform of series."""

    kinds = frozenset({"series"})


def from_foreign(transform: Any, *, name: str = "", sample_rate: int = 16_000) -> Augmentation:
    """Return an augmentation that applies a transform of another library, or a function.

    Parameters
    ----------
    transform
        A transform or a pipeline of torchvision (v1 or v2), kornia, Albumentations,
        audiomentations or timm; a function of one example (an image as a tensor ``(channels,
        height, width)`` in [0, 1]); a spec; or an augmentation, which is returned as it is.
    name
        What it is called in results; by default made from its class and its settings.
    sample_rate
        What transforms of audiomentations are told, in samples per second.

    Examples
    --------
    >>> from_foreign("rotation(15)")
    rotation(15)
    """
    if isinstance(transform, Augmentation | str):
        return parse(transform)
    library = library_of(transform)
    if library == "audiomentations":
        called: Callable[..., Any] = OnSamples(transform, sample_rate)
        return ForeignSeries(called, name=name or name_of(transform))
    if library in _BRIDGES:
        return ForeignImages(_BRIDGES[library](transform), name=name or name_of(transform))
    if not callable(transform):
        raise AuguryError(
            "expected an augmentation, a spec such as 'rotation(15)', a function or a transform "
            f"of torchvision, kornia, Albumentations, audiomentations or timm, got {_a(transform)}"
        )
    if library is not None:
        raise AuguryError(
            f"{_a(transform)} comes from {library!r}, a library that augury does not know; wrap it "
            "in a function that takes and returns an image tensor (channels, height, width)"
        )
    plain = Sampled(transform)
    return plain if name in ("", repr(plain)) else Foreign(transform, name=name)


def library_of(transform: Any) -> str | None:
    """Return the library that a transform comes from; None for functions and the user's classes."""
    if isinstance(transform, types.FunctionType | types.MethodType | functools.partial):
        return None
    if isinstance(transform, torch.nn.Sequential) and _root(type(transform)) == "torch":
        inside = {library_of(step) for step in transform}
        return inside.pop() if len(inside) == 1 else None
    roots = [_root(cls) for cls in type(transform).__mro__]
    for root in roots:
        if root in _BRIDGES or root == "audiomentations":
            return root
    return roots[0] if _installed(roots[0]) else None


def _root(cls: type) -> str:
    return cls.__module__.partition(".")[0]


def _installed(root: str) -> bool:
    """Return whether a package is an installed library: neither Python's own nor the user's."""
    file = getattr(sys.modules.get(root), "__file__", None) or ""
    return bool({"site-packages", "dist-packages"} & set(Path(file).parts))


def _a(transform: Any) -> str:
    kind = type(transform).__name__
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


def steps_of(transform: Any) -> list[Any] | None:
    """Return the steps of a pipeline that applies all of them in order; None for anything else."""
    if type(transform).__name__ == "Compose" and library_of(transform) is not None:
        return list(transform.transforms)
    if isinstance(transform, torch.nn.Sequential):
        return list(transform)
    return None


def every_step(transform: Any) -> Iterator[Any]:
    """Yield a transform and all that it is made of."""
    yield transform
    inside = getattr(transform, "transforms", None)
    parts = inside if isinstance(inside, list | tuple) else steps_of(transform)
    for step in parts or ():
        yield from every_step(step)


def name_of(transform: Any) -> str:
    """Return a short name: the class and the settings that are not its defaults."""
    kind = type(transform).__name__
    steps = steps_of(transform)
    if steps is not None:
        inside = ", ".join(type(step).__name__ for step in steps)
    else:
        inside = ", ".join(_settings(transform))
    if not inside and steps is None:  # kornia keeps its settings elsewhere
        inside = " ".join(repr(transform).split()).partition("(")[2].removesuffix(")")
    room = _LONGEST_NAME - len(kind) - 2
    return f"{kind}({inside if len(inside) <= room else inside[: room - 1] + '…'})"


def _settings(transform: Any) -> Iterator[str]:
    for name, parameter in inspect.signature(type(transform)).parameters.items():
        value = getattr(transform, name, parameter.default)
        if isinstance(value, torch.nn.Module | Tensor) or callable(value):
            continue
        if repr(value) != repr(parameter.default):
            yield f"{name}={value}"


@dataclass(frozen=True)
class Normalisation:
    """What a pipeline's normalisation did, to be undone: ``x * std + mean``."""

    mean: Tensor
    std: Tensor

    @classmethod
    def of(cls, transform: Any) -> Normalisation | None:
        """Return the normalisation inside a transform, if there is one."""
        for step in every_step(transform):
            if type(step).__name__ == "Normalize":
                settings = getattr(step, "flags", None) or vars(step)  # flags are kornia's
                if getattr(step, "normalization", "standard") != "standard":
                    break
                mean, std = (
                    torch.as_tensor(settings[key], dtype=torch.float32).reshape(-1, 1, 1)
                    for key in ("mean", "std")
                )
                return cls(mean, std)
        return None

    def undo(self, x: Tensor) -> Tensor:
        """Return the values before normalisation."""
        return x * self.std.to(x) + self.mean.to(x)


class Bridge:
    """Calls a library's transform on one image tensor ``(channels, height, width)`` in [0, 1]."""

    def __init__(self, transform: Any) -> None:
        self.transform, self.normalisation = transform, Normalisation.of(transform)

    def __call__(self, image: Tensor) -> Any:
        out = self.call(image)
        if isinstance(out, Image.Image):
            out = torch.from_numpy(np.array(out)).reshape(image.shape[1], image.shape[2], -1)
            out = out.movedim(-1, 0)
        if not isinstance(out, Tensor):
            return out
        out = out.as_subclass(Tensor)
        if out.dtype == torch.uint8:
            out = out / 255
        return out if self.normalisation is None else self.normalisation.undo(out)

    def call(self, image: Tensor) -> Any:
        """Return what the transform makes of an image."""
        return self.transform(image)


class OnTensorOrPil(Bridge):
    """torchvision: v2 takes tensors; v1, and what converts from PIL images, takes PIL images."""

    def __init__(self, transform: Any) -> None:
        super().__init__(transform)
        steps = list(every_step(transform))
        old = any(type(step).__module__ == "torchvision.transforms.transforms" for step in steps)
        self.pil = old or any(type(s).__name__ in ("ToTensor", "PILToTensor") for s in steps)

    def call(self, image: Tensor) -> Any:
        return self.transform(to_pil(image) if self.pil else image)


class OnPil(Bridge):
    """timm: PIL images."""

    def call(self, image: Tensor) -> Any:
        return self.transform(to_pil(image))


class OnBatch(Bridge):
    """kornia: a batch of one."""

    def call(self, image: Tensor) -> Any:
        out = self.transform(image.unsqueeze(0))
        return out.squeeze(0) if isinstance(out, Tensor) else out


class OnArray(Bridge):
    """Albumentations: 8-bit arrays, by keyword; each step has generators of its own."""

    def call(self, image: Tensor) -> Any:
        steps = [s for s in every_step(self.transform) if hasattr(s, "set_random_seed")]
        before = [(s.seed, s.random_generator, s.py_random) for s in steps]
        try:
            for step in steps:  # one seed for all would make all steps draw alike
                step.random_generator = np.random.default_rng(random.getrandbits(64))
                step.py_random = random.Random(random.getrandbits(64))
            array = to_bytes(image).movedim(0, -1).contiguous().cpu().numpy()
            out = self.transform(image=array)["image"]
        finally:
            for step, (seed, generator, python) in zip(steps, before, strict=True):
                step.seed, step.random_generator, step.py_random = seed, generator, python
        return torch.from_numpy(out).movedim(-1, 0) if isinstance(out, np.ndarray) else out


class OnSamples:
    """audiomentations: float32 samples, one channel without its axis, and the sample rate."""

    def __init__(self, transform: Any, sample_rate: int) -> None:
        self.transform, self.sample_rate = transform, sample_rate

    def __call__(self, series: Tensor) -> Any:
        samples = series.detach().cpu().to(torch.float32).numpy()
        given = samples[0] if len(samples) == 1 else samples
        out = self.transform(samples=given.copy(), sample_rate=self.sample_rate)
        return torch.from_numpy(np.atleast_2d(out))


def to_pil(image: Tensor) -> Image.Image:
    """Return an image tensor as a PIL image, grey or in colours."""
    array = to_bytes(image).movedim(0, -1).contiguous().cpu().numpy()
    return Image.fromarray(array[..., 0] if array.shape[-1] == 1 else array)


_BRIDGES: dict[str, type[Bridge]] = {
    "torchvision": OnTensorOrPil,
    "kornia": OnBatch,
    "albumentations": OnArray,
    "timm": OnPil,
}
