"""The tutorial and how-to pages, followed from an empty folder: every command and file."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {page.stem: page for page in (DOCS / "start.md", *sorted((DOCS / "howto").glob("*.md")))}
FENCE = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

# torchvision imports beside a CPU build of torch only once its two compiled operators are declared
SHIM = """
import sys

class Declare:
    def find_spec(self, name, path=None, target=None):
        if name == "torchvision":
            sys.meta_path.remove(self)
            import torch
            Declare.library = torch.library.Library("torchvision", "FRAGMENT")
            for operator in ("nms", "qnms"):
                if not hasattr(torch.ops.torchvision, operator):
                    schema = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
                    Declare.library.define(operator + schema)

sys.meta_path.insert(0, Declare())
"""


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
            done = subprocess.run(
                ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True
            )
            assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
            same = doctest.OutputChecker().check_output(expected, done.stdout, FLAGS)
            assert same or not expected, f"$ {command}\n{done.stdout}\nexpected:\n{expected}"


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_a_page_ends_in_what_it_promises(name: str, tmp_path: Path) -> None:
    start, folder = tmp_path / "start", tmp_path / "work"
    start.mkdir()
    folder.mkdir()
    (start / "sitecustomize.py").write_text(SHIM, encoding="utf-8")
    sources = Path(__file__).parents[2] / "src"
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{start}{os.pathsep}{sources}",
        "COLUMNS": "160",
        "NO_ALBUMENTATIONS_UPDATE": "1",
    }
    follow(PAGES[name], folder, environment)


def test_a_wrong_page_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for text in (
        "```console\n$ false\n```\n",
        "```console\n$ echo 1\n2\n```\n",
        "```python\nx\n```\n",
    ):
        page.write_text(text, encoding="utf-8")
        with pytest.raises(AssertionError):
            follow(page, tmp_path, dict(os.environ))
