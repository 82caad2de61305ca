"""Augmentations as callables: on PIL images, NumPy arrays and tensors, one or a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset, get_worker_info

from augury._base.errors import AuguryError
from augury._base.given import as_index, as_whole, is_one_of
from augury._base.pixels import to_bytes
from augury._base.rng import Rng
from augury._base.text import kind_of, shown
from augury.augmentations.base import DIMENSIONS, Augmentation


class Transform:
    """An augmentation with a seed: a picklable callable that is safe in `DataLoader` workers.

    With an index, a draw is a function of (seed, epoch, index) alone: any number of workers, any
    batch size and any order give the same views. Without one, the calls of a process are counted,
    and the count takes the place of the index; in a worker, the seed that the `DataLoader` gave it
    is mixed in, so that no two workers draw alike.

    Parameters
    ----------
    augmentation
        An augmentation.
    seed
        Any integer.
    kind
        ``"image"``, ``"series"``, ``"sound"`` or ``"vector"``; by default the first of them that
        the augmentation works on.

    Examples
    --------
    >>> import numpy as np
    >>> from augury.augmentations import rotation
    >>> transform = rotation(15).transform(seed=0)
    >>> image = np.zeros((32, 32, 3), dtype=np.uint8)
    >>> transform(image, index=7).shape
    (32, 32, 3)
    """

    def __init__(self, augmentation: Augmentation, seed: int = 0, kind: str | None = None) -> None:
        self.augmentation, self.seed = augmentation, as_whole("seed", seed)
        self.kind = _kind_of(augmentation, kind)
        self._count = 0
        # shared memory, so that workers that live for several epochs see the epoch that is set
        self._epoch = torch.zeros((), dtype=torch.int64).share_memory_()

    @property
    def epoch(self) -> int:
        """The number of the epoch, which every draw depends on."""
        return int(self._epoch)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, for new draws in all workers."""
        self._epoch.fill_(as_whole("epoch", epoch, 0, 2**63 - 1))
        self._count = 0

    def __call__(self, image: Any, index: int | Sequence[int] | Tensor | None = None) -> Any:
        """Return one view of an image, or of each image of a batch or a list, in the type it has.

        Parameters
        ----------
        image
            A PIL image (mode L or RGB); an array of height × width, height × width × channels or
            a batch of these; a tensor of height × width, channels × height × width or a batch of
            these. Integers are 8-bit levels; floats lie in [0, 1].
        index
            The position of the image in the data, or the positions of the images of a batch.
        """
        worker = None if index is not None else get_worker_info()

        def rng(size: int, device: torch.device) -> Rng:
            if index is None:
                at = torch.arange(self._count, self._count + size, device=device)
                self._count += size
            else:
                at = as_index(index).to(device)
                if len(at) != size:
                    raise AuguryError(f"expected {size} indices for {size} images, got {len(at)}")
            drawn = Rng(self.seed, at).child(self.epoch)
            return drawn if worker is None else drawn.child(worker.seed & 0x7FFF_FFFF)

        if isinstance(image, list | tuple):
            at = [None] * len(image) if index is None else as_index(index)
            if len(at) != len(image):
                raise AuguryError(f"expected {len(image)} indices, got {len(at)}")
            return [self(one, i) for one, i in zip(image, at, strict=True)]
        return _view(self.augmentation, image, self.kind, rng)

    def __repr__(self) -> str:
        return f"Transform({self.augmentation}, seed={self.seed})"


class TransformedDataset(Dataset):
    """A dataset whose images are augmented, each by its index: the same with any workers.

    Parameters
    ----------
    dataset
        A map-style dataset of images, of tuples that begin with an image, or of dictionaries.
    augmentation
        An augmentation or a spec.
    seed
        Any integer.
    key
        Where the image is in a dictionary.

    Notes
    -----
    Call `set_epoch` before each epoch, as with `DistributedSampler`; otherwise every epoch sees
    the same views.
    """

    def __init__(
        self, dataset: Any, augmentation: Augmentation | str, seed: int = 0, key: str = "image"
    ) -> None:
        from augury.augmentations.spec import parse

        if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
            raise AuguryError(
                "dataset must be a map-style dataset, with a length and items, got "
                f"{kind_of(dataset)}"
            )
        self.dataset, self.key = dataset, key
        self.transform = parse(augmentation).transform(seed)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, for new draws in all workers."""
        self.transform.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        index = range(len(self))[as_whole("index", index)]  # negative: from the end
        sample = self.dataset[index]
        if isinstance(sample, Mapping):
            if self.key not in sample:
                raise AuguryError(
                    f"expected an image under {self.key!r}, but the sample has "
                    f"{', '.join(map(repr, sample))}; name it with key="
                )
            return {**sample, self.key: self.transform(sample[self.key], index)}
        if isinstance(sample, tuple | list):
            return (self.transform(sample[0], index), *sample[1:])
        return self.transform(sample, index)


def call(augmentation: Augmentation, image: Any) -> Any:
    """Return one view, with a seed drawn from torch's default generator."""
    if isinstance(image, list | tuple):
        return [call(augmentation, one) for one in image]
    seed = int(torch.randint(2**62, ()))
    return _view(
        augmentation,
        image,
        _kind_of(augmentation, None),
        lambda size, device: Rng(seed, torch.arange(size, device=device)),
    )


