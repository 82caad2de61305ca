"""`augury rank --pipeline`: what each step of a pipeline contributes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from augury.cli.main import main

QUICK = ["--score", "ridge", "--feature-map", "flatten", "--max-examples", "200", "--n-views", "2"]


def command(monkeypatch, *arguments: str) -> int:
    monkeypatch.chdir(Path(__file__).parent)
    monkeypatch.setattr(sys, "argv", ["augury", "rank", "digits", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_each_step_is_left_out_once(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    assert command(monkeypatch, "--pipeline", "own_transforms:pipeline", *QUICK) == 0
    shown = capsys.readouterr().out
    for line in (
        "whole pipeline",
        "without RandomRotation(degrees=[-15.0, 15.0])",
        "without RandomHorizontalFlip(p=0.5)",
        "RandomHorizontalFlip(p=0.5) adds ",
    ):
        assert line in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pipeline", "own_transforms:flip"], "expected a pipeline with steps"),
        (["--pipeline", "own_transforms:number"], "expected a pipeline with steps"),
        (["--pipeline", "own_transforms:missing"], "cannot load own_transforms:missing"),
        (["-a", "sampled(own_transforms:number)"], "got a number"),
        (
            ["--pipeline", "own_transforms:pipeline", "--sweep"],
            "--sweep cannot be combined with --pipeline",
        ),
    ],
)
def test_bad_input_is_one_line(arguments, message, monkeypatch, capsys):
    assert command(monkeypatch, *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.strip().count("\n") == 0
