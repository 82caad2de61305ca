import runpy
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_with_policy.py"


def test_the_example_trains_with_and_without_the_policy(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), "--policy", "noise(0.1)", "--epochs", "2"])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["identity", "noise(0.1)"]
    assert all(" % (" in line for line in lines)
