"""Averaging at a layer with forward hooks: its output is what the hooks make of it."""

from __future__ import annotations

import pytest
import torch
from reference_networks import batch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

from augury import Averaging, measure_invariance
from augury.augmentations import parse
from augury.networks.layers import cuts

T = parse("rotation(15)")


def squared(module, args, output):
    return output.square()


def residual(module, args, options, output):
    return output.square() + args[0]


class Squared(nn.Module):
    def __init__(self, inner, skip):
        super().__init__()
        self.inner, self.skip = inner, skip

    def forward(self, x):
        return self.inner(x).square() + (x if self.skip else 0)


def make():
    torch.manual_seed(0)
    size = batch()[0].shape[-1]
    return nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1), nn.Tanh(), nn.Conv2d(2, 2, 3, padding=1), nn.Tanh(),
        nn.Flatten(), nn.Linear(2 * size * size, 3),
    ).double()  # fmt: skip


def hooked(kind):
    network = make()
    if kind == "kwargs":
        network[2].register_forward_hook(residual, with_kwargs=True)
    else:
        network[2].register_forward_hook(squared)
    twin = make()
    twin[2] = Squared(twin[2], kind == "kwargs")
    return network, twin


@pytest.mark.parametrize("kind", ["plain", "kwargs"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("groups", [1, 2])
def test_the_hooks_of_a_layer_run_before_its_output_is_averaged(kind, order, groups):
    network, twin = hooked(kind)
    x, y = batch()
    assert "2" in cuts(network, x)
    how = Averaging(T, "2", 4, order=order, groups=groups)
    value, expected = how.losses(network, x, y), how.losses(twin, x, y)
    torch.testing.assert_close(value, expected)
    for parameters in zip(network.parameters(), twin.parameters(), strict=True):
        ours, theirs = (
            torch.autograd.grad(each.sum(), p, retain_graph=True)[0]
            for each, p in zip((value, expected), parameters, strict=True)
        )
        torch.testing.assert_close(ours, theirs)
    found = [measure_invariance(n.eval(), x, T, layers=["2"]).rows for n in (network, twin)]
    assert found[0] == found[1]


def test_the_hooks_of_a_layer_see_every_view_once():
    network, (x, y) = make(), batch()
    seen = []
    network[2].register_forward_hook(lambda module, args, output: seen.append(len(output)))
    how = Averaging(T, "2", 4)
    how.loss(network, x, y)
    seen.clear()
    how.loss(network, x, y)
    assert seen == [4 * len(x)]


def test_hooks_of_all_modules_run_on_views_too():
    network, (x, y) = make(), batch()
    twin = make()
    twin[2] = Squared(twin[2], False)
    handle = register_module_forward_hook(
        lambda module, args, output: output.square() if module is network[2] else None
    )
    try:
        value = Averaging(T, "2", 4).losses(network, x, y)
    finally:
        handle.remove()
    torch.testing.assert_close(value, Averaging(T, "2", 4).losses(twin, x, y))
