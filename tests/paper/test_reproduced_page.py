"""The page of the documentation that is made from committed results."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def pages():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import pages

        yield pages
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def test_the_committed_page_is_what_the_results_give(pages):
    """Run ``python benchmarks/pages.py`` after a change of results or words."""
    assert (ROOT / "docs" / "reproduced.md").read_text(encoding="utf-8") == pages.page()


def test_the_headline_counts_the_papers_claims_apart(pages):
    assert "**Of the paper's 34 claims, " in pages.page()
    assert " Of 15 checks of our own, " in pages.page()


def test_every_figure_that_the_documentation_shows_is_drawn(pages, tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "FIGURES", tmp_path)
    monkeypatch.setattr(pages, "_save", lambda make, path: path.touch())
    pages.draw()
    for page in (ROOT / "docs").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        shown = {part.split(")")[0] for part in text.split("](figures/")[1:]}
        assert shown <= {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.svg")}


def test_every_committed_result_says_where_it_comes_from():
    for path in (ROOT / "benchmarks" / "results").rglob("*.json"):
        found = json.loads(path.read_text(encoding="utf-8"))
        assert {"commit", "machine"} <= set(found.get("environment", found)), path
