"""What a setting may be: a test of one value and the words for it, shared by fits and files."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from augury._base.errors import AuguryError

_SHOWN = 60  # characters of a value that an error repeats


@dataclass(frozen=True)
class Rule:
    """A test of one value, with the words that an error says it by.

    Parameters
    ----------
    expected
        Completes "must be …".
    accepts
        Whether a value passes; it must not raise, whatever the value.
    """

    expected: str
    accepts: Callable[[Any], bool]

    def check(self, name: str, value: Any) -> None:
        """Raise one clear line unless the value passes."""
        if not self.accepts(value):
            shown = repr(value)
            shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
            raise AuguryError(f"{name} must be {self.expected}, not {shown}")

    def __or__(self, other: Rule) -> Rule:
        """Accept what either accepts."""
        return Rule(
            f"{self.expected} or {other.expected}",
            lambda value: self.accepts(value) or other.accepts(value),
        )


def whole(low: int, high: int) -> Rule:
    """Accept whole numbers from `low` to `high`, of Python's or NumPy's types."""
    return Rule(
        f"a whole number from {low} to {high:,}",
        lambda value: _is(value, Integral) and low <= value <= high,
    )


def real(low: float, high: float) -> Rule:
    """Accept numbers from `low` to `high`; neither NaN nor infinity."""
    return Rule(
        f"a number from {low:g} to {high:g}",
        # not by float(value), which a whole number may be too large for
        lambda value: _is(value, Real) and low <= value <= high,
    )


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def one_of(options: Iterable[Any]) -> Rule:
    """Accept one of a few strings or numbers."""
    known = tuple(options)
    shown = ", ".join(map(repr, known))
    return Rule(
        shown if len(known) == 1 else f"one of {shown}",
        lambda value: isinstance(value, str | Real) and value in known,
    )


def sequence_of(rule: Rule, *, least: int = 1, most: int = 4096) -> Rule:
    """Accept lists, tuples and flat arrays of what `rule` accepts."""
    return Rule(
        f"a sequence of {least} to {most:,} values, each {rule.expected}",
        lambda value: (
            (isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim == 1))
            and least <= len(value) <= most
            and all(rule.accepts(item) for item in value)
        ),
    )


def text(most: int) -> Rule:
    """Accept strings of at most `most` characters."""
    return Rule(
        f"text of at most {most:,} characters",
        lambda value: isinstance(value, str) and len(value) <= most,
    )


NONE = Rule("None", lambda value: value is None)
FLAG = Rule("true or false", lambda value: isinstance(value, bool))
NAN = Rule("NaN", lambda value: isinstance(value, float) and math.isnan(value))


def check_all(rules: dict[str, Rule], values: dict[str, Any]) -> None:
    """Raise one clear line for the first of the values that its rule does not accept."""
    for name, rule in rules.items():
        rule.check(name, values[name])
