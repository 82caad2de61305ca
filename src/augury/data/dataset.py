"""(x, y): examples in memory, in one layout, checked once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.given import as_whole
from augury._base.text import flat
from augury.data.preparation import Preparation
from augury.data.sampling import choose, sample_note


@dataclass(frozen=True)
class Dataset:
    """Examples and labels, ready to be streamed.

    Attributes
    ----------
    x
        ``(N, *shape)``: images as channels × height × width, series as channels × length, sound
        as one channel × samples, vectors as d values. Bytes (uint8) stand for pixels in [0, 1] and
        are kept as bytes.
    y
        ``(N,)`` class numbers (int64), or real targets (float64) of mean 0.
    classes
        The names of the classes, or None if the target is real-valued.
    name
        The name of the data.
    notes
        What was changed when it was read (scaled, subsampled, skipped), one sentence each.
    preparation
        How it was prepared, to prepare new examples in the same way.
    available
        The number of examples before sampling; 0 if these are all.
    groups
        ``(N,)`` group numbers, such as one per speaker: examples of the same group are never split
        between training and testing. None if all examples are independent.
    missing
        ``(N, d)``: for a table, which values were missing and have been filled in; None if none.
    tags
        The names of the labels of a multi-label target, where `y` is ``(N, labels)`` of 0 and 1.
    """

    x: Tensor
    y: Tensor
    classes: tuple[str, ...] | None
    name: str = "data"
    notes: tuple[str, ...] = ()
    preparation: Preparation | None = None
    available: int = 0
    groups: Tensor | None = None
    missing: Tensor | None = None
    tags: tuple[str, ...] | None = None

    @property
    def total(self) -> int:
        """The number of examples that there are, of which these may be a sample."""
        return max(self.available, len(self))

    @property
    def kind(self) -> str:
        """``"image"``, ``"sound"``, ``"series"`` or ``"vector"``."""
        if self.rate is not None:
            return "sound"
        return {4: "image", 3: "series", 2: "vector"}[self.x.dim()]

    @property
    def rate(self) -> int | None:
        """Samples a second, where the examples are sound."""
        return None if self.preparation is None else self.preparation.rate

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one example."""
        return tuple(self.x.shape[1:])

    @property
    def task(self) -> str:
        """``"classification"``, ``"regression"`` or ``"multi-label"``."""
        if self.tags is not None:
            return "multi-label"
        return "regression" if self.classes is None else "classification"

    @property
    def outputs(self) -> int:
        """How many numbers a network gives for an example."""
        return len(self.classes or self.tags or (None,))

    def __len__(self) -> int:
        return len(self.x)

    def labels(self) -> np.ndarray:
        """Return the labels as people write them: the classes' names, or the real target."""
        if self.classes is not None:
            return np.array(self.classes)[self.y.numpy()]
        if self.tags is not None:
            return self.y.numpy()
        return self.y.numpy() + (0.0 if self.preparation is None else self.preparation.centre)

    def batch(self, index: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
        """Return the examples of these indices as floats on a device."""
        # Channels-last arrays are kept as they came, as a view: made contiguous a batch at a time.
        x = self.x[index].contiguous().to(device, non_blocking=True)
        return x.to(dtype) / 255 if x.dtype == torch.uint8 else x.to(dtype)

    def targets(self) -> Tensor:
        """Return the labels as a matrix Y with K_Y = YYᵀ: one-hot classes, or the real target."""
        if self.tags is not None:
            return self.y - self.y.mean(0)
        if self.classes is None:
            return self.y.to(torch.float64).reshape(len(self), -1)
        return torch.nn.functional.one_hot(self.y, len(self.classes)).to(torch.float64)

    def subsample(self, most: int, seed: int) -> Dataset:
        """Keep at most `most` examples, each class in proportion (at least two of each); noted.

        The kept examples stay in their order, and the same seed keeps the same ones. A real
        target is centred again.
        """
        classes = None if self.classes is None else len(self.classes)
        most, seed = as_whole("most", most), as_whole("seed", seed)
        kept = choose(self.y.numpy(), classes, most, seed)
        if kept is None:
            return self
        note = sample_note(len(kept), len(self), seed, by_class=classes is not None)
        return self._take(torch.from_numpy(kept), note, self.total)

    def distinct(self) -> Dataset:
        """Leave out images and series that are copies of earlier ones; noted.

        A copy on the other side of a split is predicted from memory, which augmentation only
        disturbs. Rows of a table are all kept: equal rows may well be different examples.
        """
        if self.kind == "vector":
            return self
        rows = self.x.numpy()
        digests = [blake2b(row.tobytes()).digest() for row in rows]
        first = {digest: k for k, digest in reversed(list(enumerate(digests)))}
        if len(first) == len(self):
            return self
        if len(first) == 1:
            raise AuguryError(f"expected different examples, but all {len(self):,} are the same")
        kept = torch.tensor(sorted(first.values()))
        copies = len(self) - len(kept)
        what = "is a copy and was" if copies == 1 else "are copies and were"
        note = f"{copies:,} of {len(self):,} examples {what} left out"
        originals = torch.tensor([first[digest] for digest in digests])
        if other := int((self.y != self.y[originals]).reshape(len(self), -1).any(1).sum()):
            note += f"; {other:,} had another label than the example that was kept"
        found = self._take(kept, note, round(self.total * len(kept) / len(self)))
        if self.classes is None:
            return found
        left, y = _renumber(found.y)  # a class may have had copies alone
        if len(left) == 1:
            raise AuguryError(
                f"without copies, every example is of the class {flat(self.classes[int(left)])!r}; "
                "two classes are needed"
            )
        return replace(found, y=y, classes=tuple(self.classes[c] for c in left.tolist()))

    def _take(self, index: Tensor, note: str, available: int) -> Dataset:
        y, preparation = self.y[index], self.preparation
        if self.task == "regression":
            mean = y.mean()
            y = y - mean
            if preparation is not None:
                preparation = replace(preparation, centre=preparation.centre + float(mean))
        return replace(
            self,
            x=self.x[index],
            y=y,
            notes=(*self.notes, note),
            preparation=preparation,
            available=available,
            groups=None if self.groups is None else _renumber(self.groups[index])[1],
            missing=None if self.missing is None else self.missing[index],
        )


def _renumber(numbers: Tensor) -> tuple[Tensor, Tensor]:
    """Return the distinct numbers, in order, and the place of each number among them."""
    distinct, places = torch.unique(numbers, return_inverse=True)
    return distinct, places
