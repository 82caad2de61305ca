"""A plan as text and as a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

if TYPE_CHECKING:
    from augury.results.averaging_plan import AveragingPlan

_STYLES = {1: ("#1261a6", "o", "first order"), 2: ("#b3430c", "D", "second order")}


def plan_text(plan: AveragingPlan) -> str:
    """Write a plan as a table, with what to do under it."""
    places = {p.layer: p for p in plan.places}
    head = [
        "layer",
        "order",
        "groups",
        "step ms",
        "of full",
        "error",
        "Δ/D",
        "MFLOP before",
        "after",
    ]
    head += ["ms before", "after"]
    rows = [head]
    for c in plan.choices:
        p = places[c.layer]
        mark = " *" if c == plan.best else ""
        rows.append(
            [
                c.layer + mark,
                str(c.order),
                str(c.groups),
                f"{1e3 * c.step:.2f}",
                f"{c.share:.0%}",
                f"{c.error:.3f}",
                f"{p.relative:.3f}",
                f"{p.flops_before / 1e6:.2f}",
                f"{p.flops_after / 1e6:.2f}",
                f"{1e3 * p.seconds_before:.2f}",
                f"{1e3 * p.seconds_after:.2f}",
            ]
        )
    for c in plan.fewer:
        name = f"{c.groups} versions, no averaging"
        cells = [f"{1e3 * c.step:.2f}", f"{c.share:.0%}", f"{c.error:.3f}"]
        rows.append([name, "", "", *cells, *[""] * (len(head) - 6)])
    widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(w) if k == 0 else cell.rjust(w)
            for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    full = f"full step {1e3 * plan.full_step:.2f} ms, one version {1e3 * plan.single_step:.2f} ms"
    about = f"{plan.examples} examples, {plan.n_views} views, {plan.augmentation}, {plan.device}"
    about += f"; {full}"
    return "\n".join([*lines, about, f"* {plan.sentence()}"])


def plan_figure(plan: AveragingPlan) -> Figure:
    """Draw error against step time, each way of averaging a point; the best is ringed."""
    figure = Figure(figsize=(7.5, 5), layout="constrained")
    axes = figure.subplots()
    for order, (colour, marker, label) in _STYLES.items():
        some = [c for c in plan.choices if c.order == order]
        axes.scatter(
            [c.share for c in some],
            [c.error for c in some],
            color=colour,
            marker=marker,
            s=26,
            label=label,
        )
        for c in some:
            text = c.layer + (f" ({c.groups})" if c.groups > 1 else "")
            axes.annotate(
                text,
                (c.share, c.error),
                xytext=(4, 3),
                textcoords="offset points",
                fontsize=7,
                color=colour,
                parse_math=False,
            )
    axes.scatter(
        [c.share for c in plan.fewer],
        [c.error for c in plan.fewer],
        color="#6b7480",
        marker="x",
        s=26,
        label="fewer versions, no averaging",
    )
    best = plan.best
    axes.scatter([best.share], [best.error], s=150, facecolor="none", edgecolor="#1d2129")
    axes.axvline(1 - plan.saving, color="#6b7480", linewidth=1, linestyle="--")
    axes.axhline(1, color="#d9dde3", linewidth=1)
    axes.set_xlabel("step time, of all versions through the whole network")
    axes.set_ylabel("error of the loss, of that without augmentation")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.set_title(f"{plan.n_views} versions of {plan.augmentation}", parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure
