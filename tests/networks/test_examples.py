"""The examples run as printed."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"


def test_the_torch_example_trains_in_each_way_and_plans(capsys):
    example = runpy.run_path(str(FOLDER / "averaging_torch.py"))
    example["main"](epochs=1, repeats=1)
    out = capsys.readouterr().out
    for name in ("no augmentation", "1 random view", "4 views", "4 averages of 4", "16 views"):
        assert f"{name:16} accuracy " in out
    assert "expected to do harm" in out  # the plan says which choices not to take
    assert "recommended" in out


@pytest.mark.filterwarnings("ignore")  # lightning's own
def test_the_lightning_example_trains(capsys, tmp_path, monkeypatch):
    pytest.importorskip("lightning")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(FOLDER / "averaging_lightning.py"), run_name="__main__")
    assert "accuracy" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["averaging_torch.py", "averaging_lightning.py"])
def test_examples_use_public_names_alone(name):
    assert "from augury." not in (FOLDER / name).read_text()
