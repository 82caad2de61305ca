"""What members are given, how many at a time, and how exactly: by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from augury._base.rng import Rng
from augury.augmentations import identity, rotation
from augury.data import as_dataset
from augury.data.dataset import Dataset
from augury.forecasting.training import members
from augury.forecasting.training.adamw import AdamW, one_cycle
from augury.forecasting.training.grouped import Grouped
from augury.forecasting.training.members import (
    Fold,
    Schedule,
    make_batches,
    member_loss,
    precision,
    run_members,
    train_members,
    worth_recording,
)
from augury.forecasting.training.spectrogram import LogMel

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def table(count=12, columns=2):
    x = np.random.default_rng(0).normal(size=(count, columns))
    return as_dataset(x, np.arange(count) % 3)


def images(count=12, side=4):
    x = np.random.default_rng(0).integers(0, 256, (count, side, side), np.uint8)
    return as_dataset(x, np.arange(count) % 2)


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 7, 10, 33, 100])
def test_one_cycle_by_hand(steps):
    """The rate rises along half a cosine until 30 % of the steps, then falls along another."""
    turn = 0.3 * steps - 1
    for step in range(steps):
        share, momentum = one_cycle(step, steps)
        if step <= turn:
            way = (1 - math.cos(math.pi * step / turn)) / 2
            wanted = 0.04 + 0.96 * way, 0.95 - 0.1 * way
        else:
            way = (1 - math.cos(math.pi * (step - turn) / (steps - 1 - turn))) / 2
            wanted = 1 + (4e-6 - 1) * way, 0.85 + 0.1 * way
        assert (share, momentum) == pytest.approx(wanted, abs=1e-12)


def test_one_cycle_begins_turns_and_ends():
    assert one_cycle(0, 10) == pytest.approx((1 / 25, 0.95))
    assert one_cycle(2, 10) == pytest.approx((1, 0.85))
    assert one_cycle(9, 10) == pytest.approx((1 / 25e4, 0.95))


def test_adamw_by_hand():
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(5, generator=generator, dtype=torch.float64)
    parameter = nn.Parameter(start.clone())
    optimizer = AdamW(iter([parameter]), decay=0.1)
    first = second = torch.zeros(5).double()
    for k, (rate, momentum) in enumerate([(0.1, 0.95), (0.3, 0.9), (0.2, 0.85)], start=1):
        grad = 1e-4 * torch.randn(5, generator=generator, dtype=torch.float64)
        parameter.grad = grad
        optimizer.step(rate, momentum)
        start = start - rate * 0.1 * start
        first = momentum * first + (1 - momentum) * grad
        second = 0.999 * second + 0.001 * grad**2
        size = (second / (1 - 0.999**k)).sqrt() + 1e-8
        start = start - rate * first / (1 - momentum**k) / size
        torch.testing.assert_close(parameter.detach(), start, rtol=1e-7, atol=0)
    optimizer.forget()
    assert parameter.grad is None


@pytest.mark.parametrize(
    ("device", "shape", "fast", "short"),
    [
        (CPU, (3, 8, 8), True, True),
        (CPU, (3, 8, 8), False, False),
        (CPU, (2, 30), True, False),
        (CPU, (6,), True, False),
        (CUDA, (6,), True, True),
        (CUDA, (3, 8, 8), True, True),
        (CUDA, (6,), False, False),
    ],
)
def test_numbers_are_short_where_that_is_faster(device, shape, fast, short, monkeypatch):
    asked = []
    monkeypatch.setattr(members, "has_bfloat16", lambda device: fast)
    monkeypatch.setattr(torch, "autocast", lambda *args, **options: asked.append((args, options)))
    precision(device, shape)
    precision(device, shape, cache=False)
    for (args, options), cache in zip(asked, (True, False), strict=True):
        assert args == (device.type, torch.bfloat16)
        assert options == {"enabled": short, "cache_enabled": cache}


def test_long_training_on_a_gpu_is_recorded():
    assert worth_recording(CUDA, 50) is True
    assert worth_recording(CUDA, 49) is False
    assert worth_recording(CPU, 5000) is False


def test_losses_by_hand():
    """Of two examples and one member: labels, a number, several labels."""
    out = torch.tensor([[[0.0, 1.0, 2.0]], [[3.0, 1.0, 0.0]]])
    found = member_loss(out, torch.tensor([[2], [1]]), True)
    assert found.shape == (2, 1)
    wanted = [math.log(1 + math.exp(-1) + math.exp(-2)), math.log(math.exp(2) + 1 + math.exp(-1))]
    assert found[:, 0].tolist() == pytest.approx(wanted)
    found = member_loss(out[..., :1], torch.tensor([[0.5], [1.0]]), False)
    assert found.tolist() == [[0.25], [4.0]]
    tags = torch.tensor([[[0, 0, 1]], [[1, 0, 0]]])
    found = member_loss(out, tags, True)
    soft = [math.log(1 + math.exp(v)) for v in (0, 1, -2, -3, 1, 0)]
    assert found.shape == (2, 1)
    assert found[:, 0].tolist() == pytest.approx([sum(soft[:3]) / 3, sum(soft[3:]) / 3])


class Echo(nn.Module):
    """A network that returns its inputs, and notes how many examples it was given."""

    def __init__(self, count, shape):
        super().__init__()
        self.members, self.shape = count, shape
        self.weight = nn.Parameter(torch.zeros(1))
        self.sizes = []

    def forward(self, x):
        self.sizes.append(len(x))
        return x


@pytest.mark.parametrize(
    ("copies", "sizes"),
    [([3, 2], [3276, 224]), ([1500], [16, 16, 3]), ([1024], [16, 16, 3]), ([512], [32, 3])],
)
def test_so_many_examples_are_run_at_a_time(copies, sizes):
    """16,384 of all members together, and 16 of each at least."""
    count = sum(sizes)
    data = table(count + 5)
    rows = [torch.arange(count) + k for k in range(len(copies))]
    net = Echo(sum(copies), data.shape)
    found = run_members(net, data, rows, copies)
    assert net.sizes == sizes
    for one, index, number in zip(found, rows, copies, strict=True):
        assert one.shape == (count, number, 2)
        torch.testing.assert_close(one[:, number - 1], data.x[index].float())
        assert not one.requires_grad


def views_made(monkeypatch):
    """Note for which epochs views are made, and how many at a time."""
    made, real = [], members._views

    def watched(*args):
        made.append(args[3:5])
        return real(*args)

    monkeypatch.setattr(members, "_views", watched)
    return made


def test_so_many_views_are_made_at_a_time(monkeypatch):
    """16,000 of a candidate: 62 epochs of 255 examples, since 63 would be one too many."""
    made = views_made(monkeypatch)
    data = table(260)
    fold = Fold(torch.arange(255), torch.arange(255, 260), 0)
    schedule = Schedule(70, batch=255)
    assert len(list(make_batches(data, schedule, [identity()], [fold], [], CPU))) == 70
    assert made == [(0, 62), (62, 62)]
    assert members._VIEWS_GPU == 8000  # there, the views of all candidates are made at once


@pytest.mark.parametrize(
    ("views", "at_once", "made"),
    [
        (2, 9, [(0, 2)]),
        (2, 1, [(0, 1), (1, 1), (0, 1), (1, 1), (0, 1)]),
        (None, 9, [(0, 5)]),
        (9, 9, [(0, 5)]),
        (3, 2, [(0, 2), (2, 2), (0, 2)]),
    ],
)
def test_views_are_seen_in_turn(views, at_once, made, monkeypatch):
    """Five epochs of six examples; the order of each is that of the fold's generator."""
    monkeypatch.setattr(members, "_VIEWS", 6 * at_once)
    found = views_made(monkeypatch)
    data, fold = images(), Fold(torch.arange(6), torch.arange(6, 12), 4, 1)
    schedule = Schedule(5, batch=4, views=views)
    seen = list(make_batches(data, schedule, [rotation(40)], [fold], [], CPU))
    assert found == made
    assert len(seen) == 5  # the two examples that are left are no batch
    generator = torch.Generator().manual_seed(4001)
    step = min(at_once, views or 5, 5)
    for epoch, (x, y) in enumerate(seen):
        order = torch.randperm(6, generator=generator)[:4]
        turn = epoch % (min(views or 5, 5))
        begun = turn - turn % step
        pixels = data.batch(order, CPU, torch.float32)
        rng = Rng(4, order + 12).child(begun)
        view = rotation(40).views(pixels, step, rng)[turn % step]
        torch.testing.assert_close(x[:, 0], (view * 255).round() / 255)
        assert y[:, 0].tolist() == data.y[order].tolist()


