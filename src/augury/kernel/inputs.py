"""What users call X, as one checked tensor of examples."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data
from torch import Tensor

from augury._base.devices import HALF_FLOATS
from augury._base.errors import AuguryError, one_line
from augury._base.rng import Rng
from augury._base.text import count
from augury.augmentations import Augmentation, parse
from augury.data.dataset import Dataset
from augury.data.layout import are_images, has_channels_last

_LOOKED_AT = 64  # examples
_TYPES = (
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(*HALF_FLOATS, torch.float32, torch.float64),
)


def read_inputs(
    estimator: Any, X: Any, input_shape: tuple[int, ...] | None, *, reset: bool
) -> Tensor:
    """Bring X to ``(N, *shape)``: bytes stay bytes and stand for pixels in [0, 1].

    Parameters
    ----------
    estimator
        Whose `n_features_in_`, `shape_`, `bytes_` and `beyond_` are set (`reset`) or checked.
    X
        A 2-D array-like, or a tensor on any device; more dimensions are taken as the shape, and
        images of one channel need not have it.
    input_shape
        The shape of one example, where rows are flat.
    reset
        Whether this is the data to fit.
    """
    if isinstance(X, Dataset):
        raise AuguryError("X is a Dataset; pass what it holds: data.x as X, and data.labels() as y")
    if issparse(X):
        raise AuguryError(
            "X is a sparse matrix, but dense examples are needed; convert it with .toarray()"
        )
    if _is_nested(X):
        with one_line():
            X = np.array(X)
    if isinstance(X, Tensor):
        check_dense("X", X)
        flat, came = _check_tensor(estimator, X, reset=reset), X.shape[1:]
    else:
        came = X.shape[1:] if isinstance(X, np.ndarray) and X.ndim > 2 else ()
        rows: Any = X.reshape(len(X), math.prod(came)) if came else X
        with one_line():
            array: Any = validate_data(
                estimator, rows, reset=reset, dtype="numeric", ensure_all_finite=False
            )
        if array.dtype.kind not in "biuf":
            raise AuguryError(f"X must hold numbers, not {array.dtype}; convert it first")
        if array.dtype not in (np.uint8, np.float16, np.float32, np.float64):
            array = array.astype(np.float64)  # other numbers, or of another byte order
        array = np.ascontiguousarray(array)
        flat = torch.from_numpy(array if array.flags.writeable else array.copy())
        _check_finite(flat)
    if reset:
        if input_shape is None and len(came) == 3 and has_channels_last(tuple(came)):
            raise AuguryError(
                f"X looks like images with the channels last (examples of shape {tuple(came)}); "
                f"pass the channels first, or input_shape={tuple(came)} to use X as it is"
            )
        shape = _shape(tuple(came), input_shape, flat.shape[1])
        estimator.bytes_ = flat.dtype == torch.uint8
        images = len(came) == 2 and are_images(tuple(came), bytes_=estimator.bytes_)
        estimator.shape_ = _fitting(shape, input_shape, parse(estimator.augmentation), images)
        estimator.beyond_ = not estimator.bytes_ and float(flat.max()) > 1
    elif len(came) > 1 < len(estimator.shape_) and _sides(came) != _sides(estimator.shape_):
        raise AuguryError(
            f"examples of X have shape {tuple(came)}, but {type(estimator).__name__} was fitted on "
            f"examples of shape {estimator.shape_}"
        )
    elif estimator.beyond_ and flat.dtype == torch.uint8:
        raise AuguryError(
            "the model was fitted on floats greater than 1, but X contains bytes, which would be "
            "read as pixels in [0, 1]; pass floats on the same scale"
        )
    elif estimator.bytes_ and flat.dtype != torch.uint8 and float(flat.max()) > 1:
        raise AuguryError(
            "the model was fitted on bytes, which stand for pixels in [0, 1], but X holds floats "
            f"up to {float(flat.max()):g}; give bytes (uint8), or divide by 255"
        )
    return flat.reshape(len(flat), *estimator.shape_)


def _is_nested(X: Any) -> bool:
    """Return whether examples are lists of lists, as images are."""
    for _ in range(3):
        if not isinstance(X, list | tuple) or not len(X):
            return False
        X = X[0]
    return True


def _sides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return a shape without the single channel that images need not have."""
    return tuple(shape[1:] if len(shape) == 3 and shape[0] == 1 else shape)


def read_target(y: Any) -> Any:
    """Return y as an array, from a tensor on any device."""
    if y is None:
        raise AuguryError("requires y to be passed, but the target y is None")
    if not isinstance(y, Tensor):
        return y
    check_dense("y", y)
    plain = y.detach().cpu()
    return (plain.float() if plain.dtype == torch.bfloat16 else plain).numpy()


