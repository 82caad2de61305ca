"""From held-out losses to gains, with numbers computed by hand."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import f, t

from augury.forecasting.forecast import PLANNED, SMALL, Calibration, Forecast, expect
from augury.forecasting.trial import HeldOut
from augury.forecasting.verdicts import verdict

EXACT = Calibration(slope=1, floor=0.02, share=0.25, noise=0.02, freedom=8)


def fold(rights, losses, start=0, replicas=(0.5, 0.5), half=(0.4,), size=100):
    """Make a fold whose columns are right in a share of the examples, at a mean loss."""
    index = torch.arange(start, start + size)
    columns = torch.stack([(torch.arange(size) < round(r * size)).double() for r in rights], 1)
    spread = torch.linspace(-0.5, 0.5, size, dtype=torch.float64).unsqueeze(1)
    return HeldOut(
        index,
        torch.tensor(losses, dtype=torch.float64) + spread,
        columns,
        torch.tensor(replicas, dtype=torch.float64),
        torch.tensor(half, dtype=torch.float64),
    )


def labels(size=400, classes=10):
    return torch.arange(size) % classes


def logit(p):
    return math.log(p / (1 - p))


def test_a_candidate_like_no_augmentation_gains_nothing():
    forecast = Forecast([fold([0.5, 0.5], [1.2, 1.2])], labels(), 10, trained=100, planned=100)
    judgement = forecast.judge(0)
    assert judgement.gain == pytest.approx(0, abs=1e-12)
    assert judgement.low == pytest.approx(-judgement.high)
    assert judgement.probability == pytest.approx(0.5)


def test_the_gain_is_the_shift_of_the_log_odds():
    """By hand: accuracy 0.5 at loss 1.2 gives the curve; 0.6 at the same loss is averaged."""
    found = fold([0.5, 0.6], [1.2, 1.2], half=())
    forecast = Forecast([found], labels(), 10, trained=100, planned=100, calibration=EXACT)
    shift = logit(0.55) - logit(0.5)  # half of the gain in accuracy: the loss saw none
    assert forecast.shift(0)[0] == pytest.approx(shift, abs=1e-9)
    assert forecast.judge(0).gain == pytest.approx(5.0, abs=1e-6)


def test_losses_count_as_what_they_are_worth_in_accuracy():
    """u = 1 − loss / ln 10 to the power p, with p from the network without augmentation."""
    found = fold([0.5, 0.5], [1.2, 1.0], half=())
    forecast = Forecast([found], labels(), 10, trained=100, planned=100, calibration=EXACT)
    power = math.log((0.5 - 0.1) / 0.9) / math.log(1 - 1.2 / math.log(10))
    by_loss = 0.1 + 0.9 * (1 - 1.0 / math.log(10)) ** power
    assert forecast.judge(0).gain == pytest.approx(100 * ((by_loss + 0.5) / 2 - 0.5), abs=1e-6)


def test_the_baseline_follows_the_learning_curve():
    """Error 0.6 at half and 0.5 at all of the examples: r = log2(0.6 / 0.5)."""
    found = fold([0.5, 0.5], [1.2, 1.2], half=(0.4, 0.4))
    forecast = Forecast([found], labels(), 10, trained=100, planned=400)
    assert forecast.rate == pytest.approx(math.log2(0.6 / 0.5))
    # two doublings: the second counts half
    assert forecast.baseline.expected == pytest.approx(1 - 0.5 * (0.5 / 0.6) ** 1.5)
    steep = fold([0.5, 0.5], [1.2, 1.2], half=(0.0,))
    assert Forecast([steep], labels(), 10, trained=100, planned=100).rate == 0.75
    given = Forecast([found], labels(), 10, trained=100, planned=400, rate=0.0)
    assert given.baseline.expected == pytest.approx(0.5)


def test_the_interval_by_hand():
    gain, spread = expect(0.2, 0.05, 0.8, True, EXACT)
    after = 1 / (1 + math.exp(-(logit(0.8) + 0.2)))
    assert gain == pytest.approx(100 * (after - 0.8))
    slope = 100 * after * (1 - after)  # of points by log-odds
    by_hand = math.sqrt((slope * 0.05) ** 2 + (0.02 * 40) ** 2 + (0.25 * gain) ** 2)
    assert spread == pytest.approx(by_hand, rel=1e-4)


def test_what_the_learning_curve_adds_is_in_the_interval_and_not_in_the_sign():
    """By hand: half of the way to the plan, the same shift is worth more points."""
    found = fold([0.5, 0.3], [1.2, 1.6], half=(0.3, 0.3))
    forecast = Forecast([found], labels(), 10, trained=100, planned=6400, calibration=EXACT)
    base = forecast.baseline
    assert base.expected > 0.8
    shift, error = forecast.shift(0)
    gain, spread = expect(shift, error, base.expected, True, EXACT)
    near, wide = expect(shift, error, (base.tried + base.expected) / 2, True, EXACT)
    judged = forecast.judge(0)
    size = t(8).ppf(0.975)
    assert judged.low == pytest.approx(near - size * wide)
    assert judged.low < gain - size * spread
    assert judged.high == pytest.approx(max(gain + size * spread, near + size * wide))
    assert judged.probability == pytest.approx(t(8).cdf(gain / spread))


def test_interval_and_probability_follow_the_spread():
    folds = [fold([0.5, 0.6], [1.2, 1.1], half=()), fold([0.5, 0.58], [1.2, 1.1], 100, half=())]
    settings = Calibration(floor=0.03, share=0.3, freedom=5, slope=1)
    forecast = Forecast(folds, labels(), 10, trained=100, planned=100, calibration=settings)
    shift, error = forecast.shift(0)
    base = forecast.baseline
    gain, spread = expect(shift, error, base.expected, True, settings)
    judgement = forecast.judge(0)
    assert judgement.high - judgement.gain == pytest.approx(t(5).ppf(0.975) * spread)
    assert judgement.probability == pytest.approx(t(5).cdf(gain / spread))


def test_folds_that_disagree_widen_the_error():
    agree = [fold([0.5, 0.6, 0.4], [1.2] * 3, half=()), fold([0.5, 0.6, 0.4], [1.2] * 3, 100)]
    differ = [fold([0.5, 0.7, 0.3], [1.2] * 3, half=()), fold([0.5, 0.5, 0.5], [1.2] * 3, 100)]
    errors = [
        Forecast(folds, labels(), 10, trained=100, planned=100)._run_noise()[0]
        for folds in (agree, differ)
    ]
    assert errors[1] > 1.5 * errors[0]


def run_noise(*folds):
    return Forecast(list(folds), labels(), 10, trained=100, planned=100)._run_noise()


def test_more_folds_and_replicas_narrow_the_error():
    one, few = fold([0.5, 0.6], [1.2] * 2), fold([0.5, 0.6], [1.2] * 2, replicas=(0.5,))
    assert run_noise(few)[0] > run_noise(one)[0]
    assert run_noise(one, fold([0.5, 0.6], [1.2] * 2, 100))[0] < run_noise(one)[0] / 1.4


def test_the_noise_of_runs_by_hand():
    """A prior of 0.02 √(a(1−a)) counts four times, and each replica but the first once."""
    found = fold([0.5, 0.6], [1.2] * 2, replicas=(0.48, 0.5, 0.52))
    error, freedom = run_noise(found)
    prior = (0.02 * 0.5 / 0.25) ** 2
    between = 2 * logit(0.52) ** 2  # of 0.48 and 0.52; 0.5 is their mean
    assert freedom == 6
    assert error == pytest.approx(math.sqrt((4 * prior + between) / 6 * (1 + 1 / 3)))


@pytest.mark.parametrize("count", [2, 3, 5])
def test_runs_that_differ_far_more_than_the_prior_expects_overrule_it(count):
    """After few steps they do, and a prior would make candidates without an effect look sure."""
    prior = (0.02 * 0.5 / 0.25) ** 2
    border = math.sqrt(prior * f(count - 1, 4).ppf(0.95))
    for factor, left_out in ((0.99, False), (1.01, True)):
        steps = [k - (count - 1) / 2 for k in range(count)]
        size = factor * border / math.sqrt(sum(s**2 for s in steps) / (count - 1))
        replicas = tuple(1 / (1 + math.exp(-size * s)) for s in steps)
        error, freedom = run_noise(fold([0.5, 0.6], [1.2] * 2, replicas=replicas))
        total = (factor * border) ** 2 * (count - 1) + (0 if left_out else 4 * prior)
        assert freedom == count - 1 + (0 if left_out else 4)
        assert error == pytest.approx(math.sqrt(total / freedom * (1 + 1 / count)))


@pytest.mark.parametrize(
    ("calibration", "what", "level", "above"),
    [
        (PLANNED, "clear", 0.95, True),
        (SMALL, "clear", 0.975, True),
        (PLANNED, "faint", 0.9, False),
        (SMALL, "faint", 0.9, False),
    ],
)
def test_how_far_an_effect_must_exceed_the_noise_of_runs(calibration, what, level, above):
    """By a percentile of Student's t, with as many degrees of freedom as the noise of runs has."""
    found = Forecast(
        [fold([0.5, 0.6], [1.2, 1.2], size=200)], labels(), 10, trained=100, planned=100,
        calibration=calibration,
    )  # fmt: skip
    noise, freedom = found._run_noise()
    for factor, expected in ((1.001, above), (0.999, not above)):
        for sign in (1, -1):
            moved = factor * sign * float(t(freedom).ppf(level)) * noise
            found.shift = lambda candidate, moved=moved: (moved, noise)
            assert getattr(found.judge(0), what) is expected


