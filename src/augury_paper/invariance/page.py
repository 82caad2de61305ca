"""What the invariance experiment shows: the appendix's figure of a residual network's layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from augury_paper.claims import mean_and_spread, spread, unchecked
from augury_paper.errata import differences
from augury_paper.invariance.experiment import ResNetTraining
from augury_paper.section import Claim, PageTable, Plot, Section, Series, Verdict
from augury_paper.settings import AUGMENTATIONS, Settings

_FIRST = 2  # "all but the first one or two layers"


def section(results: dict[str, dict[str, Any]], settings: Settings) -> Section:
    """Judge the paper's claims, and draw the ratio by layer."""
    trials = [results[name] for name in sorted(results)]
    ratios, relative = (
        {name: _table_of(trials, key, name) for name in AUGMENTATIONS}
        for key in ("ratio", "relative_ratio")
    )
    recipe = ResNetTraining.of(settings)
    claims = [
        *(_more_invariant(name, trials, ratios[name]) for name in AUGMENTATIONS),
        _steepest(trials, ratios),
        *(_more_invariant(name, trials, relative[name], own=True) for name in AUGMENTATIONS),
    ]
    return Section(
        "invariance",
        "How invariant the layers of a ResNet are (Appendix)",
        f"A residual network of three blocks of {recipe.units} "
        f"{'units' if recipe.units > 1 else 'unit'} is trained on CIFAR-10 without augmentation "
        f"and with each of three augmentations, from the same weights, for {recipe.epochs} epochs. "
        "A ratio below 1 means that the augmentation moves the features of a layer less in the "
        "network that was trained with it than in the network trained without. The paper does not "
        "say how long its networks were trained.",
        tuple(claims),
        (_accuracies(trials),) if trials else (),
        tuple(_plot(name, trials, ratios[name], relative[name]) for name in AUGMENTATIONS)
        if trials
        else (),
        (
            *differences("invariance"),
            "The paper divides the squared distance at a layer by |φ(x)|, which is interpreted "
            "here as the number of its features. Features with a larger scale then move farther, "
            "so the distance is also given relative to the distance between two examples.",
        ),
    )


def _table_of(trials: list[dict[str, Any]], key: str, name: str) -> np.ndarray:
    """Return ratios ``(trials, layers)``; what has no ratio (nothing moves) is not a number."""
    return np.array([[np.nan if v is None else v for v in t[key][name]] for t in trials])


def _over_trials(ratio: np.ndarray) -> np.ndarray:
    """Return the mean of each layer, of the trials that have a ratio there."""
    return np.ma.masked_invalid(ratio).mean(0).filled(np.nan)


def _more_invariant(
    name: str, trials: list[dict[str, Any]], ratio: np.ndarray, *, own: bool = False
) -> Claim:
    """Judge each later layer by its mean and two standard errors over trials.

    The claim holds if all means are below 1, and holds weaker if no layer surely exceeds 1 and
    most are surely below it.
    """
    words = (
        f"Trained with {name}, the network is the more invariant to it in all but the first one "
        "or two layers"
    )
    if own:
        words = f"The same for {name}, in units of the distance between examples"
    paper = "ratio below 1"
    if not trials:
        return unchecked(words, paper, own=own)
    mean, layers = _over_trials(ratio), trials[0]["layers"]
    known = np.ma.masked_invalid(ratio)
    error = known.std(0, ddof=1).filled(0.0) if len(trials) > 1 else np.zeros(len(mean))
    error /= np.sqrt(np.maximum(known.count(0), 1))
    finite = np.isfinite(mean) & (np.arange(len(mean)) >= _FIRST)
    later, twice = mean[finite], 2 * error[finite]
    below, above = int((later + twice < 1).sum()), int((later - twice >= 1).sum())
    verdict: Verdict = "does not hold"
    if (later < 1).all():
        verdict = "holds"
    elif below >= 0.8 * len(later) or (above == 0 and below > len(later) / 2):
        verdict = "holds weaker"
    over = [layers[k] for k in np.flatnonzero(finite & (mean - 2 * error >= 1))]
    where = (
        f"above 1 by two standard errors in {', '.join(over[:3])}"
        f"{f' and {len(over) - 3} more' if len(over) > 3 else ''}"
        if over
        else "no layer exceeds 1 by two standard errors"
    )
    found = f"{later.min():.2f} to {later.max():.2f}; below 1 in {int((later < 1).sum())} of "
    found += f"{len(later)} later layers, in {below} by two standard errors; {where}"
    return Claim(words, paper, found, verdict, own)


def _steepest(trials: list[dict[str, Any]], ratios: dict[str, np.ndarray]) -> Claim:
    words = "Invariance grows the most in the first block, and again where features are pooled"
    paper = "seen for all three"
    if not trials:
        return unchecked(words, paper)
    layers = trials[0]["layers"]
    ends = [max(k for k, la in enumerate(layers) if la.startswith(f"block{b}.")) for b in (1, 2, 3)]
    first, pooled = 0, 0
    for ratio in ratios.values():
        logs = np.log(_over_trials(ratio))
        falls = [logs[a] - logs[b] for a, b in zip([0, *ends], ends, strict=False)]
        first += int(falls[0] == max(falls) and falls[0] > 0)
        pooled += int(logs[layers.index("pool")] < logs[ends[2]])
    count = len(ratios)
    verdict: Verdict = "does not hold"
    if first == pooled == count:
        verdict = "holds"
    elif first + pooled >= count:
        verdict = "holds weaker"
    found = f"first block the steepest for {first} of {count}, lower after pooling for {pooled}"
    return Claim(words, paper, found, verdict)


def _accuracies(trials: list[dict[str, Any]]) -> PageTable:
    rows = tuple(
        (name, mean_and_spread([100 * t["accuracy"][name] for t in trials]) + " %")
        for name in trials[0]["accuracy"]
    )
    return PageTable("Test accuracy of the networks", ("trained with", "accuracy"), rows)


def _plot(name: str, trials: list[dict[str, Any]], ratio: np.ndarray, relative: np.ndarray) -> Plot:
    layers = trials[0]["layers"]
    x = tuple(float(k) for k in range(len(layers)))
    series = [
        Series(label, x, tuple(_over_trials(values).tolist()), tuple(spread(values).tolist()))
        for label, values in (("distance", ratio), ("distance, of that between examples", relative))
    ]
    series.append(Series("as without augmentation", (x[0], x[-1]), (1.0, 1.0)))
    # Names of all 30 layers would not fit: blocks are named where they begin, and the last.
    named = [la.endswith(".0") or la == layers[-1] for la in layers]
    ticks = tuple(la.partition(".")[0] * shown for la, shown in zip(layers, named, strict=True))
    return Plot(name, "layer", "trained with / without", tuple(series), ticks=ticks)
