"""What `augury rank` prints of a ranking: warnings before numbers, then what it comes to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from refusal import said_in_one_line as refused
from report_rankings import make_ranking, make_row

from augury.augmentations import parse
from augury.cli.rank import say_late, show, show_contributions
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
    assert out.index("Warning: there are only 30 examples.") < out.index("augmentation")


def test_what_to_try_first_is_said(capsys):
    rows = (make_row("flips", 1.0, 2.0), make_row("noise(0.1)", -1.0, 2.0))
    out = shown(capsys, rows=rows, score="trial")
    assert "for 1 epoch on 5,000 examples of 28 pixels with cnn" in out
    assert "try flips first" in out
    assert "Neither of the two candidates can be told apart from no augmentation." in out


@pytest.mark.parametrize("warnings", [(), ("runs differ too much",)])
def test_what_a_step_adds_has_an_interval(capsys, warnings):
    parts: dict[str, Any] = {"whole pipeline": parse("flips"), "without blur": parse("invert")}
    rows = (make_row("flips", 5.0, 3.0), make_row("invert", 1.0, 4.0))
    show_contributions(make_ranking(score="trial", rows=rows, warnings=warnings), parts)
    out = " ".join(capsys.readouterr().out.split())
    assert "blur adds +4.00 to the pipeline (95 % interval -1.00 to +9.00)" in out
    assert ("the contribution of each step is uncertain. Estimates:" in out) == bool(warnings)


def test_the_sentence_and_the_table_agree_on_the_side_of_zero(capsys):
    rows = (make_row("flips", -0.04, 4.0), make_row("noise(0.1)", -2.0, 4.0))
    out = shown(capsys, rows=rows, score="trial", warnings=("too few epochs",))
    assert "flips has the highest estimate: −0.04 points" in out
    assert "flips -0.04 " in out


def test_at_the_ceiling_nothing_is_left_to_gain(capsys):
    rows = (make_row("flips", -0.001, 0.01), make_row("noise(0.1)", -0.002, 0.01))
    out = shown(capsys, rows=rows, score="trial", baseline=Baseline(99.8, 99.8, 99.8, True))
    assert "Nothing is left to gain" in out
    assert "-0.00" not in out


def write_images(folder, count=4):
    rng = np.random.default_rng(len(folder.name))
    for k in range(count):
        Image.fromarray(rng.integers(0, 255, (8, 8), np.uint8)).save(folder / f"{k}.png")


FAST = ("-a", "flips", "--score", "alignment", "--max-examples", "200")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a device that is full")
def test_output_that_cannot_be_written_is_one_line():
    command = [sys.executable, "-m", "augury", "augmentations"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    refused((done.returncode, "", done.stderr), "cannot write to standard output: No space left")


def test_a_terminal_without_the_characters_of_a_name_shows_others(tmp_path):
    for name in ("猫", "chien à poils"):
        (tmp_path / "data" / name).mkdir(parents=True)
        write_images(tmp_path / "data" / name)
    command = [sys.executable, "-m", "augury", "rank", "data", *FAST, "--json", "out.json"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    classes = json.loads((tmp_path / "out.json").read_text())["dataset"]["classes"]
    assert sorted(classes) == ["chien à poils", "猫"]


def test_a_name_too_long_is_refused_and_the_longest_is_written(run, tmp_path):
    refused(run("rank", "digits", *FAST, "--json", "a" * 300), "cannot write aaa", "too long")
    longest = "a" * 250 + ".json"
    assert run("rank", "digits", *FAST, "--json", longest)[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == [longest]


def test_a_class_whose_name_is_no_text_is_written(run, tmp_path):
    odd = os.fsdecode(b"\xff\xfe")
    for name in (odd, "plain"):
        try:
            (tmp_path / "data" / name).mkdir(parents=True)
        except OSError:
            pytest.skip("this file system takes names of text only")
        write_images(tmp_path / "data" / name)
    code, _, err = run("rank", "data", *FAST, "--json", "out.json", "--report", "out.html")
    assert (code, err) == (0, "")
    assert odd in json.loads((tmp_path / "out.json").read_text())["dataset"]["classes"]


def test_odd_tables_and_paths_are_one_line(run, tmp_path):
    (tmp_path / "inf.csv").write_text("a,b,y\n1,NaN,u\n3,4,v\n,7,u\ninf,4,v\n" * 8)
    refused(run("rank", "inf.csv", "--label", "y"), "column 'a'", "numeric except for")
    (tmp_path / "semi.csv").write_text("a;b;y\n1;2;u\n3;4;v\n" * 10)
    refused(run("rank", "semi.csv", "--label", "y"), "no column 'y'", "separate its columns")
    refused(run("rank", ""), "got an empty string")


def test_two_results_are_not_written_to_one_file(run, tmp_path):
    said = run("rank", "digits", *FAST, "--json", "a.html", "--report", "./a.html")
    refused(said, "--json and --report are both a.html")
    assert not list(tmp_path.iterdir())


def test_a_budget_that_was_exceeded_is_said():
    assert say_late(74, 60) == say_late(1000, None) == ""
    assert say_late(75, 60) == (
        "This took 75 s, more than the budget of 60 s: the trials ran more slowly than the timing "
        "at the start suggested."
    )