def test_an_effect_within_the_noise_of_runs_is_not_clear():
    """Replicas that differ by 20 points say that a gain of 10 may be nothing."""
    for replicas, clear in (((0.5, 0.5, 0.5), True), ((0.4, 0.5, 0.6), False)):
        found = fold([0.5, 0.7], [1.2, 1.2], replicas=replicas, half=(), size=1000)
        y = labels(1000)
        judged = Forecast([found], y, 10, trained=100, planned=100).judge(0)
        assert judged.clear is clear


@pytest.mark.parametrize("right", [1.0, 0.0])
def test_forecasts_stay_within_what_is_possible(right):
    found = fold([0.97, right], [0.1, 0.0 if right else 40.0], half=())
    judgement = Forecast([found], labels(), 10, trained=10, planned=1000).judge(0)
    base = judgement.score - judgement.gain  # rounded, so that the ends are met to 1e-9 alone
    assert -base - 1e-9 <= judgement.low <= judgement.gain <= judgement.high <= 100 - base + 1e-9
    assert math.isfinite(judgement.gain)


def test_unequal_classes_count_alike():
    y = torch.cat([torch.zeros(90), torch.ones(10)]).long()
    right = torch.zeros(100, 2, dtype=torch.float64)
    right[:90] = 1.0  # everything is called class 0
    found = HeldOut(torch.arange(100), torch.full((100, 2), 0.6).double(), right,
                    torch.tensor([0.9]), torch.tensor([]))  # fmt: skip
    forecast = Forecast([found], y, 2, trained=50, planned=50)
    assert forecast.balanced
    assert forecast.baseline.chance == pytest.approx(0.5)
    assert forecast.accuracy[0, 0] < 0.7