def _kind_of(augmentation: Augmentation, kind: str | None) -> str:
    kinds = [k for k in DIMENSIONS if k in augmentation.kinds]
    if not kinds:
        raise AuguryError(
            f"no kind of data suits {augmentation}: its parts are for different kinds"
        )
    if kind is not None and not is_one_of(kind, kinds):
        raise AuguryError(
            f"{augmentation} works on {' or '.join(kinds)} data, not on {shown(kind)}"
        )
    return kind or kinds[0]


def _view(
    augmentation: Augmentation, image: Any, kind: str, rng: Callable[[int, torch.device], Rng]
) -> Any:
    if isinstance(image, Image.Image):
        if image.mode not in ("L", "RGB"):
            deep = image.mode.startswith(("I", "F"))  # which convert would cut at 255
            advice = (
                "scale it to 8 bits, or pass an array of floats in [0, 1]"
                if deep
                else "convert it first: image.convert('RGB')"
            )
            raise AuguryError(
                f"expected a PIL image of mode L or RGB, got mode {image.mode}; {advice}"
            )
        view = _view(augmentation, np.asarray(image), "image", rng)
        return Image.fromarray(view)
    if isinstance(image, np.ndarray) and image.dtype.kind in "biuf":
        tensor, last = _as_tensor(image), kind == "image" and image.ndim > 2
        view = _view_tensor(augmentation, tensor.movedim(-1, -3) if last else tensor, kind, rng)
        return (view.movedim(-3, -1) if last else view).contiguous().numpy()
    if isinstance(image, Tensor):
        return _view_tensor(augmentation, image, kind, rng).as_subclass(type(image))
    raise AuguryError(
        f"expected a PIL image, a NumPy array of numbers or a tensor, got {kind_of(image)}"
    )


def _as_tensor(image: np.ndarray) -> Tensor:
    """Copy an array, which may be read-only or of another byte order."""
    if np.ma.is_masked(image):
        raise AuguryError("expected an array without masked values; fill them first")
    if image.dtype.itemsize > 8:
        raise AuguryError(
            f"expected 8-bit integers or floats of 64 bits at most, got {image.dtype}"
        )
    return torch.from_numpy(np.array(image, dtype=image.dtype.newbyteorder("=")))


def _view_tensor(
    augmentation: Augmentation, image: Tensor, kind: str, rng: Callable[[int, torch.device], Rng]
) -> Tensor:
    """Augment a tensor, channels first: with or without batch, with or without channels."""
    if not image.numel():
        raise AuguryError(f"{augmentation} needs values, got shape {tuple(image.shape)}")
    x = _as_floats(image, kind)
    whole = DIMENSIONS[kind]
    if kind == "image" and x.dim() == 2:
        x = x.unsqueeze(0)
    if x.dim() not in (whole, whole + 1):
        raise AuguryError(
            f"expected one {kind} or a batch of them, got an array of shape {tuple(image.shape)}"
        )
    single = x.dim() == whole
    batch = x.unsqueeze(0) if single else x
    view = augmentation.views(batch, 1, rng(len(batch), batch.device))[0]
    return _as_before(view.reshape(image.shape), image.dtype)


def _as_floats(image: Tensor, kind: str) -> Tensor:
    if image.dtype == torch.uint8 and kind == "image":
        return image.to(torch.float32) / 255
    if not image.is_floating_point():
        expected = "8-bit integers or floats" if kind == "image" else "floats"
        raise AuguryError(f"expected {expected}, got {str(image.dtype).removeprefix('torch.')}")
    if kind == "image" and image.numel():
        low, high = (float(v) for v in image.detach().aminmax())
        if low < -0.5 or high > 1.5:  # a little beyond comes from interpolation
            raise AuguryError(
                f"expected pixels in [0, 1], got values from {low:.3g} to {high:.3g}; augment "
                "before normalising, and divide 8-bit levels by 255"
            )
    return image if image.dtype == torch.float64 else image.to(torch.float32)


def _as_before(view: Tensor, dtype: torch.dtype) -> Tensor:
    return to_bytes(view) if dtype == torch.uint8 else view.to(dtype)
