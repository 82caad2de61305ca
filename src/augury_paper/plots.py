"""Plots as drawings inside a page: drawn by matplotlib, coloured by the page's own style."""

from __future__ import annotations

import functools
import io
import math
import re
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from augury_paper.section import Plot, Series

# Colours are names: the page's policy forbids styles inside a drawing and its theme may change, so
# each of these becomes a class that the style sheet fills in.
_NAMES = ("ink", "soft", "rule", *(f"c{k}" for k in range(8)))
_CLASSES = {f"#00001{k:x}": name for k, name in enumerate(_NAMES)}
_LIGHT = (
    "#1d2129", "#57606c", "#dce0e6",
    "#1261a6", "#b3430c", "#2c7a3f", "#7a4fa3", "#8a5300", "#57606c", "#0e7c7b", "#a3315f",
)  # fmt: skip
_MARKS = ("o", "s", "D", "^", "v", "P", "X", "*")


@functools.lru_cache(maxsize=256)
def draw(plot: Plot) -> str:
    """Draw a plot as an ``<svg>`` element without styles of its own.

    A page is written again after each experiment, so drawings are kept.
    """
    text = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "augury", "font.size": 9}):
        plot_figure(plot, tuple(_CLASSES)).savefig(
            text, format="svg", transparent=True, metadata={"Date": None}
        )
    return _inline(text.getvalue(), plot)


def plot_figure(plot: Plot, colours: Sequence[str] = _LIGHT) -> Figure:
    """Draw a plot as a figure: points or lines, with bands or bars of their spread.

    Parameters
    ----------
    plot
        What to draw.
    colours
        Of text, quieter text, rules, and the series in turn.
    """
    ink, muted, line, *palette = colours
    figure = Figure(figsize=(4.7, 3.4 + 0.09 * len(plot.series)), layout="constrained")
    axes = figure.subplots()
    for k, series in enumerate(plot.series):
        _draw_series(axes, series, palette[k % len(palette)], _MARKS[k % len(_MARKS)])
    if plot.log:
        axes.set_yscale("log")
    if plot.ticks:
        slanted = {"rotation": 30, "ha": "right"} if max(map(len, plot.ticks)) > 6 else {}
        axes.set_xticks(range(len(plot.ticks)), labels=plot.ticks, parse_math=False, **slanted)
    elif all(float(x).is_integer() for s in plot.series for x in s.x if math.isfinite(x)):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=7))
    axes.set_title(plot.title, color=ink, fontsize=9.5, parse_math=False)
    axes.set_xlabel(plot.xlabel, color=muted, parse_math=False)
    axes.set_ylabel(plot.ylabel, color=muted, parse_math=False)
    axes.tick_params(which="both", color=line, labelcolor=muted, labelsize=8)
    axes.grid(color=line, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(line)
    if len(plot.series) > 1:
        columns = 1 if max(len(s.label) for s in plot.series) > 30 else 2
        legend = figure.legend(
            loc="outside lower center", ncols=columns, frameon=False, labelcolor=ink, fontsize=8
        )
        for text in legend.get_texts():
            text.set_parse_math(False)
    if any(series.names for series in plot.series):
        axes.margins(y=0.1)  # room for the names of the highest and lowest
        _name_points(figure, axes, plot.series, palette)
    return figure


def _draw_series(axes: Any, series: Series, colour: str, mark: str) -> None:
    x, y = list(series.x), list(series.y)
    few = len(x) <= 25
    style = {"color": colour, "linewidth": 1.5, "markersize": 4.2, "label": series.label}
    if series.joined:
        axes.plot(x, y, marker=mark if few else "", **style)
        if series.spread:
            low = [a - s for a, s in zip(y, series.spread, strict=True)]
            high = [a + s for a, s in zip(y, series.spread, strict=True)]
            axes.fill_between(x, low, high, color=colour, alpha=0.16, linewidth=0)
    else:
        bars = list(series.spread) or None
        axes.errorbar(x, y, yerr=bars, fmt=mark, elinewidth=1, **{**style, "linewidth": 0})


def _name_points(figure: Figure, axes: Any, series: Sequence[Series], colours: list[str]) -> None:
    """Write points' names beside them, each where it covers no other as far as there is room."""
    figure.draw_without_rendering()  # settles where points are
    points = 72 / figure.dpi
    left, right = (points * float(at) for at in axes.bbox.intervalx)
    taken: list[tuple[float, float, float]] = []  # left end, right end, height
    for k, one in enumerate(series):
        for x, y, name in zip(one.x, one.y, one.names, strict=False):
            if not (math.isfinite(x) and math.isfinite(y)):
                continue
            at, height = (points * float(value) for value in axes.transData.transform((x, y)))
            wide = 4.0 * len(name)
            back = at + 4 + wide > right and at - 4 - wide > left
            start = at - 4 - wide if back else at + 4
            for shift in (3, -8, 12, -17, 21, -26):
                clear = all(
                    start > b or start + wide < a or abs(height + shift - h) > 8
                    for a, b, h in taken
                )
                if clear:
                    break
            else:
                shift = 3
            taken.append((start, start + wide, height + shift))
            text = axes.annotate(
                name,
                (x, y),
                xytext=(-4 if back else 4, shift),
                textcoords="offset points",
                ha="right" if back else "left",
                fontsize=7.5,
                color=colours[k % len(colours)],
                parse_math=False,
            )
            text.set_in_layout(False)  # a long name must not make the plot narrow


def _inline(text: str, plot: Plot) -> str:
    """Make matplotlib's file a part of a page: no prologue, styles or names that could clash."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r'(<g) id="[^"]*"', r"\1", text)
    text = re.sub(r' style="([^"]*)"', lambda m: _attributes(m.group(1)), text)
    box = re.search(r'viewBox="[^"]*"', text)
    shown = box.group(0) if box else ""
    label = _escape(f"{plot.title}: {plot.ylabel} against {plot.xlabel}")
    head = f'<svg {shown} role="img" aria-label="{label}" stroke-linejoin="round">'
    return re.sub(r"<svg[^>]*>", lambda _: head, text, count=1)


def _attributes(style: str) -> str:
    """Turn a style into attributes, and the colours that are names into classes."""
    written, classes = [], []
    for rule in style.split(";"):
        name, _, value = (part.strip() for part in rule.partition(":"))
        if value in _CLASSES and name in ("fill", "stroke"):
            classes.append(f"{name[0]}-{_CLASSES[value]}")
        elif name == "font":
            size = re.search(r"([\d.]+)px", value)
            written.append(f'font-size="{size.group(1) if size else 9}"')
        elif name and not name.startswith("-"):
            written.append(f'{name}="{_escape(value)}"')
    if classes:
        written.append(f'class="{" ".join(classes)}"')
    return "".join(f" {item}" for item in written)


def _escape(text: str) -> str:
    for mark, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(mark, name)
    return text
