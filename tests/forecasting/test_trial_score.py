"""What the trial's score makes of a trial, with made-up trials."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from augury.augmentations import flips, identity, parse
from augury.data import as_dataset
from augury.forecasting import series
from augury.forecasting.effort import DECIDES
from augury.forecasting.forecast import CUT, PLANNED, QUICK, SLIM, Forecast, expect
from augury.forecasting.plan import TrainingPlan
from augury.forecasting.scores import Setting
from augury.forecasting.scores import trial as module
from augury.forecasting.scores.trial import TrialScore
from augury.forecasting.training.own import OwnNetwork
from augury.forecasting.trial import HeldOut

CPU = torch.device("cpu")
SIZE = 400
THREE = "a network of three layers"


def images(classes=10, count=600, side=8):
    x = np.random.default_rng(0).integers(0, 255, (count, side, side), np.uint8)
    return as_dataset(x, np.arange(count) % classes)


def fold(right, replicas):
    """A fold whose first column is right in a share of the examples, the second a little more."""
    index = torch.arange(SIZE)
    columns = torch.stack([(index < r * SIZE).double() for r in (right, right + 0.05)], 1)
    losses = torch.full((SIZE, 2), 1.5 if right > 0.2 else 2.31, dtype=torch.float64)
    return HeldOut(index, losses, columns, torch.tensor(replicas).double(), torch.tensor([]))


def judge(monkeypatch, data, right=0.6, replicas=(0.59, 0.61), effort=4, **setting):
    asked = {}

    def run_folds(data, fitted, trial, numbers, **options):
        asked.update(options, data=data, fitted=fitted, trial=trial, numbers=list(numbers))
        for _ in range(3):
            options["tick"]("flips")
        return [fold(right, replicas) for _ in numbers]

    monkeypatch.setattr(module, "run_folds", run_folds)
    seen = []
    score = TrialScore(
        Setting(data, None, 8, 3, CPU, effort=effort, **setting), lambda *now: seen.append(now)
    )
    return score.judge_all([flips()]), score, asked, seen


def test_the_result_is_the_forecast(monkeypatch):
    data = images()
    found, score, asked, seen = judge(monkeypatch, data, plan=TrainingPlan(epochs=12))
    trial = asked["trial"]
    assert (trial.epochs, trial.examples, trial.folds, asked["numbers"]) == (12, 256, 1, [0])
    assert (asked["seed"], asked["device"], asked["fitted"]) == (3, CPU, [flips()])
    forecast = Forecast(
        [fold(0.6, (0.59, 0.61))], data.y, 10, trained=256, planned=600, calibration=QUICK
    )
    assert found.candidates == [forecast.judge(0)]
    base = forecast.baseline
    assert found.baseline.score == pytest.approx(100 * base.expected)
    assert (found.baseline.low, found.baseline.high) == base.interval(0.0)
    assert (found.baseline.gain, found.baseline.probability) == (0.0, 0.5)
    assert (found.matters, found.decides, found.sure, found.warnings) == (0.2, True, False, ())
    assert seen == [(1, 5, "flips"), (2, 5, "flips"), (3, 5, "flips")]  # 1 + 2 × 2 to do
    assert score.effort()["level"] == 4
    assert score.effort()["epochs"] == 12
    assert (
        score.describe() == "a network of three layers trained for 12 epochs on 256 examples, once"
    )


@pytest.mark.parametrize("right", [1.0, 0.99])
def test_whether_an_error_was_made_is_passed_on(monkeypatch, right):
    assert judge(monkeypatch, images(), right=right)[0].faultless is (right == 1)


def test_the_planned_examples_are_those_of_the_plan(monkeypatch):
    data = images()
    plan = TrainingPlan(examples=256)
    found = judge(monkeypatch, data, plan=plan)[0]
    forecast = Forecast(
        [fold(0.6, (0.59, 0.61))], data.y, 10, trained=256, planned=256, calibration=QUICK
    )
    assert found.baseline.score == pytest.approx(100 * forecast.baseline.expected)


def test_the_planned_network_has_its_own_calibration(monkeypatch):
    data = images(count=1200)
    found, score, asked, _ = judge(monkeypatch, data, effort=8)
    assert asked["trial"].network == "cnn"
    folds = [fold(0.6, (0.59, 0.61))] * asked["trial"].folds
    forecast = Forecast(
        folds, data.y, 10, trained=asked["trial"].examples, planned=1200, calibration=PLANNED
    )
    assert found.candidates == [forecast.judge(0)]
    assert "the planned network (cnn)" in score.describe()
    assert score.describe().endswith(f"{asked['trial'].folds} times")


@pytest.mark.parametrize(
    ("effort", "decides", "sure"),
    [(2, False, False), (3, True, False), (4, True, False), (5, True, True)],
)
def test_short_trials_say_less(monkeypatch, effort, decides, sure):
    found = judge(monkeypatch, images(), effort=effort)[0]
    assert (found.decides, found.sure) == (decides, sure)
    said = ["too few for verdicts" in warning for warning in found.warnings]
    assert said == [True] * (not decides)


@pytest.mark.parametrize(
    ("right", "replicas", "said"),
    [
        (0.14, (0.14, 0.14), None),
        (0.12, (0.12, 0.12), "learnt nothing beyond"),  # guessing shows 0.1 ± 0.015 of 400
        (0.3, (0.1, 0.5), "(a mean accuracy of 30 %, with a standard error of 20)"),
        (0.9, (0.85, 0.95), None),
    ],
)
def test_chance_must_be_beaten(monkeypatch, right, replicas, said):
    found = judge(monkeypatch, images(), right=right, replicas=replicas)[0]
    assert found.decides is (said is None)
    assert [said in warning for warning in found.warnings] == [True] * (said is not None)


def test_trust_is_for_labelled_images(monkeypatch):
    score = judge(monkeypatch, images())[1]
    assert "compared with real training" in score.trust()
    data = as_dataset(np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) / 7)
    other = TrialScore(Setting(data, None, 8, 0, CPU))
    assert "other data" in other.trust()
    assert (
        other.describe()
        == "a network of three layers trained for 40 epochs on 1,000 examples, 2 times"
    )


def test_large_images_are_shrunk_before(monkeypatch):
    _, _, asked, _ = judge(monkeypatch, images(side=40))
    assert asked["data"].shape == (1, 32, 32)
    assert asked["fitted"] == [flips()]
    assert identity() not in asked["fitted"]


def several(monkeypatch, data, rights, **setting):
    """Judge candidates whose networks are right in these shares; return also what was followed."""
    followed = []

    def run_folds(data, fitted, trial, numbers, **options):
        index = torch.arange(SIZE)
        columns = torch.stack([(index < r * SIZE).double() for r in (0.6, *rights)], 1)
        losses = torch.full(columns.shape, 1.5, dtype=torch.float64)
        replicas = torch.tensor([0.6, 0.6]).double()
        return [HeldOut(index, losses, columns, replicas, torch.tensor([])) for _ in numbers]

    def find_trends(*args, **options):
        followed.append((args, options))
        return ("followed",)

    monkeypatch.setattr(module, "run_folds", run_folds)
    monkeypatch.setattr(module, "find_trends", find_trends)
    candidates = [parse(f"rotation({5 * k})") for k in range(1, len(rights) + 1)]
    score = TrialScore(Setting(data, None, 8, 3, CPU, **{"effort": 4} | setting))
    return score.judge_all(candidates), followed, score


def test_the_three_that_lead_are_followed(monkeypatch):
    rights = [0.5, 0.7, 0.62, 0.65]
    found, ((args, options),), _ = several(monkeypatch, images(), rights, trends=True)
    data, leaders, trial, folds, judged, planned = args
    assert [repr(a) for a in leaders] == ["rotation(10)", "rotation(20)", "rotation(15)"]
    assert options["names"] == ["rotation(10)", "rotation(20)", "rotation(15)"]
    assert judged == [found.candidates[k] for k in (1, 3, 2)]
    shares = [0.6, 0.7, 0.65, 0.62]
    assert folds[0].right.mean(0).tolist() == pytest.approx(shares)
    assert (planned, options["seed"], options["device"]) == (600, 3, CPU)
    assert (options["calibration"], options["own"]) == (QUICK, None)
    assert trial.examples == 256
    assert len(data) == 600
    assert found.trends == ("followed",)
    found, followed, _ = several(monkeypatch, images(), rights)
    assert (found.trends, followed) == ((), [])


def test_only_images_are_followed(monkeypatch):
    x = np.random.default_rng(0).normal(size=(600, 1, 30))
    data = as_dataset(x, np.arange(600) % 10, kind="series")
    followed = several(monkeypatch, data, [0.7], trends=True)[1]
    assert followed == []


def test_series_have_a_calibration_and_words_of_their_own(monkeypatch):
    x = np.random.default_rng(0).normal(size=(600, 1, 30))
    data = as_dataset(x, np.arange(600) % 10, kind="series")
    found, _, score = several(monkeypatch, data, [0.7])
    index = torch.arange(SIZE)
    columns = torch.stack([(index < r * SIZE).double() for r in (0.6, 0.7)], 1)
    made = HeldOut(
        index,
        torch.full((SIZE, 2), 1.5, dtype=torch.float64),
        columns,
        torch.tensor([0.6, 0.6]).double(),
        torch.tensor([]),
    )
    trial = score.trial
    forecast = Forecast(
        [made] * trial.folds, data.y, 10, trained=trial.examples, planned=600,
        calibration=series.CALIBRATIONS["small"],
    )  # fmt: skip
    assert found.candidates == [forecast.judge(0)]
    assert score.trust().startswith(series.TRUST["small"])
    assert several(monkeypatch, data, [0.7], effort=7)[2].trust() == series.TRUST["small"]
    assert several(monkeypatch, data, [0.7], effort=9)[2].trust() == series.TRUST["fcn"]
    assert found.warnings == ()


@pytest.mark.parametrize("kind", ["series", "image"])
def test_folds_of_series_are_averaged_before_log_odds_are_taken(monkeypatch, kind):
    """In one fold nearly all is right, in the other little: log-odds of each would differ."""
    x = np.random.default_rng(0).integers(0, 255, (600, 1, 30) if kind == "series" else (600, 8, 8))
    data = as_dataset(x.astype(np.uint8), np.arange(600) % 10, kind=kind)
    folds = [fold(0.94, (0.93, 0.95)), fold(0.3, (0.28, 0.32))]
    monkeypatch.setattr(module, "run_folds", lambda *_, **__: folds)
    score = TrialScore(Setting(data, None, 8, 3, CPU, effort=4))
    found = score.judge_all([flips()])
    calibration = series.CALIBRATIONS["small"] if kind == "series" else QUICK
    pooled, apart = (
        Forecast(
            folds, data.y, 10, trained=score.trial.examples, planned=600, calibration=calibration,
            pooled=pooled,
        )
        for pooled in (True, False)
    )  # fmt: skip
    assert found.candidates == [(pooled if kind == "series" else apart).judge(0)]
    assert abs(pooled.judge(0).gain - apart.judge(0).gain) > 0.3
    assert pooled.judge(0).high != pytest.approx(apart.judge(0).high, abs=0.5)


def test_what_is_said_of_trust(monkeypatch):
    data = images(count=1200)
    slim, less, planned = (several(monkeypatch, data, [0.7], effort=k)[2] for k in (7, 8, 9))
    assert slim.trust() == module._SLIM
    assert planned.trust() == module._PLANNED
    assert less.trust().startswith(f"{module._PLANNED} This trial did less work than those")
    assert len({module._SLIM, module._PLANNED, module._OWN}) == 3


def test_trust_is_of_the_work_that_was_done(monkeypatch):
    data = images(count=1200)
    said = {k: several(monkeypatch, data, [0.7], effort=k)[2].trust() for k in range(7)}
    assert {said[k] for k in (0, 1, 2)} == {module._CUT}
    less = {3: " This trial did less work than those: --effort 3 instead of 4.", 4: ""}
    for k, words in less.items():
        capped = " Below --effort 5, verdicts are “probably” at most."
        assert said[k] == f"{module._BRIEF}{words}{capped}"
    assert {said[k] for k in (5, 6)} == {module._QUICK}


def test_what_is_said_of_cut_trials_was_measured():
    path = Path(__file__).parents[2] / "benchmarks" / "results" / "budgets.json"
    runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
    cut = {
        (run["data"], run["level"]): run["spearman"]
        for run in runs
        if run.get("level") is not None and run["level"] < DECIDES
    }
    found = list(cut.values())
    assert len({data for data, _ in cut}) == 3
    assert f"{min(found):.2f} to {max(found):.2f} (mean {np.mean(found):.2f})" in module._CUT


def test_without_a_level_time_decides(monkeypatch):
    asked = []

    def choose(plan, data, candidates, device, budget, started, own):
        asked.append((len(candidates), budget, started, own))
        return 5

    monkeypatch.setattr(module, "choose_level", choose)
    score = several(monkeypatch, images(), [0.7], effort=None, budget=9.0, started=3.0)[2]
    assert asked == [(1, 9.0, 3.0, None)]
    assert score.effort()["level"] == 5
    several(monkeypatch, images(), [0.7], effort=0)
    assert len(asked) == 1


def test_tables_are_bound_to_the_rows_of_each_fold(monkeypatch):
    """Numbers are judged with a linear model beside the network, which must not be better."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 3))
    data = as_dataset(x, np.arange(600) % 10)
    asked = []

    def table_folds(*args, **options):
        asked.append(args)
        return [fold(0.6, (0.6, 0.6))]

    monkeypatch.setattr(module, "run_table_folds", table_folds)
    for linear, said in ((0.63, 2), (0.61, 1)):
        monkeypatch.setattr(module, "linear_score", lambda *_, linear=linear, **__: linear)
        score = TrialScore(Setting(data, None, 8, 3, CPU, effort=4))
        found = score.judge_all([flips()])
        assert len(found.warnings) == said
        assert "forecasts were not checked on this kind of data" in found.warnings[0]
    assert len(asked) == 2
    assert "linear model is better" not in found.warnings[-1]


