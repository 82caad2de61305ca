"""Where forecasts change their mind: constants, and cases at the border of each rule."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.special import stdtrit

from augury.forecasting import forecast as module
from augury.forecasting.baseline import BaselineForecast
from augury.forecasting.forecast import (
    CUT,
    PLANNED,
    QUICK,
    SMALL,
    Forecast,
    Judgement,
    expect,
)
from augury.forecasting.trial import HeldOut
from augury.statistics.base import group_of


def held(y, right, losses, replicas=(0.5, 0.5), half=()):
    reals = [torch.tensor(v, dtype=torch.float64) for v in (replicas, half)]
    return HeldOut(torch.arange(len(y)), losses, right, *reals)


def make(y, right, losses, classes=2, **options):
    one = held(y, right, losses, **{k: options.pop(k) for k in ("replicas",) if k in options})
    return Forecast([one], y, classes, trained=9, planned=9, **options)


def test_constants():
    """Those of `PLANNED`, `SMALL` and `QUICK` are fitted to the committed trials."""
    calibrations = [(c.slope, c.floor, c.share) for c in (PLANNED, SMALL, QUICK, CUT)]
    assert calibrations == [
        (1.08, 0.01, 0.122), (0.91, 0.024, 0.4), (0.91, 0.0354, 0.4), (1.0, 0.04, 1.0),
    ]  # fmt: skip
    assert (module._SUREST, module._FEW) == (0.1, 10)
    assert pytest.approx(1.2825498) == module._UNSEEN
    assert Judgement(1, 2, 3, 4, 0.5) == Judgement(1, 2, 3, 4, 0.5, (), clear=True)
    base = BaselineForecast(0.5, 0.6, 0.0, 0.1, False)
    assert (base.luck, base.faultless) == (0.0, False)


@pytest.mark.parametrize(
    ("tried", "error", "luck", "learnt"),
    [
        (0.114, 0.0, 0.0, False),
        (0.116, 0.0, 0.0, True),
        (0.12, 0.0, 0.0, True),
        (0.159, 0.02, 0.0, False),
        (0.161, 0.02, 0.0, True),
        (0.139, 0.0, 0.02, False),
        (0.141, 0.0, 0.02, True),
        (0.05, 0.0, 0.0, False),
    ],
)
def test_more_than_chance_noise_and_luck_is_learnt(tried, error, luck, learnt):
    assert BaselineForecast(tried, 0.5, error, 0.1, False, luck).learnt is learnt


@pytest.mark.parametrize(
    ("counts", "balanced", "few"),
    [
        ((40, 10), True, False),
        ((39, 10), False, False),
        ((36, 9), True, True),
        ((12, 4), False, False),  # few, but as many as the others
        ((50, 1), True, True),
        ((50, 0, 20), False, False),
    ],
)
def test_classes_count_alike_where_they_are_unequal(counts, balanced, few):
    y = torch.cat([torch.full((n,), c) for c, n in enumerate(counts)])
    right, losses = torch.ones(len(y), 2).double(), torch.full((len(y), 2), 0.4).double()
    found = make(y, right, losses, len(counts))
    assert (found.balanced, found.few) == (balanced, few)


def test_groups_that_are_left_out_leave_the_weights_of_the_others():
    generator = torch.Generator().manual_seed(0)
    y = torch.tensor([0] * 80 + [1] * 20)
    right = (torch.rand(100, 3, generator=generator) < 0.7).double()
    losses = 0.3 + 0.3 * torch.rand(100, 3, generator=generator).double()
    found = make(y, right, losses)
    assert found.balanced
    (weights,) = found.weights
    assert weights[:80].sum() == pytest.approx(0.5)
    entropy, chance, power = found._curve
    assert (entropy, chance) == pytest.approx((math.log(2), 0.5))
    for g in (0, 7, 19):
        kept = group_of(torch.arange(100), 20) != g
        own = weights[kept] / weights[kept].sum()
        learnt = 1 - own @ losses[kept] / entropy
        by_loss = 0.5 + 0.5 * learnt**power
        by_hand = ((by_loss + own @ right[kept]) / 2).logit()
        assert found._left_out[g].tolist() == pytest.approx(by_hand.tolist())


@pytest.mark.parametrize("size", [8, 18])
def test_that_all_were_right_shows_an_error_below_one_in_so_many(size):
    y = torch.arange(size) % 2
    losses = torch.full((size, 2), 0.1).double()
    found = make(y, torch.ones(size, 2).double(), losses)
    power = math.log(1 - 1 / (size + 2)) / math.log(1 - 0.1 / math.log(2))
    assert found._curve[2] == pytest.approx(power)
    assert found.baseline.faultless
    assert found.baseline.luck == pytest.approx(math.sqrt(0.25 / size))


def test_one_replica_says_nothing_of_the_noise():
    y = torch.arange(20) % 2
    right, losses = torch.ones(20, 2).double(), torch.full((20, 2), 0.3).double()
    right[:8, 0] = 0
    for replicas, error, freedom in (((0.6,), 0.0, 4), ((0.6, 0.62), 0.01, 5), ((), 0.0, 4)):
        found = make(y, right, losses, replicas=replicas)
        assert found.baseline.error == pytest.approx(error)
        noise, free = found._run_noise()
        assert free == freedom
        variance = found.baseline.tried * (1 - found.baseline.tried)
        total = 4 * 0.02**2 / variance
        if len(replicas) > 1:
            logits = [math.log(r / (1 - r)) for r in replicas]
            total += (logits[0] - logits[1]) ** 2 / 2
        by_hand = math.sqrt(total / freedom * (1 + 1 / max(1, len(replicas))))
        assert noise == pytest.approx(by_hand)
        points = 100 * noise * found.baseline.expected * (1 - found.baseline.expected)
        assert found.run_spread() == pytest.approx(points)


def test_pooled_log_odds_are_linear_about_those_of_the_mean():
    y = torch.arange(20) % 2
    right, losses = torch.ones(20, 2).double(), torch.full((20, 2), 0.3).double()
    found = make(y, right, losses, pooled=True)
    links = found._links(torch.tensor([[0.6], [0.9]]).double())
    assert links[:, 0].tolist() == pytest.approx([math.log(3) - 0.8, math.log(3) + 0.8])
    least = 0.1 / 22
    sure = found._links(torch.ones(2, 1).double())
    assert sure[:, 0].tolist() == pytest.approx([math.log((1 - least) / least)] * 2)
    alone = make(y, right, losses)._links(torch.ones(2, 1).double())
    assert alone[:, 0].tolist() == pytest.approx([math.log(0.975 / 0.025)] * 2)
    real = Forecast([held(y, right, losses)], y.double(), None, trained=9, planned=9, pooled=True)
    assert not real.pooled
    assert real.baseline.luck == 0  # nothing is guessed


def test_what_is_said_of_a_class():
    y = torch.tensor([0] * 10 + [1] * 9 + [2])
    right, losses = torch.zeros(20, 2).double(), torch.full((20, 2), 0.3).double()
    right[:5, 0] = right[:8, 1] = 1  # three of ten become right
    right[10:19] = 1
    found = make(y, right, losses, classes=3)
    first, second, alone = found._per_class(1)
    assert alone == (0.0, -100.0, 100.0)  # one example says nothing
    noise, freedom = found._run_noise()
    run = noise * found.baseline.tried * (1 - found.baseline.tried) * math.sqrt(3)  # of a class
    for gain, changes, (middle, low, high) in (
        (30.0, [1.0] * 3 + [0.0] * 7, first), (0.0, [0.0] * 9, second),
    ):  # fmt: skip
        seen = torch.tensor([*changes, 1.0, -1.0]).double()
        error = float(seen.std()) / math.sqrt(len(seen))
        half = 100 * float(stdtrit(freedom, 0.975)) * math.hypot(error, run)
        assert (middle, low, high) == pytest.approx((gain, gain - half, gain + half))


def test_gains_have_an_end():
    """Nothing is gained beyond all, nor lost beyond none, and the spread stays positive."""
    for shift, gain in ((50.0, 20.0), (-50.0, -80.0)):
        found, spread = expect(shift, 0.1, 0.8, True, CUT)
        assert found == pytest.approx(gain, abs=1e-3)
        assert spread == pytest.approx(math.hypot(0.04 * 100 * math.sqrt(0.16), gain), abs=1e-3)
    assert expect(0.25, 0.0, 0.5, False, CUT)[0] == pytest.approx(25)
    assert expect(9.0, 0.0, 0.5, False, CUT)[0] == 100
    assert expect(-9.0, 0.0, 0.5, False, CUT)[0] == -100
    spread = expect(0.25, 0.1, 0.5, False, CUT)[1]
    assert spread == pytest.approx(math.hypot(100 * 0.1, 0.04 * 50, 25))


@pytest.mark.parametrize("tried", [0.5, 1.0])
def test_the_interval_without_augmentation_stays_between_the_ends(tried):
    """By hand: 1.96 √(run² + p (1 − p) / n), cut at what is possible."""
    base = BaselineForecast(tried, tried, 0.02, 0.1, False, sampling=0.03)
    half = 1.96 * math.hypot(0.02, 0.03)
    low, high = base.interval(0.0)
    assert low == pytest.approx(100 * (tried - half))
    assert high == pytest.approx(min(100.0, 100 * (tried + half)))
    assert base.interval(99.0)[0] == 99.0


def test_runs_that_differ_are_told_from_those_that_learnt_nothing():
    def base(tried, error):
        return BaselineForecast(tried, tried, error, 0.5, False)

    assert (base(0.9, 0.1).learnt, base(0.9, 0.1).unstable) == (True, False)
    assert (base(0.9, 0.15).learnt, base(0.9, 0.15).unstable) == (False, True)
    assert (base(0.51, 0.0).learnt, base(0.51, 0.0).unstable) == (False, False)
