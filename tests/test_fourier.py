from __future__ import annotations

import numpy as np
import pytest
import torch

from augury.errors import AuguryError
from augury.features import FourierFeatures


def exact(kernel: str, nu: float, gamma: float, x: np.ndarray) -> np.ndarray:
    """The kernels written out, pair by pair."""
    out = np.empty((len(x), len(x)))
    for i, a in enumerate(x):
        for j, b in enumerate(x):
            if kernel == "laplacian":
                out[i, j] = np.exp(-gamma * np.abs(a - b).sum())
            else:
                squared = ((a - b) ** 2).sum()
                r = np.sqrt(2 * nu * 2 * gamma * squared)
                matern = {0.5: 1, 1.5: 1 + r, 2.5: 1 + r + r * r / 3}
                gaussian = np.exp(-gamma * squared)
                out[i, j] = gaussian if kernel == "gaussian" else matern[nu] * np.exp(-r)
    return out


CASES = [
    ("gaussian", 1.5, "iid"),
    ("gaussian", 1.5, "orthogonal"),
    ("gaussian", 1.5, "hadamard"),
    ("laplacian", 1.5, "iid"),
    ("matern", 0.5, "iid"),
    ("matern", 1.5, "orthogonal"),
    ("matern", 2.5, "hadamard"),
]


@pytest.mark.parametrize(("kernel", "nu", "sampling"), CASES)
def test_inner_products_converge_to_the_kernel(kernel, nu, sampling):
    x = torch.randn(12, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) / 3
    truth = exact(kernel, nu, 0.3, x.numpy())
    errors = []
    for d in (512, 32768):
        phi = FourierFeatures(d, gamma=0.3, kernel=kernel, nu=nu, sampling=sampling).fit(x)(x)
        errors.append(float(np.abs((phi @ phi.T).numpy() - truth).mean()))
    assert errors[1] < errors[0] / 3
    assert errors[1] < 0.01


@pytest.mark.parametrize("sampling", ["iid", "hadamard"])
def test_normalisation_folds_into_frequencies_and_phases(sampling):
    x = torch.rand(5, 3, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    mean, std = [0.4, 0.5, 0.6], [0.2, 0.25, 0.3]
    folded = FourierFeatures(64, gamma=0.1, mean=mean, std=std, sampling=sampling).fit(x)(x)
    scale = torch.tensor(std, dtype=torch.float64).view(3, 1, 1)
    plain = (x - torch.tensor(mean, dtype=torch.float64).view(3, 1, 1)) / scale
    expected = FourierFeatures(64, gamma=0.1, sampling=sampling).fit(plain)(plain)
    torch.testing.assert_close(folded @ folded.T, expected @ expected.T, atol=1e-6, rtol=0)


def test_bad_kernels_and_samplings_are_said():
    for options in ({"kernel": "cubic"}, {"sampling": "lucky"}, {"kernel": "matern", "nu": 7.0}):
        with pytest.raises(AuguryError) as caught:
            FourierFeatures(8, **options)
        assert "\n" not in str(caught.value)
