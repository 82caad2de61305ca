"""Dataclasses to plain JSON values and back, checked against their annotations."""

from __future__ import annotations

import json
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import flat

T = TypeVar("T")

_ODD = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}  # JSON has no such numbers
_LARGEST = 10**300
"""Numbers beyond this overflow where they are added or drawn."""
_WORDS = {
    float: "a number",
    int: "an integer",
    str: "text",
    bool: "true or false",
    tuple: "a list",
    list: "a list",
    dict: "an object",
}


def to_plain(value: Any) -> Any:
    """Return dataclasses, tuples and numbers as JSON can hold them."""
    if is_dataclass(value) and not isinstance(value, type):
        kept = (f.name for f in fields(value) if f.metadata.get("json", True))
        return {name: to_plain(getattr(value, name)) for name in kept}
    if isinstance(value, Mapping):
        return {str(key): to_plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def from_plain(wanted: type[T], value: Any, where: str) -> T:
    """Make a `wanted` from plain values; raise in one line that says where they do not fit.

    A dataclass may have a method `_problem` that returns what is wrong with its values as a whole,
    empty if nothing is. A field of any values with ``metadata={"facts": ...}`` is checked by that
    `TypedDict`, and kept as it is.
    """
    return _build(wanted, value, where)


def _build(wanted: Any, value: Any, where: str) -> Any:
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
    if wanted is Any:
        return value
    if is_dataclass(wanted):
        return _dataclass(wanted, value, where)
    if typing.is_typeddict(wanted):
        return _facts(wanted, value, where)
    if origin in (typing.Union, types.UnionType):
        return _first_that_fits(inner, value, where)
    if origin is typing.Literal:
        return value if value in inner else _refuse(where, " or ".join(map(repr, inner)), value)
    if origin is tuple and isinstance(value, list):
        if len(inner) != 2 or inner[1] is not Ellipsis:
            if len(inner) != len(value):
                _refuse(where, f"a list of {len(inner)}", value)
            return tuple(
                _build(t, v, f"{where}[{k}]")
                for k, (t, v) in enumerate(zip(inner, value, strict=True))
            )
        return tuple(_build(inner[0], v, f"{where}[{k}]") for k, v in enumerate(value))
    if origin is list and isinstance(value, list):
        return [_build(inner[0], v, f"{where}[{k}]") for k, v in enumerate(value)]
    if origin is dict and isinstance(value, dict):
        return {k: _build(inner[1], v, f"{where}[{k!r}]") for k, v in value.items()}
    if wanted is float and isinstance(value, str) and value in _ODD:
        return _ODD[value]
    if wanted in (float, int) and isinstance(value, float | int) and abs(value) > _LARGEST:
        return _refuse(where, "a number of at most 1e300", value)
    if wanted is str and isinstance(value, str):
        return value.encode("utf-8", "replace").decode()  # half a character would not be printed
    if wanted is float and type(value) is int:
        return float(value)
    if isinstance(origin or wanted, type) and type(value) is (origin or wanted):
        return value
    return _refuse(where, _WORDS.get(origin or wanted, str(wanted)), value)


def _first_that_fits(choices: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in choices:
        return None
    rest = [choice for choice in choices if choice is not type(None)]
    for choice in rest[:-1]:
        try:
            return _build(choice, value, where)
        except AuguryError:
            continue
    return _build(rest[-1], value, where)


def _dataclass(wanted: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        _refuse(where, "an object", value)
    hints = typing.get_type_hints(wanted)
    known = {f.name: f for f in fields(wanted) if f.init and f.metadata.get("json", True)}
    for name in value:
        if name not in known:
            raise AuguryError(f"{where} has a field {name!r} that augury does not know")
    for name, field in known.items():
        if name not in value and field.default is MISSING and field.default_factory is MISSING:
            raise AuguryError(f"{where} lacks the field {name!r}")
    for name, field in known.items():
        if "facts" in field.metadata and name in value:
            hints[name] = _list_of(hints[name], field.metadata["facts"])
    made = wanted(**{k: _build(hints[k], v, f"{where}.{k}") for k, v in value.items()})
    problem = made._problem() if hasattr(made, "_problem") else ""
    if problem:
        raise AuguryError(f"{where}: {problem}")
    return made


def _facts(wanted: Any, value: Any, where: str) -> Any:
    """Return an object as it is, if what is known of its keys holds; others may be there too."""
    if not isinstance(value, dict):
        _refuse(where, "an object", value)
    for name in sorted(wanted.__required_keys__ - value.keys()):
        raise AuguryError(f"{where} lacks the field {name!r}")
    for name, hint in typing.get_type_hints(wanted).items():
        if name in value:
            _build(hint, value[name], f"{where}.{name}")
    return value


def _list_of(hint: Any, facts: Any) -> Any:
    return tuple[facts, ...] if typing.get_origin(hint) is tuple else facts


def _refuse(where: str, expected: str, value: Any) -> typing.NoReturn:
    got = flat(json.dumps(value, ensure_ascii=False))  # in the words of the file
    raise AuguryError(f"{where}: expected {expected}, got {got[:60]}{'…' * (len(got) > 60)}")
