"""What Table 1 says, beside the paper's."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from augury_paper.claims import (
    SCALED,
    TITLES,
    graded,
    mean_and_spread,
    share_and_error,
    share_of,
    spread,
    standard_error,
    unchecked,
)
from augury_paper.section import Claim, Plot, Section, Series, Table
from augury_paper.settings import Settings
from augury_paper.table1.tasks import TASKS, WAYS

NAMES = {
    "none": "no augmentation",
    "traditional": "traditional augmentation",
    "augmented": "augmented features",
    "tangent": "augmented features, tangent",
}
SOLVERS = {"descent": "the paper's SGD", "closed": "our closed form"}
PAPER = {
    "mnist": {
        "none": (96.1, 0.1, 34),
        "traditional": (97.6, 0.2, 220),
        "augmented": (97.6, 0.1, 54),
    },
    "cifar10": {
        "none": (39.4, 0.5, 51),
        "traditional": (45.3, 0.5, 291),
        "augmented": (45.2, 0.4, 124),
    },
    "mammograms": {
        "none": (57.3, 6.7, 27),
        "traditional": (59.4, 3.2, 61),
        "augmented": (58.8, 5.1, 34),
    },
}
"""Accuracy in %, its standard deviation, and seconds: Table 1."""

_KEPT, _FASTER = 0.7, 2.0  # "retain 70–100 % of the accuracy boost", "2–4x reduction" (Section 5.2)

Results = dict[str, dict[str, Any]]


def section(results: Results, settings: Settings) -> Section:
    """Judge the table's three claims for each data set, by the paper's own training and by ours."""
    shown = [name for name in settings.datasets if name in TASKS]
    return Section(
        "table1",
        "Table 1: augmented random Fourier features",
        "A kernel classifier with random Fourier features, on images that are turned at random: "
        "trained on the images as they are, on explicitly transformed versions of them, and on "
        "features averaged over the augmentation, for which no image is transformed. The share of "
        "a gain is that of means over trials, with its standard error.",
        claims=tuple(
            claim
            for name in shown
            for solver in SOLVERS
            for claim in _claims(results, name, solver)
        ),
        tables=(
            *(_table(results, solver, shown) for solver in SOLVERS),
            _printed(shown),
        ),
        plots=tuple(plot for name in shown for plot in _plots(results, name)),
        differences=(
            "Features are averaged over the nodes of a quadrature rule, not over random angles; "
            "the closed form takes 4 nodes for ±15° (36 for the whole circle). Its tangent form "
            "also punishes the variance along each orbit's leading direction.",
            SCALED,
            "All trials train side by side, so their SGD seconds are shares of one measured time; "
            "the closed form is timed once a trial, from arrays in host memory to predictions.",
            "The mammograms are masses of CBIS-DDSM in their official split, without the largest: "
            "not the paper's own selection of 1,506 patches.",
        ),
    )


def _claims(results: Results, dataset: str, solver: str) -> list[Claim]:
    paper, title = PAPER[dataset], f"{TITLES[dataset]}, {SOLVERS[solver]}"
    found = {way: results.get(f"{dataset}-{way}-{solver}") for way in PAPER[dataset]}
    gained = paper["traditional"][0] - paper["none"][0]
    kept = (paper["augmented"][0] - paper["none"][0]) / gained
    faster = paper["traditional"][2] / paper["augmented"][2]
    words = (
        f"{title}: augmentation raises accuracy",
        f"{title}: augmented features keep at least 70 % of that gain",
        f"{title}: augmented features train 2 to 4 times as fast as traditional augmentation (or "
        "as its own number, if less)",
    )
    printed = (f"{gained:+.1f} points", f"{100 * kept:.0f} %", f"{faster:.1f} times")
    if any(part is None for part in found.values()):
        return [unchecked(*pair) for pair in zip(words, printed, strict=True)]
    parts = {way: part for way, part in found.items() if part}
    accuracy = {way: _percent(part) for way, part in parts.items()}
    gain = _paired(accuracy["traditional"], accuracy["none"])
    own = _paired(accuracy["augmented"], accuracy["none"])
    mean, error = statistics.fmean(gain), standard_error(gain)
    return [
        Claim(
            words[0],
            printed[0],
            f"{mean_and_spread(gain)} points",
            graded(mean, round(gained, 1) - 0.05, 0.0, error),  # the paper gives one digit
        ),
        _kept(words[1], printed[1], own, gain),
        _faster(words[2], printed[2], faster, parts["traditional"], parts["augmented"]),
    ]


def _kept(words: str, printed: str, own: Sequence[float], gain: Sequence[float]) -> Claim:
    if statistics.fmean(gain) <= 2 * standard_error(gain):
        return unchecked(words, printed, "no gain that is sure, so none to keep")
    share, error = share_of(own, gain)
    verdict = graded(share, _KEPT, 0.0, error)
    return Claim(words, printed, share_and_error(share, error), verdict)


def _faster(
    words: str, printed: str, claimed: float, slow: dict[str, Any], fast: dict[str, Any]
) -> Claim:
    """Compare times; the trials of SGD, which share one, have no spread."""
    if slow.get("machine") != fast.get("machine"):
        return unchecked(words, printed, "timed on two machines")
    ratio = statistics.median(slow["seconds"]) / statistics.median(fast["seconds"])
    each = [a / b for a, b in zip(slow["seconds"], fast["seconds"], strict=True)]
    known = f" ± {float(spread(each)):.1f}" if spread(each) > 1e-9 else ""
    verdict = graded(ratio, min(_FASTER, claimed), 1.0, standard_error(each))
    return Claim(words, printed, f"{ratio:.1f}{known} times", verdict)


def _table(results: Results, solver: str, shown: Sequence[str]) -> Table:
    rows = []
    for way in WAYS:
        found = [results.get(f"{name}-{way}-{solver}") for name in shown]
        if any(found):
            rows.append((NAMES[way], *(text for part in found for text in _cell(part))))
        if any(part and "averaged" in part for part in found):
            texts = [text for part in found for text in _averaged(part)]
            rows.append((f"{NAMES[way]}, averaged at prediction", *texts))
    return Table(f"Measured, by {SOLVERS[solver]}", _columns(shown), tuple(rows))


def _printed(shown: Sequence[str]) -> Table:
    rows = []
    for way in PAPER["mnist"]:
        texts = []
        for name in shown:
            mean, spread, seconds = PAPER[name][way]
            texts += [f"{mean:.1f} ± {spread:.1f}", f"{seconds} s"]
        rows.append((NAMES[way], *texts))
    return Table("As printed in the paper", _columns(shown), tuple(rows))


def _columns(shown: Sequence[str]) -> tuple[str, ...]:
    return ("", *(f"{TITLES[name]}{unit}" for name in shown for unit in (", %", ", a trial")))


def _cell(part: dict[str, Any] | None) -> tuple[str, str]:
    if part is None:
        return "–", "–"
    seconds = statistics.median(part["seconds"])
    return mean_and_spread(_percent(part)), f"{seconds:.3g} s"


def _averaged(part: dict[str, Any] | None) -> tuple[str, str]:
    if part is None or "averaged" not in part:
        return "–", "–"
    return mean_and_spread([100 * value for value in part["averaged"]]), "–"


def _plots(results: Results, dataset: str) -> list[Plot]:
    series = []
    for solver, title in SOLVERS.items():
        found = [(way, results.get(f"{dataset}-{way}-{solver}")) for way in WAYS]
        points = [(way, part) for way, part in found if part]
        if points:
            series.append(
                Series(
                    title,
                    x=tuple(statistics.median(part["seconds"]) for _, part in points),
                    y=tuple(statistics.fmean(_percent(part)) for _, part in points),
                    spread=tuple(float(spread(_percent(part))) for _, part in points),
                    joined=False,
                    names=tuple(NAMES[way] for way, _ in points),
                )
            )
    if not series:
        return []
    title = f"{TITLES[dataset]}: accuracy against time"
    return [Plot(title, "seconds a trial", "accuracy, %", tuple(series))]


def _percent(part: dict[str, Any]) -> list[float]:
    return [100 * value for value in part["accuracy"]]


def _paired(these: Sequence[float], those: Sequence[float]) -> list[float]:
    return [a - b for a, b in zip(these, those, strict=True)]
