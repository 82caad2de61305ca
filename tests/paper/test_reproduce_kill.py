"""A run that is killed and started again ends in the same page."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import tempfile
from pathlib import Path
from typing import Any

import pytest
from forked import start_forked

from augury_paper import make_page

# Tiny, and on the embedded digits alone, so that it runs anywhere in seconds.
SCRIPT = """
import sys
from dataclasses import replace
from pathlib import Path
import torch
torch.set_num_threads(1)
from augury_paper import QUICK, reproduce
settings = replace(QUICK, trials=2, examples=80, tests=40)
out = Path(sys.argv[1])
outcome = reproduce(
    ("chain",), out=out, settings=settings, data=out, device="cpu",
    progress=lambda done, total, now: print(done, flush=True),
)
sys.exit(len(outcome.failed))
"""


def timeless(value: Any) -> Any:
    """Return results with all measured times set to one second."""
    if isinstance(value, dict):
        return {
            key: _ones(item) if "seconds" in key else timeless(item) for key, item in value.items()
        }
    return [timeless(item) for item in value] if isinstance(value, list) else value


def _ones(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _ones(item) for key, item in value.items()}
    return [_ones(item) for item in value] if isinstance(value, list) else 1.0


def _run(out: Path, ticks: float = math.inf) -> list[str]:
    """Run to the end, or kill the run once it has reported some ticks; return its lines."""
    out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        pipe, errors = Path(folder) / "out", Path(folder) / "err"
        os.mkfifo(pipe)
        words = ["python", "-c", SCRIPT, str(out)]
        run = start_forked(words, out, dict(os.environ), (pipe, errors))
        seen = []
        with pipe.open(encoding="utf-8") as lines:
            for line in lines:
                seen.append(line)
                if len(seen) == ticks:
                    run.kill()  # the run goes on while its line is read: any moment of its work
                    break
        run.join()
        assert run.exitcode == (0 if len(seen) < ticks else -signal.SIGKILL), errors.read_text()
    return seen


@pytest.mark.slow
def test_killed_runs_end_in_the_same_page(tmp_path: Path) -> None:
    whole = _run(tmp_path / "whole")
    chance, out = random.Random(0), tmp_path / "killed"
    for _ in range(3):
        _run(out, chance.randrange(4, 9))  # the first cell takes four
    assert list((out / "cells").rglob("*.json")), "no kill came after a finished cell"
    rest = _run(out)
    assert len(rest) < len(whole)  # something had been kept
    first, second = (
        timeless(json.loads((tmp_path / name / "results.json").read_text()))
        for name in ("whole", "killed")
    )
    assert first == second
    assert make_page(first) == make_page(second)
    assert (out / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_times_are_all_that_is_taken_out() -> None:
    found = timeless({"seconds": {"a": 3}, "x": [{"step_seconds": [1, 2], "b": 2}]})
    assert found == {"seconds": {"a": 1.0}, "x": [{"step_seconds": [1.0, 1.0], "b": 2}]}
