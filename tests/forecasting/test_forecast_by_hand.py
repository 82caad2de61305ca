"""Every part of a forecast, with numbers computed by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import stdtrit
from scipy.stats import f, t

from augury.forecasting import forecast as module
from augury.forecasting.forecast import (
    PLANNED,
    SMALL,
    BaselineForecast,
    Calibration,
    Forecast,
    expect,
)
from augury.forecasting.trial import HeldOut
from augury.statistics.base import group_of
from augury.statistics.jackknife import jackknife

PLAIN = Calibration(slope=1.0, floor=0.02, share=0.25, noise=0.02, freedom=8)


def logit(p):
    return math.log(p / (1 - p))


def logistic(v):
    return 1 / (1 + math.exp(-v))


def fold(rights, losses, start=0, size=100, replicas=(0.5, 0.5), half=()):
    index = torch.arange(start, start + size)
    right = torch.stack([(torch.arange(size) < round(r * size)).double() for r in rights], 1)
    level = torch.tensor(losses, dtype=torch.float64).expand(size, -1).clone()
    reals = [torch.tensor(v, dtype=torch.float64) for v in (replicas, half)]
    return HeldOut(index, level, right, *reals)


def make(*folds, classes=10, trained=100, planned=100, **options):
    y = torch.arange(400) % classes
    options.setdefault("calibration", PLAIN)
    return Forecast(list(folds), y, classes, trained=trained, planned=planned, **options)


def test_constants_that_the_docs_name():
    assert (module._GROUPS, module._LEAST, module._FASTEST, module.UNEQUAL) == (20, 1e-3, 0.75, 4)
    assert Calibration(1, 1, 1) == Calibration(1, 1, 1, noise=0.02, freedom=6.0)
    assert PLANNED.floor < SMALL.floor  # the planned network itself strays less


def test_doublings():
    one = fold([0.5, 0.5], [1.2, 1.2])
    assert make(one, planned=400).doublings == 2
    assert make(one, planned=50).doublings == 0
    assert make(one, trained=0, planned=2).doublings == 1
    assert make(one, trained=1, planned=0).doublings == 0


@pytest.mark.parametrize(("doublings", "reach"), [(0, 0), (0.5, 0.5), (1, 1), (2, 1.5), (4, 2.5)])
def test_doublings_past_the_first_count_half(doublings, reach):
    planned = round(64 * 2**doublings)
    found = make(fold([0.5, 0.5], [1.2, 1.2]), trained=64, planned=planned, rate=0.4)
    tried = found.baseline.tried
    exact = math.log2(planned / 64)
    reach = reach if exact == doublings else min(exact, 1) + max(exact - 1, 0) / 2
    assert found.baseline.expected == pytest.approx(1 - (1 - tried) * 2 ** (-0.4 * reach))


def test_the_baseline_by_hand():
    found = make(
        fold([0.5, 0.5], [1.2, 1.2], replicas=(0.4, 0.6)),
        fold([0.7, 0.5], [1.2, 1.2], 100, replicas=(0.5, 0.7)),
    )
    base = found.baseline
    replicas = torch.tensor([0.4, 0.6, 0.5, 0.7], dtype=torch.float64)
    assert base.error == pytest.approx(float(replicas.std()) / 2)
    assert base.tried == pytest.approx(float(found.accuracy[:, 0].mean()))
    assert base.chance == pytest.approx(0.1)
    assert not base.balanced
    single = make(fold([0.5, 0.5], [1.2, 1.2], replicas=(0.5,)))
    assert single.baseline.error == 0
    assert len(found) == 1


def test_accuracy_is_the_mean_of_what_is_right_and_what_the_loss_is_worth():
    found = make(fold([0.6, 0.5, 0.5], [1.0, 1.4, 9.0]))
    learnt, above = 1 - 1.0 / math.log(10), (0.6 - 0.1) / 0.9
    power = math.log(above) / math.log(learnt)
    second = 0.1 + 0.9 * (1 - 1.4 / math.log(10)) ** power
    worst = 0.1 + 0.9 * 1e-3**power  # worse than chance
    by_hand = [0.6, (second + 0.5) / 2, (worst + 0.5) / 2]
    assert found.accuracy[0].tolist() == pytest.approx(by_hand)


def test_the_power_of_the_curve_is_two_at_most():
    entropy, chance, power = make(fold([0.11, 0.5], [0.3, 1.2]))._curve
    assert entropy == pytest.approx(math.log(10))
    assert chance == pytest.approx(0.1)
    assert power == 2.0


def test_unequal_classes_from_four_times_on():
    for count, balanced in ((80, True), (79, False)):
        y = torch.tensor([0] * count + [1] * 20)
        index = torch.arange(len(y))
        found = HeldOut(index, torch.full((len(y), 2), 0.4).double(),
                        torch.ones(len(y), 2).double(), torch.tensor([1.0]).double(),
                        torch.tensor([]).double())  # fmt: skip
        forecast = Forecast([found], y, 2, trained=9, planned=9, calibration=PLAIN)
        assert forecast.balanced is balanced
        (weights,) = forecast.weights
        assert float(weights.sum()) == pytest.approx(1)
        share = 0.5 if balanced else count / len(y)
        assert float(weights[:count].sum()) == pytest.approx(share)
    three = Forecast([found], y, 3, trained=9, planned=9, calibration=PLAIN)
    assert not three.balanced  # a class without examples does not make them unequal


def test_the_learning_rate_by_hand():
    one = fold([0.5, 0.5], [1.2, 1.2], replicas=(0.6, 0.6), half=(0.5, 0.4))
    assert make(one).rate == pytest.approx(math.log2(0.55 / 0.4))
    rising = fold([0.5, 0.5], [1.2, 1.2], replicas=(0.4,), half=(0.5,))
    assert make(rising).rate == 0
    assert make(fold([0.5, 0.5], [1.2, 1.2])).rate == 0
    perfect = fold([0.5, 0.5], [1.2, 1.2], replicas=(1.0,), half=(1.0,))
    assert make(perfect).rate == 0


def test_the_noise_of_runs_counts_folds_that_disagree():
    folds = [fold([0.5, 0.6, 0.4], [1.2] * 3), fold([0.5, 0.5, 0.5], [1.2] * 3, 100)]
    found = make(*folds)
    links = found.accuracy.logit()
    gaps = links[:, 1:] - links[:, :1]
    gaps = gaps - gaps.mean(1, keepdim=True)
    own = float((gaps - gaps.mean(0)).square().sum())
    prior = (0.02 / math.sqrt(found.baseline.tried * (1 - found.baseline.tried))) ** 2
    error, freedom = found._run_noise()
    assert own / 3 > prior * f(3, 4).ppf(0.95)  # so much that the prior is left out
    assert freedom == 2 + 1  # two pairs of replicas, two folds of two candidates
    assert error == pytest.approx(math.sqrt(own / 3 / 2 * 1.5))
    assert found.run_spread() == pytest.approx(
        100 * error * found.baseline.expected * (1 - found.baseline.expected)
    )


def test_one_candidate_in_two_folds_cannot_disagree():
    found = make(fold([0.5, 0.6], [1.2] * 2), fold([0.5, 0.4], [1.2] * 2, 100))
    assert found._run_noise()[1] == 4 + 2


def test_folds_of_several_candidates_disagree_with_many_degrees_of_freedom():
    rights = ([0.5, 0.51, 0.49, 0.5], [0.5, 0.5, 0.5, 0.51], [0.5, 0.49, 0.51, 0.5])
    found = make(*(fold(right, [1.2] * 4, 100 * k) for k, right in enumerate(rights)))
    assert found._run_noise()[1] == 4 + 3 + 2 * 2  # three pairs of replicas, (3 − 1) · (3 − 1)


def test_the_noise_of_a_real_target():
    y = torch.linspace(-1, 1, 100, dtype=torch.float64)
    found = HeldOut(torch.arange(100), torch.full((100, 2), 0.1).double(),
                    torch.zeros(100, 2).double(), torch.tensor([0.71, 0.69]).double(),
                    torch.tensor([]).double())  # fmt: skip
    forecast = Forecast([found], y, None, trained=50, planned=50, calibration=PLAIN)
    error, freedom = forecast._run_noise()
    assert freedom == 5
    assert error == pytest.approx(math.sqrt((4 * 0.01**2 + 0.0002) / 5 * 1.5))
    assert forecast.judge(0).per_class == ()
    assert forecast.baseline.expected == forecast.baseline.tried
    assert forecast.rate == 0
    assert not forecast.balanced


def test_the_sample_error_is_a_jackknife_over_groups():
    one = fold([0.5, 0.6], [1.2, 1.0])
    found = make(one)
    group = group_of(one.index, 20)
    shifts = []
    for g in range(20):
        inside = group != g
        part = HeldOut(
            one.index[inside], one.losses[inside], one.right[inside], one.replicas, one.half
        )
        a, b = found._accuracy(part, torch.full((len(part.index),), 1 / len(part.index)).double())
        shifts.append(logit(float(b)) - logit(float(a)))
    by_hand = jackknife(0.0, torch.tensor(shifts, dtype=torch.float64)).error
    assert found._sample_error(1) == pytest.approx(by_hand)
    assert found.shift(0)[1] == pytest.approx(max(by_hand, found._run_noise()[0]))


def test_log_odds_stop_half_an_example_from_the_ends():
    found = make(fold([0.5, 0.5], [1.2, 1.2]))
    links = found._links(torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64))
    assert links.tolist() == pytest.approx([logit(0.005), 0, logit(0.995)])


def test_gains_of_classes_by_hand():
    y = torch.tensor([0, 1] * 50)
    right = torch.zeros(100, 2, dtype=torch.float64)
    right[::2, 1] = (torch.arange(50) < 20).double()  # 40 % of class 0 are now right
    right[1::2] = 1.0
    found = HeldOut(torch.arange(100), torch.full((100, 2), 0.5).double(), right,
                    torch.tensor([0.5, 0.5]).double(), torch.tensor([]).double())  # fmt: skip
    forecast = Forecast([found], y, 3, trained=50, planned=50, calibration=PLAIN)
    (gain, low, high), second, third = forecast.judge(0).per_class
    tried = forecast.baseline.tried
    noise, freedom = forecast._run_noise()
    run = 100 * noise * tried * (1 - tried) * math.sqrt(3)  # a class varies more than the mean
    size = float(stdtrit(freedom, 0.975))
    seen = np.array([1.0] * 20 + [0.0] * 30 + [1.0, -1.0])  # and one of either sign
    own = 100 * seen.std(ddof=1) / math.sqrt(52)
    assert gain == pytest.approx(40)
    assert high - gain == pytest.approx(size * math.hypot(own, run))
    assert gain - low == pytest.approx(size * math.hypot(own, run))
    assert second[0] == 0
    never = 100 * math.sqrt(2 / 51 / 52)
    assert second[2] == pytest.approx(size * math.hypot(never, run))
    assert third == (0.0, -100.0, 100.0)  # nobody of the third class


def test_a_judgement_by_hand():
    folds = [fold([0.5, 0.6, 0.5], [1.2, 1.1, 1.2]), fold([0.5, 0.62, 0.5], [1.2, 1.1, 1.2], 100)]
    found = make(*folds)
    moved, error = found.shift(0)
    links = found.accuracy.logit()
    assert moved == pytest.approx(float((links[:, 1] - links[:, 0]).mean()))
    gain, spread = expect(moved, error, found.baseline.expected, True, PLAIN)
    judged = found.judge(0)
    assert judged.gain == pytest.approx(gain)
    assert judged.score == pytest.approx(100 * found.baseline.expected + gain)
    assert judged.high - gain == pytest.approx(t(8).ppf(0.975) * spread)
    assert gain - judged.low == pytest.approx(t(8).ppf(0.975) * spread)
    assert judged.probability == pytest.approx(t(8).cdf(gain / spread))
    assert judged.clear is bool(moved > t(found._run_noise()[1]).ppf(0.975) * error)
    other = found.judge(1)
    assert other.gain == pytest.approx(0)
    assert not other.clear
    assert not math.isclose(found.shift(1)[0], moved)


def test_expect_by_hand():
    gain, spread = expect(0.3, 0.05, 0.8, True, Calibration(1.2, 0.02, 0.25))
    after = logistic(logit(0.8) + 0.36)
    assert gain == pytest.approx(100 * (after - 0.8))
    parts = (
        1.2 * 100 * after * (1 - after) * 0.05,
        0.02 * 100 * math.sqrt(0.8 * 0.2),
        0.25 * gain,
    )
    assert spread == pytest.approx(math.hypot(*parts), rel=1e-4)


def test_expect_of_a_real_target():
    gain, spread = expect(0.1, 0.02, 0.4, False, Calibration(0.5, 0.02, 0.25))
    assert gain == pytest.approx(5.0)
    assert spread == pytest.approx(math.hypot(0.5 * 100 * 0.02, 0.02 * 50, 0.25 * 5.0))
    assert expect(3.0, 0.0, 0.4, False, PLAIN)[0] == 100
    assert expect(-3.0, 0.0, 0.4, False, PLAIN)[0] == -100


@pytest.mark.parametrize("expected", [0.0, 1e-7, 0.5, 1.0])
@pytest.mark.parametrize("shift", [-100.0, 0.0, 100.0])
def test_gains_stay_within_what_is_possible(expected, shift):
    gain, spread = expect(shift, 0.1, expected, True, PLAIN)
    assert -100 * expected <= gain <= 100 * (1 - expected)
    assert spread > 0
    assert spread >= 0.02 * 100 * math.sqrt(max(expected * (1 - expected), 1e-4))


@pytest.mark.parametrize(
    ("tried", "error", "learnt"),
    [
        (0.1151, 0.0, True),  # three half points above chance
        (0.1149, 0.0, False),
        (0.1601, 0.02, True),  # three standard errors above it
        (0.1599, 0.02, False),
        (0.1149, 0.004, False),
    ],
)
def test_what_counts_as_having_learnt(tried, error, learnt):
    assert BaselineForecast(tried, tried, error, 0.1, False).learnt is learnt


def test_what_guessing_might_show_is_not_learnt():
    """Of 25 examples of two classes, guesses get 0.5 ± 0.1 right."""
    few = make(fold([0.6], [0.68], size=25), classes=2).baseline
    assert few.luck == pytest.approx(math.sqrt(few.chance * (1 - few.chance) / 25))
    assert not replace(few, tried=few.chance + 1.99 * few.luck).learnt
    assert replace(few, tried=few.chance + 2.01 * few.luck).learnt


def test_a_shift_is_the_mean_over_folds():
    found = make(fold([0.5, 0.6], [1.2] * 2), fold([0.5, 0.8], [1.2] * 2, 100))
    links = found.accuracy.logit()
    by_hand = sum(float(links[k, 1] - links[k, 0]) for k in range(2)) / 2
    assert found.shift(0)[0] == pytest.approx(by_hand)


def test_the_interval_stays_within_what_is_possible():
    wide = Calibration(slope=1.0, floor=2.0, share=0.25, noise=0.02, freedom=8)
    judged = make(fold([0.5, 0.6], [1.2, 1.1]), calibration=wide).judge(0)
    base = judged.score - judged.gain
    assert judged.low == pytest.approx(-base)
    assert judged.high == pytest.approx(100 - base)


def test_a_slope_moves_the_gain_and_its_error():
    one = Calibration(slope=1.5, floor=0.0, share=0.0)
    gain, spread = expect(0.2, 0.1, 0.5, True, one)
    after = logistic(0.3)
    assert gain == pytest.approx(100 * (after - 0.5))
    assert spread == pytest.approx(1.5 * 100 * after * (1 - after) * 0.1, rel=1e-4)


def test_a_curve_that_is_flat_still_has_a_slope():
    """At the ceiling no shift is worth anything, and the error must not vanish."""
    sharp = Calibration(slope=1.0, floor=0.0, share=0.0)
    gain, spread = expect(0.0, 1.0, 0.0, False, sharp)
    assert (gain, spread) == (0.0, pytest.approx(100.0))
    gain, spread = expect(5.0, 1.0, 0.5, False, sharp)
    assert gain == 100.0
    assert spread == pytest.approx(1e-6)


def tagged(scores, losses):
    """A fold of four examples with two labels, whose columns have these precisions and losses."""
    y = torch.tensor([[1, 0], [1, 1], [0, 1], [1, 0]])
    index = torch.arange(4)
    found = HeldOut(
        index,
        torch.tensor(losses, dtype=torch.float64).expand(4, -1).clone(),
        torch.tensor(scores, dtype=torch.float64).expand(4, -1).clone(),
        torch.tensor([0.8, 0.9], dtype=torch.float64),
        torch.tensor([], dtype=torch.float64),
    )
    return Forecast([found], y, 2, trained=4, planned=4, calibration=PLAIN)


def test_several_labels_by_hand():
    """Shares 3/4 and 1/2: their mean entropy is the loss of knowing no more than that."""
    found = tagged([0.9, 0.95], [0.3, 0.2])
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25)) + math.log(2)
    entropy /= 2
    # the first label is ranked before the second, which alone the third example has
    chance = (1 + 1 + 0.5 + 1) / 4
    assert found._curve[0] == pytest.approx(entropy)
    assert found._curve[1] == pytest.approx(chance)
    learnt, above = 1 - 0.3 / entropy, (0.9 - chance) / (1 - chance)
    power = min(2.0, math.log(above) / math.log(learnt))
    by_loss = chance + (1 - chance) * (1 - 0.2 / entropy) ** power
    assert float(found.accuracy[0, 1]) == pytest.approx((by_loss + 0.95) / 2)
    assert not found.balanced
    assert found.judge(0).per_class == ()
    assert torch.allclose(found.weights[0], torch.full((4,), 0.25).double())


def test_a_network_at_the_ceiling_has_a_curve():
    """Everything right at no loss: shares stay a thousandth from their ends."""
    found = make(fold([1.0, 1.0], [0.0, 0.0]))
    entropy, chance, power = found._curve
    assert (entropy, chance) == pytest.approx((math.log(10), 0.1))
    assert power == 2.0  # log(1 - 1/102) / log 0.999: none of 100 wrong is not "never wrong"
    assert found.accuracy[0].tolist() == [1.0, 1.0]  # no rounding leads past it
    assert found.baseline.expected == 1.0
    worse = make(fold([0.05, 0.05], [9.0, 9.0]))
    assert worse._curve[2] == pytest.approx(1.0)  # log 0.001 / log 0.001
    assert worse.accuracy[0, 0] == pytest.approx((0.1 + 0.9e-3 + 0.05) / 2)


def test_variance_and_log_odds_near_the_ends():
    assert module._variance(0.5) == 0.25
    assert module._variance(1.0) == 1e-4
    assert module._logit(0.0) == pytest.approx(math.log(1e-6), abs=1e-5)
    assert module._logit(1.0) == pytest.approx(-math.log(1e-6), abs=1e-5)
    assert module._logit(0.8) == pytest.approx(math.log(4))
    assert module._logistic(1e9) == pytest.approx(1 - math.exp(-30), abs=1e-15)
    assert module._logistic(-1e9) == pytest.approx(math.exp(-30), rel=1e-6)
    assert module._within(0.5) == 0.5
    assert (module._within(-1.0), module._within(2.0)) == (1e-3, 1 - 1e-3)
    assert module._bounds(0.7, True) == (pytest.approx(-70), pytest.approx(30))
    assert module._bounds(0.7, False) == (-100, 100)


def test_a_real_target_by_hand():
    y = torch.linspace(-1, 1, 100, dtype=torch.float64)
    variance = float(y.var())
    losses = torch.tensor([0.5 * variance, 3 * variance, -3 * variance]).double()
    found = HeldOut(torch.arange(100), losses.expand(100, 3).clone(),
                    torch.zeros(100, 3).double(), torch.tensor([0.5]).double(),
                    torch.tensor([0.4]).double())  # fmt: skip
    forecast = Forecast([found], y, None, trained=50, planned=200, calibration=PLAIN)
    assert forecast.accuracy[0].tolist() == pytest.approx([0.5, -1.0, 1.0])  # between −1 and 1
    assert forecast.rate == 0  # no learning curve of a real target
    assert forecast.baseline.expected == pytest.approx(0.5)
    assert forecast.baseline.error == 0
    moved, _ = forecast.shift(0)
    assert moved == pytest.approx(-1.5)
    constant = Forecast([found], torch.zeros(100).double(), None, trained=1, planned=1)
    assert constant._curve == (1e-12, 0.0, 1.0)


def test_a_group_that_no_fold_holds_is_left_out_of_the_jackknife():
    """Three examples are in at most three of twenty groups; the others change nothing."""
    small = fold([0.5, 0.6], [1.2, 1.0], size=3)
    found = make(small)
    groups = group_of(small.index, 20)
    shifts = []
    for g in range(20):
        inside = (groups != g).double()
        a, b = found._links(found._accuracy(small, inside / inside.sum()))
        shifts.append(float(b - a))
    by_hand = jackknife(0.0, torch.tensor(shifts, dtype=torch.float64)).error
    assert found._sample_error(1) == pytest.approx(by_hand)
    one = fold([1.0, 1.0], [1.2, 1.0], size=1)
    lone = make(one, fold([0.5, 0.6], [1.2, 1.0], 100))
    assert math.isfinite(lone._sample_error(1))


def test_classes_of_two_examples_have_intervals_and_of_one_do_not():
    y = torch.tensor([0, 0, 1] + [2] * 3)
    right = torch.zeros(6, 2, dtype=torch.float64)
    right[0, 1] = 1.0
    found = HeldOut(torch.arange(6), torch.full((6, 2), 0.9).double(), right,
                    torch.tensor([0.1, 0.1]).double(), torch.tensor([]).double())  # fmt: skip
    per_class = Forecast([found], y, 3, trained=4, planned=4, calibration=PLAIN).judge(0).per_class
    assert per_class[0][0] == 50.0
    assert per_class[0][1:] == pytest.approx((50 - 123, 100.0), abs=1)
    assert per_class[1] == (0.0, -100.0, 100.0)
    assert per_class[2][0] == 0.0
    assert -100 < per_class[2][1] < -60 < 60 < per_class[2][2] < 100  # three examples show little
