"""The page of a policy: what it is, what it gains beside the usual recipes, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from augury.report.page import render_page

if TYPE_CHECKING:
    from augury.forecasting.policy import Policy, PolicyRow


def compared(policy: Policy) -> list[PolicyRow]:
    """Return the choice and its rivals, best first."""
    return [row for row in policy.rows if row.role in ("chosen", "rival")]


def to_html(policy: Policy) -> str:
    """Return a policy as one self-contained page."""
    name = str(policy.dataset.get("name", "the data"))
    return render_page(
        "policy.html",
        policy.to_json(),
        title=f"A policy for {name}",
        file_name="policy.json",
        found=policy,
        rows=compared(policy),
        contributions=policy.contributions,
    )


def to_markdown(policy: Policy) -> str:
    """Return the report as Markdown."""
    lines = [
        f"# A policy for {policy.dataset.get('name', 'the data')}",
        "",
        f"`{policy}`",
        "",
        policy.reason,
        "",
        "| policy | points | 95 % interval |",
        "| --- | --- | --- |",
    ]
    for row in compared(policy):
        spec = row.spec.replace("|", "\\|")
        lines.append(f"| `{spec}` | {row.gain:+.1f} | {row.low:+.1f} to {row.high:+.1f} |")
    return "\n".join(lines) + "\n"


def policy_figure(policy: Policy) -> Figure:
    """Draw the gains of the choice and its rivals with their intervals, best on top."""
    rows = compared(policy)
    figure = Figure(figsize=(7.5, 1.3 + 0.3 * max(len(rows), 1)), layout="constrained")
    axes = figure.subplots()
    for k, row in enumerate(rows):
        colour = "#1261a6" if row.role == "chosen" else "#6b7480"
        reach = [[max(row.gain - row.low, 0.0)], [max(row.high - row.gain, 0.0)]]
        axes.errorbar([row.gain], [k], xerr=reach, fmt="o", color=colour, markersize=5)
    axes.axvline(0, color="#1d2129", linewidth=1, zorder=1)
    axes.set_yticks(range(len(rows)), labels=[row.spec for row in rows], parse_math=False)
    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    axes.set_xlabel("gain in points over no augmentation")
    return figure
