"""A network of the user's own, part by part."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from refusal import refused
from torch import nn

from augury.data import as_dataset
from augury.forecasting.training import own as module
from augury.forecasting.training.members import Fold, Schedule
from augury.forecasting.training.own import OwnNetwork, OwnTrainer

CPU = torch.device("cpu")


def images(count=40, side=6, scale=255):
    x = np.random.default_rng(0).integers(0, scale, (count, side, side), np.uint8)
    return as_dataset(x, np.arange(count) % 2)


def deep():
    """Two convolutions, the second with a batch norm, in a plain container; then the head."""
    return nn.Sequential(
        nn.Conv2d(1, 3, 3),
        nn.Sequential(nn.Conv2d(3, 3, 3), nn.BatchNorm2d(3), nn.ReLU()),
        nn.Flatten(),
        nn.Linear(12, 2),
    )


@pytest.mark.parametrize(
    ("pretrained", "tune", "rate"),
    [(False, "all", 3e-3), (True, "all", 1e-3), (True, "block", 1e-3), (True, "head", 5e-3)],
)
def test_rates(pretrained, tune, rate):
    assert OwnNetwork(deep(), pretrained, tune).rate == rate


@pytest.mark.parametrize(("tune", "count"), [("head", 2), ("block", 6), ("all", 8)])
def test_a_block_is_the_last_one_with_matrices(tune, count):
    """A batch norm has no matrix: the convolution before it belongs to the block."""
    net = deep()
    found = OwnNetwork(net, True, tune).trained(net)
    assert [id(p) for p in found] == [id(p) for p in net.parameters()][-count:]


def test_a_network_of_one_block_is_trained_whole():
    net = nn.Sequential(nn.Flatten(), nn.Linear(36, 2))
    for tune in ("head", "block"):
        assert len(OwnNetwork(net, True, tune).trained(net)) == 2
    norms = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(36), nn.Linear(36, 2))
    assert len(OwnNetwork(norms, True, "block").trained(norms)) == 4  # no matrix before the head


def test_outputs_must_fit():
    for outputs, said in ((3, "3 outputs"), (1, "1 output per")):
        net = nn.Sequential(nn.Flatten(), nn.Linear(36, outputs))
        refused(f"the network returns {said}|data has 2 classes", OwnNetwork(net).check,
                images(), CPU)  # fmt: skip
    flat = nn.Conv2d(1, 2, 1)
    refused("outputs of shape (2, 6, 6)", OwnNetwork(flat).check, images(), CPU)
    refused("no parameters to train", OwnNetwork(Mean()).check, images(), CPU)


class Mean(nn.Module):
    def forward(self, x):
        return x.flatten(1).mean(1, keepdim=True).expand(-1, 2)


def known(variance, count=40):
    """A network whose first batch norm knew inputs of some times this variance."""
    net = nn.Sequential(nn.BatchNorm2d(1), nn.Flatten(), nn.Linear(36, 2))
    x = images(count).batch(torch.arange(count), CPU, torch.float32)
    net[0].running_var = x.var().view(1) / variance
    return OwnNetwork(net, pretrained=True)


@pytest.mark.parametrize(
    ("factor", "said"), [(3.9, False), (4.1, True), (1 / 3.9, False), (1 / 4.1, True)]
)
def test_a_scale_four_times_off_is_said(factor, said):
    found = known(factor).warning(images(), CPU)
    assert (found is not None) is said
    if found is not None:
        assert f"have {factor:.2g} times the variance" in found


def test_no_scale_is_known_without_a_batch_norm_or_pretraining():
    assert OwnNetwork(known(9).network, pretrained=False).warning(images(), CPU) is None
    assert OwnNetwork(deep()[0], pretrained=True).warning(images(), CPU) is None
    dead = known(9)
    dead.network[0].running_var = torch.full((1,), 1e-5)
    assert dead.warning(images(), CPU) is None
    without = nn.Sequential(nn.BatchNorm2d(1, track_running_stats=False), nn.Flatten())
    assert OwnNetwork(without, pretrained=True).warning(images(), CPU) is None


def test_frozen_layers_stay_in_evaluation_mode():
    own = OwnNetwork(deep(), pretrained=True, tune="head")
    trainer = OwnTrainer(own, images(), Schedule(1, batch=8, rate=own.rate), CPU)
    trainer._mode()
    assert trainer.net.training
    assert not trainer.net[0].training
    assert not trainer.net[1][1].training
    assert trainer.net[3].training
    assert len(trainer.parameters) == 2


def fold(data, start=0):
    index = torch.arange(len(data))
    return Fold(index[:24], index[24:], start)


def test_steps_are_the_optimizers(monkeypatch):
    """As many steps as the schedule has, at its rates, and outputs in evaluation mode."""
    data, own = images(), OwnNetwork(deep())
    schedule = Schedule(3, batch=8, rate=0.5)
    trainer = OwnTrainer(own, data, schedule, CPU)
    rates = []
    monkeypatch.setattr(trainer, "_set_rate", rates.append)
    monkeypatch.setattr(trainer, "_step", lambda x, y, k: None)
    out = trainer.run(None, fold(data))
    assert len(rates) == schedule.steps(24) == 9
    assert rates == pytest.approx([0.5 * module.one_cycle(k, 9)[0] for k in range(9)])
    assert out.shape == (16, 1, 2)
    assert not trainer.net.training


def test_fresh_weights_do_not_touch_the_callers_generator():
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    net = deep()
    expected = torch.random.get_rng_state()
    torch.random.set_rng_state(before)
    own = OwnNetwork(net)
    own.start(5)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert not torch.equal(expected, before)


def test_the_head_and_the_block_of_a_longer_network():
    net = nn.Sequential(*(nn.Linear(4, 4) for _ in range(4)))
    for tune, first in (("head", 6), ("block", 4), ("all", 0)):
        found = OwnNetwork(net, True, tune).trained(net)
        assert [id(p) for p in found] == [id(p) for p in net.parameters()][first:]
    norms = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(36), nn.Linear(36, 2))
    found = OwnNetwork(norms, True, "head").trained(norms)
    assert [id(p) for p in found] == [id(p) for p in norms[2].parameters()]


def test_what_a_network_returns_is_said():
    class Pair(nn.Module):
        def forward(self, x):
            return x, x

    refused("the network returns a tuple per example", OwnNetwork(Pair()).check, images(), CPU)
    x = np.random.default_rng(0).normal(size=(20, 3))
    real = as_dataset(x, x[:, 0])
    OwnNetwork(nn.Linear(3, 1)).check(real, CPU)
    refused("returns 2 outputs per example, but the data has one number",
            OwnNetwork(nn.Linear(3, 2)).check, real, CPU)  # fmt: skip


class Large(nn.Module):
    """A network that no memory holds."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        raise torch.OutOfMemoryError