def test_real_targets_gain_points_of_variance():
    y = torch.tensor([-1.0, 1.0] * 50, dtype=torch.float64)
    losses = torch.tensor([0.6, 0.4]).double().expand(100, 2).clone()
    found = HeldOut(torch.arange(100), losses, torch.zeros(100, 2).double(),
                    torch.tensor([0.4]).double(), torch.tensor([]).double())  # fmt: skip
    forecast = Forecast([found], y, None, trained=50, planned=50, calibration=EXACT)
    assert forecast.judge(0).gain == pytest.approx(100 * 0.2 / float(y.var()), rel=1e-6)


def test_gains_of_classes_have_intervals():
    found = fold([0.5, 0.7], [1.2, 1.0])
    per_class = Forecast([found], labels(), 10, trained=100, planned=100).judge(0).per_class
    assert len(per_class) == 10
    assert all(low <= gain <= high for gain, low, high in per_class)
    assert sum(gain for gain, *_ in per_class) / 10 == pytest.approx(20)


@pytest.mark.parametrize(
    ("gain", "probability", "said"),
    [
        (1.0, 0.95, "helps"),
        (1.0, 0.8, "probably helps"),
        (1.0, 0.6, "can't tell"),
        (0.1, 0.99, "can't tell"),
        (-1.0, 0.05, "hurts"),
        (-1.0, 0.2, "probably hurts"),
        (-0.1, 0.01, "can't tell"),
    ],
)
def test_a_verdict_needs_an_effect_that_matters(gain, probability, said):
    assert verdict(gain, probability, 0.2) == said
