"""Shell completion, and `python -m augury`, as a shell asks for them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def complete(*words: str) -> list[str]:
    environment = {
        **os.environ,
        "_AUGURY_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("augury", *words)),
        "COMP_CWORD": str(len(words)),
    }
    command = [sys.executable, "-m", "augury"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("pol",), ["policy"]),
        (("rank", "digits", "--score", "al"), ["alignment"]),
        (("export", "rotation", "--to", "al"), ["albumentations", "albumentations-json"]),
        (("rank", "digits", "--pip"), ["--pipeline"]),
    ],
)
def test_commands_options_and_their_values_are_completed(words, expected):
    assert complete(*words) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell):
    environment = {**os.environ, "_AUGURY_COMPLETE": f"source_{shell}"}
    command = [sys.executable, "-m", "augury"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0
    assert "_AUGURY_COMPLETE" in done.stdout


def test_the_package_runs_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "augury", "--version"], capture_output=True, text=True
    )
    assert done.stdout.startswith("augury ")
