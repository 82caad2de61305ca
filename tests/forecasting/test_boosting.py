"""The score for tables: gradient boosting with augmented copies."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from refusal import refused
from sklearn.datasets import load_diabetes, load_wine

import augury
from augury.augmentations import column_noise, identity, neighbour_mix
from augury.forecasting.scores.boosting import _TRUST, fit_trees, trees_take
from augury.forecasting.tables import run_table_folds, table_of
from augury.forecasting.trial import Trial, make_fold
from augury.results.ranking import Ranking

FEW = ["column_noise(0.2)", "neighbour_mix(0.5)"]


@pytest.fixture(scope="module")
def wine():
    bunch = load_wine()
    two = bunch.target < 2
    return augury.as_dataset(bunch.data[two, :6], bunch.target[two], name="wine")


def test_tables_are_judged_by_boosting(wine):
    found = augury.rank(wine, augmentations=FEW, effort=0)
    assert found.score == "boosting"
    assert found.in_points
    assert 85 < found.baseline.score <= 100
    assert {row.augmentation for row in found.rows} == set(FEW)
    assert all(row.low <= row.gain <= row.high for row in found.rows)
    assert "row held out once" in found.features
    assert "compared with boosting on the other halves" in found.trust
    assert found.warnings == ()
    again = augury.rank(wine, augmentations=FEW, effort=0)
    assert again.rows == found.rows


def test_a_real_target_is_ranked_in_points_of_variance_explained():
    bunch = load_diabetes()
    found = augury.rank(bunch.data[:200], bunch.target[:200] + 0.5, FEW, effort=0)
    assert found.score == "boosting"
    assert 0 < found.baseline.score < 70


def test_no_verdicts_where_a_linear_model_is_better(run, tmp_path):
    """Gains of boosting, at 36 % where a linear model reaches 49 %, say little."""
    frame = load_diabetes(as_frame=True).frame
    frame.to_csv(tmp_path / "diabetes.csv", index=False)
    given = [part for spec in FEW for part in ("-a", spec)]
    code, out, _ = run(
        "rank", "diabetes.csv", "--label", "target", "--task", "regression", *given, "--effort",
        "0", "--json", "out.json",
    )  # fmt: skip
    assert code == 0
    found = Ranking.from_json((tmp_path / "out.json").read_text())
    (warning,) = found.warnings
    said = re.fullmatch(
        r"a linear model is better than boosting here \((\d+) against (\d+) %\), so gains with "
        "boosting say little about gains with a better model",
        warning,
    )
    assert said
    assert int(said[1]) > int(said[2]) + 2
    assert int(said[2]) == round(found.baseline.score)
    assert {(row.verdict, row.probability) for row in found.rows} == {("can't tell", None)}
    shown = " ".join(out.split())
    assert shown.index(f"No verdicts: {warning}.") < shown.index("without augmentation")


def test_what_is_said_of_trust_was_measured():
    page = Path(__file__).parents[2] / "docs" / "prediction_tables.md"
    text = page.read_text(encoding="utf-8")
    rows = {
        word: re.search(rf"\| probably {word} \| (\d+) \| (\d+) \|", text)
        for word in ("helps", "hurts")
    }
    for word, row in rows.items():
        assert row
        said = "verdicts " if word == "helps" else ""
        assert f"{row[2]} of {row[1]} {said}“probably {word}”" in _TRUST
    found = re.findall(r"\|\s*(-?\d\.\d\d) \| \d+ \| \d+ \| \d+ \|", text)
    assert len(found) == 8
    assert f"was {np.mean([float(value) for value in found]):.2f}," in _TRUST


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_copies_that_change_nothing_give_the_same_trees(kind, wine):
    data = wine
    if kind == "numbers":
        bunch = load_diabetes()
        data = augury.as_dataset(bunch.data, bunch.target + 0.5)
    rows = torch.arange(0, len(data), 2)
    table = table_of(data, rows)
    held = trees_take(data.x[1::2], table)
    plain, copied = (
        fit_trees(data, rows, candidate, table, 0, 3).predict(held)
        for candidate in (None, identity())
    )
    np.testing.assert_allclose(plain.astype(float), copied.astype(float), atol=1e-6)


def test_trees_see_what_is_missing():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = rng.random(200) < 0.5
    frame = pd.DataFrame(
        {"a": np.where(y, np.nan, x), "b": rng.normal(size=200), "y": y.astype(int)}
    )
    data = augury.as_dataset(frame, label="y")
    table = table_of(data)
    assert np.array_equal(np.isnan(trees_take(data.x, table)[:, 0]), y)
    found = augury.rank(data, augmentations=["column_noise(0.1)"], effort=0)
    assert found.baseline.score > 99  # being missing is what tells


def test_neighbours_never_come_from_rows_that_are_held_out(wine):
    """A fold whose held-out rows are far away must not be moved towards them."""
    trial = Trial(1, len(wine) * 3 // 4, 4)
    fold = make_fold(wine, trial, 0, 1)
    table = table_of(wine, fold.train)
    assert len(table.x) == len(fold.train)
    moved = neighbour_mix(1.0).bound(table)
    assert torch.equal(moved.table.x, wine.x[fold.train])


def test_the_network_trial_binds_each_fold(wine, monkeypatch):
    seen = []

    def folds(data, candidates, trial, numbers, **options):
        seen.append((numbers, len(candidates[0].table.x)))
        return [numbers]

    monkeypatch.setattr("augury.forecasting.tables.run_folds", folds)
    trial = Trial(1, 97, 2)
    run_table_folds(wine, [column_noise()], trial, range(2), seed=0, device=torch.device("cpu"))
    assert seen == [([0], 97), ([1], 97)]


def test_a_budget_decides_how_often_rows_are_held_out(wine, monkeypatch):
    short = "budget of 0.01 s is too short|give at least"
    refused(short, augury.rank, wine, None, FEW, budget=0.01)
    monkeypatch.setattr("augury.forecasting.scores.boosting._FOLDS", 2)
    found = augury.rank(wine, augmentations=["column_noise(0.2)"], budget=600)
    assert found.effort["repeats"] == 4


def test_nothing_learnt_gives_no_verdict():
    rng = np.random.default_rng(0)
    found = augury.rank(rng.normal(size=(120, 3)), rng.integers(0, 2, 120), FEW, effort=0)
    assert "learnt nothing" in found.warnings[0]
    assert {row.verdict for row in found.rows} == {"can't tell"}


def test_the_page_and_the_terminal_speak_of_boosting(wine, run, tmp_path):
    found = augury.rank(wine, augmentations=["column_noise(0.2)"], effort=0)
    assert "The gains are for training on 130 examples with gradient boosting." in found.to_html()
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(wine.x.numpy(), columns=list("abcdef")).assign(y=wine.y.numpy())
    frame.to_csv(tmp_path / "t.csv", index=False)
    code, out, _ = run("rank", "t.csv", "--label", "y", "-a", "column_noise(0.2)", "--effort", "0")
    assert code == 0
    assert "for 130 examples with boosting" in out
