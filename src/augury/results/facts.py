"""What results say of data, plans and rounds, and what is wrong with values read from a file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, TypedDict

Warned = Literal["few-examples", "few-groups", "many-classes", "unequal-classes", "few-in-class"]


class DataFacts(TypedDict, total=False):
    """What is known of a data set; `augury.data.describe` writes it."""

    name: str
    kind: str | None
    task: str | None
    examples: int
    shape: list[int]
    rate: int
    classes: list[Any] | None
    tags: list[Any] | None
    counts: list[int] | None
    notes: list[Any] | None
    warnings: list[tuple[Warned, str]] | None


class PlanFacts(TypedDict, total=False):
    """What is known of a planned training; `TrainingPlan.describe` writes it."""

    epochs: int | None
    examples: int
    side: int | None
    network: str | None
    assumed: list[str] | None


class EffortFacts(TypedDict, total=False):
    """What is known of the work that was done."""

    examples: int


class RoundFacts(TypedDict):
    """What is known of one round of a search."""

    round: str
    policies: int
    examples: int


def bad_interval(low: float | None, high: float | None) -> str:
    """Return what is wrong with the ends of an interval; one that is not a number is unknown."""
    if (low is None) != (high is None):
        return "expected both ends of an interval, or null for both, got one"
    if low is not None and high is not None and low > high:
        return f"expected an interval whose low is at most its high, got {low:g} to {high:g}"
    return ""


def bad_classes(per_class: Mapping[str, tuple[float, float, float]]) -> str:
    """Return what is wrong with the intervals of the classes."""
    found = ((name, bad_interval(low, high)) for name, (_, low, high) in per_class.items())
    return next((f"class {name!r}: {problem}" for name, problem in found if problem), "")


def bad_probability(value: float | None) -> str:
    """Return what is wrong with a probability."""
    if value is not None and not math.isnan(value) and not 0 <= value <= 1:
        return f"expected a probability from 0 to 1, got {value:g}"
    return ""


def bad_time(seconds: float) -> str:
    """Return what is wrong with a time."""
    known = math.isfinite(seconds) and seconds >= 0
    return "" if known else f"seconds must be finite and 0 or more, got {seconds}"


def bad_word(name: str, value: str, known: tuple[str, ...]) -> str:
    """Return what is wrong with a word of a few that are known."""
    return "" if value in known else f"{name} must be one of {', '.join(known)}, got {value!r}"


def below_zero(values: object, *names: str) -> str:
    """Return which of these values is negative."""
    found = ((name, getattr(values, name)) for name in names)
    return next((f"{name} must be 0 or more, got {v:g}" for name, v in found if v and v < 0), "")
