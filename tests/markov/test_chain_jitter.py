"""The jitter kernel of Appendix B.2, as it should be: a geometric mixture of Gaussians."""

from __future__ import annotations

import numpy as np
import pytest
from reference_chain import jitter_on_grid
from refusal import refused
from scipy.optimize import approx_fprime
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import WhiteKernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from augury.markov import JitterFeatures, JitterKernel, effective_bandwidth, jitter_density


@pytest.mark.parametrize(("d", "side", "step"), [(1, 400, 0.25), (2, 48, 0.6)])
@pytest.mark.parametrize("beta", [0.5, 1.0])
def test_it_equals_the_inverse_on_a_fine_grid(d, side, step, beta):
    squared, density = jitter_on_grid(1.0, beta, d, step, side)
    # the grid wraps round: take points well inside, where the images far away weigh nothing
    near = squared < (side * step / 4) ** 2
    expected = jitter_density(squared, 1.0, beta, d)
    np.testing.assert_allclose(density[near], expected[near], atol=1e-9)
    # the printed claim, that the first Gaussian alone would do, is off by much
    first = beta / (1 + beta) ** 2 * norm.pdf(np.sqrt(squared)) ** 1
    if d == 1:
        assert np.abs(density - first).max() > 0.1 * density.max()


def test_its_mass_and_variance():
    sigma, beta = 0.7, 3.0
    t = np.linspace(-60, 60, 24_001)
    density = jitter_density(t**2, sigma, beta, 1)
    mass = density.sum() * (t[1] - t[0])
    np.testing.assert_allclose(mass, beta / (1 + beta), rtol=1e-9)  # the atom has the rest
    variance = (density * t**2).sum() * (t[1] - t[0]) / mass
    np.testing.assert_allclose(np.sqrt(variance), effective_bandwidth(sigma, beta), rtol=1e-6)


@pytest.mark.parametrize("d", [1, 3])
def test_the_kernel_is_the_density_scaled(d):
    x = np.random.default_rng(0).normal(size=(7, d))
    kernel = JitterKernel(0.8, 2.5)
    squared = ((x[:, None] - x[None]) ** 2).sum(-1)
    expected = jitter_density(squared, 0.8, 2.5, d) / jitter_density(0.0, 0.8, 2.5, d)
    np.testing.assert_allclose(kernel(x), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel(x, x[:3]), expected[:, :3], rtol=1e-12)
    np.testing.assert_allclose(kernel.diag(x), 1)
    assert np.linalg.eigvalsh(kernel(x)).min() > 0


def test_its_gradient_is_right():
    x = np.random.default_rng(1).normal(size=(4, 2))
    kernel = JitterKernel(0.8, 2.5)
    _, gradient = kernel(x, eval_gradient=True)
    for i, j in ((0, 1), (2, 3)):
        numeric = approx_fprime(
            kernel.theta, lambda t, at=(i, j): kernel.clone_with_theta(t)(x)[at], 1e-7
        )
        np.testing.assert_allclose(gradient[i, j], numeric, atol=1e-6)
    fixed = JitterKernel(0.8, 2.5, beta_bounds="fixed")
    np.testing.assert_allclose(fixed(x, eval_gradient=True)[1][..., 0], gradient[..., 1])
    with pytest.raises(ValueError, match="Y=None"):
        kernel(x, x, eval_gradient=True)


def test_it_fits_in_a_gaussian_process():
    x = np.linspace(0, 6, 40)[:, None]
    y = np.sin(x).ravel() + 0.1 * np.random.default_rng(0).normal(size=40)
    kernel = JitterKernel(0.5, 2.0, beta_bounds="fixed") + WhiteKernel(1e-2)
    model = GaussianProcessRegressor(kernel).fit(x, y)
    assert model.score(x + 0.05, np.sin(x + 0.05).ravel()) > 0.98
    assert repr(JitterKernel()) == "JitterKernel(sigma=1, beta=1)"


def test_random_features_converge_to_it():
    x = np.random.default_rng(0).normal(size=(20, 3))
    exact = JitterKernel(0.8, 2.5)(x)
    errors = []
    for count in (100, 1_600, 25_600):
        z = JitterFeatures(0.8, 2.5, count, random_state=0).fit_transform(x)
        errors.append(np.sqrt(((z @ z.T - exact) ** 2).mean()))
    assert errors[0] / errors[2] > 8  # sixteen, if the error falls as one over the root
    assert errors[1] < errors[0]
    assert errors[2] < 0.01


@parametrize_with_checks([JitterFeatures(random_state=0)])
def test_features_keep_scikit_learns_rules(estimator, check):
    check(estimator)


def test_bad_parameters_are_refused():
    refused("sigma must be a positive number, got 0", effective_bandwidth, 0, 1)
    refused("beta must be a positive number, got -1", JitterKernel(1, -1), np.ones((2, 1)))
    refused(
        "n_components must be a whole number of 1 or more, got 0",
        JitterFeatures(n_components=0).fit,
        [[1.0]],
    )
