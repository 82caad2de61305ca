import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

import augury
from augury.forecasting.policy.policy import Policy, PolicyRow

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_with_policy.py"


def test_the_example_trains_with_and_without_the_policy(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), "--policy", "noise(0.1)", "--epochs", "2"])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["identity", "noise(0.1)"]
    assert all(" % (" in line for line in lines)


@pytest.mark.slow
def test_the_example_runs_as_printed(monkeypatch, capsys, tmp_path):
    row = PolicyRow("shear(10)", "chosen", 1.0, 0.5, 1.5, 0.9, 3)
    found = Policy("shear(10)", (row,), 90.0, "It is.", {"name": "digits"}, {}, (), {}, 0, 1.0)
    assert isinstance(found, augury.Policy)
    (tmp_path / "policy.json").write_text(found.to_json())
    monkeypatch.chdir(tmp_path)
    printed = re.findall(r"^    python examples/(.*)$", EXAMPLE.read_text(), re.MULTILINE)
    assert len(printed) == 2
    for line, spec in zip(printed, ("shear(10) >> scaling(0.9,1.1)", "shear(10)"), strict=True):
        name, *arguments = shlex.split(line)
        assert name == EXAMPLE.name
        monkeypatch.setattr(sys, "argv", [str(EXAMPLE), *arguments])
        runpy.run_path(str(EXAMPLE), run_name="__main__")
        plain, own = capsys.readouterr().out.splitlines()
        assert plain.startswith("identity: ")
        assert own.startswith(f"{spec}: ")
