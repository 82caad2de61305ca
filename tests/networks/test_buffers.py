"""The passes of the second order leave no trace in buffers, and see those of the first pass."""

from __future__ import annotations

import copy

import pytest
import torch
from reference_networks import batch
from torch import nn
from torch.nn.utils import spectral_norm as hooked
from torch.nn.utils.parametrizations import spectral_norm

from augury import Averaging, TangentPropagation

T = "rotation(15)"


class Means(nn.Module):
    """Moving means, one written in place and one assigned; the output depends on them."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(2, dtype=torch.float64))
        self.register_buffer("other", torch.zeros(2, dtype=torch.float64))
        self.register_buffer("count", None)  # made by the first pass
        self.register_buffer("still", torch.ones(2, dtype=torch.float64))

    def forward(self, x):
        now = x.detach().mean((0, 2, 3))
        self.mean.mul_(0.9).add_(0.1 * now)
        self.other = 0.9 * self.other + 0.1 * now
        self.count = self.still if self.count is None else self.count + 1
        return x - (self.mean + self.other * self.still).view(1, 2, 1, 1)


TAILS = {
    "instance": lambda: nn.InstanceNorm2d(2, track_running_stats=True),
    "batch": lambda: nn.BatchNorm2d(2),
    "spectral": lambda: spectral_norm(nn.Conv2d(2, 2, 3, padding=1)),
    "spectral, by a hook": lambda: hooked(nn.Conv2d(2, 2, 3, padding=1)),
    "means": Means,
}


def make(tail):
    torch.manual_seed(0)
    size = batch()[0].shape[-1]
    head = nn.Flatten(), nn.Linear(2 * size * size, 3)
    return nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.Tanh(), TAILS[tail](), *head).double()


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize(
    "how",
    [
        Averaging(T, "1", 4, order=2),
        Averaging(T, "1", 4, order=2, directions=2, curvature="hessian"),
        TangentPropagation("translation(0.1)"),
    ],
)
def test_buffers_change_as_in_one_pass(tail, how):
    network, once, (x, y) = make(tail), make(tail), batch()
    first = Averaging(T, "1", 4) if isinstance(how, Averaging) else None
    for step in range(2):
        how.loss(network, x, y, seed=step).backward()
        if first is None:
            once(x)  # a translation is centred on the images themselves
        else:
            first.loss(once, x, y)
        for (name, ours), theirs in zip(network.named_buffers(), once.buffers(), strict=True):
            torch.testing.assert_close(ours, theirs, msg=f"{name} in step {step}")
            assert not ours.requires_grad
    copy.deepcopy(network.state_dict())


def test_all_passes_see_the_weights_of_the_first():
    network, (x, y) = make("spectral"), batch()
    once = copy.deepcopy(network)
    Averaging(T, "1", 4).loss(once, x, y)
    plain = make("batch")
    plain[2] = nn.Conv2d(2, 2, 3, padding=1).double()
    state = once.eval().state_dict()
    with torch.no_grad():
        plain[2].weight.copy_(once[2].weight)
        plain[2].bias.copy_(once[2].bias)
        for k in (0, 4):
            plain[k].load_state_dict({p: state[f"{k}.{p}"] for p in ("weight", "bias")})
    how = Averaging(T, "1", 4, order=2)
    torch.testing.assert_close(how.losses(network, x, y), how.losses(plain, x, y))
