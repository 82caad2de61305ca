"""The classifier of the theorem."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from reference_chain import kernel, stationary
from refusal import refused
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_chain_finite import laws, seeds

from augury.markov import ChainClassifier, enumerate_orbits, walk

SPEC = "chain(pixel_shifts:3, horizontal_flip:1)"


@parametrize_with_checks([ChainClassifier()])
def test_it_keeps_scikit_learns_rules(estimator, check):
    check(estimator)


def small(seed, n=6, classes=3):
    """Tiny black and white images, so that orbits of different labels meet."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, (n, 6)).astype(float)
    return x, rng.permutation(np.arange(n) % classes)


@laws
@given(seeds)
def test_it_is_the_kernel_classifier(seed):
    x, y = small(seed)
    model = ChainClassifier(SPEC, input_shape=(1, 2, 3)).fit(x, y)
    orbits = enumerate_orbits(x.reshape(-1, 1, 2, 3), SPEC)
    matrices = [a.toarray() for a in orbits.chain.matrices]
    n = len(orbits.states)
    pi0 = np.full(n, 1 / n)
    k = kernel(matrices, orbits.chain.rates, pi0)
    alpha = (1 / len(y)) / pi0[orbits.examples]
    expected = np.stack([(alpha * (y == c)) @ k[orbits.examples] for c in range(3)], axis=1)
    np.testing.assert_allclose(model.law_, expected, atol=1e-9)
    np.testing.assert_allclose(model.law_.sum(), 1)
    points = orbits.states.reshape(n, -1)
    clear = np.sort(expected, axis=1)
    clear = clear[:, -1] - clear[:, -2] > 1e-9
    assert (model.predict(points) == expected.argmax(1))[clear].all()


@laws
@given(seeds)
def test_labelled_states_in_full_give_the_same_as_one_block(seed):
    x, y = small(seed)
    block = ChainClassifier(SPEC, input_shape=(1, 2, 3)).fit(x, y)
    full = ChainClassifier(SPEC, input_shape=(1, 2, 3), relabel=[np.eye(3), None]).fit(x, y)
    np.testing.assert_allclose(full.law_, block.law_, atol=1e-9)
    swap = np.array([[0.9, 0.1, 0], [0, 0.8, 0.2], [0.5, 0, 0.5]])
    noisy = ChainClassifier(SPEC, input_shape=(1, 2, 3), relabel=[swap, None]).fit(x, y)
    orbits = enumerate_orbits(x.reshape(-1, 1, 2, 3), SPEC)
    shifts, flip = (a.toarray() for a in orbits.chain.matrices)
    rho = np.zeros((len(orbits.states), 3))
    np.add.at(rho, (orbits.examples, y), 1 / len(y))
    expected = stationary([np.kron(shifts, swap), np.kron(flip, np.eye(3))], [3, 1], rho.ravel())
    np.testing.assert_allclose(noisy.law_.ravel(), expected, atol=1e-9)


def test_neighbours_on_the_process_come_to_agree_with_it():
    x, y = small(3, n=9)
    model = ChainClassifier(SPEC, input_shape=(1, 2, 3)).fit(x, y)
    orbits = enumerate_orbits(x.reshape(-1, 1, 2, 3), SPEC)
    points = orbits.states.reshape(len(orbits.states), -1)
    clear = np.sort(model.predict_proba(points), axis=1)
    margin = clear[:, -1] - clear[:, -2]
    assert (margin < 0.9).mean() > 0.2  # labels do meet, so that it takes many neighbours
    share = orbits.chain.solve(_restarts(orbits, y)).x
    agreement = []
    for steps in (100, 3_000, 100_000):
        rng = np.random.default_rng(0)
        visited = walk(orbits.chain, steps, rng)
        # the label of a visit: the process on labelled states is one block for each label
        label = [rng.choice(3, p=share[s] / share[s].sum()) for s in visited]
        neighbours = KNeighborsClassifier(max(1, int(steps**0.6 / 10))).fit(points[visited], label)
        same = neighbours.predict(points) == model.predict(points)
        agreement.append(np.average(same, weights=margin))
    assert agreement[0] < agreement[1] <= agreement[2]
    assert agreement[2] > 0.97


def _restarts(orbits, y):
    rho = np.zeros((len(orbits.states), 3))
    np.add.at(rho, (orbits.examples, y), 1 / len(y))
    return rho


def test_shifted_digits_are_known_again():
    X, y = load_digits(return_X_y=True)
    shifted = np.roll(X.reshape(-1, 8, 8), 1, axis=2).reshape(len(X), -1)
    model = ChainClassifier("chain(pixel_shifts:2)", input_shape=(1, 8, 8)).fit(X[:150], y[:150])
    assert (model.predict(shifted[:150]) == y[:150]).all()
    plain = ChainClassifier(input_shape=(1, 8, 8)).fit(X[:150], y[:150])
    far = slice(150, 400)
    assert model.score(shifted[far], y[far]) > plain.score(shifted[far], y[far]) + 0.1


def test_states_that_no_rate_leads_to_are_left_out():
    x, y = small(0)
    spec = "chain(pixel_shifts:1, horizontal_flip:0)"
    model = ChainClassifier(spec, input_shape=(1, 2, 3)).fit(x, y)
    assert (model.law_.sum(1) > 0).all()


def test_bad_settings_are_refused():
    x, y = small(0)
    shape = {"input_shape": (1, 2, 3)}
    refused("input_shape=(1, 2, 2) has 4 values", ChainClassifier(input_shape=(1, 2, 2)).fit, x, y)
    refused(
        "one entry per augmentation (2), got 1",
        ChainClassifier(SPEC, relabel=[np.eye(3)], **shape).fit,
        x,
        y,
    )
    wrong = ChainClassifier(SPEC, relabel=[np.eye(2), None], **shape)
    refused("shape (3, 3), one row per label; got (2, 2)", wrong.fit, x, y)
    refused("more than 3 states", ChainClassifier(SPEC, limit=3, **shape).fit, x, y)
