"""Trials, part by part, without training."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from augury._base.errors import AuguryError
from augury.augmentations import flips, identity, rotation
from augury.data import as_dataset
from augury.forecasting import trial as module
from augury.forecasting.trial import (
    HeldOut,
    Trial,
    make_fold,
    run_folds,
    shrink,
    stratified_order,
    ticks,
)
from augury.statistics.precision import average_precision

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def table(count=40, classes=2):
    x = np.random.default_rng(0).normal(size=(count, 3))
    return as_dataset(x, np.arange(count) % classes)


def test_defaults():
    trial = Trial(5)
    assert (trial.examples, trial.folds, trial.network, trial.replicas) == (1000, 2, "small", 3)
    assert (trial.held, trial.side, trial.batch) == (2500, 32, 64)


def test_passes_count_candidates_replicas_and_half_of_them_again():
    assert Trial(10, examples=100, folds=2, replicas=3).passes(5) == 10 * 100 * 2 * (5 + 3 + 1.5)


def test_ticks():
    trial = Trial(10, folds=2, replicas=3)
    assert ticks(trial, 5, CPU) == 2 * (5 + 6)
    assert ticks(trial, 5, GPU) == 2
    assert ticks(trial, 5, GPU, own=True) == 2 * (5 + 6)


def test_an_order_has_each_class_in_proportion_everywhere():
    data = as_dataset(np.random.default_rng(0).normal(size=(60, 3)), [0] * 40 + [1] * 20)
    order = stratified_order(data, 3)
    assert sorted(order.tolist()) == list(range(60))
    for start in range(0, 60, 15):
        assert int((data.y[order[start : start + 15]] == 1).sum()) in (4, 5, 6)
    assert torch.equal(order, stratified_order(data, 3))
    assert not torch.equal(order, stratified_order(data, 4))
    zeros = [order[data.y[order] == 0].tolist() for order in (order, stratified_order(data, 4))]
    assert zeros[0] != zeros[1]  # not only how classes are interleaved


def test_an_order_has_each_of_three_classes_in_proportion_everywhere():
    data = as_dataset(np.random.default_rng(0).normal(size=(90, 3)), np.arange(90) % 3)
    order = stratified_order(data, 3)
    for start in range(0, 90, 15):
        counts = torch.bincount(data.y[order[start : start + 15]], minlength=3)
        assert counts.min() >= 4
        assert counts.max() <= 6


def test_folds_take_the_next_examples_of_one_order():
    data, trial = table(40), Trial(1, examples=10, folds=3)
    order = stratified_order(data, 7).tolist()
    for number in range(3):
        fold = make_fold(data, trial, 7, number)
        rolled = order[10 * number :] + order[: 10 * number]
        assert fold.train.tolist() == rolled[:10]
        assert fold.held.tolist() == rolled[10:]
        assert (fold.seed, fold.number) == (7, number)


def test_folds_of_few_examples_overlap():
    data, trial = table(40), Trial(1, examples=24, folds=2, held=5)
    order = stratified_order(data, 0).tolist()
    fold = make_fold(data, trial, 0, 1)
    assert fold.train.tolist() == (order[20:] + order[:20])[:24]
    assert len(fold.held) == 5
    assert len(make_fold(data, Trial(1, examples=40), 0, 0).train) == 30  # three quarters at most
    assert len(make_fold(table(20), Trial(1, examples=10, folds=2), 0, 1).train) == 10


@pytest.mark.parametrize(("count", "fine"), [(3, False), (4, False), (5, True), (8, True)])
def test_so_few_cannot_be_split(count, fine):
    data = as_dataset(np.random.default_rng(0).normal(size=(count, 3)), np.arange(count) / 7)
    if fine:
        assert len(make_fold(data, Trial(1), 0, 0).held) == 2
        return
    with pytest.raises(AuguryError, match=f"at least 5 examples, but there are {count}"):
        make_fold(data, Trial(1), 0, 0)


def test_images_are_shrunk_by_their_longer_side():
    x = np.zeros((3, 40, 20, 3), np.uint8)
    x[1] = 200
    x[2, :20] = 255
    small, (fitted,) = shrink(as_dataset(x, [0, 0, 1, 1][:3], task="regression"), [rotation(5)], 16)
    assert small.shape == (3, 16, 8)
    assert small.x.dtype == torch.uint8
    assert small.x[0].max() == 0
    assert small.x[1].unique().tolist() == [200]
    assert int(small.x[2, 0, 0, 0]) == 255
    assert fitted == rotation(5)
    thin = as_dataset(np.zeros((3, 64, 4, 3), np.uint8), [0.0, 1.5, 2.5])
    assert shrink(thin, [], 16)[0].shape == (3, 16, 4)  # no side below four


def test_pixels_are_averaged_not_sampled():
    """One bright pixel in sixteen is a sixteenth as bright on a quarter of each side."""
    x = np.zeros((4, 64, 64), np.uint8)
    x[:, 1::4, 2::4] = 160
    x[0, 0, 0] = 1
    small, _ = shrink(as_dataset(x, np.linspace(0, 1, 4)), [], 16)
    inner = small.x[:, 0, 2:-2, 2:-2].float()
    assert 8 <= float(inner.min()) <= float(inner.max()) <= 12


def test_members_without_an_error_keep_their_order_below_the_least_loss():
    y = torch.tensor([0, 1, 1])
    out = torch.tensor([[2.0, -2.0], [-1.0, 1.0], [-3.0, 3.0]]).unsqueeze(1)
    out = torch.cat([out, out / 4], 1)
    own = torch.nn.functional.cross_entropy(out.flatten(0, 1), y.repeat_interleave(2),
                                            reduction="none").view(3, 2)  # fmt: skip
    least = math.log(1 + 1 / 3)
    losses, right = module._judge(out, y, True)
    assert right.tolist() == [[1.0, 1.0]] * 3
    torch.testing.assert_close(losses, own * least / (own.mean(0) + least))
    assert (losses.mean(0) < least).all()


def test_tables_are_not_shrunk():
    data = table(10)
    assert shrink(data, [identity()], 2) == (data, [identity()])


class Fake:
    """Returns made-up outputs instead of training."""

    calls: list

    def __init__(self, network, data, schedule, device, tick, workers, journal):
        self.data, self.schedule = data, schedule
        Fake.calls = getattr(Fake, "calls", [])
        Fake.calls.append(self)
        self.asked = []

    def run(self, candidates, folds, clean):
        self.asked.append((list(candidates), folds, clean))
        classes = self.data.outputs

        def out(fold, columns, number):
            generator = torch.Generator().manual_seed(number)
            return torch.randn(len(fold.held), columns, classes, generator=generator)

        tried = [out(f, len(candidates), f.number) for f in folds] if candidates else []
        return tried, [out(f, 1, f.number + len(f.train)) for f in clean]


@pytest.fixture
def fake(monkeypatch):
    Fake.calls = []
    monkeypatch.setattr(module, "OneByOne", Fake)
    return Fake


def log_loss(out, y):
    """The least log-loss over temperatures, found by a scalar search."""

    def at(log_scale):
        return torch.nn.functional.cross_entropy(math.exp(log_scale) * out, y).item()

    found: Any = minimize_scalar(at, bounds=(-8, 5), method="bounded", options={"xatol": 1e-6})
    return found.fun


def test_what_a_fold_showed_by_hand(fake):
    data, trial = table(40), Trial(6, examples=10, folds=2, replicas=2, batch=5)
    found = run_folds(data, [flips(), identity()], trial, [0, 1], seed=7, device=CPU)
    runner = fake.calls[0]
    assert (runner.schedule.epochs, runner.schedule.batch, runner.schedule.rate) == (6, 5, 0.01)
    (_, folds, clean), (none, no_folds, fewer) = runner.asked
    assert [f.number for f in folds] == [0, 1]
    assert [f.number for f in clean] == [100, 200, 101, 201]
    assert none == no_folds == []
    assert [len(f.train) for f in fewer] == [5] * 4
    assert [f.train.tolist() for f in fewer] == [f.train[:5].tolist() for f in clean]
    for k, one in enumerate(found):
        y = data.y[folds[k].held]
        assert torch.equal(one.index, folds[k].held)
        plain = [torch.randn(30, 1, 2, generator=torch.Generator().manual_seed(n + 10))[:, 0]
                 for n in (100 + k, 200 + k)]  # fmt: skip
        tried = torch.randn(30, 2, 2, generator=torch.Generator().manual_seed(k))
        rights = [(out.argmax(1) == y).double() for out in plain]
        assert one.replicas.tolist() == pytest.approx([float(r.mean()) for r in rights])
        assert torch.equal(one.right[:, 0], (rights[0] + rights[1]) / 2)
        assert torch.equal(one.right[:, 2], (tried[:, 1].argmax(1) == y).double())
        losses = [log_loss(out, y) for out in plain]
        assert float(one.losses[:, 0].mean()) == pytest.approx(sum(losses) / 2, abs=1e-3)
        assert float(one.losses[:, 1].mean()) == pytest.approx(log_loss(tried[:, 0], y), abs=1e-3)
        halves = [torch.randn(30, 1, 2, generator=torch.Generator().manual_seed(n + 5))[:, 0]
                  for n in (100 + k, 200 + k)]  # fmt: skip
        by_hand = [float((out.argmax(1) == y).double().mean()) for out in halves]
        assert one.half.tolist() == pytest.approx(by_hand)
        assert one.losses.dtype == one.right.dtype == one.replicas.dtype == torch.float64


def test_no_curve_and_no_candidates(fake):
    data, trial = table(40), Trial(6, examples=10, folds=1, replicas=2)
    (one,) = run_folds(data, [], trial, [0], seed=7, device=CPU, curve=False)
    assert len(fake.calls[0].asked) == 1
    assert one.losses.shape == (30, 1)
    assert len(one.half) == 0
    tiny = Trial(6, examples=3, folds=1, replicas=1)
    run_folds(data, [], tiny, [0], seed=7, device=CPU)
    assert len(fake.calls[1].asked[1][2][0].train) == 2  # two at least


def test_a_real_target_is_judged_by_squared_errors(fake):
    x = np.random.default_rng(0).normal(size=(40, 3))
    data, trial = as_dataset(x, x[:, 0]), Trial(6, examples=10, folds=1, replicas=1)
    (one,) = run_folds(data, [flips()], trial, [0], seed=7, device=CPU)
    y = data.y[one.index]
    plain = torch.randn(30, 1, 1, generator=torch.Generator().manual_seed(110))[:, 0, 0]
    errors = (plain - y).square()
    torch.testing.assert_close(one.losses[:, 0], errors.double())
    assert float(one.right.abs().sum()) == 0
    assert one.replicas.tolist() == pytest.approx([float(1 - errors.mean() / y.var())], rel=1e-5)


def test_several_labels_are_judged_by_average_precision(fake):
    rng = np.random.default_rng(0)
    y = (rng.random((40, 3)) < 0.5).astype(int)
    data, trial = as_dataset(rng.normal(size=(40, 4)), y), Trial(6, examples=10, replicas=2)
    (one,) = run_folds(data, [flips()], trial, [0], seed=7, device=CPU)
    labels = data.y[one.index]
    plain = [torch.randn(30, 1, 3, generator=torch.Generator().manual_seed(n + 10))[:, 0]
             for n in (100, 200)]  # fmt: skip
    tried = torch.randn(30, 1, 3, generator=torch.Generator().manual_seed(0))[:, 0]
    precisions = [average_precision(out, labels) for out in plain]
    torch.testing.assert_close(one.right[:, 0], torch.stack(precisions).mean(0).double())
    torch.testing.assert_close(one.right[:, 1], average_precision(tried, labels).double())
    assert one.replicas.tolist() == pytest.approx([float(p.mean()) for p in precisions])
    cross = torch.nn.functional.binary_cross_entropy_with_logits
    loss = cross(tried, labels.float(), reduction="none").mean(1)
    torch.testing.assert_close(one.losses[:, 1], loss.double(), rtol=1e-5, atol=1e-6)


def test_long_series_are_averaged_not_sampled():
    """A spike of one sample in eight is an eighth as high in an eighth of the samples."""
    x = np.zeros((4, 1, 64))
    x[:, 0, 4::8] = 8.0
    short, (same,) = shrink(as_dataset(x, np.linspace(0, 1, 4), kind="series"), [flips()], 8)
    assert short.shape == (1, 8)
    inner = short.x[0, 0, 2:-2]
    assert float(inner.std()) < 0.1  # of values that spread by one
    torch.testing.assert_close(short.x.mean(-1), torch.zeros(4, 1), atol=0.05, rtol=0)
    assert same == flips()


def test_series_as_long_as_that_are_kept():
    data = as_dataset(np.random.default_rng(0).normal(size=(4, 1, 8)), np.linspace(0, 1, 4),
                      kind="series")  # fmt: skip
    assert shrink(data, [], 8)[0] is data
    assert shrink(data, [], 7)[0].shape == (1, 7)


def test_a_target_that_is_constant_does_not_divide_by_zero():
    losses = torch.full((4, 1), 1e-12, dtype=torch.float64)
    y = torch.zeros(4, dtype=torch.float64)
    found = module._scores(losses, losses, False, y)
    assert found.tolist() == pytest.approx([0.0], abs=1e-6)


@pytest.mark.parametrize(
    ("device", "own", "kind"),
    [(CPU, False, "OneByOne"), (GPU, False, "Together"), (CPU, True, "OwnRunner"),
     (GPU, True, "OwnRunner")],
)  # fmt: skip
def test_who_trains(monkeypatch, device, own, kind):
    """All networks at once on a GPU, one by one on cores; one's own at its own rate."""

    class Stopped(Exception):
        pass

    def runner(name):
        def begin(network, data, schedule, device, tick, workers, journal):
            assert schedule.views is None  # rows of a table are cheap to make views of
            raise Stopped(name, network, schedule.rate, workers, journal)

        return begin

    for name in ("OneByOne", "Together", "OwnRunner"):
        monkeypatch.setattr(module, name, runner(name))
    network = SimpleNamespace(rate=0.5) if own else None
    given: dict[str, Any] = {"seed": 0, "device": device, "own": network}
    with pytest.raises(Stopped) as found:
        run_folds(table(40), [], Trial(1, examples=10), [0], **given)
    assert found.value.args[:3] == (kind, network or "small", 0.5 if own else 0.01)
    assert found.value.args[3].remote is False
    assert found.value.args[4].path is None
    with pytest.raises(Stopped) as found:
        run_folds(table(40), [], Trial(1, examples=10), [0], **given, workers="w", journal="j")
    assert found.value.args[3:] == ("w", "j")