def test_a_network_that_does_not_fit_is_said_in_one_line():
    wide = as_dataset(np.zeros((8, 6, 9), np.uint8), np.arange(8) % 2)
    said = "not enough memory on cpu to train the network on inputs of 9 pixels; use a smaller"
    refused(said, OwnNetwork(Large()).check, wide, CPU)
    trainer = OwnTrainer(OwnNetwork(Large()), wide, Schedule(1), CPU)
    refused(said, trainer.run, None, Fold(torch.arange(4), torch.arange(4, 8), 0))
    table = as_dataset(np.random.default_rng(0).normal(size=(8, 3)), np.arange(8) % 2)
    refused("to train the network on inputs; use", OwnNetwork(Large()).check, table, CPU)


def test_a_scale_is_seen_on_256_examples_and_by_live_channels():
    data, own = images(300), known(1, 256)
    sizes = []
    own.network.register_forward_hook(lambda module, args, out: sizes.append(len(args[0])))
    assert own.warning(data, CPU) is None
    assert sizes == [256]
    own.network[0].running_var = torch.full((1,), 1.2e-4)
    assert "times the variance" in own.warning(data, CPU)
    table = as_dataset(np.random.default_rng(0).normal(size=(8, 3)), np.arange(8) % 2)
    assert own.warning(table, CPU) is None


def test_a_step_lowers_the_loss_with_gradients_of_its_own(exact):
    """Two steps by hand: gradients are dropped before each."""
    data, own = images(), OwnNetwork(nn.Sequential(nn.Flatten(), nn.Linear(36, 2)))
    trainer = OwnTrainer(own, data, Schedule(1, 8, rate=0.1, decay=0.2), CPU)
    twin = own.start(0)
    optimizer = torch.optim.AdamW(twin.parameters(), 0.1, weight_decay=0.2)
    x, y = data.batch(torch.arange(8), CPU, torch.float32), data.y[:8]
    for _ in range(2):
        trainer._compute(x, y)
        optimizer.zero_grad()
        nn.functional.cross_entropy(twin(x), y).backward()
        optimizer.step()
    for ours, theirs in zip(trainer.net.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
