"""Data that the tests of estimators share."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits


@pytest.fixture(scope="session")
def digits():
    X, y = load_digits(return_X_y=True)
    return (
        (X[:600] / 16).astype(np.float32),
        y[:600],
        (X[1000:1400] / 16).astype(np.float32),
        y[1000:1400],
    )
