"""An averaging plan as text, a figure, a page and Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from augury.report.markdown import block, code, document, escape, facts_table, table
from augury.report.page import render_page
from augury.report.words import per_cent

if TYPE_CHECKING:
    from augury.results.averaging_plan import AveragingChoice, AveragingPlan

_GREY = "#6b7480"
_STYLES = {
    0: (_GREY, "x", "no averaging"),
    1: ("#1261a6", "o", "averaged, first order"),
    2: ("#b3430c", "D", "averaged, second order"),
}
_HEADER = ("loss", "step time", "of all views", "error", "note")
_MOST = 2.0  # errors beyond this are drawn at the edge of the figure


def note(plan: AveragingPlan, choice: AveragingChoice) -> str:
    """Return what a reader must know about a choice, in a word or two."""
    if choice == plan.best:
        return "recommended"
    if choice.harmful:
        return "expected to do harm"
    if choice == plan.usual:
        return "usual practice"
    return "" if choice in plan.front else "worse in both time and error"


def _rows(plan: AveragingPlan) -> list[list[str]]:
    return [
        [c.name, f"{1e3 * c.step:.2f} ms", per_cent(c.share), per_cent(c.error, 1), note(plan, c)]
        for c in plan.choices
    ]


def _title(plan: AveragingPlan) -> str:
    return f"How to train on {plan.n_views} views of {plan.augmentation}"


def facts(plan: AveragingPlan) -> list[tuple[str, str]]:
    """Return how the plan was measured, name and value."""
    return [
        ("Augmentation", plan.augmentation),
        ("Views of each example", f"{plan.n_views:,}"),
        ("Examples in a step", f"{plan.examples:,}"),
        ("Required saving", f"{per_cent(plan.saving)} of the time of a step on all views"),
        ("Device", plan.device),
        (
            "Error",
            "distance of the mean gradient from that of all views, relative to the distance "
            "without augmentation: 0 % is full augmentation, 100 % no better than without any",
        ),
        (
            "Expected to do harm",
            "an error of 100 % or more, or one first-order average of all views, which lost "
            "accuracy at every layer in the benchmarks",
        ),
    ]


def plan_text(plan: AveragingPlan) -> str:
    """Return a plan as a plain table, with what to do below it."""
    rows = [list(_HEADER), *_rows(plan)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(_HEADER))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(w) if k in (0, 4) else cell.rjust(w)
            for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join([*lines, *plan.sentences(), plan.best.code(plan.augmentation)])


def to_markdown(plan: AveragingPlan) -> str:
    """Return a plan as Markdown."""
    layers = [
        [
            code(cost.layer),
            f"{cost.flops_before / 1e6:.2f}",
            f"{cost.flops_after / 1e6:.2f}",
            f"{cost.relative:.3f}",
        ]
        for cost in plan.layers
    ]
    parts = [
        f"# {escape(_title(plan))}",
        escape(" ".join(plan.sentences())),
        block(plan.best.code(plan.augmentation)),
        "## All choices",
        table(
            list(_HEADER),
            [[escape(cell) for cell in row] for row in _rows(plan)],
            right=3,
            last=1,
        ),
        "## Layers",
        table(["layer", "MFLOP before", "after", "Δ/D"], layers, right=3),
        "## How it was measured",
        facts_table(facts(plan)),
    ]
    return document(parts)


def to_html(plan: AveragingPlan) -> str:
    """Return a plan as one self-contained page."""
    lead, *rest = plan.sentences()
    return render_page(
        "averaging_plan.html",
        plan.to_json(),
        title=_title(plan),
        file_name="averaging-plan.json",
        lead=lead,
        rest=rest,
        choices=[(c, note(plan, c)) for c in plan.choices],
        layers=plan.layers,
        paste=[("The loss in Python", plan.best.code(plan.augmentation))],
        facts=facts(plan),
        per_cent=per_cent,
    )


def plan_figure(plan: AveragingPlan) -> Figure:
    """Draw error against step time, one point per choice; the recommended one is ringed."""
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for order, (colour, marker, label) in _STYLES.items():
        some = [c for c in plan.choices if c.order == order]
        axes.scatter(
            [c.share for c in some],
            [min(c.error, _MOST) for c in some],
            color=colour,
            marker=marker,
            s=26,
            label=label,
        )
    for c in (*plan.front, *(c for c in plan.choices if c.harmful)):
        axes.annotate(
            c.name + (" (harm)" if c.harmful else ""),
            (c.share, min(c.error, _MOST)),
            xytext=(4, 3),
            textcoords="offset points",
            fontsize=7,
            color=_STYLES[c.order][0],
            parse_math=False,
        )
    front = plan.front
    axes.plot([c.share for c in front], [c.error for c in front], color=_GREY, linewidth=0.8)
    best = plan.best
    axes.scatter([best.share], [best.error], s=150, facecolor="none", edgecolor="#1d2129")
    axes.axvline(1 - plan.saving, color=_GREY, linewidth=1, linestyle="--")
    axes.axhline(1, color="#d9dde3", linewidth=1)
    axes.set_xlabel("step time, relative to all views through the whole network")
    axes.set_ylabel("error of the gradient, relative to no augmentation")
    axes.set_ylim(bottom=-0.02)
    axes.set_xlim(left=0)
    axes.set_title(_title(plan), parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure
