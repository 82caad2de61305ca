"""What the benchmarks of forecasts say of real training itself (benchmarks/_truth.py)."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from augury.forecasting import series
from augury.forecasting.forecast import PLANNED, QUICK, SLIM, SMALL
from augury.forecasting.scores import trial as score
from augury_paper.errata import ERRATA

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import predict
import predict_series
from _truth import halves, part_at_random, regret, reliability, self_forecast

ROOT = Path(__file__).parents[2]


def make_cell(real, run, example, seed=0, seeds=12, parts=4):
    """Real gains, with noise of training runs and of test examples upon them."""
    rng = np.random.default_rng(seed)
    where = real[:, None, None] + example * rng.normal(size=(len(real), 1, parts))
    found = where + run * rng.normal(size=(len(real), seeds, parts))
    names = [f"c{k}" for k in range(len(real))]
    return {
        "accuracy": {
            "identity": [0.0] * seeds,
            **dict(zip(names, found.mean(2).tolist(), strict=True)),
        },
        "tested": dict(zip(names, found.tolist(), strict=True)),
    }


def without_parts(cell):
    return {"accuracy": cell["accuracy"]}


def test_regret_of_candidates_that_are_all_alike_is_nought():
    cells = [make_cell(np.zeros(30), 1.0, 1.0, seed) for seed in range(40)]
    found = [regret(cell, [0, 1, 2]) for cell in cells]
    assert abs(np.mean(found)) < 0.1
    plain = [np.array([np.mean(v) for v in list(c["accuracy"].values())[1:]]) for c in cells]
    assert np.mean([p.max() - p[:3].max() for p in plain]) > 0.5  # the best of many is flattered


def test_regret_of_a_choice_that_is_worse_is_what_it_is_worse_by():
    real = np.concatenate([np.zeros(3), np.full(3, 5.0), np.full(10, -2.0)])
    cell = make_cell(real, 0.1, 0.1)
    assert regret(cell, [0, 1, 2]) == pytest.approx(5.0, abs=0.2)
    assert regret(cell, [3, 1, 2]) == pytest.approx(0.0, abs=0.2)


def test_seeds_alone_overstate_how_far_gains_repeat():
    cell = make_cell(np.zeros(40), 0.2, 2.0)
    assert reliability(without_parts(cell)) > 0.9
    assert reliability(cell) < 0.5
    assert reliability(make_cell(np.linspace(0, 9, 40), 0.2, 0.5)) > 0.95


def test_halves_share_neither_seeds_nor_examples():
    specs = ["a", "b"]
    tested = {s: [[100 * seed + part for part in range(4)] for seed in range(6)] for s in specs}
    cell = {"accuracy": {"identity": [0.0] * 6, "a": [0.0] * 6, "b": [0.0] * 6}, "tested": tested}
    pairs = halves(cell)
    total = 100 * 5 + 3  # means of complementary halves add up to that of the first and last
    assert all(np.allclose(first + second, total) for first, second in pairs)
    assert len(pairs) == 20 * 6 * 2


def test_nothing_repeats_where_all_candidates_are_equal():
    cell = make_cell(np.zeros(40), 0.0, 0.0)
    assert reliability(cell) < 0.1
    assert regret(cell, [0, 1, 2]) == 0
    cell = make_cell(np.concatenate([np.zeros(38), [-9.0, -5.0]]), 0.0, 0.0)
    assert reliability(cell) < 0.5  # though what is worst is always the same


def test_training_as_a_forecast_for_other_examples():
    rho, short = self_forecast(make_cell(np.linspace(0, 9, 40), 0.01, 0.01))
    assert rho > 0.99
    assert short == pytest.approx(0, abs=0.05)
    rho, short = self_forecast(make_cell(np.zeros(40), 0.1, 1.0))
    assert abs(rho) < 0.3
    assert short > 0.2


def test_parts_of_a_test_set_have_each_class():
    y = torch.tensor([0] * 40 + [1] * 12)
    parts = part_at_random(y)
    for c, count in ((0, 10), (1, 3)):
        assert torch.bincount(parts[y == c]).tolist() == [count] * 4


@pytest.mark.parametrize(
    ("trial", "used"),
    [("trial", PLANNED), ("slim", SLIM), ("small", SMALL), ("quick", QUICK)],
)
def test_the_constants_of_forecasts_are_those_that_the_committed_trials_give(trial, used):
    found = predict.constants(predict.RESULTS, trial)
    assert (used.slope, used.floor, used.share) == pytest.approx(
        (found.slope, found.floor, found.share), rel=0.02
    )


def test_a_trial_with_less_work_is_less_sure():
    assert QUICK.floor > SMALL.floor > PLANNED.floor
    cell = predict.tried(predict.RESULTS, "small")[0]
    (gain, spread, _), (same, wider, _) = (predict.arrays(cell, c) for c in (SMALL, QUICK))
    assert np.array_equal(gain, same)
    assert (wider > 1.05 * spread).all()


@pytest.mark.parametrize("trial", ["trial", "slim", "quick"])
def test_what_a_ranking_says_of_its_trust_was_measured(trial):
    said = {"trial": score._PLANNED, "slim": score._SLIM, "quick": score._QUICK}[trial]
    rows = [found for _, found in predict.judged(predict.RESULTS, trial)]
    rho = [row["spearman"] for row in rows]
    verdicts, wrong = (sum(row[k] for row in rows) for k in ("said", "wrong"))
    assert f"{min(rho):.2f} to {max(rho):.2f} (mean {np.mean(rho):.2f})" in said
    assert trial != "slim" or f"mean correlation was {np.mean(rho):.2f}, and" in score._QUICK
    assert f"{100 * (1 - wrong / verdicts):.0f} % of {verdicts:.0f} verdicts were right" in said
    short = np.mean([row["regret@3"] for row in rows])
    assert trial == "quick" or (f"{short:.2f} points short" if short else "always among") in said


def test_what_is_said_of_brief_trials_was_measured():
    rows = [found for _, found in predict.judged(predict.RESULTS, "brief")]
    rho = [row["spearman"] for row in rows]
    assert f"{min(rho):.2f} to {max(rho):.2f} (mean {np.mean(rho):.2f})" in score._BRIEF
    said, wrong = (sum(row[f"probably {k}"] for row in rows) for k in ("said", "wrong"))
    assert f"{100 * (1 - wrong / said):.0f} % of {said} verdicts" in score._BRIEF
    sure, amiss = (sum(row[k] for row in rows) for k in ("said", "wrong"))
    assert amiss > 0.05 * sure  # why they are never sure


def test_what_is_said_of_fine_tuning_was_measured():
    rows = [found for _, found in predict.fine_tuned(predict.RESULTS)]
    low, high = sorted(f"{row['spearman']:.2f}" for row in rows)
    signs = 100 * np.mean([row["signs"] for row in rows])
    assert f"were {low} and {high}, and {signs:.0f} % of the signs" in score._OWN


def test_the_page_on_images_shows_every_cell():
    """Run ``python benchmarks/predict.py page`` after a change of results."""
    page = (ROOT / "docs" / "prediction.md").read_text(encoding="utf-8")
    cells = list((ROOT / "benchmarks" / "results" / "predict").glob("*.json"))
    assert cells
    for path in cells:
        cell = json.loads(path.read_text(encoding="utf-8"))
        source, size, epochs = cell["source"], f"{cell['examples']:,}", cell["epochs"]
        row = f"| {source} | {size} | {epochs} | {cell['network']} |"
        assert row in page, path.name


def test_what_is_said_of_alignment_was_measured():
    cells = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in (ROOT / "benchmarks" / "results" / "predict").glob("*.json")
    ]
    scored = [cell for cell in cells if "alignment" in cell.get("scores", {})]
    assert (len(scored), len({cell["source"] for cell in scored})) == (5, 4)
    found = []
    for cell in scored:
        aligned = cell["scores"]["alignment"]
        gains = [np.mean(cell["accuracy"][spec]) for spec in aligned]
        found.append(spearmanr(list(aligned.values()), gains)[0])
    said = f"mean rank correlation with the real gains was {np.mean(found):.2f}"
    errata = next(d.words for d in ERRATA if d.experiment == "alignment" and "correl" in d.words)
    for text in (
        (ROOT / "README.md").read_text(encoding="utf-8"),
        (ROOT / "docs" / "theory.md").read_text(encoding="utf-8"),
        errata.replace("correlation of alignment with", "correlation with"),
    ):
        words = " ".join(text.split())
        assert said in words
        assert "in five comparisons on four sources of images" in words


@pytest.mark.parametrize("trial", ["fcn", "small"])
def test_what_is_said_of_series_was_measured(monkeypatch, trial):
    """Constants move no order, so that the fit of them is left out; the page has the verdicts."""
    monkeypatch.setattr(predict_series, "fit", lambda cells: PLANNED)
    key = "trial" if trial == "fcn" else "small"
    rows = predict_series.judged(predict_series.RESULTS, key)
    good = [found for _, found in predict_series.ordered(rows)]
    others = [found["spearman"] for _, found in rows if found not in good]
    rho = [found["spearman"] for found in good]
    number = {7: "seven", 8: "eight", 11: "eleven"}
    said = series.TRUST[trial]
    assert f"real training on {number[len(rows)]} sets of series" in said
    assert f"On the {number[len(good)]} sets whose real order is reproducible" in said
    assert f"{min(rho):.2f} to {max(rho):.2f} (mean {np.mean(rho):.2f})" in said
    ends = f"{min(others):.2f} to {max(others):.2f}" if len(others) > 1 else f"{others[0]:.2f}"
    assert f"the correlation was {ends}." in said
    short = np.mean([found["regret@3"] for found in good])
    assert any(f"fell {short:.{digits}f} points short" in said for digits in (1, 2))
    if trial == "fcn":
        page = (ROOT / "docs" / "prediction_series.md").read_text(encoding="utf-8")
        (sure,) = re.findall(r"Of (\d+) \*helps\* and \*hurts\* verdicts", page)
        (maybe,) = re.findall(r"\d % of (\d+) were\.", page)
        assert f"All {sure} verdicts without “probably” were right" in said
        assert f"of {maybe} if those with “probably” are counted" in said
        readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
        assert f"mean correlation was {np.mean(rho):.2f} on the {number[len(good)]} on" in readme
        assert f"series, and {ends} on the others" in readme
