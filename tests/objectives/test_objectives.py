"""Objectives and their gradients against the paper's formulas; the certificate's inequalities."""

from __future__ import annotations

import math

import numpy as np
import pytest
import reference_objectives as slow
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusal import refused
from torch import nn

from augury.features.orbit import Orbit
from augury.objectives import (
    Certificate,
    any_loss,
    certify,
    exact,
    first_order,
    logistic,
    multinomial,
    original,
    quadratic,
    second_order,
    second_order_only,
    variance_term,
)

LAWS = settings(deadline=None, max_examples=20)
LOSSES = {"quadratic": quadratic, "logistic": logistic, "multinomial": multinomial}
TWINS = {
    original: slow.f,
    exact: slow.g,
    first_order: slow.g_hat,
    second_order: slow.g_tilde,
    second_order_only: slow.second_only,
}


class Opaque(nn.Module):
    """A linear head that does not look like one, so that its Jacobian must be found."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


def problem(seed, n=3, b=4, d=3, classes=3, name="quadratic"):
    """An orbit, targets and a linear head, in float64."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    weights = draw(n).softmax(0)
    outputs = 1 if name == "logistic" else classes
    head = nn.Linear(d, outputs, bias=False, dtype=torch.float64)
    head.weight.data = draw(outputs, d)
    if name == "quadratic":
        y = draw(b, outputs)
    elif name == "logistic":
        y = torch.where(draw(b) > 0, 1.0, -1.0).double()
    else:
        y = torch.randint(0, classes, (b,), generator=generator)
    return Orbit(draw(n, b, d), weights, draw(b, d)), y, head


