"""What the approximation experiment shows: Figure 1 of the paper and its appendix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from augury_paper.approximation.experiment import BASES, DATASETS, n_views
from augury_paper.claims import SCALED, TITLES, mean_and_spread, spread, unchecked
from augury_paper.errata import differences
from augury_paper.section import Claim, PageTable, Plot, Section, Series, Verdict
from augury_paper.settings import AUGMENTATIONS, Settings

Results = dict[str, dict[str, Any]]

_SYMBOLS = {
    "original": "f, no augmentation",
    "first": "ĝ, first order",
    "second": "g̃, second order",
    "second_only": "f + g̃ − ĝ, second order only",
}
_EPOCH = 10  # the paper's bars are drawn after ten


def section(results: Results, settings: Settings) -> Section:
    """Judge the paper's claims, and draw its figures."""
    names = [
        (f"{dataset}-{base}-{name}", f"{TITLES[dataset]}, {BASES[base]}, {name}")
        for dataset in DATASETS
        for base in BASES
        for name in AUGMENTATIONS
    ]
    known = [(name, title) for name, title in names if name in results]
    return Section(
        "approximation",
        "Approximate objectives against the true one (Section 4, Figure 1)",
        "Five models are trained on the same batches, each on its own objective: without "
        "augmentation (f), with full augmentation (g), and on approximations of g. Objectives are "
        "compared at the weights of the model trained on g, and models by the divergence of their "
        f"test predictions from those of that model. T is {n_views('rbf', settings)} views of each "
        f"image for Fourier features and {n_views('lenet', settings)} for LeNet, computed once. "
        "For LeNet, the features are those of its last hidden layer, which are trained too. Trials "
        "differ in the initial weights and in the Fourier frequencies.",
        _claims(results),
        tables=_tables(known, results) if known else (),
        plots=tuple(plot for name, title in known for plot in _plots(results[name], title)),
        differences=(
            *differences("approximation"),
            SCALED,
            "The authors' settings, for Fourier features: the image itself among 17 (rotation), 32 "
            "(crop) or 21 (blur, weaker) views, features of amplitude 1, a weight decay of 0.001. "
            "On CIFAR-10, SGD does not converge with such large features.",
        ),
    )


def _claims(results: Results) -> tuple[Claim, ...]:
    cells = {
        (dataset, base): [r for n, r in results.items() if n.startswith(f"{dataset}-{base}-")]
        for dataset in DATASETS
        for base in BASES
    }
    claims = []
    for dataset in DATASETS:
        both = {base: cells[dataset, base] for base in BASES}
        title = TITLES[dataset]
        claims += [
            _counted(
                f"{title}: g̃ is closer to g than f, ĝ and second order only are, in epoch {_EPOCH}",
                "in all panels",
                both,
                lambda r: [_least(_gaps(r), _at(r))],
            ),
            _counted(
                f"{title}: the model of g̃ predicts more like that of g than the other models do",
                "in all panels",
                both,
                lambda r: [_least(r["kl"], _at(r))],
            ),
            _reduction(
                title,
                cells[dataset, "rbf"],
                [r for n, r in results.items() if n.startswith(f"{dataset}-authors-")],
            ),
        ]
    every = {base: [r for dataset in DATASETS for r in cells[dataset, base]] for base in BASES}
    claims += [
        _counted(
            "The quality of the approximations is stable through training: g̃ stays the closest",
            "in all epochs",
            every,
            lambda r: [_least(_gaps(r), k) for k in range(_epochs(r))],
            "epochs of panels",
        ),
        _counted(
            "The same example by example, where differences of opposite sign do not cancel",
            "in all epochs",
            every,
            lambda r: [_least(r["distance"], k) for k in range(_epochs(r))],
            "epochs of panels",
            own=True,
        ),
        _counted(
            "LeNet: the model of ĝ stays near the one without augmentation (its divergence from "
            "the model of g is at least half of that one's)",
            "seen on CIFAR-10 and MNIST",
            {"lenet": every["lenet"]},
            lambda r: [_mean(r["kl"]["first"], _at(r)) >= 0.5 * _mean(r["kl"]["original"], _at(r))],
        ),
    ]
    return tuple(claims)


def _counted(
    words: str,
    paper: str,
    cells: dict[str, list[dict[str, Any]]],
    good: Callable[[dict[str, Any]], list[bool]],
    things: str = "panels",
    *,
    own: bool = False,
) -> Claim:
    """Judge what should be true every time: weaker if most times. Counts are given by base too."""
    found = {base: [one for cell in some for one in good(cell)] for base, some in cells.items()}
    every = [one for some in found.values() for one in some]
    if not every:
        return unchecked(words, paper, own=own)
    parts = [f"{BASES[base]} {sum(some)} of {len(some)}" for base, some in found.items() if some]
    by_base = f" ({', '.join(parts)})" if len(parts) > 1 else ""
    ours = f"in {sum(every)} of {len(every)} {things}{by_base}"
    return Claim(words, paper, ours, _share(sum(every) / len(every)), own)


def _share(share: float) -> Verdict:
    if share == 1:
        return "holds"
    return "holds weaker" if share > 0.5 else "does not hold"