@pytest.mark.parametrize(("effort", "calibration"), [(2, CUT), (3, QUICK), (6, QUICK), (7, SLIM)])
def test_what_a_cut_costs_is_in_the_interval(monkeypatch, effort, calibration):
    """Fewer epochs than planned, or fewer examples than by default."""
    found, score, _, _ = judge(monkeypatch, images(), effort=effort)
    forecast = Forecast(
        [fold(0.6, (0.59, 0.61))] * score.trial.folds, images().y, 10,
        trained=score.trial.examples, planned=600, calibration=calibration,
    )  # fmt: skip
    assert found.candidates == [forecast.judge(0)]


def test_the_less_work_the_wider_the_interval():
    spreads = [expect(0.4, 0.05, 0.8, True, c)[1] for c in (CUT, QUICK, SLIM, PLANNED)]
    assert spreads == sorted(spreads, reverse=True)
    assert spreads[0] > expect(0.4, 0.05, 0.8, True, CUT)[0]  # wrong by the gain itself, and more


def test_few_examples_of_a_class_that_counts_alike_leave_doubt(monkeypatch):
    """Two examples may not decide for four classes."""
    x = np.random.default_rng(0).integers(0, 255, (600, 8, 8), np.uint8)
    for least, sure in ((9, False), (10, True)):
        y = np.where(np.arange(600) < 600 - least, np.arange(600) % 2, 2)
        found, score, *_ = judge(monkeypatch, as_dataset(x, y), effort=5)
        assert (found.sure, score.balanced) == (sure, True)
        assert score.describe().endswith(", judged by balanced accuracy")
    assert "balanced" not in judge(monkeypatch, images())[1].describe()