def test_images_are_tried_in_a_few_views_on_a_cpu(monkeypatch):
    seen = []

    def begin(network, data, schedule, *rest):
        seen.append(schedule.views)
        raise InterruptedError

    for name in ("OneByOne", "Together", "OwnRunner"):
        monkeypatch.setattr(module, name, begin)
    pixels = torch.randint(0, 256, (40, 6, 6), dtype=torch.uint8).numpy()
    data = as_dataset(pixels, torch.arange(40).numpy() % 2)
    for device, own in ((CPU, None), (GPU, None), (CPU, SimpleNamespace(rate=0.5))):
        with pytest.raises(InterruptedError):
            run_folds(data, [], Trial(1, examples=10), [0], seed=0, device=device, own=own)
    assert seen == [10, None, None]


def test_some_columns_are_chosen():
    numbers = torch.arange(6.0).view(2, 3)
    whole = HeldOut(torch.arange(2), numbers, -numbers, torch.ones(1), torch.zeros(1))
    some = whole.choose(torch.tensor([0, 2]))
    assert some.losses.tolist() == [[0.0, 2.0], [3.0, 5.0]]
    assert some.right.tolist() == [[0.0, -2.0], [-3.0, -5.0]]
    assert some.replicas is whole.replicas


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_network_that_has_diverged_knows_nothing(bad):
    y = torch.arange(8) % 2
    good = torch.nn.functional.one_hot(y, 2).float()
    out = torch.stack([good, torch.full_like(good, bad)], 1)
    losses, right = module._judge(out, y, True)
    assert losses[:, 1].tolist() == pytest.approx([math.log(2)] * 8)
    assert float(right[:, 1].mean()) == 0.5
    real = torch.tensor([[1.0, bad], [-1.0, bad]])
    losses, _ = module._judge(real, torch.tensor([1.0, -1.0]), False)
    assert losses.tolist() == [[0.0, 1.0], [0.0, 1.0]]
