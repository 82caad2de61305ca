"""The score of boosting, part by part, with made-up trees."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.ensemble
import torch

from augury._base.errors import AuguryError
from augury._base.rng import Rng
from augury.augmentations import column_noise, jitter
from augury.data import as_dataset
from augury.forecasting.baseline import BaselineForecast
from augury.forecasting.forecast import Forecast
from augury.forecasting.scores import Setting
from augury.forecasting.scores import boosting as module
from augury.forecasting.scores.boosting import CALIBRATION, BoostingScore, _predict, fit_trees
from augury.forecasting.tables import table_of
from augury.forecasting.trial import Trial, make_fold, summarise

CPU = torch.device("cpu")


def table(count=80, classes=2):
    x = np.random.default_rng(0).normal(size=(count, 3))
    return as_dataset(x, np.arange(count) % classes)


def numbers(count=80):
    x = np.random.default_rng(0).normal(size=(count, 3))
    return as_dataset(x, x[:, 0] + 0.1)


def tags(count=80):
    rng = np.random.default_rng(0)
    y = (rng.random((count, 3)) < 0.5).astype(int)
    return as_dataset(rng.normal(size=(count, 3)), y)


class Trees:
    """Trees that are right with a probability that was made up."""

    fitted: list

    def __init__(self, **options):
        self.options = options

    def fit(self, x, y):
        self.x, self.y = x, y
        self.classes_ = np.unique(y)
        Trees.fitted.append(self)
        return self


@pytest.fixture
def trees(monkeypatch):
    Trees.fitted = []
    for name in ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"):
        monkeypatch.setattr(sklearn.ensemble, name, Trees)
    return Trees


@pytest.mark.parametrize(
    ("rows", "leaf"), [(1000, 20), (200, 20), (199, 19), (55, 5), (10, 1), (5, 1)]
)
def test_leaves_grow_with_the_copies(trees, rows, leaf):
    data = table(1000)
    chosen = torch.arange(rows)
    plain = fit_trees(data, chosen, None, table_of(data, chosen), 7, 3)
    many = fit_trees(data, chosen, jitter(0.1), table_of(data, chosen), 7, 3)
    assert plain.options == {
        "min_samples_leaf": leaf,
        "early_stopping": False,
        "random_state": 7,
    }
    assert many.options["min_samples_leaf"] == 4 * leaf
    assert len(plain.x) == rows
    assert len(many.x) == len(many.y) == 4 * rows


def test_trees_see_the_rows_and_views_of_them(trees):
    data, rows = table(), torch.arange(10, 40)
    many = fit_trees(data, rows, jitter(0.1), table_of(data, rows), 7, 2)
    views = jitter(0.1).views(data.x[rows], 2, Rng(7, rows))
    np.testing.assert_array_equal(many.x[:30], data.x[rows].numpy())
    np.testing.assert_array_equal(many.x[30:], views.flatten(0, 1).numpy())
    assert many.y.tolist() == data.y[rows].tolist() * 3
    negative = fit_trees(data, rows, None, table_of(data, rows), -1, 2)
    assert negative.options["random_state"] == 0x7FFF_FFFF


def test_labels_have_trees_of_their_own(trees):
    data, rows = tags(), torch.arange(40)
    found = fit_trees(data, rows, None, table_of(data, rows), 7, 2)
    assert [list(one.y) for one in found] == data.y[rows].T.tolist()
    real = fit_trees(numbers(), rows, None, table_of(numbers(), rows), 7, 2)
    np.testing.assert_array_equal(real.y, numbers().y[rows].numpy())


def test_predictions_are_log_probabilities():
    model = SimpleNamespace(
        classes_=np.array([0, 2]), predict_proba=lambda x: np.array([[0.25, 0.75], [1.0, 0.0]])
    )
    found = _predict(model, np.zeros((2, 3)), table(classes=3))
    expected = torch.tensor([[0.25, 1e-6, 0.75], [1.0, 1e-6, 1e-6]]).double().log()
    torch.testing.assert_close(found, expected)


def test_predictions_of_labels_are_log_odds():
    def tag(classes, chances):
        return SimpleNamespace(
            classes_=np.array(classes), predict_proba=lambda x: np.array(chances)
        )

    both = tag([0, 1], [[0.75, 0.25], [0.5, 0.5]])
    always, never = tag([1], [[1.0], [1.0]]), tag([0], [[1.0], [1.0]])
    found = _predict([both, always, never], np.zeros((2, 3)), tags())
    shares = torch.tensor([[0.25, 1 - 1e-6, 1e-6], [0.5, 1 - 1e-6, 1e-6]], dtype=torch.float64)
    torch.testing.assert_close(found, shares.logit())


def test_predictions_of_numbers_have_one_column():
    model = SimpleNamespace(predict=lambda x: np.array([0.5, -2.0]))
    assert _predict(model, np.zeros((2, 3)), numbers()).tolist() == [[0.5], [-2.0]]


def score(data, monkeypatch, right=0.8, **setting):
    """Judge a candidate whose trees are right in a share of the rows, without it a little less."""
    asked = []

    def fit(data, rows, candidate, table, seed, copies):
        asked.append((rows, candidate, table, seed, copies))
        return candidate

    def predict(model, x, data):
        share = right if model is None else right + 0.1
        place = {float(first): k for k, first in enumerate(data.x[:, 0])}
        y = data.y[[place[float(first)] for first in x[:, 0]]]
        wrong = torch.arange(len(x)) >= round(share * len(x))
        out = torch.full((len(x), len(data.classes)), 0.1, dtype=torch.float64)
        out[torch.arange(len(x)), torch.where(wrong, (y + 1) % len(data.classes), y)] = 0.9
        return out.log()

    monkeypatch.setattr(module, "fit_trees", fit)
    monkeypatch.setattr(module, "_predict", predict)
    seen = []
    made = BoostingScore(Setting(data, None, 8, 5, CPU, **setting), lambda *now: seen.append(now))
    found = made.judge_all([jitter(0.1)])

    def by_hand(repeats):
        folds = []
        for repeat in range(repeats):
            for number in range(4):
                fold = make_fold(data, Trial(1, 60, 4, replicas=1), 5 + repeat, number)
                x = data.x[fold.held].numpy()
                out = torch.stack([predict(model, x, data) for model in (None, 1)], 1)
                folds.append(summarise(fold, out, out[:, :0], data.y[fold.held], 1, data))
        return Forecast(folds, data.y, 2, trained=60, planned=80, rate=0.0, calibration=CALIBRATION)

    return made, found, asked, seen, by_hand


@pytest.mark.parametrize(
    ("effort", "repeats"), [(0, 1), (3, 1), (4, 2), (7, 2), (8, 4), (10, 4), (None, 2)]
)
def test_every_row_is_held_out_so_many_times(monkeypatch, effort, repeats):
    made, found, asked, seen, by_hand = score(table(), monkeypatch, effort=effort)
    assert made.repeats == repeats
    assert len(asked) == 2 * 4 * repeats
    assert {(seed, copies) for *_, seed, copies in asked} == {(5, 3)}
    assert all(torch.equal(known.x, table().x[rows]) for rows, _, known, *_ in asked)
    assert {len(rows) for rows, *_ in asked} == {60}
    assert len(seen) == 8 * repeats
    assert [now[:2] for now in seen] == [(k + 1, 8 * repeats) for k in range(8 * repeats)]
    assert {now for _, _, now in seen} == {"no augmentation", "jitter(0.1)"}
    forecast = by_hand(repeats)
    assert found.candidates == [forecast.judge(0)]
    base = forecast.baseline
    assert found.baseline.score == pytest.approx(100 * base.expected)
    assert (found.baseline.low, found.baseline.high) == base.interval(0.0)
    assert (found.baseline.gain, found.baseline.probability) == (0.0, 0.5)
    assert (found.matters, found.decides, found.warnings) == (0.2, True, ())
    assert made.effort() == {"folds": 4, "repeats": repeats, "copies": 3}
    often = "once" if repeats == 1 else f"{repeats} times"
    assert made.describe().endswith(f"3 views of each, with every row held out {often}")


def test_nothing_learnt_gives_no_verdict(monkeypatch):
    found = score(table(), monkeypatch, right=0.5)[1]
    assert not found.decides
    assert "learnt nothing" in found.warnings[0]


class Made:
    """A forecast of no candidate."""

    balanced = True

    def __init__(self, few=False, learnt=True, expected=0.8, tried=0.7):
        self.few = few
        self.baseline = BaselineForecast(
            tried=tried, expected=expected, error=0.03, chance=0.5 if learnt else 0.7, balanced=True
        )

    def __len__(self):
        return 0


def judged(data, monkeypatch, linear=0.5, **made):
    monkeypatch.setattr(module, "linear_score", lambda *_, **__: linear)
    score = BoostingScore(Setting(data, None, 8, 5, CPU))
    monkeypatch.setattr(score, "forecast", lambda candidates: Made(**made))
    return score, score.judge_all([])


@pytest.mark.parametrize("few", [True, False])
def test_the_baseline_has_an_interval_of_its_error(few, monkeypatch):
    score, found = judged(table(), monkeypatch, few=few)
    own = found.baseline
    assert (own.score, own.gain, own.probability) == (pytest.approx(80), 0.0, 0.5)
    assert (own.low, own.high) == pytest.approx((80 - 196 * 0.03, 80 + 196 * 0.03))
    assert found.sure is not few
    assert (found.candidates, found.decides, found.warnings) == ([], True, ())
    score.repeats = 2
    assert score.describe().endswith("held out 2 times, judged by balanced accuracy")


def test_no_accuracy_is_below_nought_but_a_share_of_the_variance_may_be(monkeypatch):
    low = {
        data.task: judged(data, monkeypatch, expected=0.02)[1].baseline.low
        for data in (table(), numbers())
    }
    assert low == pytest.approx({"classification": 0.0, "regression": 2 - 196 * 0.03})


def test_what_leaves_no_verdict_depends_on_the_target(monkeypatch):
    """Only classes have a most frequent one, and several labels no linear model."""
    said = {
        kind: judged(data, monkeypatch, linear=0.73, learnt=False)[1].warnings
        for kind, data in (("classes", table()), ("numbers", numbers()), ("labels", tags()))
    }
    linear = "a linear model is better than boosting here (73 against 70 %)"
    assert [text.startswith(linear) for text in said["numbers"]] == [True]
    assert "learnt nothing beyond the most frequent class" in said["classes"][0]
    assert said["classes"][1:] == said["numbers"]
    assert said["labels"] == ("forecasts were not checked on tables with several labels",)
    assert judged(numbers(), monkeypatch, linear=0.71)[1].decides


@pytest.mark.parametrize(
    ("linear", "tried", "said"),
    [
        (-0.02, -0.32, "neither boosting without augmentation nor a linear model predicts"),
        (0.0, 0.0, "neither boosting without augmentation nor a linear model predicts"),
        (0.1, -0.32, "a linear model is better than boosting here (10 against -32 %)"),
        (-0.1, 0.1, None),
    ],
)
def test_a_target_that_cannot_be_predicted_is_said(monkeypatch, linear, tried, said):
    found = judged(numbers(), monkeypatch, linear=linear, tried=tried)[1]
    assert [text.startswith(said) for text in found.warnings] == ([True] if said else [])


@pytest.mark.parametrize(("more", "decides"), [(0.021, False), (0.019, True)])
def test_a_linear_model_that_is_better_leaves_no_verdict(monkeypatch, more, decides):
    tried = score(table(), monkeypatch, effort=0)[4](1).baseline.tried
    monkeypatch.setattr(module, "linear_score", lambda *_, **__: tried + more)
    made, found, *_ = score(table(), monkeypatch, effort=0)
    assert found.decides is decides
    assert ["linear model is better" in said for said in found.warnings] == [True] * (not decides)
    assert made.trust() == module._TRUST


@pytest.mark.parametrize("right", [1.0, 0.9])
def test_whether_an_error_was_made_is_passed_on(monkeypatch, right):
    assert score(table(), monkeypatch, right=right)[1].faultless is (right == 1)


def test_what_the_plan_says(monkeypatch):
    made = BoostingScore(Setting(table(), None, 8, 5, CPU))
    planned = {"epochs": 3, "network": "cnn", "assumed": ["epochs"], "examples": 80}
    assert made.plan(planned) == {
        "epochs": None, "network": "boosting", "assumed": [], "examples": 80
    }  # fmt: skip
    assert (BoostingScore.copies, BoostingScore.default_features) == (3, None)
    assert BoostingScore.balanced is False
    assert (CALIBRATION.slope, CALIBRATION.floor, CALIBRATION.share) == (0.73, 0.041, 0.72)
    assert (module._LEAF, module._MOST, module._FOLDS) == (20, 5000, 4)


def budgeted(monkeypatch, left, candidates=1):
    """Choose repeats on a clock of half a second a call, with `left` seconds after the fits.

    The clock is read before each of two fits, which move it on: the second takes from 101.5 s to
    102.5 s, so four folds of one candidate and of none take 8 s. At 103 s, 4.5 s were spent.
    """
    ticks = iter(np.arange(100, 200, 0.5))
    monkeypatch.setattr(module, "perf_counter", lambda: float(next(ticks)))
    monkeypatch.setattr(module, "fit_trees", lambda *_: next(ticks))
    data, budget = table(), (4.5 + left) / 0.85
    made = BoostingScore(Setting(data, None, 8, 5, CPU, budget=budget, started=98.5))
    return made._repeats(make_fold(data, Trial(1, 60, 4), 5, 0), [column_noise(0.1)] * candidates)


@pytest.mark.parametrize(
    ("left", "repeats"), [(32.01, 4), (31.99, 2), (16.01, 2), (15.99, 1), (8.01, 1)]
)
def test_a_budget_decides_how_often(monkeypatch, left, repeats):
    assert budgeted(monkeypatch, left) == repeats


def test_two_fits_are_timed_whatever_the_number_of_candidates(monkeypatch):
    """With three, four folds take 16 s."""
    assert budgeted(monkeypatch, 16.01, candidates=3) == 1
    assert budgeted(monkeypatch, 32.01, candidates=3) == 2


def test_a_budget_that_is_too_short_says_what_is_needed(monkeypatch):
    needed = math.ceil((8.0 + 103.5 - 98.5) / 0.85)
    with pytest.raises(AuguryError, match=f"for 1 candidate; give at least {needed} s"):
        budgeted(monkeypatch, 7.99)
