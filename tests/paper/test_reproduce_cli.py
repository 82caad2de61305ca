"""`augury reproduce` as a person meets it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import augury_paper
from augury_paper import EXPERIMENTS, PAPER, QUICK, Outcome

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(run: Run) -> Run:
    return partial(run, "reproduce")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Stand in for the work, and see what it was asked for; `outcome` is what comes of it."""
    seen: dict[str, Any] = {"outcome": Outcome(Path("o/page.html"), computed=2, kept=3)}

    def stand_in(experiments: Any, **options: Any) -> Outcome:
        seen.update(options, experiments=experiments)
        if isinstance(seen["outcome"], BaseException):
            raise seen["outcome"]
        return seen["outcome"]

    monkeypatch.setattr(augury_paper, "reproduce", stand_in)
    return seen


def test_all_experiments_at_the_papers_settings_unless_told(
    run: Run, asked: dict[str, Any]
) -> None:
    code, out, err = run()
    assert (code, err) == (0, "")
    assert out == f"2 cells computed, 3 already done\nwrote {Path('o/page.html')}\n"
    assert tuple(asked["experiments"]) == EXPERIMENTS
    assert asked["settings"] == PAPER
    assert asked["out"] == Path("reproduction")


def test_options_become_settings(run: Run, asked: dict[str, Any]) -> None:
    run(
        "chain",
        "table1",
        "--quick",
        "--trials",
        3,
        "--dataset",
        "mnist",
        "--download",
        "--out",
        "x",
    )
    assert tuple(asked["experiments"]) == ("chain", "table1")
    assert asked["settings"].trials == 3
    assert asked["settings"].n_components == QUICK.n_components
    assert asked["settings"].datasets == ("mnist",)
    assert asked["fetch"] is True
    assert asked["out"] == Path("x")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("table2",), "there is no experiment 'table2'; choose from table1, approximation,"),
        (("--dataset", "imagenet"), "there is no data set 'imagenet'; choose from mnist, cifar10,"),
        (("--trials", "0"), "--trials must be from 1 to 1,000, not 0"),
        (("--trials", "100000"), "--trials must be from 1 to 1,000, not 100,000"),
        (("--data", "nowhere"), "--data nowhere is not a directory; create it or use another one"),
        (("--device", "tpu"), "'tpu' is not one of 'auto', 'cpu', 'cuda'"),
    ],
)
def test_bad_input_is_one_line(run: Run, arguments: tuple[str, ...], words: str) -> None:
    code, _, err = run(*arguments)
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    assert words in err


def test_a_failed_cell_ends_in_a_failure(run: Run, asked: dict[str, Any]) -> None:
    asked["outcome"] = Outcome(Path("page.html"), computed=1, failed=["chain a failed: oh"])
    code, out, err = run()
    assert code == 2
    assert "wrote page.html" in out
    assert "error: 1 cell failed, see above; run the same command to try again" in err


def test_an_interrupt_says_how_to_go_on(run: Run, asked: dict[str, Any]) -> None:
    asked["outcome"] = KeyboardInterrupt()
    code, _, err = run("--out", "here")
    assert code == 130
    assert err == (
        "interrupted: finished cells are saved in here; run the same command to resume\n"
    )
