"""The largest of four, and its derivatives, against torch's own."""

from __future__ import annotations

import pytest
import torch
from devices import DEVICES

from augury.objectives.derivatives import jvp
from augury_paper import largest as module
from augury_paper.largest import largest


def by_torch(name: str, four: torch.Tensor, one: torch.Tensor, which: torch.Tensor) -> None:
    """Do what the kernels do, where there is no Triton."""
    index = which.unsqueeze(-2).long()
    if name == "find":
        best = four.max(-2)
        one.copy_(best.values)
        which.copy_(best.indices)
    elif name == "take":
        one.copy_(four.gather(-2, index).squeeze(-2))
    else:
        four.zero_().scatter_(-2, index, one.unsqueeze(-2))


@pytest.fixture
def our_largest(device, monkeypatch):
    """On a CPU, where `largest` is torch's own, its derivatives are tested over a stand-in."""
    if device == "cuda":
        return largest
    monkeypatch.setattr(module, "_run", by_torch)
    return lambda x: module._Largest.apply(x)[0]


def values(*shape: int, device: str) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(4, 1), (3, 5, 4, 7), (300, 4, 60)])
def test_values_and_gradients_are_those_of_the_maximum(shape, dtype, device, our_largest):
    x = values(*shape, device=device).to(dtype)
    weight = values(*shape[:-2], shape[-1], device=device)
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    (our_largest(ours) * weight).sum().backward()
    (theirs.amax(-2) * weight).sum().backward()
    assert torch.equal(our_largest(x), x.amax(-2))
    alone = (x == x.amax(-2, keepdim=True)).sum(-2, keepdim=True) == 1  # how ties go is open
    alone = alone.expand_as(x)
    assert torch.equal(ours.grad[alone], theirs.grad[alone])


@pytest.mark.parametrize("device", DEVICES)
def test_a_gradient_is_shared_or_taken_where_values_tie(device, our_largest):
    x = torch.ones(2, 4, 3, device=device, requires_grad=True)
    our_largest(x).sum().backward()
    torch.testing.assert_close(x.grad.sum(-2), torch.ones(2, 3, device=device))


@pytest.mark.parametrize("device", DEVICES)
def test_a_directional_derivative_can_be_differentiated(device, our_largest):
    x, delta = values(2, 5, 4, 7, device=device), values(4, 7, device=device).expand(2, 5, 4, 7)

    def found(fn):
        at, scale = x.clone().requires_grad_(), torch.tensor(2.0, device=device, requires_grad=True)
        out, change = jvp(lambda z: (fn(z * scale) * scale).tanh(), at, delta)
        (change.square().sum() + out.sum()).backward()
        return out, change, at.grad, scale.grad

    for ours, theirs in zip(found(our_largest), found(lambda z: z.amax(-2)), strict=True):
        torch.testing.assert_close(ours, theirs)
