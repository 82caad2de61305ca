"""What is passed in place of examples, paths and losses is refused in one line."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from refusal import refused
from torch import nn

import augury

BAD = {
    "a string": "photos",
    "bytes": b"photos",
    "nothing": None,
    "a number": 3,
    "an object": object(),
    "strings": ["a", "b"],
    "an array of strings": np.array(["a"] * 20),
    "a dict": {"a": 1},
    "a ragged list": [[1, 2], [3]],
    "no examples": torch.zeros(0, 1, 8, 8),
    "an array without examples": np.zeros((0, 8, 8)),
    "no values": torch.zeros(4, 1, 0, 8),
}
PATHS = ("nothing", "a number", "an object", "bytes", "a dict", "no examples")


def network():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))


def classifier():
    return augury.AugmentedKernelClassifier("rotation(10)", n_components=8)


def fitted():
    return classifier().fit(np.random.default_rng(0).random((20, 8, 8)), [0, 1] * 10)


CALLS = {
    "plan_averaging": lambda x: augury.plan_averaging(network(), x, "rotation(10)"),
    "measure_invariance": lambda x: augury.measure_invariance(network(), x, "rotation(10)"),
    "cuts": lambda x: augury.cuts(network(), x),
    "rank": lambda x: augury.rank(x, [0, 1] * 10, ["flips"], effort=0),
    "search_policy": lambda x: augury.search_policy(x, [0, 1] * 10),
    "as_dataset": lambda x: augury.as_dataset(x, [0, 1] * 10),
    "load": augury.load,
    "fit": lambda x: classifier().fit(x, [0, 1] * 10),
    "predict": lambda x: fitted().predict(x),
    "a transform": lambda x: augury.parse("rotation(10)")(x),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("call", CALLS)
def test_examples(call, bad):
    refused("", CALLS[call], BAD[bad])


@pytest.mark.parametrize("bad", [name for name in BAD if "examples" not in name])
def test_views(bad):
    views = augury.parse("rotation(10)").views
    refused("", views, BAD[bad], 2, augury.Rng(0, torch.arange(2)))


@pytest.mark.parametrize("bad", PATHS)
@pytest.mark.parametrize("call", [augury.load_model, augury.open_shards])
def test_paths(call, bad):
    refused("expected the path of a file or directory, got", call, BAD[bad])


def test_a_loss():
    orbit = augury.Orbit(torch.rand(2, 3, 4), torch.full((2,), 0.5))
    refused("loss must be a Loss, such as multinomial, got str", augury.certify, orbit, "log")


def test_what_is_said_of_examples():
    refused("x must be a tensor of examples, got str", CALLS["plan_averaging"], "photos")
    refused("x must be an array or a tensor of examples, got str", CALLS["measure_invariance"], "x")
    refused("one example or more, got shape (0, 1, 8, 8)", CALLS["cuts"], BAD["no examples"])
    channels = torch.zeros(4, 3, 8, 8)
    refused("Sequential cannot take a batch of shape", CALLS["plan_averaging"], channels)
