"""The page of a policy: what it does, what it gains over common recipes, and its code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from augury._base.text import count
from augury.report.charts import draw_intervals
from augury.report.findings import SEVERITIES, Finding, about_data
from augury.report.intervals import Chart, ChartInterval, interval_chart
from augury.report.markdown import block, code, document, escape, facts_table, table
from augury.report.page import asset, fragment_id, json_name, render, render_page
from augury.report.pictures import strips
from augury.report.ranking import no_pictures, plan_words
from augury.report.words import INTERVAL, TONES, Unit, chance, duration

if TYPE_CHECKING:  # what searches lies above this layer
    from augury.forecasting.policy import Policy, PolicyRow


_BETTER = (
    (
        "P002",
        True,
        "A recipe has a higher gain, but within the noise",
        "Among policies that cannot be told apart, a common recipe is preferred, and otherwise the "
        "simplest policy.",
    ),
    (
        "P005",
        False,
        "Excluded recipes have a higher gain",
        "They do not begin with the required parts, or may apply a forbidden one (--always, "
        "--never).",
    ),
)
"""The findings on recipes with a higher gain, by whether they may be chosen."""


UNIT = Unit("points", 1)
_MOST_CLASSES = 40

_NAMES = {
    "trivial_augment(1)": "TrivialAugment",
    "trivial_augment(2)": "TrivialAugment × 2",
    "trivial_augment(3)": "TrivialAugment × 3",
    "trivial_augment(4)": "TrivialAugment × 4",
    "(identity | trivial_augment(1)) ** 2": "UniformAugment",
    "rand_augment(2,9)": "RandAugment(2, 9)",
    "horizontal_flip >> translation(0.125)": "flip and crop",
    "resized_crop(0.25) >> horizontal_flip": "resized crop and flip",
    "horizontal_flip >> translation(0.125) >> cutout(0.5)": "flip, crop and cutout",
    "identity": "no augmentation",
}
"""What people call the common recipes."""


def to_html(policy: Policy) -> str:
    """Return a policy as one self-contained page."""
    name = str(policy.dataset.get("name", "the data"))
    return render_page(
        "policy.html",
        policy.to_json(),
        title=f"A training policy for {name}",
        file_name=json_name("policy", name),
        **_shared(policy),
        findings=find(policy),
        gallery=_gallery(policy),
        no_gallery=no_pictures(policy.dataset, policy.gallery),
        classes=_class_chart(policy),
        path=policy.path,
        paste=paste(policy),
        facts=facts(policy),
    )


def to_fragment(policy: Policy) -> str:
    """Return the policy and its comparison for a notebook, without a script."""
    return render("policy_fragment.html", style=asset("parts.css"), **_shared(policy))


def to_markdown(policy: Policy) -> str:
    """Return a policy as Markdown, in the order of the page."""
    lead, *rest = sentences(policy)
    rows = [
        [label(row), code(row.spec), UNIT.signed(row.gain), UNIT.span(row.low, row.high),
         chance(row.probability), *_better_by(policy, row)]
        for row in compared(policy)
    ]  # fmt: skip
    header = ["", "policy", "gain", INTERVAL, "likely to help"]
    if policy.chosen.rounds:
        header.append("this policy is better by")
    found = [
        f"- **{f.code}** ({f.severity}) {escape(f.title)}: {escape('; '.join(f.evidence))}. "
        f"{escape(f.advice)}"
        for f in find(policy)
    ]
    parts = [
        f"# {escape('A training policy for ' + str(policy.dataset.get('name', 'the data')))}",
        f"**{escape(lead)}** {escape(' '.join(rest))}".strip(),
        block(policy.spec),
        escape(_planned(policy)),
        escape(policy.trust),
        "## What it does" if policy.words else "",
        "\n".join(_listed(policy.words)),
        "## Compared with common recipes",
        table(header, rows, right=len(header) - 2),
        "## Findings",
        "\n".join(found) or "Nothing stands out.",
        "## What each part contributes",
        _contributions(policy),
        "## Strength and epochs" if variations(policy) else "",
        table(
            ["", "policy", "gain", INTERVAL],
            [
                [name, code(row.spec), UNIT.signed(row.gain), UNIT.span(row.low, row.high)]
                for name, row in variations(policy)
            ],
            right=2,
        )
        if variations(policy)
        else "",
        "## Ready to paste",
        "\n\n".join(f"{escape(name)}:\n\n{block(text)}" for name, text in paste(policy)),
        "## How it was found",
        facts_table(facts(policy)),
    ]
    return document(parts)


def policy_figure(policy: Policy) -> Figure:
    """Draw the gains of the policy and of common recipes with their 95 % intervals."""
    rows = compared(policy)
    return draw_intervals(
        [(label(row), row.gain, row.low, row.high, _verdict(row)) for row in rows],
        f"gain in points over no augmentation, {INTERVAL}",
        f"Policy for {policy.dataset.get('name', 'the data')}",
    )


def sentences(policy: Policy) -> list[str]:
    """Return what to do and why, the most important sentence first."""
    name, chosen = policy.dataset.get("name", "the data"), policy.chosen
    if policy.spec == "identity":
        return [f"Train on {name} without augmentation.", policy.reason]
    if not chosen.rounds:
        return [f"Start with this mild policy on {name}.", policy.reason]
    said = (
        f"{UNIT.gain(chosen.gain)} ({INTERVAL} {UNIT.span(chosen.low, chosen.high)}; "
        f"{chance(chosen.probability)} likely to help)."
    )
    if "helps" in _verdict(chosen):
        return [f"Train on {name} with this policy: {said}", policy.reason]
    return [f"No gain is certain on {name}; try this policy first: {said}", policy.reason]


def compared(policy: Policy) -> list[PolicyRow]:
    """Return the policy and its rivals, best first; nothing where nothing was tried."""
    rows = [row for row in policy.rows if row.role in ("chosen", "rival") and row.rounds]
    return sorted(rows, key=lambda row: -row.gain)


def label(row: PolicyRow) -> str:
    """Return what a policy is called in the comparison."""
    return "this policy" if row.role == "chosen" else _NAMES.get(row.spec, row.spec)


def find(policy: Policy) -> tuple[Finding, ...]:
    """Return the findings of a policy, the most serious first."""
    found = []
    hurt = [
        f"class {name}: {UNIT.signed(gain)} ({UNIT.span(low, high)})"
        for name, (gain, low, high) in sorted(policy.per_class.items(), key=lambda item: item[1][0])
        if high < 0
    ]
    if hurt:
        found.append(
            Finding(
                "P001",
                "warning",
                "Some classes lose",
                tuple(hurt[:6]),
                "Look at the pictures: the policy may make one class look like another. "
                "Exclude the part that causes it (--never) and search again.",
            )
        )
    chosen = policy.chosen
    better = [row for row in compared(policy) if row.role == "rival" and row.gain > chosen.gain]
    for number, allowed, title, advice in _BETTER:
        rows = [row for row in better if row.allowed == allowed]
        if rows and chosen.rounds and (chosen.gain > 0 or not allowed):
            evidence = tuple(f"{label(row)}: {UNIT.gain(row.gain)}" for row in rows)
            found.append(Finding(number, "info", title, evidence, advice))
    idle = [part for part, gain in policy.contributions.items() if gain <= 0]
    if idle:
        found.append(
            Finding(
                "P003",
                "notice",
                "Some parts contribute nothing",
                tuple(f"nothing is lost without {part}" for part in idle),
                "Leave them out if they cost time.",
            )
        )
    found += about_data(policy.dataset)
    return tuple(sorted(found, key=lambda f: (SEVERITIES.index(f.severity), f.code)))


def whole(policy: Policy) -> str:
    """Say why no part was left out."""
    if not policy.chosen.rounds:
        return "The policy was not tried, so nothing is known of its parts."
    if policy.spec == "identity":
        return "Training without augmentation has no parts."
    return "The policy has only one part, so there is nothing to leave out."


def variations(policy: Policy) -> list[tuple[str, PolicyRow]]:
    """Return the policy at other strengths and for fewer epochs, each with its name."""
    epochs = policy.plan.get("epochs")
    names = {
        "milder": "milder",
        "chosen": f"as it is, {count(epochs, 'epoch')}" if epochs else "as it is",
        "stronger": "stronger",
        "shorter": "half of the epochs",
    }
    rows = {row.role: row for row in policy.rows if row.role in names and row.rounds}
    shown = [(names[role], rows[role]) for role in names if role in rows]
    return shown if len(shown) > 1 else []


def paste(policy: Policy) -> list[tuple[str, str]]:
    """Return what a reader may want to copy, each with its name."""
    lines = [("The policy, as a spec", policy.spec), *policy.code.items()]
    if policy.command:
        lines.append(("The command that repeats this search", policy.command))
    return lines


def facts(policy: Policy) -> list[tuple[str, str]]:
    """Return how the policy was found, as names and values."""
    data = policy.dataset
    rounds = "; ".join(
        f"{step['round']}: {count(step['policies'], 'policy')} on {step['examples']:,} examples"
        for step in policy.path
    )
    return [
        ("Data", str(data.get("name", "unknown"))),
        ("Examples", f"{data['examples']:,}" if "examples" in data else "unknown"),
        ("Shape of an example", " × ".join(str(s) for s in data.get("shape") or ()) or "unknown"),
        (
            "Without augmentation",
            f"{policy.baseline:.1f} % accuracy expected" if policy.path else "not tried",
        ),
        ("Rounds", rounds or "none: too few examples"),
        ("Seed", str(policy.seed)),
        ("Time", duration(policy.seconds)),
        ("Command", policy.command or "none: run from Python"),
    ]


def _shared(policy: Policy) -> dict[str, Any]:
    text, rows = sentences(policy), compared(policy)
    return {
        "lead": text[0],
        "rest": text[1:],
        "plan": _planned(policy),
        "caution": policy.trust,
        "steps": policy.words,
        "rows": [(label(row), row, TONES[_verdict(row)]) for row in rows],
        "chosen": policy.chosen,
        "whole": whole(policy),
        "contributions": sorted(policy.contributions.items(), key=lambda item: -item[1]),
        "variations": variations(policy),
        "unit": UNIT,
        "chance": chance,
        "interval": INTERVAL,
        "chart": _chart([(label(row), row.gain, row.low, row.high, _verdict(row)) for row in rows]),
        "uid": fragment_id(policy.to_json()),
    }


def _planned(policy: Policy) -> str:
    """Return the planned training in words; nothing for a default that was not tried."""
    return plan_words(policy.plan) if policy.chosen.rounds else ""


def _better_by(policy: Policy, row: PolicyRow) -> list[str]:
    """Return how much better the choice is; nothing for a default that was not tried."""
    chosen = policy.chosen
    if not chosen.rounds:
        return []
    return ["" if row.role == "chosen" else UNIT.signed(chosen.gain - row.gain)]


def _verdict(row: PolicyRow) -> str:
    """Return a verdict for the colours of the chart: by the interval, then by the probability."""
    if row.low > 0 or row.high < 0:
        return "helps" if row.low > 0 else "hurts"
    if row.probability >= 0.75:  # as in a ranking
        return "probably helps"
    return "probably hurts" if row.probability <= 0.25 else "can't tell"


def _chart(rows: Sequence[tuple[str, float, float, float, str]]) -> Chart | None:
    if not rows:
        return None
    intervals = [
        ChartInterval(
            name, gain, low, high, TONES[verdict], UNIT.signed(gain),
            f"{name}: {UNIT.gain(gain)}, {INTERVAL} {UNIT.span(low, high)}",
        )
        for name, gain, low, high, verdict in rows
    ]  # fmt: skip
    return interval_chart(
        intervals,
        "Gain in points over no augmentation",
        f"From best to worst, each with its {INTERVAL}; first {intervals[0].title}.",
        lambda value, digits: Unit("points", digits).signed(value),
    )


def _class_chart(policy: Policy) -> Chart | None:
    rows = [
        (name, gain, low, high, "helps" if low > 0 else "hurts" if high < 0 else "can't tell")
        for name, (gain, low, high) in policy.per_class.items()
    ]
    rows.sort(key=lambda row: row[1])
    if len(rows) > _MOST_CLASSES:  # those who lose and those who gain most
        rows = [*rows[: _MOST_CLASSES // 2], *rows[-_MOST_CLASSES // 2 :]]
    return _chart(rows[::-1])


def _gallery(policy: Policy) -> Any:
    if no_pictures(policy.dataset, policy.gallery) or policy.gallery is None:
        return ()
    return next(iter(strips(policy.gallery).values()), ())


def _contributions(policy: Policy) -> str:
    if not policy.contributions:
        return whole(policy)
    ordered = sorted(policy.contributions.items(), key=lambda item: -item[1])
    rows = [[code(part), UNIT.signed(gain)] for part, gain in ordered]
    return table(["part", "points added"], rows, right=1)


def _listed(steps: Sequence[Any], depth: int = 0) -> list[str]:
    lines = []
    for number, step in enumerate(steps, 1):
        mark = "-" if depth else f"{number}."
        spec = f"{code(step.spec)} " if step.spec else ""
        before = f"**{step.chance}** " if step.chance else ""
        lines.append(f"{'   ' * depth}{mark} {before}{spec}{escape(step.text)}")
        lines += _listed(step.inner, depth + 1)
    return lines
