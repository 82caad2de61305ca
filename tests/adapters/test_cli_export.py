"""`augury export` on the command line."""

from __future__ import annotations

import sys

import pytest

import augury
from augury.adapters.export import FORMATS
from augury.cli.export import Format
from augury.cli.main import main


def command(monkeypatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["augury", "export", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_the_command_knows_every_format():
    assert list(Format.__args__) == list(FORMATS)


def test_code_is_printed_or_written(monkeypatch, capsys, tmp_path):
    code = augury.export("resized_crop(0.5)", to="kornia", image_shape=(3, 32, 32))
    options = ("resized_crop(0.5)", "--to", "kornia", "--image-shape", "3,32,32")
    assert command(monkeypatch, *options) == 0
    assert capsys.readouterr().out == code
    file = tmp_path / "augment.py"
    assert command(monkeypatch, *options, "--out", str(file)) == 0
    assert file.read_text(encoding="utf-8") == code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rotation", "--to", "torchvison"), "torchvison"),
        (("rotaton",), "did you mean rotation"),
        (("rotation", "--image-shape", "big"), "for example 3,32,32, got 'big'"),
        (("rotation", "--out", "/nowhere/at/all.py"), "cannot write /nowhere/at/all.py"),
    ],
)
def test_bad_input_is_one_line(arguments, message, monkeypatch, capsys):
    assert command(monkeypatch, *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