def test_members_come_fold_by_fold_and_plain_ones_last():
    data = table()
    folds = [Fold(torch.arange(k, k + 4), torch.arange(0), 0, k) for k in (0, 3)]
    clean = [Fold(torch.arange(8, 12), torch.arange(0), 0, 7)]
    ((x, y),) = make_batches(data, Schedule(1, 4), [identity(), identity()], folds, clean, CPU)
    assert x.shape == (4, 5, 2)
    orders = [torch.randperm(4, generator=torch.Generator().manual_seed(k)) for k in (0, 3, 7)]
    index = [fold.train[order] for fold, order in zip((*folds, *clean), orders, strict=True)]
    for member, k in enumerate((0, 0, 1, 1, 2)):
        torch.testing.assert_close(x[:, member], data.x[index[k]].float())
        assert y[:, member].tolist() == data.y[index[k]].tolist()
    ((x, y),) = make_batches(data, Schedule(1, 4), [identity()], [], clean, CPU)
    assert (x.shape, y.shape) == ((4, 1, 2), (4, 1))


def test_real_targets_are_floats_and_pixels_go_from_zero_to_one():
    x = np.array([[[0, 255], [51, 102]]] * 4, np.uint8)
    fold = Fold(torch.arange(3), torch.arange(0), 0)
    data = as_dataset(x, np.linspace(0, 1, 4))
    for chosen in ([[identity()], [fold], []], [[], [], [fold]]):
        ((found, y),) = make_batches(data, Schedule(1), *chosen, CPU)
        assert y.dtype == found.dtype == torch.float32
        assert found[0].flatten().tolist() == pytest.approx([0, 1, 0.2, 0.4])