def _reduction(
    title: str, cells: Sequence[dict[str, Any]], authors: Sequence[dict[str, Any]]
) -> Claim:
    """Judge Figure 1's number: how much better g̃ is than the second order alone.

    It holds if every panel reaches 6 times, both with our settings and with the authors', and does
    not if neither has every panel above 1.
    """
    words = (
        f"{title}, RBF: against second order only, g̃ reduces the divergence of predictions from "
        "the model of g"
    )
    paper = "6–9 times" if title == "MNIST" else "likewise"
    if not cells:
        return unchecked(words, paper)
    found = [_typical(some) for some in (cells, authors) if some]
    least = [min(some) for some in found]
    verdict: Verdict = "does not hold"
    if len(found) == 2 and min(least) >= 6:
        verdict = "holds"
    elif max(least) > 1:
        verdict = "holds weaker"
    ours = f"{', '.join(map(_factor, found[0]))} times"
    if authors:
        ours += f"; with the authors' settings {', '.join(map(_factor, found[1]))}"
    else:
        ours += "; not computed with the authors' settings"
    return Claim(words, paper, ours, verdict)


def _typical(cells: Sequence[dict[str, Any]]) -> list[float]:
    """Return the median reduction over trials, of each panel."""
    return [
        float(np.median(_ratios(cell["kl"]["second_only"], cell["kl"]["second"], _at(cell))))
        for cell in cells
    ]


def _factor(value: float) -> str:
    """Write a factor; with almost nothing left below it, its digits mean nothing."""
    return f"{value:.2g}" if value < 100 else f"{value:.0f}" if value < 1000 else "over 1,000"


def _ratios(above: list[list[float]], below: list[list[float]], epoch: int) -> np.ndarray:
    top, low = (np.asarray(v, float)[:, epoch] for v in (above, below))
    return top / np.maximum(low, 1e-15)


def _epochs(cell: dict[str, Any]) -> int:
    return len(cell["objective"]["exact"][0])


def _at(cell: dict[str, Any]) -> int:
    return min(_EPOCH, _epochs(cell)) - 1


def _gaps(cell: dict[str, Any]) -> dict[str, list[list[float]]]:
    """Return |objective − g| by trial and epoch."""
    return {k: np.abs(cell["objective"][k]).tolist() for k in _SYMBOLS}


def _mean(values: list[list[float]], epoch: int) -> float:
    return float(np.mean(np.asarray(values)[:, epoch]))


def _least(values: dict[str, list[list[float]]], epoch: int) -> bool:
    means = {key: _mean(values[key], epoch) for key in _SYMBOLS}
    return min(means, key=lambda key: means[key]) == "second"


def _tables(known: Sequence[tuple[str, str]], results: Results) -> tuple[PageTable, ...]:
    when = f"After {_EPOCH} epochs, or the last"
    near, alike = [], []
    for name, title in known:
        cell = results[name]
        gaps, at = _gaps(cell), _at(cell)
        base = max(_mean(gaps["original"], at), 1e-15)
        accuracy = np.asarray(cell["accuracy"]["exact"])[:, at]
        near.append(
            (
                title,
                *(f"{_mean(gaps[k], at) / base:.2g}" for k in ("first", "second", "second_only")),
                f"{mean_and_spread((100 * accuracy).tolist(), 1)} %",
            )
        )
        kl = {key: np.asarray(cell["kl"][key])[:, at] for key in _SYMBOLS}
        told = (f"{kl[k].mean():.2g} ± {float(spread(kl[k])):.1g}" for k in _SYMBOLS)
        alike.append((title, *told))
    return (
        PageTable(
            f"{when}: objectives' distances from g, in units of |f − g|",
            ("panel", "ĝ", "g̃", "f + g̃ − ĝ", "test accuracy, model of g"),
            tuple(near),
        ),
        PageTable(
            f"{when}: divergences of models' test predictions from those of the model of g",
            ("panel", "f", "ĝ", "g̃", "f + g̃ − ĝ"),
            tuple(alike),
        ),
    )


def _plots(cell: dict[str, Any], title: str) -> list[Plot]:
    changes = {k: np.asarray(cell["objective"][k]) for k in _SYMBOLS}
    kls = {k: np.asarray(cell["kl"][k]) for k in _SYMBOLS}
    apart = {k: np.asarray(cell["distance"][k]) for k in _SYMBOLS}
    far, alike = "mean |difference from g|", "KL from the model of g"
    return [
        Plot(f"{title}: objective", "epoch", "difference from g", _series(changes)),
        Plot(f"{title}: example by example", "epoch", far, _series(apart), log=True),
        Plot(f"{title}: predictions", "epoch", alike, _series(kls), log=True),
    ]


def _series(values: dict[str, np.ndarray]) -> tuple[Series, ...]:
    return tuple(
        Series(
            label,
            tuple(float(k + 1) for k in range(values[key].shape[1])),
            tuple(values[key].mean(0).tolist()),
            tuple(spread(values[key]).tolist()),
        )
        for key, label in _SYMBOLS.items()
    )
