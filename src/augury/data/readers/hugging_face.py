"""Datasets of Hugging Face: images by index, or columns as a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from augury.data.readers.items import X_KEYS, Y_KEYS, choose_keys, plain
from augury.data.readers.mapstyle import read_map_style
from augury.data.readers.table import read_frame
from augury.data.source import Request, Source


def is_hugging_face(x: Any) -> bool:
    """Return whether this is a ``datasets.Dataset``; the package is never imported for it."""
    ours = ("features", "column_names", "with_format", "__len__", "__getitem__")
    return type(x).__module__.startswith("datasets.") and all(hasattr(x, name) for name in ours)


def read_hugging_face(x: Any, request: Request, classes: tuple[str, ...] | None) -> Source:
    """Read the images of a dataset that has a column of them, or else its columns as a table."""
    data = x.with_format(None)
    features = dict(data.features)
    pictures = [key for key, kind in features.items() if type(kind).__name__ == "Image"]
    label = request.label or _label(features)
    if pictures or any(key.lower() in X_KEYS for key in features if key != label):
        if pictures and label is not None and label in features:
            x_key, y_key = pictures[0], label
        else:
            x_key, y_key = choose_keys(list(features), label)
        names = classes or _names(features[y_key])
        wrapped = _Items(data, x_key, y_key)
        return read_map_style(wrapped, None, replace(request, label=None), names)
    frame = data.to_pandas()
    found = read_frame(frame, replace(request, label=label), "the dataset")
    names = classes or (_names(features[found.label]) if found.label in features else None)
    return replace(found, classes=names)


def _label(features: dict[str, Any]) -> str | None:
    """Return the only column of classes, or the first that is called as labels are."""
    named = [key for key, kind in features.items() if type(kind).__name__ == "ClassLabel"]
    lower = {key.lower(): key for key in features}
    return named[0] if len(named) == 1 else next((lower[k] for k in Y_KEYS if k in lower), None)


def _names(kind: Any) -> tuple[str, ...] | None:
    found = getattr(kind, "names", None) if type(kind).__name__ == "ClassLabel" else None
    return None if found is None else tuple(found)


class _Items:
    """A dataset's images and labels, by index; `targets` without decoding an image."""

    def __init__(self, data: Any, x: str, y: str) -> None:
        self.data, self.x, self.y = data, x, y
        self.targets = list(data[y])

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, i: int) -> tuple[Any, Any]:
        return plain(self.data[i][self.x]), self.targets[i]
