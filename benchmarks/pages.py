"""Make what the documentation derives from committed results: docs/reproduced.md, all figures.

    python benchmarks/pages.py             # docs/reproduced.md and docs/figures
    python benchmarks/pages.py --figures   # the figures alone, which are not tracked

The documentation's build draws the figures itself (docs/conf.py). Every file in
benchmarks/results/reproduce/ is read; a cell that two of them hold is taken from the last by name.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import predict_page
import scaling
from _result import RESULTS, ROOT
from matplotlib.figure import Figure

from augury_paper.markdown import figures as figures_of
from augury_paper.markdown import merge, to_markdown
from augury_paper.plots import plot_figure
from augury_paper.run import sections, settings_of
from augury_paper.settings import FEWER, PAPER

DOCS = ROOT / "docs"
FIGURES = DOCS / "figures"


def committed() -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Read the results at the paper's settings, and those with fewer images."""
    paper, fewer = [], []
    for path in sorted((RESULTS / "reproduce").glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        settings = settings_of(found)
        if settings.learning_rate == FEWER.learning_rate:
            fewer.append(found)
        elif settings.examples == PAPER.examples:
            paper.append(found)
    return merge(paper), merge(fewer) if fewer else None


def page() -> str:
    """Write docs/reproduced.md from the committed results."""
    return to_markdown(*committed())


def draw() -> None:
    """Draw every figure of the documentation that derives from a committed result."""
    (FIGURES / "reproduction").mkdir(parents=True, exist_ok=True)
    for section in sections(committed()[0]):
        for name, plot in figures_of(section).items():
            _save(lambda plot=plot: plot_figure(plot), FIGURES / "reproduction" / f"{name}.svg")
    found = json.loads((RESULTS / "scaling.json").read_text(encoding="utf-8"))
    _save(lambda: scaling.draw(found), FIGURES / "scaling.svg")
    predict_page.main()


def _save(make: Any, path: Path) -> None:
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "augury", "font.size": 9}):
        figure: Figure = make()
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figures", action="store_true", help="the figures alone")
    if not parser.parse_args().figures:
        (DOCS / "reproduced.md").write_text(page(), encoding="utf-8")
        print("wrote docs/reproduced.md")
    draw()
    print("drew docs/figures")


if __name__ == "__main__":
    main()
