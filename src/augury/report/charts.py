"""Figures for scripts and papers, drawn by matplotlib without its global state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from augury.report.words import INTERVAL, VERDICTS, Unit

if TYPE_CHECKING:
    from augury.results.ranking import Ranking

_STYLES: dict[str, dict[str, Any]] = {
    "helps": {"color": "#1261a6", "fmt": "o"},
    "probably helps": {"color": "#1261a6", "fmt": "o", "markerfacecolor": "white"},
    "can't tell": {"color": "#6b7480", "fmt": "o", "markerfacecolor": "white"},
    "probably hurts": {"color": "#b3430c", "fmt": "D", "markerfacecolor": "white"},
    "hurts": {"color": "#b3430c", "fmt": "D"},
}


def ranked_figure(ranking: Ranking) -> Figure:
    """Draw the gains with their 95 % intervals, best on top."""
    return draw_intervals(
        [(row.augmentation, row.gain, row.low, row.high, row.verdict) for row in ranking.rows],
        f"gain in {Unit.of(ranking).name} over no augmentation, {INTERVAL}",
        f"Ranked on {ranking.dataset.get('name', 'the data')}",
    )


def draw_intervals(
    rows: Sequence[tuple[str, float, float, float, str]], label: str, title: str
) -> Figure:
    """Draw (name, gain, low, high, verdict), the first on top."""
    figure = Figure(figsize=(7.5, 1.3 + 0.26 * max(len(rows), 1)), layout="constrained")
    axes = figure.subplots()
    for verdict in VERDICTS:
        chosen = [(k, row) for k, row in enumerate(rows) if row[4] == verdict]
        if chosen:
            gains = [_known(gain) for _, (_, gain, _, _, _) in chosen]
            # An interval need not be centred on the gain, nor quite contain it.
            below = [max(_known(gain - low), 0.0) for _, (_, gain, low, _, _) in chosen]
            above = [max(_known(high - gain), 0.0) for _, (_, gain, _, high, _) in chosen]
            axes.errorbar(
                gains,
                [k for k, _ in chosen],
                xerr=[below, above],
                label=f"{verdict} ({len(chosen)})",
                markersize=5,
                elinewidth=1.6,
                **_STYLES[verdict],
            )
    axes.axvline(0, color="#1d2129", linewidth=1, zorder=1)
    # A dollar sign in a name is not mathematics.
    axes.set_yticks(range(len(rows)), labels=[row[0] for row in rows], parse_math=False)
    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    axes.set_xlabel(label)
    axes.set_title(title, parse_math=False)
    axes.grid(axis="x", color="#d9dde3", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    if rows:
        figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


def _known(value: float) -> float:
    """Return a number that can be drawn; what is infinite is not."""
    return value if math.isfinite(value) else math.nan
