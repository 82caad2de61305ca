"""Any function of the user's as an augmentation."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import random
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.given import is_one_of
from augury._base.pixels import to_bytes
from augury._base.rng import Rng
from augury._base.text import kind_of, shown
from augury.augmentations.base import Augmentation


@dataclass(frozen=True, repr=False)
class Sampled(Augmentation):
    """A function that returns one random view of one example.

    Parameters
    ----------
    fn
        Called with one example. If it has a parameter named ``rng``, it is passed a
        `numpy.random.Generator`; otherwise the global generators of Python, NumPy and torch are
        seeded before the call and restored after it, so that its draws, too, depend only on the
        seed and the example.
    takes
        What `fn` takes and returns: a ``"tensor"`` (an image as channels × height × width in
        [0, 1]), an ``"array"`` (the same in NumPy, an image as height × width × channels) or a
        ``"pil"`` image.
    """

    fn: Callable[..., Any]
    takes: Literal["tensor", "array", "pil"] = "tensor"
    _wants_rng: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise AuguryError(f"Sampled: expected a function of an example, got {shown(self.fn)}")
        if not is_one_of(self.takes, ("tensor", "array", "pil")):
            raise AuguryError(
                f"Sampled(takes={shown(self.takes)}): expected 'tensor', 'array' or 'pil'"
            )
        try:
            wants = "rng" in inspect.signature(self.fn).parameters
        except (TypeError, ValueError):  # a builtin without a signature
            wants = False
        object.__setattr__(self, "_wants_rng", wants)

    @classmethod
    def load(cls, path: str, takes: str = "tensor") -> Sampled:
        """Import ``module:function``."""
        return cls(load_object(path), takes)  # type: ignore[arg-type]  # checked at construction

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.key(n)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        n, b = params.shape[0], x.shape[1]
        keys = params.expand(n, b).tolist()
        examples = x.expand(n, *x.shape[1:])
        rows = [
            torch.stack([self._one(examples[i, j], keys[i][j]) for j in range(b)]) for i in range(n)
        ]
        out = torch.stack(rows)
        if not out.isfinite().all() and x.isfinite().all():
            raise AuguryError(f"{self} returned values that are not finite; return finite numbers")
        if x.dim() == 5 and x.min() >= 0 and x.max() <= 1:
            self._check_levels(out)
        return out

    def _check_levels(self, views: Tensor) -> None:
        """Raise if views of images in [0, 1] are in other units, as after a normalisation."""
        if float(((views < -0.5) | (views > 1.5)).float().mean()) > _MOST_OUTSIDE:
            raise AuguryError(
                f"{self} returned values from {float(views.min()):.3g} to {float(views.max()):.3g} "
                "for images in [0, 1]; remove the normalisation, or return values in [0, 1]"
            )

    def _one(self, example: Tensor, key: int) -> Tensor:
        given = _TO[self.takes](example)
        try:
            out = self._call(given, key)
        except Exception as error:  # a user's function may raise anything
            raise AuguryError(f"{self} failed: {blame(error)}") from error
        turned = isinstance(out, np.ndarray) and example.dim() == 3
        out = _back(out, example)
        if not isinstance(out, Tensor):
            what = f"an array of {out.dtype}" if isinstance(out, np.ndarray) else _kind(out)
            raise AuguryError(f"{self} returned {what}; return {_GIVEN[self.takes]}")
        if out.shape != example.shape:
            raise AuguryError(
                f"{self} changed an example's shape from {tuple(example.shape)} to "
                f"{tuple(out.shape)}; return an example of the same shape"
                + (" (an array is read as height × width × channels)" if turned else "")
            )
        return out

    def _call(self, given: Any, key: int) -> Any:
        if self._wants_rng:
            return self.fn(given, rng=np.random.default_rng(key & 0xFFFF_FFFF_FFFF_FFFF))
        with _seeded(key):
            return self.fn(given)

    @property
    def path(self) -> str:
        """Where the function is found, ``module:name``; empty where that is not known."""
        name = getattr(self.fn, "__qualname__", type(self.fn).__qualname__)
        module = getattr(self.fn, "__module__", type(self.fn).__module__)
        return f"{module}:{name}"

    def __repr__(self) -> str:
        suffix = "" if self.takes == "tensor" else f",{self.takes}"
        return f"sampled({self.path}{suffix})"


def load_object(path: str) -> Any:
    """Import ``module:name``, from the current directory too; raise one line if that fails."""
    module_name, _, name = path.partition(":")
    if not module_name or not name:
        raise AuguryError(f"expected module:function, got {path!r}")
    folder = str(Path.cwd())
    if folder not in sys.path:  # a module beside the data is found, as with `python -m`
        sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:  # a user's module may raise anything
        raise AuguryError(f"cannot load {path}: {blame(error)}") from error
    return found


def blame(error: BaseException) -> str:
    """Return what a user's code raised on one line, with the place: ``ValueError: no (mine.py:5)``.

    The place is the innermost one outside of installed libraries.
    """
    what, at = str(error), ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if not file.startswith(_LIBRARIES) and not _INSTALLED & set(Path(file).parts):
            at = f" ({Path(file).name}:{line})"
    if isinstance(error, SyntaxError) and error.filename:
        what, at = error.msg, f" ({Path(error.filename).name}:{error.lineno})"
    what = " ".join(what.split())[:160]
    return type(error).__name__ + (f": {what}" if what else "") + at


_MOST_OUTSIDE = 0.15  # of the values: noise of a standard deviation of 0.3 stays below 0.05
_LIBRARIES = ("<", sysconfig.get_path("stdlib"), str(Path(__file__).parents[1]))
_INSTALLED = {"site-packages", "dist-packages"}


@contextlib.contextmanager
def _seeded(key: int) -> Iterator[None]:
    """Seed the global generators for a call that may use them, and restore them."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002  # restored below
    devices = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices):
        try:
            # torch.manual_seed would also queue a seed for each device that may be used one day,
            # with a traceback: half of the time of a view
            for generator in (
                torch.default_generator,
                *(torch.cuda.default_generators[device] for device in devices),
            ):
                generator.manual_seed(key & 0x7FFF_FFFF_FFFF_FFFF)
            random.seed(key)
            np.random.seed(key & 0xFFFF_FFFF)  # noqa: NPY002  # the user's function may use it
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002  # as it was


