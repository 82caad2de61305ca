"""The page of a profile: how invariant each layer of a network is."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from augury._base.text import count, listed
from augury.report.heat import LEVELS, HeatMap, heat_map
from augury.report.intervals import Chart, ChartInterval, interval_chart
from augury.report.markdown import block, code, document, escape, facts_table, table
from augury.report.page import fragment_id, json_name, render_page
from augury.report.words import INTERVAL, duration

if TYPE_CHECKING:
    from augury.results.invariance import InvarianceProfile, LayerInvariance

_COLOURS = ("#1261a6", "#b3430c", "#3a7d44", "#7a4fa3", "#8a5300", "#6b7480")


def to_html(profile: InvarianceProfile) -> str:
    """Return a profile as one self-contained page."""
    data = str(profile.dataset.get("name", "the data"))
    lead, *rest = sentences(profile)
    text = profile.to_json()
    return render_page(
        "invariance.html",
        text,
        title=f"How invariant the layers of {profile.network} are, on {data}",
        file_name=json_name("invariance", profile.network),
        lead=lead,
        rest=rest,
        heat=_heat(profile),
        ratios=_ratios(profile),
        against=profile.against,
        charts=[(a, _chart(profile, a)) for a in profile.augmentations],
        cells=profile.rows,
        say=say,
        span=span,
        interval=INTERVAL,
        paste=_paste(profile),
        facts=facts(profile),
        uid=fragment_id(text),
    )


def sentences(profile: InvarianceProfile) -> list[str]:
    """Return the main findings, the most important first."""
    said = []
    for augmentation in profile.augmentations:
        cells = [c for c in profile.rows if c.augmentation == augmentation]
        first, last = cells[0], cells[-1]
        worst = max(cells, key=lambda c: c.relative)
        said.append(
            f"{augmentation} moves the features of the last layer ({last.layer}) by "
            f"{say(last.relative)} of the squared distance between different examples, and those "
            f"of the first ({first.layer}) by {say(first.relative)}; the least invariant layer is "
            f"{worst.layer} ({say(worst.relative)})."
        )
    if profile.against is not None:
        said.insert(0, _compared(profile))
    return said


def _compared(profile: InvarianceProfile) -> str:
    """Return which network is more invariant, by Δ / D: Δ falls if all features are scaled down."""
    known = [c for c in profile.rows if c.relative_ratio is not None and c.layer != "input"]
    this, other = profile.network, profile.against
    if not known:
        return f"{this} and {other} cannot be compared: no ratio of their layers is known."
    less = [f"{c.layer} under {c.augmentation}" for c in known if c.more_invariant is False]
    more = sum(c.more_invariant is True for c in known)
    cases = f"{count(len(known), 'case')} (a layer under an augmentation)"
    if not more and not less:
        if all(say(c.relative_ratio) == "1.000" for c in known):
            return f"No difference: {this} is as invariant as {other} in {cases}."
        return (
            f"No clear difference between {this} and {other}: their intervals overlap in {cases}."
        )
    parts = [f"{this} is more invariant than {other} in {more} of {cases}"]
    if less:
        parts.append(f"less invariant in {len(less)} ({listed(less, 4)})")
    if same := len(known) - more - len(less):
        parts.append(f"not clearly different in {same}")
    return f"{', '.join(parts)}."


def say(value: float | None) -> str:
    """Return a share with three digits: ``0.042``, ``1.310``, or ``–`` if it is unknown."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:.2g}" if 0 < value < 0.01 else f"{value:.3f}"


def span(cell: LayerInvariance) -> str:
    """Return the interval of the relative distance."""
    return "–" if cell.low is None else f"{say(cell.low)} to {say(cell.high)}"


def _matrix(
    profile: InvarianceProfile, value: Callable[[LayerInvariance], float | None]
) -> np.ndarray:
    known = {(c.layer, c.augmentation): value(c) for c in profile.rows}
    rows = [[known.get((la, a)) for a in profile.augmentations] for la in profile.layers]
    return np.array([[np.nan if v is None else v for v in row] for row in rows], dtype=float)