def watched_batches(monkeypatch):
    """Note how many examples are read at a time."""
    sizes, real = [], Dataset.batch

    def batch(self, index, device, dtype):
        sizes.append(len(index))
        return real(self, index, device, dtype)

    monkeypatch.setattr(Dataset, "batch", batch)
    return sizes


def test_so_many_numbers_are_in_flight_while_views_are_made(monkeypatch):
    """2²⁶, of which an example has three in each of 2²² epochs."""
    sizes = watched_batches(monkeypatch)
    data = table(12, columns=3)
    fold = Fold(torch.arange(12), torch.arange(0), 0)
    assert members._views(data, [], [fold], 0, 1 << 22, CPU).shape == (1 << 22, 1, 12, 0, 3)
    assert sizes == [5, 5, 2]
    sizes.clear()
    members._views(data, [], [fold], 0, 1 << 26, CPU)
    assert sizes == [1] * 12


def test_sound_takes_32_times_the_memory(monkeypatch):
    sizes = watched_batches(monkeypatch)
    waves = np.random.default_rng(0).normal(size=(20, 1024)).astype(np.float32)
    data = as_dataset(waves, np.arange(20) % 2, kind="sound", rate=8000)
    fold = Fold(torch.arange(20), torch.arange(0), 0)
    pool = members._views(data, [], [fold], 0, 1 << 10, CPU, LogMel(8000, 1024))
    assert pool.dtype == torch.float16
    assert sizes == [2] * 10


def test_pixels_of_views_are_rounded_to_bytes(monkeypatch):
    class Bright:
        def views(self, x, count, rng):
            return torch.stack([x + 0.5, x - 0.5, x + 0.6 / 255])[:count]

    data = as_dataset(np.full((4, 2, 2), 200, np.uint8), [0, 0, 1, 1])
    fold = Fold(torch.arange(2), torch.arange(0), 0)
    found = members._views(data, [Bright()], [fold], 0, 3, CPU)
    assert found.shape[:4] == (3, 1, 2, 1)
    assert [set(part.flatten().tolist()) for part in found] == [{255}, {72}, {201}]


def test_a_step_is_the_sum_of_the_members_mean_losses(monkeypatch):
    """Images are trained channels last, and gradients are dropped after each step."""
    data = images(16, 8)
    fold = Fold(torch.arange(8), torch.arange(8, 16), 0)
    net = Grouped("small", 2, data.shape, 2, 0)
    begun = Grouped("small", 2, data.shape, 2, 0)
    grads = {}
    monkeypatch.setattr(members, "has_bfloat16", lambda device: False)

    def step(self, rate, momentum):
        grads["found"] = [p.grad.clone() for p in self.parameters]
        grads["rate"] = rate, momentum, self.decay

    monkeypatch.setattr(AdamW, "step", step)
    found = train_members(net, data, Schedule(1, 8, 0.5, 0.2), [], [], [fold, fold])
    assert found is net
    assert all(p.grad is None for p in net.parameters())
    kernel = net.network[0][1].conv.weight
    assert kernel.is_contiguous(memory_format=torch.channels_last)
    assert grads["rate"] == (0.5 * one_cycle(0, 1)[0], one_cycle(0, 1)[1], 0.2)
    ((x, y),) = make_batches(data, Schedule(1, 8), [], [], [fold, fold], CPU)
    out = begun.train()(x)
    loss = F.cross_entropy(out[:, 0], y[:, 0]) + F.cross_entropy(out[:, 1], y[:, 1])
    right = torch.autograd.grad(loss, list(begun.parameters()))
    for ours, theirs in zip(grads["found"], right, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
