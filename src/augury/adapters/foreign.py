"""Transforms of other libraries as augmentations, recognised without importing a library."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.pixels import to_bytes
from augury._base.text import kind_of
from augury.adapters.recognise import every_step, library_of, name_of
from augury.augmentations import Augmentation, Sampled, parse


@dataclass(frozen=True, repr=False)
class Foreign(Sampled):
    """A transform, or a whole pipeline, of another library.

    Each view of each example is a call of its own, with the generators that the library uses
    seeded for the call and put back after it. Normalisation inside a pipeline is undone after it,
    so that views stay in the units of the data.
    """

    name: str = ""
    origin: str = ""
    """Where it was loaded from, ``module:name``; empty for what was passed as an object."""

    @property
    def path(self) -> str:
        return self.origin

    def __repr__(self) -> str:
        return f"sampled({self.origin})" if self.origin else self.name


@dataclass(frozen=True, repr=False)
class ForeignImages(Foreign):
    """A transform of images."""

    kinds = frozenset({"image"})


@dataclass(frozen=True, repr=False)
class ForeignSeries(Foreign):
    """A transform of series."""

    kinds = frozenset({"series", "sound"})

    def at_rate(self, rate: int, level: float) -> Augmentation:
        if not isinstance(self.fn, OnSamples):
            return self
        return replace(self, fn=OnSamples(self.fn.transform, rate, level))


def from_foreign(
    transform: Any, *, name: str = "", path: str = "", sample_rate: int = 16_000
) -> Augmentation:
    """Return an augmentation that applies a transform of another library, or a function.

    Parameters
    ----------
    transform
        A transform or a pipeline of torchvision (v1 or v2), kornia, Albumentations,
        audiomentations or timm; a function of one example (an image as a tensor ``(channels,
        height, width)`` in [0, 1]); a spec; or an augmentation, which is returned as it is.
    name
        What it is called in results; by default made from its class and its settings.
    path
        Where it was loaded from, as ``module:name``; it is then called ``sampled(module:name)``.
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
        return ForeignSeries(called, name=name or name_of(transform), origin=path)
    if library in _BRIDGES:
        called = _BRIDGES[library](transform)
        return ForeignImages(called, name=name or name_of(transform), origin=path)
    if not callable(transform):
        raise AuguryError(
            "expected an augmentation, a spec such as 'rotation(15)', a function or a transform "
            "of torchvision, kornia, Albumentations, audiomentations or timm, got "
            f"{kind_of(transform)}"
        )
    if library is not None:
        raise AuguryError(
            f"{kind_of(transform)} comes from {library!r}, a library that augury does not know; "
            "wrap it in a function that takes and returns an image tensor (channels, height, width)"
        )
    plain = Sampled(transform)
    if not name and path in ("", plain.path):
        return plain
    return Foreign(transform, name=name, origin=path)


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
                how = getattr(step, "normalization", "standard")  # of Albumentations
                if how != "standard":
                    raise AuguryError(
                        f"Normalize with normalization={how!r} cannot be undone, but views must "
                        "stay in the units of the images; leave it out of the pipeline"
                    )
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

    usage: ClassVar[str] = "image = {}(image)"
    """How a training script calls such a transform."""

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

    usage = "image = {}(image)  # a PIL image"

    def call(self, image: Tensor) -> Any:
        return self.transform(to_pil(image))


class OnBatch(Bridge):
    """kornia: a batch of one."""

    usage = "images = {}(images)  # a batch of float tensors"

    def call(self, image: Tensor) -> Any:
        out = self.transform(image.unsqueeze(0))
        return out.squeeze(0) if isinstance(out, Tensor) else out


class OnArray(Bridge):
    """Albumentations: 8-bit arrays, by keyword; each step has generators of its own."""

    usage = 'image = {}(image=image)["image"]  # an array, channels last'

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
    """audiomentations: float32 samples, one channel without its axis, and the sample rate.

    A value of 1 in the series stands for `level` in the recordings, which are in [-1, 1].
    """

    def __init__(self, transform: Any, sample_rate: int, level: float = 1.0) -> None:
        self.transform, self.sample_rate, self.level = transform, sample_rate, level
        self.usage = f"samples = {{}}(samples=samples, sample_rate={sample_rate})"

    def __call__(self, series: Tensor) -> Any:
        samples = series.detach().cpu().to(torch.float32).numpy() * np.float32(self.level)
        given = samples[0] if len(samples) == 1 else samples
        out = self.transform(samples=given, sample_rate=self.sample_rate)
        return torch.from_numpy(np.atleast_2d(out)) / self.level


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
