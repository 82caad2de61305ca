"""(x, y): examples in memory, in one layout, checked once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from augury.data.preparation import Preparation
from augury.data.sampling import choose, sample_note


@dataclass(frozen=True)
class Dataset:
    """Examples and labels, ready to be streamed.

    Attributes
    ----------
    x
        ``(N, *shape)``: images as channels × height × width, series as channels × length,
        vectors as d values. Bytes (uint8) stand for pixels in [0, 1] and are kept as bytes.
    y
        ``(N,)`` class numbers (int64), or real targets (float64) of mean 0.
    classes
        The classes' names, or None where the target is real-valued.
    name
        What the user called it.
    notes
        What was done to it on the way in (scaled, subsampled, skipped), one sentence each.
    preparation
        How it was prepared, to prepare new examples in the same way.
    available
        How many examples there were before some were drawn; 0 if these are all.
    groups
        ``(N,)`` numbers of what examples belong to, such as a speaker: examples of one group are
        never on both sides of a split. None where all are independent.
    """

    x: Tensor
    y: Tensor
    classes: tuple[str, ...] | None
    name: str = "data"
    notes: tuple[str, ...] = ()
    preparation: Preparation | None = None
    available: int = 0
    groups: Tensor | None = None

    @property
    def total(self) -> int:
        """The number of examples that there are, of which these may be a sample."""
        return max(self.available, len(self))

    @property
    def kind(self) -> str:
        """``"image"``, ``"series"`` or ``"vector"``."""
        return {4: "image", 3: "series", 2: "vector"}[self.x.dim()]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one example."""
        return tuple(self.x.shape[1:])

    def __len__(self) -> int:
        return len(self.x)

    def labels(self) -> np.ndarray:
        """Return the labels as people write them: the classes' names, or the real target."""
        if self.classes is not None:
            return np.array(self.classes)[self.y.numpy()]
        return self.y.numpy() + (0.0 if self.preparation is None else self.preparation.centre)

    def batch(self, index: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
        """Return the examples of these indices as floats on a device."""
        # Channels-last arrays are kept as they came, as a view: made contiguous a batch at a time.
        x = self.x[index].contiguous().to(device, non_blocking=True)
        return x.to(dtype) / 255 if x.dtype == torch.uint8 else x.to(dtype)

    def targets(self) -> Tensor:
        """Return the labels as a matrix Y with K_Y = YYᵀ: one-hot classes, or the real target."""
        if self.classes is None:
            return self.y.to(torch.float64).reshape(len(self), -1)
        return torch.nn.functional.one_hot(self.y, len(self.classes)).to(torch.float64)

    def subsample(self, most: int, seed: int) -> Dataset:
        """Keep at most `most` examples, each class in proportion (at least two of each); noted.

        The kept examples stay in their order, and the same seed keeps the same ones. A real
        target is centred again.
        """
        classes = None if self.classes is None else len(self.classes)
        kept = choose(self.y.numpy(), classes, most, seed)
        if kept is None:
            return self
        index = torch.from_numpy(kept)
        note = sample_note(len(kept), len(self), seed, by_class=classes is not None)
        y, preparation = self.y[index], self.preparation
        if classes is None:
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
            available=self.total,
            groups=None if self.groups is None else self.groups[index],
        )
