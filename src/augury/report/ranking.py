"""The page of a ranking, and its shorter form for notebooks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from augury._base.text import count, listed
from augury.report import findings, verdict
from augury.report.curves import strength_curves, trend_curves
from augury.report.heat import HeatMap, heat_map
from augury.report.intervals import Chart, ChartInterval, interval_chart
from augury.report.page import asset, fragment_id, json_name, render, render_page
from augury.report.pictures import Strip, strips
from augury.report.words import (
    INTERVAL,
    METRICS,
    TONES,
    Unit,
    chance,
    duration,
    score_name,
    score_words,
)

if TYPE_CHECKING:
    from augury.results.ranking import Gallery, Ranking, Row


_NETWORKS = {
    "cnn": "a small CNN",
    "resnet": "a small ResNet",
    "lenet": "a LeNet",
    "fcn": "a fully convolutional network",
    "boosting": "gradient boosting",
}


def to_html(ranking: Ranking) -> str:
    """Return a ranking as one self-contained page."""
    name = str(ranking.dataset.get("name", "the data"))
    found = findings.find(ranking)
    return render_page(
        "ranking.html",
        ranking.to_json(),
        title=f"Augmentations ranked on {name}",
        file_name=json_name("ranking", name),
        **_shared(ranking, found),
        findings=found,
        curves=strength_curves(ranking),
        trends=trend_curves(ranking),
        gallery=_gallery(ranking),
        no_gallery=no_pictures(ranking.dataset, ranking.gallery),
        class_note=class_note(ranking),
        heat=_heat(ranking),
        no_heat=no_classes(ranking),
        paste=paste(ranking),
        not_pasted=not_pasted(ranking),
        facts=facts(ranking),
    )


def to_fragment(ranking: Ranking) -> str:
    """Return the verdict, the chart and the table for a notebook, without a script."""
    return render(
        "fragment.html", style=asset("parts.css"), **_shared(ranking, findings.find(ranking))
    )


def _shared(ranking: Ranking, found: tuple[findings.Finding, ...]) -> dict[str, Any]:
    text = verdict.sentences(ranking)
    return {
        "lead": text[0],
        "rest": text[1:],
        "caution": ranking.trust,
        "warnings": [finding for finding in found if finding.first],
        "plan": plan_words(ranking.plan),
        "tally": verdict.tally(ranking),
        "tones": TONES,
        "interval": INTERVAL,
        "chance": chance,
        "chart": _chart(ranking) if ranking.rows else None,
        "rows": ranking.rows,
        "baseline": ranking.baseline,
        "unit": Unit.of(ranking),
        "score": score_name(ranking),
        "uid": fragment_id(ranking.to_json()),
    }


def _chart(ranking: Ranking) -> Chart:
    unit = Unit.of(ranking)
    intervals = [
        ChartInterval(
            row.augmentation,
            row.gain,
            row.low,
            row.high,
            TONES[row.verdict],
            unit.sided(row.gain),
            f"{row.augmentation}: {unit.gain(row.gain)}, "
            f"{INTERVAL} {unit.span(row.low, row.high)}, {row.verdict}",
        )
        for row in ranking.rows
    ]
    return interval_chart(
        intervals,
        f"Gain in {unit.name} over no augmentation",
        f"{count(len(intervals), 'candidate')} from best to worst, each with its {INTERVAL}; "
        f"first {intervals[0].title}. The table holds the same numbers.",
        lambda value, digits: Unit(unit.name, digits).signed(value),
    )


def _gallery(ranking: Ranking) -> list[tuple[Row, tuple[Strip, ...]]]:
    if no_pictures(ranking.dataset, ranking.gallery) or ranking.gallery is None:
        return []
    drawn = strips(ranking.gallery)
    return [(row, drawn[row.augmentation]) for row in ranking.rows if row.augmentation in drawn]


def no_pictures(dataset: dict[str, Any], gallery: Gallery | None) -> str:
    """Return why there are no pictures; empty if there are some."""
    if dataset.get("kind") == "vector":
        return "Rows of a table have no pictures."
    if gallery is None or not gallery.views:
        return "This result has no pictures; its JSON does not store them."
    return ""


def _heat(ranking: Ranking) -> HeatMap | None:
    if no_classes(ranking):
        return None
    unit, names = Unit.of(ranking), class_names(ranking)
    rows = [row for row in ranking.rows if row.per_class]
    unknown = (np.nan,) * 3
    values = np.array([[row.per_class.get(name, unknown)[0] for name in names] for row in rows])
    column = {name: j for j, name in enumerate(names)}
    flagged = {(i, column[n]) for i, row in enumerate(rows) for n, _ in findings.hurt_classes(row)}
    sure = {
        (i, column[name])
        for i, row in enumerate(rows)
        for name, (_, low, high) in row.per_class.items()
        if (low > 0 or high < 0) and not ranking.warnings
    }
    titles = [[_class_words(row, name, unit) for name in names] for row in rows]
    labels = [row.augmentation for row in rows]
    return heat_map(labels, names, values, unit.signed, flagged, sure, titles)


def _class_words(row: Row, name: str, unit: Unit) -> str:
    if name not in row.per_class:
        return "unknown"
    gain, low, high = row.per_class[name]
    span = unit.span(low, high) if math.isfinite(high - low) else "interval unknown"
    return f"{unit.signed(gain)} ({span})"


def class_names(ranking: Ranking) -> list[str]:
    """Return the classes in the order of the data, then any that only the gains know."""
    known = [str(name) for name in ranking.dataset.get("classes") or ()]
    seen = {name for row in ranking.rows for name in row.per_class}
    ordered = [name for name in known if name in seen]
    return [*ordered, *sorted(seen - set(ordered))]


def class_note(ranking: Ranking) -> str:
    """Return what the gains by class are."""
    unit = Unit.of(ranking).name
    said = f"How much each class gains or loses, compared with no augmentation, in {unit}."
    examples = ranking.effort.get("examples")
    if examples is None:
        return said
    return (
        f"{said} These are changes in the trial itself, which trained on "
        f"{count(examples, 'example')}; the gains above are forecasts for the planned training, "
        "which may be smaller."
    )


def no_classes(ranking: Ranking) -> str:
    """Return why there are no gains by class; empty if there are some."""
    if any(row.per_class for row in ranking.rows):
        return ""
    if ranking.dataset.get("tags") is not None:
        return "Examples have several labels, so there are no gains by class."
    if ranking.dataset.get("classes") is None:
        return "The target is a real value, so there are no gains by class."
    return "This ranking has no gains by class."


def plan_words(plan: dict[str, Any]) -> str:
    """Return the training that the forecast is for, in a sentence; empty where none is known."""
    parts = []
    if plan.get("epochs"):
        parts.append(f"for {count(plan['epochs'], 'epoch')}")
    if "examples" in plan:
        parts.append(f"on {count(plan['examples'], 'example')}")
    if plan.get("side"):
        parts.append(f"at {plan['side']} pixels")
    if plan.get("network"):
        parts.append(f"with {_NETWORKS.get(plan['network'], plan['network'])}")
    if not parts:
        return ""
    assumed = plan.get("assumed") or ()
    text = f"The gains are for training {' '.join(parts)}"
    return text + (f" ({listed(list(assumed), 9)} assumed)." if assumed else ".")


def paste(ranking: Ranking) -> list[tuple[str, str]]:
    """Return what a reader may want to copy, each with its name."""
    lines = []
    chosen = verdict.first_to_try(ranking)
    if chosen is not None:
        surely = chosen.verdict == "helps"
        lines.append(
            ("The best candidate" if surely else "The candidate to try first", chosen.augmentation)
        )
        if chosen.code:
            lines.append(("The same in Python", chosen.code))
    if ranking.command:
        lines.append(("The command that repeats this ranking", ranking.command))
    return lines


def not_pasted(ranking: Ranking) -> list[str]:
    """Return what cannot be copied, and why."""
    missing = []
    if verdict.first_to_try(ranking) is None:
        why = "No candidate is expected to help"
        if ranking.warnings:
            why = "No verdicts are given"
        elif verdict.may_help(ranking):
            why = "This ranking cannot tell whether any candidate helps"
        missing.append(f"{why}, so there is nothing to copy.")
    if not ranking.command:
        views = "" if ranking.in_points else f"n_views={ranking.n_views}, "
        missing.append(
            "The ranking was computed in Python: repeat it with augury.rank on the same data and "
            f"score={ranking.score!r}, {views}seed={ranking.seed}."
        )
    return missing


def facts(ranking: Ranking) -> list[tuple[str, str]]:
    """Return how the ranking was computed, as names and values."""
    data, unit = ranking.dataset, Unit.of(ranking)
    base = ranking.baseline
    entries = [
        ("Data", str(data.get("name", "unknown"))),
        ("Kind", str(data.get("kind", "unknown"))),
        ("Examples", f"{data['examples']:,}" if "examples" in data else "unknown"),
        ("Shape of an example", " × ".join(str(s) for s in data.get("shape") or ()) or "unknown"),
        ("Classes", _classes(data)),
        ("Score", score_words(ranking)),
        ("Features", ranking.features),
        (
            "Without augmentation",
            f"{without(ranking, unit)} "
            f"({INTERVAL} {unit.plain(base.low)} to {unit.plain(base.high)})",
        ),
        *([] if ranking.in_points else [("Views of each example", f"{ranking.n_views:,}")]),
        ("Seed", str(ranking.seed)),
        *_effort(ranking),
        ("Time", duration(ranking.seconds)),
        ("Command", ranking.command or "none: run from Python"),
    ]
    notes = [str(note) for note in data.get("notes") or ()]
    return [*entries, ("Notes", "; ".join(notes) or "none: the data was used as is")]


def _classes(data: dict[str, Any]) -> str:
    """Return how many classes there are, or what there is in their place."""
    if (tags := data.get("tags")) is not None:
        return f"{count(len(tags), 'label')}, any number per example"
    classes = data.get("classes")
    return "none: a real-valued target" if classes is None else f"{len(classes):,}"


def without(ranking: Ranking, unit: Unit) -> str:
    """Return the score without augmentation: ``94.3 % accuracy expected``, ``R² of 45.2 % …``."""
    value = unit.plain(ranking.baseline.score)
    if not ranking.in_points:
        return f"{score_name(ranking)} {value}"
    task = str(ranking.dataset.get("task"))
    name = METRICS.get(task, "accuracy")
    return f"{name} of {value} % expected" if task == "regression" else f"{value} % {name} expected"


def _effort(ranking: Ranking) -> list[tuple[str, str]]:
    """Return what was trained, in one entry: of what the trial was told, only what applied."""
    done = ranking.effort
    parts = [f"level {done['level']}"] if "level" in done else []
    if {"folds", "replicas", "epochs", "examples"} <= done.keys():
        trained = f"for {count(done['epochs'], 'epoch')} on {count(done['examples'], 'example')}"
        plain = done["folds"] * done["replicas"]
        parts.append(f"each candidate trained {_times(done['folds'])} {trained}")
        parts.append(f"a network without augmentation {_times(plain)}")
        side = done.get("side")
        if side and ranking.dataset.get("kind") == "image" and _side(ranking) > side:
            parts.append(f"images reduced to {side} pixels")
    elif {"folds", "repeats", "copies"} <= done.keys():
        parts.append(
            f"{count(done['folds'], 'fold')}, every row held out {_times(done['repeats'])}"
        )
        copies = "copy" if done["copies"] == 1 else "copies"
        parts.append(f"{done['copies']} augmented {copies} of each row")
    elif done:
        said = ", ".join(
            f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}"
            for name, value in done.items()
        )
        parts = [said]
    return [("Effort", "; ".join(parts))] if parts else []


def _side(ranking: Ranking) -> int:
    return max([0, *(ranking.dataset.get("shape") or ())[1:]])


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"
