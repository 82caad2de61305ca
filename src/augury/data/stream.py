"""Examples that are gone through shard after shard, a block of them in memory at a time."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury.data.dataset import Dataset
from augury.data.layout import to_tensor
from augury.data.preparation import Preparation
from augury.data.sampling import choose, sample_note

if TYPE_CHECKING:
    from augury.data.readers.parts import Part

_BLOCK = 1 << 22  # bytes of examples that are read at once: each core of a CPU holds its own
_BLOCK_GPU = 1 << 25  # the same where one job at a time is done
_ROWS = 65_536  # examples of a file that are one shard; longer files are several
SAMPLE = 20_000
"""Examples that the preparation of a stream is fitted on."""


class Stream(ABC):
    """Examples in shards: a job goes through one of them.

    Shards do not depend on who works on them, so that sums over them, added in their order, are
    the same to the last bit for any number of workers.

    Attributes
    ----------
    about
        A `Dataset` of some examples or all, which says what the examples are.
    y
        ``(N,)`` class numbers or real targets of all examples.
    bounds
        Shard k has the examples from ``bounds[k]`` to ``bounds[k + 1]``.
    """

    about: Dataset
    y: Tensor
    bounds: tuple[int, ...]

    def __len__(self) -> int:
        """Return the number of examples."""
        return self.bounds[-1]

    @property
    def shards(self) -> range:
        """The numbers of the shards."""
        return range(len(self.bounds) - 1)

    @abstractmethod
    def read(self, start: int, stop: int) -> Tensor:
        """Return examples as a `Dataset` holds them; they are of one shard."""

    @abstractmethod
    def digest(self) -> str:
        """Return what sets the data apart from other data, for a journal."""

    def blocks(self, shard: int, device: torch.device) -> Iterator[tuple[Tensor, Dataset]]:
        """Yield a shard block by block, with the examples' indices; the next is read meanwhile.

        The blocks stay in main memory, in a size that suits the device that will work on them.
        """
        first, last = self.bounds[shard], self.bounds[shard + 1]
        each = max(1, self.about.x[:1].nbytes)
        most = _BLOCK if device.type == "cpu" else _BLOCK_GPU
        starts = [*range(first, last, max(1, most // each)), last]
        with ThreadPoolExecutor(1) as reader:
            pairs = list(itertools.pairwise(starts))
            coming = reader.submit(self.read, *pairs[0])
            for k, (start, stop) in enumerate(pairs):
                x = coming.result()
                if k + 1 < len(pairs):
                    coming = reader.submit(self.read, *pairs[k + 1])
                block = replace(
                    self.about, x=x, y=self.y[start:stop], groups=None, missing=None, available=0
                )
                yield torch.arange(start, stop), block

    def targets(self, index: Tensor) -> Tensor:
        """Return rows of the matrix Y of all examples: see `Dataset.targets`."""
        if self.about.tags is not None:
            return self.y[index] - self.y.mean(0)
        y = self.y[index]
        if self.about.classes is None:
            return y.to(torch.float64).unsqueeze(1)
        return torch.nn.functional.one_hot(y.long(), len(self.about.classes)).to(torch.float64)


class InMemory(Stream):
    """A `Dataset` in shards of so many rows."""

    def __init__(self, data: Dataset, rows: int) -> None:
        self.about, self.y = data, data.y
        self.bounds = (*range(0, len(data), rows), len(data))

    def read(self, start: int, stop: int) -> Tensor:
        return self.about.x[start:stop]

    def digest(self) -> str:
        found = blake2b(self.about.x.numpy().tobytes(), digest_size=16)
        found.update(self.y.numpy().tobytes())
        return found.hexdigest()


class Shards(Stream):
    """Data on disk, larger than memory perhaps: made by `augury.open_shards`.

    Parameters
    ----------
    parts
        The files, in order; those with many rows are several shards.
    y
        The labels of all examples, in the smallest type that holds them.
    sample
        Some examples, in memory, by whose preparation all are prepared.
    """

    def __init__(self, parts: tuple[Part, ...], y: Tensor, sample: Dataset) -> None:
        self.parts, self.y, self.about = parts, y, sample
        ends = list(itertools.accumulate(part.rows for part in parts))
        cuts = [
            start
            for end, part in zip(ends, parts, strict=True)
            for start in range(end - part.rows, end, _ROWS)
        ]
        self.bounds = (*cuts, ends[-1])
        self._ends = np.array(ends)

    @property
    def preparation(self) -> Preparation:
        """How examples are prepared: fitted on the sample."""
        assert self.about.preparation is not None
        return self.about.preparation

    def read(self, start: int, stop: int) -> Tensor:
        part, first = self._part(start)
        return self._prepared(part.take(slice(start - first, stop - first)))

    def draw(self, most: int, seed: int) -> Dataset:
        """Return at most `most` examples, each class in proportion; others are not read."""
        y = self.y.numpy()
        classes = None if self.about.classes is None else len(self.about.classes)
        kept = choose(y, classes, most, seed)
        notes = self.about.notes
        if kept is not None:
            notes = (*notes, sample_note(len(kept), len(y), seed, by_class=classes is not None))
        kept = np.arange(len(y)) if kept is None else kept
        x = torch.cat(
            [
                self._prepared(part.take(rows))
                for part, rows in zip(self.parts, self._split(kept), strict=True)
                if len(rows)
            ]
        )
        labels = self.y[torch.from_numpy(kept)]
        labels = labels.double() if classes is None else labels.long()
        return replace(self.about, x=x, y=labels, notes=notes, available=len(y))

    def digest(self) -> str:
        found = blake2b(self.y.numpy().tobytes(), digest_size=16)
        found.update("\n".join(part.digest() for part in self.parts).encode())
        return found.hexdigest()

    def _prepared(self, x: np.ndarray) -> Tensor:
        return to_tensor(self.preparation.transform(x, kind=self.about.kind))

    def _part(self, row: int) -> tuple[Part, int]:
        k = int(np.searchsorted(self._ends, row, side="right"))
        return self.parts[k], int(self._ends[k]) - self.parts[k].rows

    def _split(self, rows: np.ndarray) -> list[np.ndarray]:
        """Return sorted rows by part, counted from its first."""
        parts = np.split(rows, np.searchsorted(rows, self._ends)[:-1])
        firsts = [0, *self._ends[:-1]]
        return [part - first for part, first in zip(parts, firsts, strict=True)]


def compact(y: np.ndarray, classes: int | None) -> Tensor:
    """Return labels in the smallest type that holds them: a byte each for up to 256 classes."""
    if classes is None:
        return to_tensor(np.asarray(y, dtype=np.float64))
    types = (torch.uint8, 256), (torch.int16, 2**15), (torch.int32, 2**31)
    return to_tensor(y).to(next(kind for kind, most in types if classes <= most))


def check_rows(parts: tuple[Part, ...], what: object) -> None:
    """Raise if there is no example."""
    if not sum(part.rows for part in parts):
        raise AuguryError(f"the shards of {what} contain no examples")
