"""What is done to inputs before anything learns from them: fitted once, applied to new data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import flat
from augury.data.gaps import fill_gaps
from augury.data.labels import Labels
from augury.data.layout import KINDS, arrange, to_array
from augury.data.scaling import check_span, moments, scale_pixels, span, standardise

PIXELS = ("bytes", "binary", "unit", "span")
"""Pixels as bytes; 0 and 1 as black and white; values in [0, 1]; others, scaled by their span."""

_SIDES = {"image": 3, "sound": 2, "series": 2, "vector": 1}
_MOST_COLUMNS = 1_000_000
_FAINT = 0.1
"""Floats that stay below this are scaled: of the 256 levels of a pixel, they would use 25."""


@dataclass(frozen=True)
class Preparation:
    """How inputs and labels were prepared, in plain values that are saved with a model.

    Attributes
    ----------
    kind
        ``"image"``, ``"sound"``, ``"series"`` or ``"vector"``.
    shape
        The shape of one prepared example.
    classes
        The names of the classes 0, 1, …; None for a real target.
    centre
        The mean that was subtracted from a real target.
    pixels
        For images, one of `PIXELS`.
    span
        The values that became 0 and 1, where `pixels` is ``"span"``.
    mean, deviation
        For vectors, series and sound: of each column or channel.
    columns
        For a table: each feature's column, and the word that a one-hot feature stands for.
    label
        For a table: the column of the labels.
    rate
        For sound: samples per second.

    Examples
    --------
    >>> import augury
    >>> import numpy as np
    >>> x = np.array([[1.0, 20.0], [3.0, 40.0], [1.0, 40.0], [3.0, 20.0]])
    >>> prepared = augury.as_dataset(x, ["a", "b", "a", "b"]).preparation
    >>> prepared.transform(np.array([[2.0, 50.0]]))
    array([[0., 2.]], dtype=float32)
    """

    kind: str
    shape: tuple[int, ...]
    classes: tuple[str, ...] | None = None
    centre: float = 0.0
    pixels: str | None = None
    span: tuple[float, float] | None = None
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()
    columns: tuple[tuple[str, str | None], ...] = ()
    label: str | None = None
    rate: int | None = None

    @classmethod
    def fit(
        cls, x: np.ndarray, low: float, high: float, labels: Labels, rate: int | None = None
    ) -> Preparation:
        """Find out what must be done to examples in their final layout.

        Parameters
        ----------
        x
            ``(N, C, H, W)``, ``(N, C, L)`` or ``(N, d)``.
        low, high
            The span of all values: of those of `x`, and of those that were not chosen.
        labels
            Of these examples.
        rate
            Samples a second, where they are sound.
        """
        found = cls(
            {4: "image", 3: "series" if rate is None else "sound", 2: "vector"}[x.ndim],
            tuple(x.shape[1:]),
            labels.classes,
            0.0 if labels.classes is not None or labels.tags else float(labels.y.mean()),
            rate=rate,
        )
        if x.ndim < 4:
            mean, deviation = moments(x)
            return replace(found, mean=tuple(mean.tolist()), deviation=tuple(deviation.tolist()))
        if x.dtype in (np.uint8, np.bool_):
            return replace(found, pixels="binary" if high == 1 else "bytes")
        if low >= 0 and (high == 0 or _FAINT <= high <= 1):
            return replace(found, pixels="unit")
        check_span(low, high)
        base = low if low < 0 or low > high - low else 0.0  # far from 0, it is no black
        return replace(found, pixels="span", span=(base, high if high > base else base + 1))

    def notes(self) -> list[str]:
        """Describe what the preparation does to values, one sentence each."""
        if self.pixels == "binary":
            return ["pixels of 0 and 1 were taken as black and white"]
        if self.span is not None:
            return [f"pixels from {self.span[0]:g} to {self.span[1]:g} were scaled to [0, 1]"]
        if self.kind == "image":
            return []
        if self.kind == "sound":
            return ["recordings were scaled by one factor to a mean square of 1 over all of them"]
        what = "column" if self.kind == "vector" else "channel"
        note = f"each {what} was standardised to mean 0 and variance 1"
        constant = self.deviation.count(0.0)
        if constant:
            note += f"; {constant} constant {what}{'s' if constant > 1 else ''} became 0"
        return [note]

    def apply(self, x: np.ndarray) -> np.ndarray:
        """Scale examples that are in their final layout: bytes, or float32."""
        if self.kind == "image":
            return scale_pixels(x, self.pixels or "unit", self.span)
        return standardise(x, np.array(self.mean), np.array(self.deviation))

    def transform(self, x: Any, *, kind: str | None = None) -> np.ndarray:
        """Prepare new examples as those before: the same layout, the same scale.

        Parameters
        ----------
        x
            Anything array-like.
        kind
            ``"image"``, ``"sound"``, ``"series"`` or ``"vector"``; by default that of the
            examples before.

        Returns
        -------
        out
            ``(N, *shape)``: bytes, which stand for pixels in [0, 1], or float32.
        """
        array = to_array(x)
        if kind is None and not (self.kind == "image" and array.ndim == 2):
            kind = self.kind
        array, _ = arrange(array, kind)
        if array.ndim == 3:
            array, _ = fill_gaps(array)
        if array.ndim - 1 != len(self.shape):
            raise AuguryError(
                f"the model expects {self.kind} data of shape {self.shape}, but this has shape "
                f"{array.shape[1:]}"
            )
        low, high = span(array)
        if self.kind == "image":
            self._check_pixels(array, low, high)
        elif len(self.mean) != array.shape[1]:
            raise AuguryError(
                f"the model expects {len(self.mean)} columns (or channels), but this data has "
                f"{array.shape[1]}; give the columns that it was fitted on, and --label for a "
                "table that has one"
            )
        if array.shape[1:] != self.shape:
            raise AuguryError(
                f"the model expects examples of shape {self.shape}, but these have "
                f"{array.shape[1:]}; for a directory of images give --size, for a table --label"
            )
        out = self.apply(array)
        if out.dtype != np.uint8 and not np.isfinite(out).all():
            raise AuguryError(
                "some values are too far from the data that the model was fitted on to be scaled "
                "in the same way; check the units of the columns"
            )
        return out

    def _check_pixels(self, x: np.ndarray, low: float, high: float) -> None:
        """Raise if pixels are on another scale than those before, as 0 to 255 for 0 to 1."""
        as_they_are = x.dtype in (np.uint8, np.bool_) or (low >= 0 and high <= 1)
        if self.span is None:
            if as_they_are:
                return
            taken = "bytes or values in [0, 1] were taken"
        else:
            base, top = self.span
            wide = top - base
            in_unit = low >= 0 and high <= 1 < top
            near = high - base <= 2 * wide and base - low <= wide and high - low >= wide / 10
            if not in_unit and near:
                return
            taken = self.notes()[0]
        raise AuguryError(
            f"the scale of the pixels differs from the model's: these go from {low:g} to {high:g}, "
            f"and for the model {taken}; save both in the same way"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, which JSON can hold."""
        return {
            name: _listed(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, values: Any) -> Preparation:
        """Return the preparation that `to_dict` wrote, checked once and for all."""
        known = [field.name for field in fields(cls)]
        _need(isinstance(values, Mapping), "it is not a mapping")
        strange = [key for key in values if key not in known]
        _need(not strange, f"it has an unknown entry {strange[:1]}")
        _need(values.get("kind") in KINDS, f"its kind is {values.get('kind')!r}")
        kind = values["kind"]
        shape = _tuple(values, "shape", lambda v: type(v) is int and 0 < v < 2**31)
        _need(len(shape) == _SIDES[kind], f"its shape {shape} is not that of {kind} data")
        classes = values.get("classes")
        if classes is not None:
            classes = _tuple(values, "classes", lambda v: isinstance(v, str))
            _need(len(set(classes)) == len(classes) >= 2, "its classes are not two or more")
        label, centre = values.get("label"), values.get("centre", 0.0)
        rate = values.get("rate")
        _need((kind == "sound") == (rate is not None), "its kind and its sample rate disagree")
        _need(
            rate is None or (type(rate) is int and 0 < rate < 2**31),
            "its rate is not a whole number",
        )
        _need(label is None or isinstance(label, str), "its label is not text")
        _need(_is_finite(centre), "its centre is not a number")
        found = cls(kind, shape, classes, float(centre), label=label, rate=rate)
        if kind == "image":
            pixels, ends = values.get("pixels"), values.get("span")
            _need(pixels in PIXELS, f"its pixels are {pixels!r}")
            _need((pixels == "span") == (ends is not None), "its pixels and its span disagree")
            if ends is not None:
                ends = _tuple(values, "span", _is_finite)
                _need(len(ends) == 2 and ends[0] < ends[1], "its span is not two numbers in order")
            return replace(found, pixels=pixels, span=ends)
        mean = _tuple(values, "mean", _is_finite)
        deviation = _tuple(values, "deviation", lambda v: _is_finite(v) and v >= 0)
        _need(len(mean) == len(deviation) == shape[0], "its means are not one for each column")
        columns = tuple(_pair(column) for column in _tuple(values, "columns", lambda v: True))
        _need(len(columns) in (0, len(mean)), "its columns are not one for each mean")
        return replace(found, mean=mean, deviation=deviation, columns=columns)


def _listed(value: Any) -> Any:
    return [_listed(part) for part in value] if isinstance(value, tuple) else value


def _need(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AuguryError(f"its preparation of data is damaged: {flat(otherwise)}")


def _is_finite(value: Any) -> bool:
    if type(value) not in (int, float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer past the largest float
        return False


def _tuple(values: Mapping[str, Any], name: str, fits: Any) -> tuple[Any, ...]:
    found = values.get(name, ())
    _need(isinstance(found, list | tuple), f"its {name} is not a list")
    _need(len(found) <= _MOST_COLUMNS, f"its {name} has {len(found):,} entries")
    _need(all(fits(value) for value in found), f"its {name} has an entry that does not fit")
    return tuple(found)


def _pair(column: Any) -> tuple[str, str | None]:
    fits = isinstance(column, list | tuple) and len(column) == 2 and isinstance(column[0], str)
    _need(fits and (column[1] is None or isinstance(column[1], str)), "its columns are not pairs")
    return column[0], column[1]
