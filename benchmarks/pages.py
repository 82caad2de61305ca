"""Make what the documentation derives from committed results: two pages, all figures.

    python benchmarks/pages.py             # docs/reproduced.md, docs/checks.md and docs/figures
    python benchmarks/pages.py --figures   # the figures alone, which are not tracked

The documentation's build draws the figures itself (docs/conf.py). Every file in
benchmarks/results/reproduce/ is read; a cell that two of them hold is taken from the last by name.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import budgets
import checks
import matplotlib as mpl
import predict
import ranking_time
import scaling
import scaling_rank
from _result import RESULTS, ROOT
from matplotlib.figure import Figure

from augury_paper.markdown import figures as figures_of
from augury_paper.markdown import merge, to_markdown
from augury_paper.plots import plot_figure
from augury_paper.run import sections, settings_of
from augury_paper.settings import NAMED

DOCS = ROOT / "docs"
FIGURES = DOCS / "figures"


def committed() -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Read the results at the paper's settings, and those at others by the settings' name."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in NAMED}
    for path in sorted((RESULTS / "reproduce").glob("*.json")):
        results = json.loads(path.read_text(encoding="utf-8"))
        settings = settings_of(results)
        for name, known in NAMED.items():
            if settings == replace(known, trials=settings.trials, datasets=settings.datasets):
                found[name].append(results)
                break
        else:
            raise SystemExit(f"{path} has settings of no name; run it with --settings")
    paper = merge(found.pop("paper"))
    return paper, {name: merge(some) for name, some in found.items() if some}


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
    if (RESULTS / "scaling_rank.json").exists():
        growth = json.loads((RESULTS / "scaling_rank.json").read_text(encoding="utf-8"))
        _save(lambda: scaling_rank.draw(growth), FIGURES / "scaling_rank.svg")
    if (RESULTS / "ranking_time").exists():
        _save(ranking_time.draw, FIGURES / "ranking_time.svg")
    _save(predict.draw, FIGURES / "prediction.svg")
    if (RESULTS / "budgets.json").exists():
        limited = json.loads((RESULTS / "budgets.json").read_text(encoding="utf-8"))
        _save(lambda: budgets.draw(limited), FIGURES / "budgets.svg")


def _save(make: Any, path: Path) -> None:
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "augury", "font.size": 9}):
        figure: Figure = make()
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--figures", action="store_true", help="the figures alone")
    if not parser.parse_args().figures:
        (DOCS / "reproduced.md").write_text(page(), encoding="utf-8")
        (DOCS / "checks.md").write_text(checks.page(), encoding="utf-8")
        print("wrote docs/reproduced.md and docs/checks.md")
    draw()
    print("drew docs/figures")


if __name__ == "__main__":
    main()
