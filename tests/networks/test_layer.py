from __future__ import annotations

import pytest
import torch
from torch import nn

from augury import Layer
from augury._base.errors import AuguryError
from augury.networks.layers.find import find_layer


class Twice(nn.Module):
    def forward(self, x):
        return x, x


def network():
    torch.manual_seed(0)
    first = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU())
    return nn.Sequential(first, nn.Dropout(0.5), nn.Flatten(), nn.Linear(108, 4)).double()


def test_layer_gives_what_the_layer_gives():
    model, x = network(), torch.rand(5, 1, 8, 8).double()
    expected = model.eval()[0](x).flatten(1)
    phi = Layer(model, "0")
    torch.testing.assert_close(phi(x), expected)
    torch.testing.assert_close(
        phi.train()(x[:1]), expected[:1]
    )  # batch norm and dropout stay still
    assert not model[0]._forward_hooks


def test_bad_layers_are_said():
    with pytest.raises(AuguryError, match=r"no layer '0\.7'; similar names: 0\.\d"):
        Layer(network(), "0.7")
    with pytest.raises(AuguryError, match=r"no layer 'foo'; its layers: input, 0, 0\.0, .* and 3$"):
        Layer(network(), "foo")
    with pytest.raises(AuguryError, match=r"no layer 'input'; its layers: 0, 0\.0"):
        find_layer(network(), "input")
    many = nn.Sequential(*(nn.ReLU() for _ in range(20)))
    with pytest.raises(AuguryError, match=r"its layers: input, 0, .*, 6 and 13 more$"):
        Layer(many, "foo")
    with pytest.raises(AuguryError, match="returns a tuple, not a tensor"):
        Layer(nn.Sequential(Twice()), "0")(torch.zeros(1, 2))
    model = network()
    model.unused = nn.Linear(1, 1)
    model.forward = lambda x: model[0](x)
    with pytest.raises(AuguryError, match="is not used"):
        Layer(model, "unused")(torch.zeros(1, 1, 8, 8).double())