def _to_array(x: Tensor) -> np.ndarray:
    array = x.detach().cpu().numpy()
    return np.moveaxis(array, 0, -1) if x.dim() == 3 else array


def _to_pil(x: Tensor) -> Image.Image:
    if x.dim() != 3:
        raise AuguryError(f"expected an image for PIL, got an example of shape {tuple(x.shape)}")
    array = _to_array(to_bytes(x))
    return Image.fromarray(array.squeeze(-1) if array.shape[-1] == 1 else array)


_TO: dict[str, Callable[[Tensor], Any]] = {
    "tensor": torch.clone,  # a function may work in place
    "array": lambda x: _to_array(x).copy(),
    "pil": _to_pil,
}


_GIVEN = {"tensor": "a tensor", "array": "an array of numbers", "pil": "a PIL image"}


def _kind(out: Any) -> str:
    return kind_of(out)


def _back(out: Any, like: Tensor) -> Any:
    """Convert a result to a tensor like the example; return what cannot be one as it is."""
    if isinstance(out, Image.Image):
        out = np.asarray(out)
    if isinstance(out, np.ndarray) and out.dtype.kind in "biuf":
        if like.dim() == 3:
            out = np.moveaxis(out if out.ndim == 3 else out[..., None], -1, 0)
        out = torch.from_numpy(np.array(out))  # a copy: it may be read-only
    if isinstance(out, Tensor):
        return out.to(like) / 255 if out.dtype == torch.uint8 else out.to(like)
    return out
