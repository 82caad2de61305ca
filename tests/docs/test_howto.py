"""The tutorial and how-to pages, followed from an empty folder: every command and file."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from forked import run_forked

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {page.stem: page for page in (DOCS / "start.md", *sorted((DOCS / "howto").glob("*.md")))}
FENCE = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def commands(block: str) -> list[tuple[str, str]]:
    """Return the commands of a console block, each with the output that the page shows."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(command, output) for command, _, output in (part.partition("\n") for part in parts)]


def follow(page: Path, folder: Path, environment: dict[str, str]) -> None:
    """Write the files of a page and run its commands, in their order."""
    for language, block in FENCE.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            name = re.match(r"# (\S+\.py)\n", block)
            assert name, f"a file of {page.name} does not begin with its name:\n{block}"
            (folder / name[1]).write_text(block, encoding="utf-8")
            continue
        for command, expected in commands(block):
            done = run(command, folder, environment)
            assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
            same = doctest.OutputChecker().check_output(expected, done.stdout, FLAGS)
            assert same or not expected, f"$ {command}\n{done.stdout}\nexpected:\n{expected}"


def run(
    command: str, folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command: Python and augury in a process that need not import torch again."""
    words = shlex.split(command)
    if words[0] in ("python", "augury"):
        return run_forked(words, folder, environment)
    shell = ["bash", "-c", command]
    return subprocess.run(shell, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_a_page_ends_in_what_it_promises(name: str, tmp_path: Path) -> None:
    environment = {**os.environ, "COLUMNS": "160", "NO_ALBUMENTATIONS_UPDATE": "1"}
    follow(PAGES[name], tmp_path, environment)


def test_a_wrong_page_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for text in (
        "```console\n$ false\n```\n",
        "```console\n$ python -c 1/0\n```\n",
        "```console\n$ python -c 'print(1)'\n2\n```\n",
        "```console\n$ augury rank nothing\n```\n",
        "```console\n$ echo 1\n2\n```\n",
        "```python\nx\n```\n",
    ):
        page.write_text(text, encoding="utf-8")
        with pytest.raises(AssertionError):
            follow(page, tmp_path, dict(os.environ))