def check_dense(name: str, value: Tensor) -> None:
    """Raise unless a tensor holds plain real numbers."""
    if value.layout != torch.strided or value.is_nested:
        raise AuguryError(
            f"{name} is a {'nested' if value.is_nested else 'sparse'} tensor, but a dense one is "
            "needed; convert it with .to_dense()"
        )
    if value.dtype not in _TYPES:
        raise AuguryError(
            f"{name} must hold real numbers of 16 bits or more, or bytes, not {value.dtype}; "
            "convert it with .float()"
        )


def _check_tensor(estimator: Any, X: Tensor, *, reset: bool) -> Tensor:
    if X.dim() < 2 or not len(X):
        raise AuguryError(
            f"X must have at least one example and two dimensions, examples first; it has shape "
            f"{tuple(X.shape)}"
        )
    flat = X.detach().flatten(1)
    _check_finite(flat)
    if reset:
        estimator.n_features_in_ = flat.shape[1]
    elif flat.shape[1] != estimator.n_features_in_:
        raise AuguryError(
            f"X has {flat.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    return flat if flat.is_floating_point() or flat.dtype == torch.uint8 else flat.double()


def _check_finite(flat: Tensor) -> None:
    if flat.is_floating_point() and not bool(flat.isfinite().all()):
        rows = (~flat.isfinite()).any(1).nonzero().squeeze(1)
        raise AuguryError(
            f"X holds NaN or infinity in {count(len(rows), 'example')}, the first of them example "
            f"{int(rows[0])}; drop or repair those examples"
        )


def _shape(came: tuple[int, ...], asked: tuple[int, ...] | None, columns: int) -> tuple[int, ...]:
    sides = isinstance(asked, Sequence) and all(isinstance(s, Integral) for s in asked)
    if asked is not None and not sides:
        raise AuguryError(
            f"input_shape must be the shape of one example, such as (1, 28, 28), not {asked!r}"
        )
    shape = tuple(int(side) for side in (asked or came or (columns,)))
    if not 1 <= len(shape) <= 3 or min(shape) < 1 or math.prod(shape) != columns:
        raise AuguryError(
            f"input_shape={shape} has {count(math.prod(shape), 'value')} in "
            f"{count(len(shape), 'dimension')}, but "
            f"an example of X has {columns}; give the shape of one example, as (channels, height, "
            "width)"
        )
    return shape


def _fitting(
    shape: tuple[int, ...],
    asked: tuple[int, ...] | None,
    augmentation: Augmentation,
    images: bool,
) -> tuple[int, ...]:
    """Return the shape that an augmentation can take: of images of one channel, with it.

    Examples of two sides are taken as grey `images` first where they are such, else as series.
    """
    reasons, shapes = [], [shape]
    if len(shape) == 2:
        shapes.insert(0 if images else 1, (1, *shape))
    for each in shapes:
        try:
            augmentation.check(each)
        except AuguryError as error:
            reasons.append(str(error))
        else:
            return each
    hint = "" if asked else ", or pass the shape of one example as input_shape="
    raise AuguryError(f"{reasons[0]}{hint}")


@torch.no_grad()
def warn_of_range(augmentation: Augmentation, sample: Tensor) -> None:
    """Warn where pixels are beyond [0, 1] and the augmentation clips them."""
    x = sample[:_LOOKED_AT]
    if x.dim() != 4 or (float(x.min()) >= 0 and float(x.max()) <= 1):
        return
    made = augmentation.views(x, 1, Rng(0, torch.arange(len(x), device=x.device)))
    if float(made.min()) >= 0 and float(made.max()) <= 1:
        warnings.warn(
            f"{augmentation} clips pixels to [0, 1], but those of X range from {float(x.min()):g} "
            f"to {float(x.max()):g}; rescale X to [0, 1] first",
            UserWarning,
            stacklevel=4,
        )


def to_floats(x: Tensor, like: Tensor) -> Tensor:
    """Return examples as floats on the device and of the type of `like`; bytes become [0, 1]."""
    moved = x.to(like.device, non_blocking=True)
    return moved.to(like.dtype) / 255 if moved.dtype == torch.uint8 else moved.to(like.dtype)


def check_range(examples: Tensor, x: Tensor) -> None:
    """Raise if numbers of x are beyond the type that they were brought to."""
    if not bool(examples.isfinite().all()):
        raise AuguryError(
            f"X holds numbers up to {float(x.abs().max()):.0e}, too large for {examples.dtype}; "
            "rescale them to values near 1"
        )


def on_cpu(state: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a fitted estimator as they are pickled: tensors on the CPU."""
    for name in ("_weights", "_bias"):
        if name in state:
            state[name] = state[name].cpu()
    if "_psi" in state and state["_psi"].weights.is_cuda:
        state["_psi"] = copy.deepcopy(state["_psi"]).cpu()
    return state
