"""What a section of the reproduction's page shows: claims, tables and plots, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["holds", "holds weaker", "does not hold", "could not be checked"]


@dataclass(frozen=True)
class Claim:
    """One claim: in words, the paper's number, ours with its spread, and the verdict.

    `own` marks a claim that the paper does not make: one of its claims, checked by a method or a
    measure of ours.
    """

    words: str
    paper: str
    ours: str
    verdict: Verdict
    own: bool = False


@dataclass(frozen=True)
class Series:
    """Points of a plot, joined or not, with a band or bars of ± `spread`; `names` label points."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    spread: tuple[float, ...] = ()
    joined: bool = True
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plot:
    """One pair of axes."""

    title: str
    xlabel: str
    ylabel: str
    series: tuple[Series, ...]
    log: bool = False
    ticks: tuple[str, ...] = ()
    """Names of x = 0, 1, 2, … where x counts things that have names."""


@dataclass(frozen=True)
class PageTable:
    """Rows of text under columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Section:
    """One part of the paper: what it claims, what was measured, and where we differ on purpose."""

    experiment: str
    title: str
    words: str
    claims: tuple[Claim, ...] = ()
    tables: tuple[PageTable, ...] = ()
    plots: tuple[Plot, ...] = ()
    differences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Difference:
    """A place where we differ on purpose: its number, its experiment, a title and the reason."""

    number: int
    experiment: str
    title: str
    words: str
