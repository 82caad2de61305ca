"""Whatever a user holds in Python, as a `Dataset`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from torch.utils.data import TensorDataset

from augury._base.errors import AuguryError
from augury.data.dataset import Dataset
from augury.data.labels import encode
from augury.data.layout import arrange, to_array, to_tensor
from augury.data.readers.mapstyle import is_map_style, read
from augury.data.sampling import choose, sample_note
from augury.data.scaling import scale_pixels, span, standardise


def as_dataset(
    x: Any,
    y: Any = None,
    *,
    kind: str | None = None,
    classes: Sequence[object] | None = None,
    name: str = "data",
    max_examples: int | None = None,
    seed: int = 0,
) -> Dataset:
    """Bring examples and labels to one checked layout; what was done is kept in its notes.

    Arrays of bytes share their memory with the result. Pixels outside [0, 1] are scaled by the
    whole array's span; columns of vectors and channels of series get mean 0 and variance 1; a
    real target is centred, since K_Y = yyᵀ wants it so.

    Parameters
    ----------
    x
        Images N × height × width, with channels first or last; series N × channels × length;
        vectors N × d. NumPy arrays, tensors, lists, frames; or a map-style dataset of pairs
        (x, y) with arrays, tensors or Pillow images, torch's among them; or a `Dataset`.
    y
        Labels: whole numbers, words or truth values for classes, floats for a real target.
    kind
        ``"image"``, ``"series"`` or ``"vector"``, where the shape leaves a doubt.
    classes
        Names of the classes 0, 1, …
    name
        What to call the data in results.
    max_examples
        Keep at most so many, each class in proportion.
    seed
        Decides which are kept.

    Examples
    --------
    >>> import numpy as np
    >>> data = as_dataset(np.zeros((4, 8, 8), dtype=np.uint8), ["cat", "dog", "cat", "dog"])
    >>> data.kind, data.shape, data.classes
    ('image', (1, 8, 8), ('cat', 'dog'))
    """
    if isinstance(x, Dataset):
        if y is not None or kind not in (None, x.kind):
            raise AuguryError(f"a Dataset has its labels and its kind ({x.kind}); give it alone")
        return x if max_examples is None else x.subsample(max_examples, seed)
    if isinstance(x, str | PurePath):
        raise AuguryError(f"examples must be an array or a dataset; to read {x}, use augury.load")
    if isinstance(x, TensorDataset) and y is None and len(x.tensors) == 2:
        x, y = x.tensors
    if is_map_style(x, y):
        array, labels, kept = read(x, y, classes, max_examples, seed)
        array, notes = arrange(array, kind)
        low, high = span(array, kept)
    else:
        if y is None:
            raise AuguryError("labels are missing: give y beside x, or a dataset of pairs (x, y)")
        array, notes = arrange(to_array(x), kind)
        labels = encode(y, len(array), classes)
        low, high = span(array)
        kept = choose(labels.y, labels.count, max_examples, seed)
        array = array if kept is None else array[kept]
    total = len(labels.y)
    if array.ndim == 4:
        array, done = scale_pixels(array, low, high)
    else:
        array, done = standardise(array)
    notes += done
    target = labels.y if kept is None else labels.y[kept]
    if labels.classes is None:
        notes.append(f"the target was centred: {target.mean():g} was taken off")
        target = target - target.mean()
    if kept is not None:
        notes.append(sample_note(len(kept), total, seed, by_class=labels.classes is not None))
    return Dataset(to_tensor(array), to_tensor(target), labels.classes, name, tuple(notes))
