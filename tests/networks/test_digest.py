"""A network's hash: journals must not mistake one network for another."""

from __future__ import annotations

import torch
from torch import nn

from augury.networks.digest import digest_network


def make(seed: int = 0, activation: type[nn.Module] = nn.ReLU, **options: object) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), activation(**options), nn.Linear(4, 2))


def test_equal_networks_have_one_hash():
    assert digest_network(make()) == digest_network(make())
    assert len(bytes.fromhex(digest_network(make()))) == 16


def test_weights_and_their_types_change_it():
    assert digest_network(make(1)) != digest_network(make())
    assert digest_network(make().bfloat16()) != digest_network(make().bfloat16().float())


def test_layers_without_weights_change_it():
    """The same weights behind another activation, or one with another setting."""
    found = {digest_network(make(activation=kind)) for kind in (nn.ReLU, nn.GELU, nn.Tanh)}
    assert len(found) == 3
    kinds = [make(activation=nn.LeakyReLU, negative_slope=slope) for slope in (0.1, 0.2)]
    assert digest_network(kinds[0]) != digest_network(kinds[1])


class Printed(nn.Module):
    """A layer that prints where it lies in memory."""

    def extra_repr(self) -> str:
        return f"{object.__repr__(self)}"


def test_addresses_do_not_change_it():
    one, other = Printed(), Printed()
    assert repr(one) != repr(other)
    assert digest_network(one) == digest_network(other)
