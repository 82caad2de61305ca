"""Tangent propagation against finite differences."""

from __future__ import annotations

import copy

import pytest
import torch
from reference_networks import batch, lenet
from refusal import refused
from torch import nn

from augury import TangentPropagation
from augury._base.rng import Rng
from augury.augmentations import parse
from augury.networks.tangent import _moments, tangent_sketch
from augury.objectives import multinomial


@pytest.mark.parametrize(
    "spec", ["rotation(15)", "shear(10)", "translation(0.1)", "blur(0.5,2.0)", "contrast(0.3)"]
)
@pytest.mark.parametrize("curvature", ["gauss-newton", "hessian"])
def test_tangent_propagation_is_the_penalty_from_finite_differences(spec, curvature):
    torch.manual_seed(0)
    model, (x, y) = lenet(nn.Tanh).double(), batch(3)
    augmentation = parse(spec)
    draws = augmentation.draw(1 << 14, Rng(1, torch.zeros(1, dtype=torch.int64))).double()
    draws = draws.flatten(1)
    centre = (draws.mean(0) * 20).round() / 20  # each of these laws is centred on such a number
    spread = draws.var(0)
    shape = augmentation.draw(1, Rng(0, torch.zeros(1, dtype=torch.int64))).shape

    def outputs(theta):
        return model(augmentation.apply(x.unsqueeze(0), theta.view(shape))[0])

    middle = outputs(centre)
    expected = multinomial(middle, y)
    for j in range(len(centre)):
        step = torch.zeros_like(centre)
        step[j] = 1e-4 * spread[j].sqrt()
        after, before = outputs(centre + step), outputs(centre - step)
        if curvature == "gauss-newton":
            change = (after - before) / (2e-4)
            expected = expected + 0.5 * multinomial.curvature(middle, change)
        else:
            # bilinear images bend at the pixels, so only the network's own bend is compared
            tangent = tangent_sketch(augmentation, x)
            at, along = tangent.mean, tangent.deviations[j]
            high, mid, low = (multinomial(model(at + e * along), y) for e in (1e-3, 0, -1e-3))
            expected = expected + 0.5 * (high - 2 * mid + low) / 1e-6
    value = TangentPropagation(augmentation, curvature=curvature).losses(model, x, y)
    torch.testing.assert_close(value, expected, rtol=2e-2, atol=1e-6)
    penalty, wanted = value - multinomial(middle, y), expected - multinomial(middle, y)
    torch.testing.assert_close(penalty, wanted, rtol=3e-2, atol=1e-9)


@pytest.mark.parametrize(
    "spec",
    [
        "rotation(15)",
        "scaling(0.8,1.5)",
        "resized_crop(0.64)",
        "blur(0.5,2.0) >> shear(5)",
        "perspective(0.2)",
        "rotation(15) >> perspective(0.2)",
    ],
)
def test_tangent_vectors_are_those_of_finite_differences(spec):
    augmentation, x = parse(spec), batch(3)[0]
    sketch = tangent_sketch(augmentation, x)
    mean, directions = _moments(augmentation)
    for along, tangent in zip(directions, sketch.deviations, strict=True):
        ends = [_moved(augmentation, x, mean, along, e) for e in (1e-5, -1e-5)]
        torch.testing.assert_close((ends[0] - ends[1]) / 2e-5, tangent, rtol=1e-4, atol=2e-5)


def _moved(augmentation, x, mean, along, size):
    if isinstance(mean, tuple):
        params = tuple(m + size * d for m, d in zip(mean, along, strict=True))
    else:
        params = mean + size * along
    return augmentation.apply(x.unsqueeze(0), params)[0]


def test_perspective_is_propagated_in_single_precision():
    x, y = batch(3)
    model = lenet(nn.Tanh)
    how = TangentPropagation("perspective(0.2)")
    value = how.losses(model, x.float(), y)
    value.mean().backward()
    twin = copy.deepcopy(model).double()
    torch.testing.assert_close(value.double(), how.losses(twin, x, y), rtol=1e-3, atol=1e-4)
    sketches = [tangent_sketch(parse(how.augmentation), images) for images in (x, x.float())]
    exact, single = (sketch.deviations.double() for sketch in sketches)
    assert (single - exact).norm() < 0.02 * exact.norm()


def test_blank_images_have_the_plain_loss():
    model, (x, y) = lenet(nn.Tanh).double(), batch(3)
    blank = torch.zeros_like(x)
    for spec in ("rotation(10)", "perspective(0.2)", "blur(0.5,2.0) >> shear(5)"):
        value = TangentPropagation(spec).losses(model, blank, y)
        torch.testing.assert_close(value, multinomial(model(blank), y))
    state = torch.get_rng_state()
    for spec in ("solarize(0.3)", "posterize(4)", "horizontal_flip"):
        for images in (blank, x):
            refused(f"{spec} has no tangent", TangentPropagation(spec).loss, model, images, y)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_spread_of_a_rotation_is_that_of_its_law():
    x = batch(2)[0]
    small, large = (tangent_sketch(parse(s), x).deviations for s in ("rotation(5)", "rotation(15)"))
    torch.testing.assert_close(large, 3 * small)


@pytest.mark.parametrize(
    ("spec", "centre", "half"), [("contrast(0.3)", 1.0, 0.3), ("scaling(0.8,1.5)", 1.15, 0.35)]
)
def test_a_law_that_is_not_about_zero_is_centred(spec, centre, half):
    """The spread is that about the mean of the parameter, √3 times less than its half-width."""
    mean, directions = _moments(parse(spec))
    assert mean.item() == pytest.approx(centre, abs=1e-12)
    assert [abs(d.item()) for d in directions] == pytest.approx([half / 3**0.5], rel=1e-9)
