"""A network whose forward pass changes between steps is cut anew, or refused as a new one is."""

from __future__ import annotations

import copy
from unittest import mock

import pytest
import torch
from reference_networks import NETWORKS, batch, make
from refusal import refused
from torch import nn

from augury import Averaging
from augury.networks.layers import cut_at, paths

T = "rotation(20)"


class Switched(nn.Module):
    """A skip connection, from the input or from a layer, that can be switched on."""

    def __init__(self):
        super().__init__()
        self.settings = {"skip": ""}
        self.a, self.b = nn.Conv2d(1, 2, 3, padding=1), nn.Conv2d(2, 2, 3, padding=1)
        self.fc = nn.LazyLinear(3)

    def forward(self, x):
        x = x - 0.5
        skip = self.settings["skip"]
        early = torch.relu_(self.a(x))
        if skip == "never":
            return self.fc(early.flatten(1))
        late = self.b(early)
        if skip == "twice":
            late = self.b(late)
        if skip == "order":
            late = self.a(late[:, :1])
        late = late + {"input": x, "layer": early}.get(skip, 0)
        return self.fc(late.flatten(1))


def fresh():
    torch.manual_seed(0)
    network, (x, y) = Switched().double(), batch()
    network(x.clone())
    return network, x, y


@pytest.mark.parametrize(
    "how",
    [
        Averaging(T, "b", n_views=4, groups=4),
        Averaging(T, "b", n_views=4),
        Averaging(T, "b", n_views=4, order=2),
    ],
)
@pytest.mark.parametrize(
    ("skip", "words"),
    [
        ("input", "'b' does not cut the network|average at 'fc' instead"),
        ("layer", "'b' does not cut the network|average at 'fc' instead"),
        ("twice", "'b' is called 2 times"),
        ("never", "'b' is called never"),
    ],
)
def test_a_path_that_is_switched_on_later_is_seen(how, skip, words):
    network, x, y = fresh()
    before = how.loss(network, x.clone(), y)
    state = copy.deepcopy(network.state_dict())
    network.settings["skip"] = skip
    refused(words, how.loss, network, x.clone(), y)
    refused(words, how.loss, network, x.clone(), y)
    network.settings["skip"] = ""
    torch.testing.assert_close(how.loss(network, x.clone(), y), before)
    assert all(torch.equal(v, state[k]) for k, v in network.state_dict().items())


def test_a_layer_that_is_used_again_later_is_run_then():
    class Order(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.mid, self.fc = (nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2))
            self.late = False

        def forward(self, x):
            x = x if self.late else self.first(x)
            x = self.mid(x)
            return self.fc(self.first(x) if self.late else x)

    torch.manual_seed(0)
    network, x, y = Order(), torch.rand(5, 4), torch.arange(5) % 2
    how = Averaging("jitter(0.1)", "mid", 4)
    how.loss(network, x, y, seed=0)
    network.late = True
    expected = how.losses(copy.deepcopy(network), x, y, seed=0)
    torch.testing.assert_close(how.losses(network, x, y, seed=0), expected)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_that_does_not_change_is_checked_once(name):
    (network, halves), (x, y) = make(name), batch()
    for layer in halves:
        for order in (1, 2):
            how = Averaging(T, layer, 4, order=order)
            how.loss(network, x, y)
            with mock.patch.object(paths, "_checked", side_effect=AssertionError):
                how.loss(network, x, y).backward()
                cut_at(network, layer, x)
