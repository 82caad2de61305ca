from __future__ import annotations

import numpy as np
import pytest
import reference_ridge as slow
import torch
from devices import DEVICES
from hypothesis import given, settings
from hypothesis import strategies as st
from refusal import refused
from torch import nn

from augury.features import GradientFeatures
from augury.features import gradient as gradient_module
from augury.features.gradient import default_network

pytestmark = pytest.mark.usefixtures("one_thread")


def data(seed, *shape, dtype=torch.float64):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def network(seed=0, outputs=3):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Tanh(), nn.Dropout(0.5), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(36, outputs),
        ).double()  # fmt: skip


def expected_features(phi, x):
    rows = slow.gradients(phi.network, x, phi.direction)
    d = min(phi.d, rows.shape[1])
    sketched = slow.count_sketch(rows, phi.order.tolist(), phi.signs.tolist(), d)
    return sketched / np.sqrt((sketched**2).sum(1).mean())


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10**6), st.integers(1, 200), st.integers(1, 4))
def test_features_equal_the_slow_reference(seed, d, outputs):
    x = data(seed, 5, 1, 8, 8)
    phi = GradientFeatures(network(seed, outputs), d, seed=seed).fit(x)
    np.testing.assert_allclose(phi(x), expected_features(phi, x), atol=1e-10)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 9, 30), (2, 20), (7,)], ids=str)
def test_the_default_network_equals_the_slow_reference(shape):
    x = data(0, 6, *shape)
    phi = GradientFeatures(d=50, seed=1).fit(x)
    np.testing.assert_allclose(phi(x), expected_features(phi, x), atol=1e-10)


def test_batch_norm_is_calibrated_on_the_sample():
    x = 5 + 3 * data(0, 200, 1, 8, 8)
    phi = GradientFeatures(d=10).fit(x)
    first = next(m for m in phi.network if isinstance(m, nn.BatchNorm2d))
    with torch.no_grad():
        before = phi.network[1](phi.network[0](x))
    torch.testing.assert_close(first.running_mean, before.mean((0, 2, 3)))
    torch.testing.assert_close(first.running_var, before.var((0, 2, 3)))


def test_inner_products_converge_to_the_tangent_kernel():
    x = data(1, 12, 1, 8, 8)
    net = network(outputs=1)
    exact = GradientFeatures(net, 10**6).fit(x)(x)
    assert exact.shape[1] == sum(p.numel() for p in net.parameters())
    kernel = exact @ exact.T
    errors = []
    for d in (2, 32):
        parts = [GradientFeatures(net, d, seed=s).fit(x) for s in range(20)]
        # Undo the scale of each, which is right in the mean over seeds only.
        kernels = [(phi(x) @ phi(x).T) / phi.scale**2 for phi in parts]
        errors.append(np.mean([float((k / k.trace() - kernel / 12).abs().mean()) for k in kernels]))
    assert errors[1] < errors[0] / 2.5


def test_a_sketch_keeps_inner_products_in_the_mean():
    x = data(2, 4, 1, 8, 8)
    net = network(outputs=1)
    exact = GradientFeatures(net, 10**6).fit(x)
    wanted = (exact(x) @ exact(x).T) / exact.scale**2
    found = []
    for seed in range(200):
        phi = GradientFeatures(net, 20, seed=seed).fit(x)
        found.append((phi(x) @ phi(x).T) / phi.scale**2)
    found = torch.stack(found)
    error = found.std(0) / np.sqrt(200)
    assert bool(((found.mean(0) - wanted).abs() < 5 * error).all())


@pytest.mark.parametrize("device", DEVICES)
def test_batches_and_device_do_not_matter(device, monkeypatch):
    x = data(3, 30, 1, 12, 12, dtype=torch.float32)
    here = GradientFeatures(d=64).fit(x)
    there = GradientFeatures(d=64).to(device).fit(x.to(device))
    whole = here(x)
    torch.testing.assert_close(there(x.to(device)).cpu(), whole, atol=1e-4, rtol=1e-3)
    monkeypatch.setitem(gradient_module._NUMBERS, "cpu", 1)
    torch.testing.assert_close(here(x), whole, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(torch.cat([here(x[:7]), here(x[7:])]), whole, atol=1e-5, rtol=1e-4)


def test_the_users_network_is_left_alone():
    net = network().float().train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    x = data(4, 6, 1, 8, 8, dtype=torch.float32)
    phi = GradientFeatures(net, 30).fit(x)
    first = phi.train()(x)
    assert not phi.network.training
    assert net.training
    torch.testing.assert_close(phi(x), first)  # no dropout
    for name, value in net.state_dict().items():
        torch.testing.assert_close(value, before[name])
    assert all(p.grad is None for p in net.parameters())


def test_only_parameters_that_train_count():
    net = network(outputs=2)
    for parameter in net[0].parameters():
        parameter.requires_grad = False
    x = data(5, 4, 1, 8, 8)
    phi = GradientFeatures(net, 10**6).fit(x)
    assert phi(x).shape[1] == sum(p.numel() for p in net.parameters() if p.requires_grad)
    np.testing.assert_allclose(phi(x), expected_features(phi, x), atol=1e-10)


def test_the_global_generator_is_not_touched():
    torch.manual_seed(7)
    before = torch.get_rng_state()
    first = default_network((1, 8, 8), 3)
    GradientFeatures(d=8).fit(data(0, 3, 1, 8, 8))
    assert torch.equal(torch.get_rng_state(), before)
    torch.testing.assert_close(first.state_dict(), default_network((1, 8, 8), 3).state_dict())


def test_any_number_of_channels_is_pooled_alike():
    for channels in (1, 24):
        pools = [m for m in default_network((channels, 16, 16), 0) if isinstance(m, nn.MaxPool2d)]
        assert len(pools) == 2


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 4, 200), (3, 90, 61), (1, 2), (2, 1500)], ids=str)
def test_small_long_and_large_examples_work(shape):
    x = data(6, 3, *shape, dtype=torch.float32)
    assert bool(GradientFeatures(d=16).fit(x)(x).isfinite().all())


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 1)

    def forward(self, x):
        return self.linear(x) if float(x.sum()) > 0 else -self.linear(x)


class Pair(nn.Linear):
    def forward(self, input):
        return super().forward(input), 1


class Total(nn.Linear):
    def forward(self, input):
        return super().forward(input).sum()


def test_networks_that_cannot_be_used_are_said():
    x = data(7, 4, 3, dtype=torch.float32)
    refused("gradient of Branching cannot be taken example by example|'patches'",
            GradientFeatures(Branching()).fit, x)  # fmt: skip
    refused("Linear cannot take a batch of shape (2, 3)|that accepts this data",
            GradientFeatures(nn.Linear(5, 1)).fit, x)  # fmt: skip
    refused("Pair must give one tensor|not a tuple", GradientFeatures(Pair(3, 1)).fit, x)
    refused("Total must give one tensor|not ()", GradientFeatures(Total(3, 1)).fit, x)
    refused("ReLU has no parameter to train|requires_grad", GradientFeatures, nn.ReLU())
    refused("must be 1 or more, not 0", GradientFeatures, d=0)
    refused("call fit first", GradientFeatures(), x)


def test_it_says_what_it_is():
    assert GradientFeatures().describe() == "4,096 gradient features of a small untrained network"
    phi = GradientFeatures(network())
    assert phi.fit(data(0, 4, 1, 8, 8)).describe() == "159 gradient features of Sequential"