sizes = {
    "seed": st.integers(0, 10**6),
    "n": st.integers(1, 4),
    "b": st.integers(1, 4),
    "d": st.integers(1, 4),
    "classes": st.integers(2, 4),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("objective", TWINS)
@LAWS
@given(**sizes)
def test_objectives_and_gradients_are_the_papers(name, objective, seed, n, b, d, classes):
    orbit, y, head = problem(seed, n, b, d, classes, name)
    numbers = (orbit.features.numpy(), orbit.weights.numpy(), orbit.origin.numpy(), y.numpy(), name)
    expected = TWINS[objective](head.weight.detach().numpy(), *numbers)
    slope = slow.complex_step(lambda w: TWINS[objective](w, *numbers), head.weight.detach().numpy())
    for used in (head, Opaque(head)):
        head.zero_grad()
        value = objective(used, orbit, y, LOSSES[name])
        assert value.shape == (b,)
        assert float(value.detach().mean()) == pytest.approx(float(np.real(expected)), abs=1e-9)
        value.mean().backward()
        np.testing.assert_allclose(head.weight.grad.numpy(), slope, atol=1e-9)


@LAWS
@given(**sizes)
def test_second_order_is_exact_for_the_quadratic_loss(seed, n, b, d, classes):
    orbit, y, head = problem(seed, n, b, d, classes)
    for curvature in ("gauss-newton", "hessian"):
        found = second_order(Opaque(head), orbit, y, quadratic, curvature=curvature)
        torch.testing.assert_close(found, exact(head, orbit, y, quadratic), atol=1e-9, rtol=0)


@pytest.mark.parametrize("name", LOSSES)
@LAWS
@given(**sizes)
def test_first_order_is_never_above_exact(name, seed, n, b, d, classes):
    orbit, y, head = problem(seed, n, b, d, classes, name)
    gap = exact(head, orbit, y, LOSSES[name]) - first_order(head, orbit, y, LOSSES[name])
    assert (gap > -1e-12).all()


@pytest.mark.parametrize("name", LOSSES)
@LAWS
@given(seed=st.integers(0, 10**6))
def test_any_loss_finds_the_closed_forms(name, seed):
    orbit, y, head = problem(seed, name=name)
    general = any_loss(lambda output, y: LOSSES[name](output, y))
    for curvature in ("gauss-newton", "hessian"):
        values = [
            second_order(Opaque(head), orbit, y, loss, curvature=curvature)
            for loss in (general, LOSSES[name])
        ]
        torch.testing.assert_close(*values, atol=1e-10, rtol=0)


def test_logistic_term_has_one_eighth_not_one_quarter():
    """The paper prints 1/4n; the gap of a margin 0.4 with noise of sd 0.1 tells them apart."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    features = torch.from_numpy(0.4 + 0.1 * nodes).reshape(-1, 1, 1)
    orbit = Orbit(features, torch.from_numpy(weights / weights.sum()))
    head = nn.Linear(1, 1, bias=False, dtype=torch.float64)
    nn.init.ones_(head.weight)
    y = torch.ones(1, dtype=torch.float64)
    with torch.no_grad():
        true = float(exact(head, orbit, y, logistic) - first_order(head, orbit, y, logistic))
        found = float(variance_term(head, orbit, y, logistic))
    assert true == pytest.approx(0.00120, abs=1e-6)
    assert found == pytest.approx(true, abs=2e-6)
    assert abs(2 * found - true) > 0.001


def deep(activation, seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(3, 5), activation, nn.Linear(5, 3)).double()


def test_gauss_newton_and_hessian_part_on_curved_heads_only():
    orbit, y, _ = problem(1, name="multinomial")
    relu, tanh = deep(nn.ReLU()), deep(nn.Tanh())
    for head, same in ((relu, True), (tanh, False)):
        newton = variance_term(head, orbit, y, multinomial, "gauss-newton")
        whole = variance_term(head, orbit, y, multinomial, "hessian")
        assert torch.allclose(newton, whole, atol=1e-12) == same


def test_hessian_term_is_the_second_derivative_of_the_loss():
    orbit, y, _ = problem(2, n=2, name="multinomial")
    head, step = deep(nn.Tanh()), 1e-4
    expected = torch.zeros(4, dtype=torch.float64)
    with torch.no_grad():
        for weight, delta in zip(orbit.weights, orbit.deviations, strict=True):
            up, here, down = (
                multinomial(head(orbit.mean + s * step * delta), y) for s in (1, 0, -1)
            )
            expected += weight * (up - 2 * here + down) / step**2 / 2
        found = variance_term(head, orbit, y, multinomial, "hessian")
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("curvature", ["gauss-newton", "hessian"])
def test_a_deep_head_trains_through_the_second_order_objective(curvature):
    orbit, y, _ = problem(3, b=8, name="multinomial")
    head = deep(nn.Tanh())
    optimizer = torch.optim.SGD(head.parameters(), lr=0.5)
    values = []
    for _ in range(20):
        optimizer.zero_grad()
        value = second_order(head, orbit, y, multinomial, curvature=curvature).mean()
        value.backward()
        assert all(p.grad is not None for p in head.parameters())
        optimizer.step()
        values.append(float(value.detach()))
    assert values[-1] < 0.95 * values[0]


def test_features_of_many_dimensions_go_through():
    features = torch.randn(2, 3, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    orbit = Orbit(features, torch.full((2,), 0.5))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        head = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))
    value = second_order(head, orbit, torch.tensor([0, 1, 1]), multinomial)
    assert value.shape == (3,)


@LAWS
@given(seed=st.integers(0, 10**6), n=st.integers(2, 4), d=st.integers(1, 4))
def test_the_certificate_holds_for_the_quadratic_loss(seed, n, d):
    orbit, y, head = problem(seed, n=n, b=12, d=d, classes=2)
    for ridge in (0.0, 0.1):
        certificate = certify(orbit, quadratic, ridge=ridge)
        low, high = certificate.gap(head.weight)
        gap = exact(head, orbit, y, quadratic) - first_order(head, orbit, y, quadratic)
        assert low - 1e-9 <= float(gap.detach().mean()) <= high + 1e-9
        numbers = (orbit.features.numpy(), orbit.weights.numpy())
        true = slow.ridge(*numbers, y.numpy(), ridge)
        near = slow.ridge(orbit.mean.unsqueeze(0).numpy(), np.ones(1), y.numpy(), ridge)
        assert ((true - near) ** 2).sum() <= certificate.distance * (near**2).sum() + 1e-9


@pytest.mark.parametrize("name", ["logistic", "multinomial"])
@LAWS
@given(seed=st.integers(0, 10**6))
def test_the_certificate_holds_for_smooth_losses(name, seed):
    orbit, y, head = problem(seed, b=8, name=name)
    certificate = certify(orbit, LOSSES[name])
    low, high = certificate.gap(head.weight)
    gap = exact(head, orbit, y, LOSSES[name]) - first_order(head, orbit, y, LOSSES[name])
    assert low - 1e-12 <= float(gap.detach().mean()) <= high + 1e-12
    assert math.isinf(certificate.distance)
    assert "Nothing is guaranteed" in certificate.sentence


def test_a_certificate_has_the_numbers_that_a_hand_finds():
    """Both examples vary by ±0.3 along their own axis, so that all directions vary alike."""
    psi = torch.tensor([[2.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    step = 0.3 * torch.eye(2, dtype=torch.float64)
    orbit = Orbit(torch.stack([psi + step, psi - step]), torch.full((2,), 0.5).double())
    certificate = certify(orbit, quadratic, ridge=0.25)
    assert certificate.a == pytest.approx(0.045)
    assert certificate.b == pytest.approx(0.045)
    assert certificate.c == pytest.approx(0.5)
    convexity = quadratic.convexity
    assert certificate.distance == pytest.approx(convexity * 0.045 / (convexity * 0.5 + 2 * 0.25))
    head = nn.Linear(2, 1, dtype=torch.float64)
    y = torch.ones(2, 1, dtype=torch.float64)
    gap = exact(head, orbit, y, quadratic) - first_order(head, orbit, y, quadratic)
    assert certificate.gap(head.weight) == pytest.approx((float(gap.detach().mean()),) * 2)


def test_a_certificate_is_the_same_from_batches_and_says_what_follows():
    orbit, _, _ = problem(5, b=12)
    parts = [Orbit(orbit.features[:, rows], orbit.weights) for rows in (slice(0, 5), slice(5, 12))]
    whole, streamed = certify(orbit, quadratic), certify(parts, quadratic)
    assert whole.b == pytest.approx(streamed.b)
    assert whole.c == pytest.approx(streamed.c)
    still = Orbit(orbit.mean.expand(2, -1, -1), torch.full((2,), 0.5, dtype=torch.float64))
    assert certify(still, quadratic).distance < 1e-9
    assert "can be trusted" in certify(still, quadratic, ridge=1.0).sentence
    assert "not guaranteed" in certify(orbit, quadratic, ridge=0.1).sentence


def test_bad_use_is_refused_in_one_line():
    orbit, y, head = problem(0, name="multinomial")
    bare = Orbit(orbit.features, orbit.weights)
    refused("origin=", original, head, bare, y, multinomial)
    refused("gauss-newton|fisher", second_order, head, orbit, y, multinomial, curvature="fisher")
    reduced = any_loss(nn.CrossEntropyLoss())
    refused("4 examples|one number|reduction='none'", first_order, head, orbit, y, reduced)
    each = any_loss(nn.MSELoss(reduction="none"))
    refused("shape (4, 3)", first_order, head, orbit, torch.zeros(4, 3).double(), each)
    refused("one-hot", first_order, head, orbit, y, quadratic)
    refused("class numbers", first_order, head, orbit, y.double(), multinomial)
    refused("more than two classes", first_order, head, orbit, y, logistic)
    refused("smoothness", certify, orbit, any_loss(nn.HuberLoss(reduction="none")))
    refused("0 or more", certify, orbit, quadratic, ridge=-1.0)
    refused("none", certify, [], quadratic)
    refused("pass y", any_loss(lambda o, y: o).curvature, torch.ones(2), torch.ones(2))


def test_the_logistic_curvature_does_not_cancel_for_sure_predictions():
    x = torch.tensor([-60.0, -20.0, 0.0, 20.0, 60.0])
    found = logistic.curvature(x, torch.ones(5)).double()
    exact = 0.25 / torch.cosh(x.double() / 2).square()
    torch.testing.assert_close(found, exact, rtol=1e-5, atol=0)


def test_weights_of_an_orbit_may_be_of_another_type_than_its_features():
    features = torch.rand(3, 4, 5)
    weights = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    orbit, plain = Orbit(features, weights), Orbit(features, weights.float())
    assert torch.equal(orbit.mean, plain.mean)
    assert torch.equal(orbit.spread, plain.spread)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((0.01, 0.4, 0.5, 2.0, 2.0), "not guaranteed"),
        ((0.0, 0.001, 1.0, 2.0, 2.0), "can be trusted"),
        ((0.0, 0.1, 0.0, 0.0, 0.25), "Nothing is guaranteed"),
    ],
)
def test_a_certificate_is_a_result_like_the_others(numbers, words):
    found = Certificate(*numbers)
    assert Certificate.from_json(found.to_json()) == found
    assert words in found.to_markdown()
    assert words in found.to_html()
    assert found.to_frame().loc[0, "distance"] == found.distance
    assert found.plot().axes[0].get_xlabel().startswith("distance")
    assert "distance" in found._repr_html_()
    refused("certificate|not JSON", Certificate.from_json, "{")


def test_logistic_curvature_keeps_its_digits_for_large_outputs():
    """1 − σ(20) is zero in float32; σ(20)σ(−20) is not."""
    x = torch.tensor([[20.0], [-20.0], [30.0]])
    found = logistic.curvature(x, torch.ones(3, 1))
    by_hand = [0.25 / math.cosh(v / 2) ** 2 for v in (20, -20, 30)]
    assert found.tolist() == pytest.approx(by_hand, rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool])
def test_the_logistic_loss_refuses_classes_0_and_1(dtype):
    y = torch.tensor([0, 1]).to(dtype)
    refused("labels −1 and 1, not 0 and 1", logistic, torch.tensor([3.0, 3.0]), y)