def test_one_epoch_is_one(monkeypatch):
    score = judge(monkeypatch, images(), plan=TrainingPlan(epochs=1))[1]
    assert "trained for 1 epoch on" in score.describe()


def test_real_targets_of_images_were_not_measured(monkeypatch):
    x = np.random.default_rng(0).integers(0, 255, (60, 8, 8), np.uint8)
    score = TrialScore(Setting(as_dataset(x, np.arange(60) / 7), None, 8, 0, CPU))
    assert "other data" in score.trust()


def test_a_network_of_ones_own_on_series_is_other_data():
    x = np.random.default_rng(0).normal(size=(60, 1, 30))
    data = as_dataset(x, np.arange(60) % 2, kind="series")
    own = OwnNetwork(torch.nn.Flatten(), False, "all")
    assert "other data" in TrialScore(Setting(data, None, 8, 0, CPU, own=own)).trust()


@pytest.mark.parametrize(("level", "sure"), [(4, False), (8, False), (9, True)])
def test_little_work_with_ones_own_network_is_never_sure(monkeypatch, level, sure):
    own = OwnNetwork(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)))
    found, ((_, options),), score = several(
        monkeypatch, images(count=1200), [0.7], effort=level, own=own, trends=True
    )
    assert found.sure is sure
    assert options["calibration"] == (PLANNED if sure else QUICK)
    capped = " Below --effort 9, verdicts are “probably” at most."
    assert score.trust().startswith(module._OWN_FROM_SCRATCH)
    assert score.trust().endswith(capped) is not sure


@pytest.mark.parametrize(("error", "said"), [(1.2, True), (0.6, False)])
def test_a_real_target_that_nothing_predicts_gives_no_verdict(monkeypatch, error, said):
    rng = np.random.default_rng(0)
    data = as_dataset(rng.integers(0, 255, (400, 8, 8)).astype(np.uint8), rng.normal(size=400))

    def run_folds(*_, **__):
        losses = torch.full((SIZE, 2), error * float(data.y.var()), dtype=torch.float64)
        none = torch.tensor([]).double()
        return [HeldOut(torch.arange(SIZE), losses, 0 * losses, none, none)]

    monkeypatch.setattr(module, "run_folds", run_folds)
    found = TrialScore(Setting(data, None, 8, 3, CPU, effort=4)).judge_all([flips()])
    assert any("no better than the mean of the target" in text for text in found.warnings) is said
    assert found.baseline.score == found.baseline.low == pytest.approx(100 * (1 - error))
