"""The section of Figure 2: whether alignment predicts accuracy."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from augury_paper.alignment.experiment import DATASETS
from augury_paper.claims import TITLES, graded, mean_and_spread, spread, unchecked
from augury_paper.errata import differences
from augury_paper.section import Claim, PageTable, Plot, Section, Series
from augury_paper.settings import Settings

_MODELS = {"rbf": "RBF features", "lenet": "LeNet"}
_CLEAR = 0.5
"""The rank correlation from which alignment is said to predict accuracy."""


@dataclass(frozen=True)
class _Found:
    """What is known of one data set; accuracies in per cent, ``[transformation][trial]``."""

    specs: list[str]
    alignment: list[float]
    error: list[float]
    trial: list[float] | None
    accuracy: dict[str, list[list[float]]]

    def correlations(self, score: list[float], model: str) -> list[float]:
        """Return Spearman's correlation of a score with each trial's accuracies."""
        by_trial = np.array(self.accuracy[model]).T
        return [_spearman(score, row) for row in by_trial]


def section(results: dict[str, dict[str, Any]], settings: Settings) -> Section:
    """Judge the correlations, and draw alignment against accuracy."""
    found = {name: _collect(results, name) for name in DATASETS}
    claims: list[Claim] = []
    for name in DATASETS:
        title = TITLES[name]
        claims += [_correlated(found[name], title, model) for model in _MODELS]
    claims.append(_selects(found["mnist"]))
    known = {name: data for name, data in found.items() if data is not None}
    return Section(
        "alignment",
        "Alignment as a guide to transformations (Figure 2)",
        "The kernel target alignment of averaged Fourier features is known before training. It is "
        "compared with the test accuracy of a linear head on such features and of LeNet, trained "
        "with each transformation of the appendix, and with the gain that this project's own score "
        "expects from a brief trial of a small network. With seven transformations, a rank "
        "correlation has a large error: about ± 0.4 if there were no correlation.",
        tuple(claims),
        tuple(table for data in known.items() for table in _tables(*data)),
        tuple(_plot(data, name, model) for name, data in known.items() for model in data.accuracy),
        differences("alignment"),
    )


def _collect(results: dict[str, dict[str, Any]], name: str) -> _Found | None:
    scores = results.get(f"{name}-alignment")
    if scores is None:
        return None
    specs = list(scores["specs"])
    accuracy: dict[str, list[list[float]]] = {}
    for model in _MODELS:
        if trained := results.get(f"{name}-{model}"):
            accuracy[model] = [_percent(row) for row in trained["accuracy"]]
    trial = results.get(f"{name}-trial")
    gains = None if trial is None else list(trial["gain"])
    return _Found(specs, scores["alignment"], scores["error"], gains, accuracy)


def _percent(values: list[float]) -> list[float]:
    return [100 * value for value in values]


def _spearman(a: Any, b: Any) -> float:
    if np.ptp(a) == 0 or np.ptp(b) == 0:  # all alike: nothing is predicted
        return 0.0
    found: Any = spearmanr(a, b)
    return float(found.statistic)


def _correlated(found: _Found | None, title: str, model: str) -> Claim:
    words = f"{title}, {_MODELS[model]}: higher alignment goes with higher accuracy"
    paper = "“indeed a correlation”, no number"
    if found is None or model not in found.accuracy:
        return unchecked(words, paper)
    each = found.correlations(found.alignment, model)
    ours = f"rank correlation {mean_and_spread(each)}"
    if found.trial is not None:
        ours += f"; our trial's {mean_and_spread(found.correlations(found.trial, model))}"
    mean = float(np.mean(each))
    error = (1 - mean**2) / math.sqrt(len(found.specs) - 1)  # of a correlation of so few
    verdict = graded(mean, _CLEAR, 0.0, error)
    return Claim(words, paper, ours, verdict)


def _selects(found: _Found | None) -> Claim:
    words = "MNIST: alignment picks rotation, which improves accuracy, and warns of flips"
    paper = "rotation above, flips below no augmentation"
    if found is None or "rbf" not in found.accuracy:
        return unchecked(words, paper)
    at = {spec.split("(")[0]: k for k, spec in enumerate(found.specs)}
    mean = [statistics.fmean(row) for row in found.accuracy["rbf"]]
    sides = [
        values[at["rotation"]] > values[at["identity"]] > values[at["flips"]]
        for values in (found.alignment, mean)
    ]
    ours = "; ".join(
        f"{label} {values[at['rotation']]:.{digits}f}, none {values[at['identity']]:.{digits}f}, "
        f"flips {values[at['flips']]:.{digits}f}"
        for label, values, digits in (
            ("alignment: rotation", found.alignment, 3),
            ("RBF accuracy: rotation", mean, 2),
        )
    )
    verdict = "holds" if all(sides) else "holds weaker" if any(sides) else "does not hold"
    return Claim(words, paper, ours, verdict)


def _tables(name: str, found: _Found) -> list[PageTable]:
    rows = []
    for k, spec in enumerate(found.specs):
        trial = "–" if found.trial is None else f"{found.trial[k]:+.2f}".replace("-", "−")
        row = [spec, f"{found.alignment[k]:.4f} ± {found.error[k]:.4f}", trial]
        for model in _MODELS:
            known = found.accuracy.get(model)
            row.append("–" if known is None else mean_and_spread(known[k]))
        rows.append(tuple(row))
    columns = (
        "transformation",
        "alignment ± error",
        "our trial, points",
        *(f"{label}, %" for label in _MODELS.values()),
    )
    return [PageTable(f"{TITLES[name]}: scores and accuracies", columns, tuple(rows))]


def _plot(found: _Found, name: str, model: str) -> Plot:
    means = tuple(float(np.mean(row)) for row in found.accuracy[model])
    spreads = tuple(float(spread(row)) for row in found.accuracy[model])
    series = Series(
        _MODELS[model],
        tuple(found.alignment),
        means,
        spreads,
        joined=False,
        names=tuple(spec.split("(")[0].replace("_", " ") for spec in found.specs),
    )
    title = f"{TITLES[name]}: {_MODELS[model]}"
    return Plot(title, "kernel target alignment", "test accuracy, %", (series,))