class _FromZero(HeatMap):
    """A heat map of values that are never below zero: its legend has one side."""

    @property
    def levels(self) -> tuple[str, ...]:
        return LEVELS[len(LEVELS) // 2 :]


def _heat(profile: InvarianceProfile) -> HeatMap:
    values = _matrix(profile, lambda c: c.relative)
    found = heat_map(profile.layers, profile.augmentations, values, say)
    return _FromZero(found.columns, found.rows, ("0", found.scale[1]), found.left_out)


def _ratios(profile: InvarianceProfile) -> list[tuple[str, HeatMap]]:
    """Return heat maps of ratios, coloured by their logarithm: more invariant is bluer."""
    if profile.against is None:
        return []
    found = []
    for field, name in (("relative_ratio", "relative distance"), ("ratio", "distance")):
        values = _matrix(profile, lambda c, field=field: getattr(c, field))
        with np.errstate(divide="ignore"):
            logs = -np.log2(values)
        heat = heat_map(
            profile.layers,
            profile.augmentations,
            np.where(np.isfinite(logs), logs, np.nan),
            lambda v: say(2.0**-v),
        )
        found.append((name, heat))
    return found


def _chart(profile: InvarianceProfile, augmentation: str) -> Chart:
    cells = [c for c in profile.rows if c.augmentation == augmentation]
    intervals = [
        ChartInterval(
            c.layer,
            c.relative,
            c.relative if c.low is None else c.low,
            c.relative if c.high is None else c.high,
            "unsure",
            say(c.relative),
            f"{c.layer}: {say(c.relative)}, {INTERVAL} {span(c)}, {c.size:,} features",
        )
        for c in cells
    ]
    return interval_chart(
        intervals,
        f"Distance under {augmentation}, relative to that between different examples",
        f"{count(len(cells), 'layer')} from the input to the output. The table holds the same "
        "numbers.",
        lambda value, digits: f"{value:.{digits}f}",
    )


def _paste(profile: InvarianceProfile) -> list[tuple[str, str]]:
    return [("The command that repeats it", profile.command)] if profile.command else []


def facts(profile: InvarianceProfile) -> list[tuple[str, str]]:
    """Return how the profile was measured, name and value."""
    data = profile.dataset
    notes = [str(note) for note in data.get("notes") or ()]
    return [
        ("Network", profile.network),
        ("Compared with", profile.against or "nothing"),
        ("Data", str(data.get("name", "unknown"))),
        ("Examples", f"{data['examples']:,}" if "examples" in data else "unknown"),
        ("Shape of an example", " × ".join(str(s) for s in data.get("shape") or ()) or "unknown"),
        ("Layers", f"{len(profile.layers):,}"),
        ("Views of each example", f"{profile.n_views:,}"),
        ("Seed", str(profile.seed)),
        ("Time", duration(profile.seconds)),
        ("Command", profile.command or "none: run from Python"),
        ("Notes", "; ".join(notes) or "none: the data was used as is"),
    ]


def to_markdown(profile: InvarianceProfile) -> str:
    """Return a profile as Markdown."""
    data = str(profile.dataset.get("name", "the data"))
    lead, *rest = sentences(profile)
    header = ["layer", "augmentation", "features", "distance", "relative", INTERVAL]
    compared = profile.against is not None
    rows = [
        [
            code(c.layer),
            code(c.augmentation),
            f"{c.size:,}",
            f"{c.distance:.4g}",
            say(c.relative),
            span(c),
            *([say(c.ratio), say(c.relative_ratio)] if compared else []),
        ]
        for c in profile.rows
    ]
    if compared:
        header += ["ratio", "relative ratio"]
    parts = [
        f"# {escape(f'How invariant the layers of {profile.network} are, on {data}')}",
        f"**{escape(lead)}** {escape(' '.join(rest))}".strip(),
        "## All layers",
        table(header, rows, right=len(header) - 2),
        *(f"{escape(name)}:\n\n{block(text)}" for name, text in _paste(profile)),
        "## How it was measured",
        facts_table(facts(profile)),
    ]
    return document(parts)


def profile_text(profile: InvarianceProfile) -> str:
    """Return a profile as a plain table: relative distances, one line per layer."""
    compared = profile.against is not None
    rows = [["layer", "features"]]
    for augmentation in profile.augmentations:
        rows[0] += [augmentation, *(["ratio"] * compared)]
    for layer in profile.layers:
        cells = [profile[layer, augmentation] for augmentation in profile.augmentations]
        rows.append([layer, f"{cells[0].size:,}"])
        for cell in cells:
            rows[-1] += [say(cell.relative), *([say(cell.relative_ratio)] * compared)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = [
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in rows
    ]
    lines.append("squared distance of views, relative to that between different examples")
    return "\n".join([*lines, *([_compared(profile)] if compared else [])])


def profile_figure(profile: InvarianceProfile) -> Figure:
    """Draw the relative distance along the layers; below it the ratio, where there is one."""
    layers, compared = profile.layers, profile.against is not None
    width = min(3 + 0.28 * len(layers), 18)
    figure = Figure(figsize=(width, 6.4 if compared else 4.2), layout="constrained")
    plots: Any = figure.subplots(2 if compared else 1, 1, sharex=True, squeeze=False)[:, 0]
    at = range(len(layers))
    for k, augmentation in enumerate(profile.augmentations):
        cells = [profile[layer, augmentation] for layer in layers]
        style = {"color": _COLOURS[k % len(_COLOURS)], "marker": "o", "markersize": 3.5}
        values = [c.relative if math.isfinite(c.relative) else math.nan for c in cells]
        plots[0].plot(at, values, label=augmentation, **style)
        low, high = ([math.nan if v is None else v for v in ends] for ends in _ends(cells))
        plots[0].fill_between(at, low, high, color=style["color"], alpha=0.15, linewidth=0)
        if compared:
            ratios = [c.relative_ratio for c in cells]
            plots[1].plot(at, [math.nan if r is None else r for r in ratios], **style)
    plots[0].set_ylabel("distance under T / between examples")
    plots[0].set_ylim(bottom=0)
    if compared:
        plots[1].axhline(1, color="#1d2129", linewidth=1)
        plots[1].set_ylabel(f"ratio to {profile.against}", parse_math=False)
        plots[1].set_ylim(bottom=0)
    plots[-1].set_xticks(at, labels=layers, rotation=90, parse_math=False)
    for axes in plots:
        axes.grid(axis="y", color="#d9dde3", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
    name = profile.dataset.get("name", "the data")
    plots[0].set_title(f"Layers of {profile.network} on {name}", parse_math=False)
    legend = plots[0].legend(frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


def _ends(cells: list[LayerInvariance]) -> tuple[list[float | None], list[float | None]]:
    return [c.low for c in cells], [c.high for c in cells]
