"""What a reader is asked for and what it returns, and the one place where its failures end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from augury._base.errors import AuguryError
from augury._base.given import as_whole
from augury._base.text import cause, flat

if TYPE_CHECKING:
    from augury.data.preparation import Preparation

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Source:
    """Examples and labels as they were found, before they are checked and scaled.

    Attributes
    ----------
    x
        The examples, as one array.
    y
        Their labels, one for each: as they were found, or as `Labels` where the reader encoded
        them to choose examples; None where new examples came without.
    classes
        Names of the classes 0, 1, …, where the data has them.
    kind, task
        ``"image"``, ``"sound"``, ``"series"`` or ``"vector"``, and ``"classification"`` or
        ``"regression"``, where the reader knows.
    notes
        What was done or left out, one sentence each.
    columns
        A table's features: the column's name, and the word that a one-hot feature stands for.
    missing
        For a table: which values were missing and have been filled in.
    label
        The table's column of labels.
    index
        The examples' numbers in the user's data, where the reader has chosen some of them.
    total
        How many examples there were, where the reader has chosen some of them.
    groups
        What each example belongs to, such as a speaker, where that was asked for.
    rate
        The samples of a second of sound.
    files
        The file that each new example is from, below the directory or as the table lists it.
    """

    x: np.ndarray
    y: Any = None
    classes: tuple[str, ...] | None = None
    kind: str | None = None
    task: str | None = None
    notes: tuple[str, ...] = ()
    columns: tuple[tuple[str, str | None], ...] = ()
    missing: np.ndarray | None = None
    label: str | None = None
    index: np.ndarray | None = None
    total: int = 0
    groups: Any = None
    rate: int | None = None
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    """What to read: the options of `augury.load`, as each reader may need them.

    Attributes
    ----------
    label
        The column to predict.
    size
        Height and width for images.
    task
        ``"classification"``, ``"regression"`` or None.
    max_examples, seed
        How many examples to keep at most, and the seed that decides which.
    skip_bad
        Whether images that cannot be read are left out.
    progress
        Called with (done, total) while images are decoded.
    like
        How a model's data was prepared, where this is new data for it: labels may be missing,
        and the test part is read where there is one.
    new
        Whether this is new data for a model.
    group
        What says which examples belong together: a column, an array's name, or a regular
        expression with one group for the names of files.
    rate, seconds
        The sample rate and the length that clips of sound get.
    """

    label: str | None = None
    size: tuple[int, int] | None = None
    task: str | None = None
    max_examples: int | None = None
    seed: int = 0
    skip_bad: bool = False
    progress: Progress | None = None
    like: Preparation | None = None
    new: bool = False
    group: str | None = None
    rate: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", as_whole("seed", self.seed))
        if self.max_examples is not None:
            object.__setattr__(self, "max_examples", as_whole("max_examples", self.max_examples))


@contextmanager
def reading(what: object) -> Iterator[None]:
    """Turn whatever goes wrong while a file is read into one line that names the file."""
    try:
        yield
    except AuguryError:
        raise
    except OSError as error:
        raise AuguryError(f"cannot read {flat(what)}: {cause(error)}") from error
    except MemoryError as error:
        raise AuguryError(
            f"{flat(what)} does not fit in memory; use a smaller part of it"
        ) from error
    except Exception as error:  # a damaged file can make its reader raise anything at all
        reason = f"{type(error).__name__}: {cause(error)}"
        raise AuguryError(
            f"{flat(what)} cannot be read: it is damaged, or not what its name says ({reason})"
        ) from error
