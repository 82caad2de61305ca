"""A network of the user's own, really trained in the trial."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import augury
from augury._base.errors import AuguryError
from augury.augmentations import identity, vertical_flip
from augury.data import as_dataset
from augury.forecasting.effort import make_trial
from augury.forecasting.plan import TrainingPlan
from augury.forecasting.training.adamw import one_cycle
from augury.forecasting.training.members import Fold, Schedule
from augury.forecasting.training.own import OwnNetwork, OwnTrainer

CPU = torch.device("cpu")


def bars(count=120, side=10):
    """Make images of bars in the upper or the lower half: a flip swaps the classes."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 60, (count, side, side, 1), dtype=np.uint8)
    y = np.arange(count) % 2
    for k in range(count):
        x[k, rng.integers(0, side // 2) + (side // 2) * y[k]] += 190
    return as_dataset(x, y)


def small_net(outputs=2):
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Sequential(nn.Conv2d(8, 4, 3, padding=1), nn.ReLU()),
        nn.Flatten(),
        nn.Linear(400, outputs),
    )


@pytest.fixture(scope="module")
def data():
    return bars()


def fold_of(data):
    index = torch.arange(len(data))
    return Fold(index[:80], index[80:], 0)


def trained(data, own, candidate=None, seed=0):
    trainer = OwnTrainer(own, data, Schedule(6, batch=16, rate=own.rate), CPU)
    fold = fold_of(data)
    return trainer, trainer.run(candidate, Fold(fold.train, fold.held, seed))


def test_it_learns_and_is_judged_on_held_out_examples(data):
    torch.manual_seed(0)
    _, out = trained(data, OwnNetwork(small_net()))
    assert out.shape == (40, 1, 2)
    y = data.y[80:]
    assert (out[:, 0].argmax(1) == y).float().mean() > 0.9
    _, flipped = trained(data, OwnNetwork(small_net()), vertical_flip())
    assert (flipped[:, 0].argmax(1) == y).float().mean() < 0.8


def test_runs_do_not_see_each_other(data):
    """One trainer serves all candidates: a run is what it is by itself."""
    own = OwnNetwork(small_net())
    trainer, first = trained(data, own)
    trainer.run(vertical_flip(), fold_of(data))
    torch.testing.assert_close(trainer.run(None, fold_of(data)), first)


def test_identity_is_no_augmentation(data):
    own = OwnNetwork(small_net())
    torch.testing.assert_close(trained(data, own, identity())[1], trained(data, own)[1])


def test_new_weights_follow_the_seed_and_given_ones_are_kept(data):
    net = small_net()
    fresh, kept = OwnNetwork(net), OwnNetwork(net, pretrained=True)
    assert not torch.equal(fresh.start(1)[0].weight, fresh.start(2)[0].weight)
    assert torch.equal(fresh.start(1)[0].weight, fresh.start(1)[0].weight)
    assert torch.equal(kept.start(1)[0].weight, net[0].weight)


@pytest.mark.parametrize(
    ("tune", "changed"), [("head", {5}), ("block", {3, 5}), ("all", {0, 1, 3, 5})]
)
def test_what_is_tuned_is_trained_and_the_rest_is_not(data, tune, changed):
    own = OwnNetwork(small_net(), pretrained=True, tune=tune)
    trainer, _ = trained(data, own)
    moved = set()
    for k, (new, old) in enumerate(zip(trainer.net, own.network, strict=True)):
        pairs = zip(new.state_dict().values(), old.state_dict().values(), strict=True)
        if any(not torch.equal(a, b) for a, b in pairs):
            moved.add(k)
    assert moved == changed  # frozen batch norms keep their statistics too


def test_the_rate_rises_and_falls():
    rates = [one_cycle(k, 100)[0] for k in range(100)]
    assert rates[0] == pytest.approx(1 / 25)
    assert max(rates) == pytest.approx(1, abs=1e-3)
    assert rates.index(max(rates)) == 29
    assert rates[-1] == pytest.approx(1 / 25e4)


def test_rank_trains_it(data):
    x = data.x.permute(0, 2, 3, 1).numpy()
    found = augury.rank(
        x, data.y.numpy(), ["vertical_flip", "brightness(0.1)"], network=small_net(), epochs=8,
        effort=3,
    )  # fmt: skip
    assert found.score == "trial"
    assert found.rows[-1].augmentation == "vertical_flip"
    assert found.plan["network"] == "Sequential"
    assert "the planned network (Sequential)" in found.features


def test_a_trial_of_it_keeps_images_as_they_are(data):
    trial = make_trial(TrainingPlan(network="Net"), data, 3, own=True)
    assert (trial.network, trial.side) == ("Net", 10)


class Broken(nn.Module):
    def forward(self, x):
        raise ValueError("no such thing")


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (small_net(7), "returns 7 outputs per example, but the data has 2 classes"),
        (nn.Flatten(0), "returns .* the data has 2 classes"),
        (nn.Linear(3, 2), r"cannot take inputs of shape \(1, 10, 10\)"),
        (Broken(), "cannot take inputs .*no such thing"),
        (nn.Sequential(nn.Flatten(), nn.LazyLinear(2)), "lazy layers.*run one batch through"),
    ],
)
def test_networks_that_do_not_fit_are_refused(data, network, words):
    with pytest.raises(AuguryError, match=words):
        augury.rank(data, None, ["flips"], network=network, effort=0)


def test_options_without_a_network_are_refused(data):
    with pytest.raises(AuguryError, match="for your own network"):
        augury.rank(data, None, ["flips"], pretrained=True)
    with pytest.raises(AuguryError, match="cnn, resnet, lenet or a torch"):
        augury.rank(data, None, ["flips"], network="resnet50")


def test_a_wrong_scale_is_said(data):
    net = small_net()
    with torch.no_grad():  # as if trained on pixels from 0 to 255
        net[1].running_var.copy_(
            net[0](255 * data.batch(torch.arange(120), CPU, torch.float32)).var((0, 2, 3))
        )
    found = augury.rank(data, None, ["flips"], network=net, pretrained=True, epochs=1, effort=0)
    assert any("times the variance seen in training" in w for w in found.warnings)
    scaled = nn.Sequential(Times(255), *net)
    assert OwnNetwork(scaled, pretrained=True).warning(data, CPU) is None


class Times(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return self.factor * x


def test_too_little_memory_is_one_line(data, monkeypatch):
    own = OwnNetwork(small_net())
    trainer = OwnTrainer(own, data, Schedule(1, batch=16), CPU)

    def full(*args):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(trainer, "_step", full)
    with pytest.raises(AuguryError, match=r"not enough memory on cpu .* of 10 pixels"):
        trainer.run(None, fold_of(data))
