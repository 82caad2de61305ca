"""What `augury rank` prints of a ranking: warnings before numbers, then what it comes to."""

from __future__ import annotations

from dataclasses import replace

from report_rankings import make_ranking, make_row

from augury.cli.rank import show
from augury.results.ranking import Baseline


def shown(capsys, **changes):
    plan = {"epochs": 1, "examples": 5000, "side": 28, "network": "cnn", "pretrained": False}
    ranking = replace(make_ranking(), plan=plan | {"assumed": []}, **changes)
    dataset = {"task": "classification", "warnings": [], **ranking.dataset}
    show(replace(ranking, dataset=dataset | changes.get("dataset", {})))
    return " ".join(capsys.readouterr().out.split())


def test_warnings_of_the_data_stand_before_the_numbers(capsys):
    about = make_ranking().dataset
    few = ["few-examples", "there are only 30 examples"]
    out = shown(capsys, dataset=about | {"warnings": [few]})
    assert out.index("Careful: there are only 30 examples.") < out.index("augmentation")


def test_what_to_try_first_is_said(capsys):
    rows = (make_row("flips", 1.0, 2.0), make_row("noise(0.1)", -1.0, 2.0))
    out = shown(capsys, rows=rows, score="trial")
    assert "for 1 epoch on 5,000 examples of 28 pixels with cnn" in out
    assert "try flips first" in out
    assert "None of the 2 candidates can be told apart from no augmentation." in out


def test_at_the_ceiling_nothing_is_left_to_gain(capsys):
    rows = (make_row("flips", -0.001, 0.01), make_row("noise(0.1)", -0.002, 0.01))
    out = shown(capsys, rows=rows, score="trial", baseline=Baseline(100.0, 99.9, 100.0))
    assert "Nothing is left to gain" in out
    assert "-0.00" not in out
