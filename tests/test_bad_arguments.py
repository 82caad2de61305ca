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
    refused("loss must be a Loss, such as multinomial, got a string", augury.certify, orbit, "log")


def test_what_is_said_of_examples():
    refused("x must be a tensor of examples, got a string", CALLS["plan_averaging"], "photos")
    refused(
        "x must be an array or a tensor of examples, got a string", CALLS["measure_invariance"], "x"
    )
    refused("at least one example, got shape (0, 1, 8, 8)", CALLS["cuts"], BAD["no examples"])
    channels = torch.zeros(4, 3, 8, 8)
    refused("Sequential cannot take a batch of shape", CALLS["plan_averaging"], channels)


NUMBERS = ("x", 1.5, float("nan"), [1.5], object(), b"a", True)


@pytest.mark.parametrize(
    ("call", "options"),
    [
        ("rank", ("seed", "effort", "n_views", "max_examples", "epochs", "batch_size", "plan")),
        ("search_policy", ("seed", "max_examples", "epochs")),
        ("plan_averaging", ("n_views", "max_layers", "repeats", "seed", "groups")),
        ("measure_invariance", ("n_views", "seed", "batch_size")),
        ("load", ("seed", "max_examples", "size")),
        ("as_dataset", ("seed", "max_examples")),
    ],
)
def test_numbers(call, options):
    images = np.random.default_rng(0).random((20, 8, 8))
    batch = torch.rand(4, 1, 8, 8)
    calls = {
        "rank": lambda **given: augury.rank(images, [0, 1] * 10, ["flips"], **given),
        "search_policy": lambda **given: augury.search_policy(images, [0, 1] * 10, **given),
        "plan_averaging": lambda **given: augury.plan_averaging(network(), batch, "flips", **given),
        "measure_invariance": lambda **given: augury.measure_invariance(
            network().eval(), batch, "flips", **given
        ),
        "load": lambda **given: augury.load("digits", **given),
        "as_dataset": lambda **given: augury.as_dataset(images, [0, 1] * 10, **given),
    }
    for name in options:
        for bad in NUMBERS:
            refused(f"{name} must be ", calls[call], **{name: bad})


def test_numbers_that_would_never_end():
    batch = torch.rand(4, 1, 8, 8)
    for name, most in (("n_views", "4,096"), ("repeats", "1,000")):
        given = {name: 10**6}
        refused(f"{name} must be|{most}", augury.plan_averaging, network(), batch, "flips", **given)


def test_numpys_numbers_are_numbers():
    found = augury.load("digits", max_examples=np.int64(40), seed=np.uint8(3))
    assert len(found) == 40
    assert augury.TrainingPlan(epochs=np.int64(7)) == augury.TrainingPlan(epochs=7)


@pytest.mark.parametrize("bad", [1.5, [1], object(), b"a"])
def test_names_of_layers(bad):
    batch = torch.rand(4, 1, 8, 8)
    refused("layers must be strings", augury.plan_averaging, network(), batch, "flips", layers=bad)
    refused(
        "layers must be strings", augury.measure_invariance, network().eval(), batch, "flips",
        layers=bad,
    )  # fmt: skip


def test_masked_and_absent_values_and_what_is_no_json():
    x, y = np.random.default_rng(0).random((20, 8, 8)), [0, 1] * 10
    refused("must not be masked", augury.as_dataset, np.ma.masked_greater(x, 0.9), y)
    assert len(augury.as_dataset(np.ma.masked_greater(x, 2), y)) == 20  # nothing is masked
    refused("the meta device", augury.as_dataset, torch.empty(20, 8, 8, device="meta"), y)
    refused("got text that is not JSON", augury.Ranking.from_json, 3)
    given = {"score": "alignment", "journal": 3}
    refused("expected the path", augury.rank, x, y, ["flips"], **given)


@pytest.mark.parametrize("budget", ["60s", True, np.complex64(5), 0, -1.0, float("nan"), [60]])
@pytest.mark.parametrize("call", [augury.rank, augury.search_policy])
def test_budgets(call, budget):
    x = np.random.default_rng(0).random((80, 8, 8))
    said = "budget must be a positive number of seconds, got"
    refused(said, lambda: call(x, [0, 1] * 40, budget=budget))


@pytest.mark.parametrize("bad", PATHS[1:])
def test_journals(bad):
    x = np.random.default_rng(0).random((80, 8, 8))
    refused(
        "expected the path of a file or directory, got",
        lambda: augury.search_policy(x, [0, 1] * 40, journal=BAD[bad]),
    )


@pytest.mark.parametrize("seed", [-5, 2**63, 2**64, 2**70])
def test_seeds(seed):
    x, y, batch = np.random.default_rng(0).random((80, 8, 8)), [0, 1] * 40, torch.rand(4, 1, 8, 8)
    said = "seed must be a whole number from 0 to 9,223,372,036,854,775,807, got"
    refused(said, augury.rank, x, y, ["flips"], effort=0, seed=seed)
    refused(said, augury.rank, x, y, ["flips"], score="ridge", seed=seed)
    refused(said, augury.search_policy, x, y, seed=seed)
    refused(said, augury.plan_averaging, network(), batch, "flips", seed=seed)
    refused(said, augury.measure_invariance, network().eval(), batch, "flips", seed=seed)
    for features in ("FourierFeatures", "GradientFeatures", "PatchFeatures"):
        refused(said, getattr(augury.features, features), seed=seed)


def test_the_largest_seed_is_taken():
    x, y = np.random.default_rng(0).random((80, 8, 8)), [0, 1] * 40
    for given in ({"effort": 0}, {"score": "ridge"}):
        assert augury.rank(x, y, ["flips"], seed=2**63 - 1, **given).seed == 2**63 - 1
    table = np.random.default_rng(0).random((80, 4))
    assert augury.rank(table, y, ["jitter(0.1)"], seed=2**63 - 1, effort=0).rows
