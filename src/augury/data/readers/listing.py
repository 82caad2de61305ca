"""Files with labels, chosen, opened and read in one way whatever they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import flat
from augury.data.groups import match_groups
from augury.data.labels import Labels
from augury.data.readers.bad import BadFiles, Unreadable, relative
from augury.data.sampling import select
from augury.data.source import Request

T = TypeVar("T")


@dataclass(frozen=True)
class Listing:
    """Files of one kind, as a directory or a table lists them.

    Attributes
    ----------
    root, shown
        The directory that their names begin in, and what to call it in messages.
    noun
        What they hold: ``"image"`` or ``"recording"``.
    files
        Their paths.
    y
        Their labels; None where new files have none.
    classes
        Names of the classes 0, 1, …, where the labels are such numbers.
    notes
        What was done or left out so far, one sentence each.
    groups
        What each file belongs to, where a table says it.
    """

    root: Path
    shown: str
    noun: str
    files: Sequence[Path]
    y: np.ndarray | None
    classes: tuple[str, ...] | None = None
    notes: Sequence[str] = ()
    groups: np.ndarray | None = None


class Reading:
    """The files of a listing that a request asks for, opened and then read two at a time.

    Parameters
    ----------
    listing
        All files.
    request
        How many to keep, how they are grouped, and whether bad ones are skipped.
    """

    def __init__(self, listing: Listing, request: Request) -> None:
        self.listing, self.request = listing, request
        self.files, self.groups = listing.files, listing.groups
        self.labels: Any = listing.y
        self.notes = list(listing.notes)
        self.bad = BadFiles(listing.root, listing.shown, request.skip_bad, listing.noun)
        if self.groups is None and request.group is not None:
            names = [relative(file, listing.root) for file in self.files]
            self.groups = match_groups(request.group, names)
        if listing.y is not None and not request.new:
            self._choose(listing.y)

    def _choose(self, y: np.ndarray) -> None:
        self.labels, kept, left_out = select(y, len(y), self.listing.classes, self.request)
        self.notes += left_out
        if kept is not None:
            self.files = [self.files[i] for i in kept]
            self.groups = None if self.groups is None else self.groups[kept]

    def open(self, read_header: Callable[[Path], T]) -> dict[int, T]:
        """Return what the header of each file says, by the number of the file."""
        found: dict[int, T] = {}
        for number, file in enumerate(self.files):
            try:
                found[number] = read_header(file)
            except Unreadable as error:
                self.bad.add(file, error)
        if not found:
            raise self._none(len(self.files))
        return found

    def read(self, numbers: Sequence[int], one: Callable[[int], T]) -> Iterator[tuple[int, T]]:
        """Yield the number of each file that can be read, in order, with what `one` returns."""

        def attempt(number: int) -> T | Unreadable:
            try:
                return one(number)
            except Unreadable as error:
                return error

        any_read = False
        pool = ThreadPoolExecutor(2)
        try:
            results = zip(numbers, pool.map(attempt, numbers), strict=True)
            for done, (number, result) in enumerate(results, 1):
                if isinstance(result, Unreadable):
                    self.bad.add(self.files[number], result)
                else:
                    any_read = True
                    yield number, result
                if self.request.progress is not None:
                    self.request.progress(done, len(numbers))
        finally:  # also after Ctrl-C: what has not begun is not waited for
            pool.shutdown(cancel_futures=True)
        if not any_read:
            raise self._none(len(numbers))

    def take_labels(self, numbers: np.ndarray) -> Any:
        """Return the labels of these files, or None."""
        labels = self.labels
        return labels.take(numbers) if isinstance(labels, Labels) else _at(labels, numbers)

    def take_groups(self, numbers: np.ndarray) -> np.ndarray | None:
        """Return the groups of these files, or None."""
        return _at(self.groups, numbers)

    def take_names(self, numbers: np.ndarray) -> tuple[str, ...]:
        """Return what to call these files, where they are new."""
        if not self.request.new:
            return ()
        root = self.listing.root
        return tuple(relative(self.files[number], root) for number in numbers.tolist())

    def _none(self, count: int) -> AuguryError:
        where = flat(self.listing.shown)
        return AuguryError(f"none of the {count:,} {self.listing.noun}s in {where} can be read")


def _at(values: np.ndarray | None, numbers: np.ndarray) -> np.ndarray | None:
    return None if values is None else values[numbers]
