"""The page of the command line shows every option of every command, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer.main

from augury.cli.app import app

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]  # a group of commands


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_option_is_on_the_page(name):
    """Run ``python docs/cli.py`` after a change."""
    section = re.split(r"\n## ", PAGE.split(f"\n## `augury {name}`\n")[1])[0]
    shown = set(
        re.findall(r"(--[a-z][a-z-]*)", " ".join(re.findall(r"^\* `([^`]*)`", section, re.M)))
    )
    given = {
        word
        for parameter in COMMANDS[name].params
        for word in (*parameter.opts, *parameter.secondary_opts)
        if word.startswith("--")
    }
    assert shown == given | {"--help"}
    plain = " ".join(section.split())
    for parameter in COMMANDS[name].params:
        help_text = getattr(parameter, "help", None)
        assert not help_text or " ".join(help_text.split()) in plain, parameter.name
