"""Mutated data files, specs and models end in one clear line; and the harness itself can fail."""

from __future__ import annotations

import itertools
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from augury._base.errors import AuguryError

from .__main__ import TARGETS
from .harness import judge, survey


@pytest.mark.parametrize("target", TARGETS.values())
def test_mutated_input_is_read_or_refused_in_one_line(target: str) -> None:
    found = survey(target, 300, seed=1)
    assert sum(found.counts.values()) == 300
    assert not found.failures, found.table()
    assert any(outcome == "read" for _, outcome in found.counts)  # some mutations change little


def faulty(rng: random.Random, directory: Path) -> tuple[str, Callable[[], object]]:
    """Make cases that each break one rule."""
    kinds: list[tuple[str, Callable[[], object]]] = [
        ("raises", lambda: {}["missing"]),
        ("hangs", lambda: sum(itertools.count())),
        ("eats memory", lambda: np.ones(40 << 20)),
        ("runs a program", lambda: subprocess.run(["true"], check=True)),
        ("writes", lambda: Path("/var/tmp/augury-fuzz").write_text("")),
        ("fine", lambda: None),
    ]
    return rng.choice(kinds)


def test_the_harness_notices_each_fault() -> None:
    found = survey("fuzz.test_fuzz:faulty", 12, seed=0, seconds=3, gib=0.25)
    expected = {
        "raises": "KeyError",
        "hangs": "hung",
        "eats memory": "memory",
        "runs a program": "code",
        "writes": "code",
        "fine": "read",
    }
    assert {kind for kind, _ in found.counts} == set(expected)
    assert all(expected[kind] == outcome for kind, outcome in found.counts), found.table()
    assert len(found.failures) == 12 - found.counts["fine", "read"]
    assert "KeyError" in found.table()


def test_a_message_must_be_one_line() -> None:
    def say(text: str) -> object:
        raise AuguryError(text)

    assert judge(lambda: say("expected a, got b"))[0] == "refused"
    assert judge(lambda: say("two\nlines"))[0] == "not one line"
    assert judge(lambda: say(""))[0] == "not one line"
