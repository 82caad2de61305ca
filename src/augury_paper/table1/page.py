"""What Table 1 says, beside the paper's."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from augury_paper.claims import (
    SCALED,
    TITLES,
    gain_error,
    graded,
    mean_and_spread,
    share_and_error,
    share_of,
    spread,
    standard_error,
    unchecked,
)
from augury_paper.section import Claim, PageTable, Plot, Section, Series
from augury_paper.settings import Settings
from augury_paper.table1.tasks import HELD_OUT, METHODS, PRINTED, TASKS

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

_ALIKE = 1.25  # shares of the processor that differ by less
_KEPT, _FASTER = 0.7, 2.0  # "retain 70–100 % of the accuracy boost", "2–4x reduction" (Section 5.2)
_TESTS = {"mnist": 10_000, "cifar10": 10_000, "mammograms": 343}

Results = dict[str, dict[str, Any]]


def section(results: Results, settings: Settings) -> Section:
    """Judge the table's three claims for each data set, by the paper's own training and by ours."""
    shown = [name for name in settings.datasets if name in TASKS]
    ratios, ridges = _ratios(results, shown, settings), _ridges(results, shown)
    return Section(
        "table1",
        "Table 1: augmented random Fourier features",
        "A kernel classifier with random Fourier features, tested on randomly rotated images. It "
        "is trained on the original images, on explicitly transformed views of them, and on "
        "features averaged over the augmentation, for which no image is transformed. The error of "
        "a gain accounts for trials and test images; the share of a gain is computed from means "
        "over trials, with its standard error over trials.",
        claims=tuple(
            claim
            for name in shown
            for solver in SOLVERS
            for claim in _claims(results, name, solver, settings)
        ),
        tables=(
            *((ratios,) if ratios.rows else ()),
            *(_table(results, solver, shown) for solver in SOLVERS),
            *((ridges,) if ridges.rows else ()),
            _printed(shown),
        ),
        plots=tuple(plot for name in shown for plot in _plots(results, name)),
        differences=(
            "Features are averaged over the nodes of a quadrature rule, not over random angles. "
            "The paper's SGD uses as many nodes as traditional augmentation uses views; the closed "
            "form needs 4 nodes for ±15° (36 for the full circle), and results are shown for this "
            "number and for as many nodes as views. Its tangent form also penalises the variance "
            "along each orbit's leading direction.",
            "In closed form, λ is chosen by generalised cross-validation for averaged features and "
            "for no augmentation, and their time includes the choice. The views of one image are "
            "not independent examples, so for traditional augmentation and the exact objective λ "
            "minimises the squared error of their own predictions on held-out images, and their "
            "time does not include the choice. Since the two rules differ, averaged features are "
            "also shown with a λ chosen by the second rule. A method shown with another kind of "
            "prediction keeps its λ.",
            SCALED,
            "All trials are trained together, so their SGD times are shares of one measured time; "
            "the closed form is timed for each trial, from arrays in host memory to predictions. "
            "On a CPU, the time is that of all threads: methods are timed in turn, and other work "
            "on the machine would affect only some of them.",
            "The mammograms are the masses of CBIS-DDSM in their official split, without the "
            "largest ones, and not the paper's own selection of 1,506 patches.",
        ),
    )


def _claims(results: Results, dataset: str, solver: str, settings: Settings) -> list[Claim]:
    paper, title = PAPER[dataset], f"{TITLES[dataset]}, {SOLVERS[solver]}"
    own = solver == "closed"
    found = {method: results.get(f"{dataset}-{method}-{solver}") for method in PRINTED}
    gained = paper["traditional"][0] - paper["none"][0]
    kept = (paper["augmented"][0] - paper["none"][0]) / gained
    faster = paper["traditional"][2] / paper["augmented"][2]
    words = (
        f"{title}: augmentation raises accuracy",
        f"{title}: augmented features keep at least 70 % of that gain",
        f"{title}: augmented features train 2 to 4 times as fast as traditional augmentation (or "
        "as the paper's own number, if less)",
    )
    printed = (f"{gained:+.1f} points", f"{100 * kept:.0f} %", f"{faster:.1f} times")
    if any(part is None for part in found.values()):
        return [unchecked(*pair, own=own) for pair in zip(words, printed, strict=True)]
    parts = {method: part for method, part in found.items() if part}
    tests = settings.tests or _TESTS[dataset]
    gain = _paired(_percent(parts["traditional"]), _percent(parts["none"]))
    mean, error = (
        statistics.fmean(gain),
        100 * gain_error(parts["traditional"], parts["none"], tests),
    )
    raised = Claim(
        words[0],
        printed[0],
        f"{mean:+.2f} ± {error:.2f} points (standard error)".replace("-", "−"),
        graded(mean, round(gained, 1) - 0.05, 0.0, error),  # the paper gives one digit
        own,
    )
    stale = own and _mark("traditional", parts["traditional"]) == _STALE
    if stale:
        raised = unchecked(words[0], printed[0], f"{raised.ours}, {_WHY[_STALE]}", own=own)
    return [
        raised,
        _kept(words[1], printed[1], parts, mean > 2 * error, own, stale),
        _faster(words[2], printed[2], faster, results, (dataset, solver), settings),
    ]


_STALE, _ROUGH, _UNEVEN = "†", "‡", "§"
_WHY = {
    _STALE: "stale: λ by generalised cross-validation, which does not fit training on many views",
    _ROUGH: "λ chosen on whole decades",
    _UNEVEN: "rough: other work took more of the processor from one of the two",
}


def _mark(method: str, part: dict[str, Any]) -> str:
    """Return the mark of older results in closed form, whose λ was chosen otherwise than now."""
    if not HELD_OUT.get(method):
        return ""
    if "selection_seconds" not in part:
        return _STALE
    return "" if "ridges" in part else _ROUGH


def _explained(title: str, marked: Iterable[str]) -> str:
    """Add to a title what the marks in its table mean."""
    found = set(marked)
    why = [f"{mark} {words}" for mark, words in _WHY.items() if mark in found]
    return f"{title} ({'; '.join(why)})" if why else title


def _kept(words: str, printed: str, parts: Results, sure: bool, own: bool, stale: bool) -> Claim:
    if not sure:
        return unchecked(words, printed, "gain not significant", own=own)
    none = _percent(parts["none"])
    share, error = share_of(
        _paired(_percent(parts["augmented"]), none), _paired(_percent(parts["traditional"]), none)
    )
    if stale:
        why = f"{share_and_error(share, error)}, {_WHY[_STALE]}"
        return unchecked(words, printed, why, own=own)
    verdict, ours = graded(share, _KEPT, 0.0, error), share_and_error(share, error)
    if held := parts["augmented"].get("held_out"):
        other = _paired([100 * value for value in held], none)
        same = share_of(other, _paired(_percent(parts["traditional"]), none))
        ours += f"; {share_and_error(*same)} with λ chosen in the same way"
    return Claim(words, printed, ours, verdict, own)


def _faster(
    words: str,
    printed: str,
    claimed: float,
    results: Results,
    cell: tuple[str, str],
    settings: Settings,
) -> Claim:
    """Compare times at an equal number of views; trials of SGD share one time."""
    dataset, solver = cell
    own, task = solver == "closed", TASKS[dataset]
    few = results[f"{dataset}-augmented-{solver}"]
    fewer = own and task.n_nodes(settings) < task.n_views(settings)
    fast = results.get(f"{dataset}-equal-closed") if fewer else few
    slow = results[f"{dataset}-traditional-{solver}"]
    if fast is None:
        ratio = _times(slow, few)[0]
        why = f"not measured with as many nodes as views; {ratio:.1f} times with {task.nodes} nodes"
        return unchecked(words, printed, why, own=own)
    if slow.get("machine") != fast.get("machine"):
        return unchecked(words, printed, "timed on two machines", own=own)
    if own and _mark("traditional", slow) == _STALE:
        why = f"{_times(slow, fast)[0]:.1f} times, {_WHY[_STALE]}"
        return unchecked(words, printed, why, own=own)
    if _uneven(slow, fast):
        why = f"{_faster_by(slow, fast)} times, {_WHY[_UNEVEN]}"
        return unchecked(words, printed, why, own=own)
    ratio, each = _times(slow, fast)
    verdict = graded(ratio, min(_FASTER, claimed), 1.0, standard_error(each))
    return Claim(words, printed, f"{_faster_by(slow, fast)} times", verdict, own)


def _times(slow: dict[str, Any], fast: dict[str, Any], key: str = "seconds") -> tuple:
    """Return the ratio of median times, and the ratios by trial."""
    these, those = _seconds(slow, key), _seconds(fast, key)
    ratio = statistics.median(these) / statistics.median(those)
    return ratio, [a / b for a, b in zip(these, those, strict=False)]


def _faster_by(slow: dict[str, Any], fast: dict[str, Any], key: str = "seconds") -> str:
    ratio, each = _times(slow, fast, key)
    known = f" ± {float(spread(each)):.1f}" if spread(each) > 1e-9 else ""
    return f"{ratio:.1f}{known}"


def _seconds(part: dict[str, Any], key: str = "seconds") -> list[float]:
    """Return the seconds of each trial: on a CPU those of all threads, where they are known."""
    return part.get(key.replace("seconds", _PROCESSOR), part[key])


_PROCESSOR = "processor_seconds"


def _uneven(slow: dict[str, Any], fast: dict[str, Any]) -> bool:
    """Say whether two methods had unlike shares of a CPU: their times are then hard to compare."""
    if not (_PROCESSOR in slow and _PROCESSOR in fast):
        return False
    shares = [
        statistics.median(_seconds(p)) / statistics.median(p["seconds"]) for p in (slow, fast)
    ]
    return max(shares) > _ALIKE * min(shares)


def _timed(title: str, parts: Iterable[tuple[str, dict[str, Any] | None]]) -> str:
    """Add to a title how its data sets were timed, if not all by the clock."""
    known = [(name, _PROCESSOR in part) for name, part in parts if part]
    if not any(threads for _, threads in known):
        return title
    clock = dict.fromkeys(TITLES[name] for name, threads in known if not threads)
    others = f" ({', '.join(clock)}: by the clock)" if clock else ""
    return f"{title}, by the time of all threads{others}"


_COMPARED = (
    ("traditional", "equal", "the same number of random views and nodes"),
    ("traditional", "augmented", "random views against the nodes that are needed"),
    ("exact", "augmented", "the exact objective on the nodes that are needed"),
    ("traditional", "tangent", "random views against nodes, tangent form"),
    ("sklearn", "augmented", "scikit-learn's pair against nodes"),
)


def _ratios(results: Results, shown: Sequence[str], settings: Settings) -> PageTable:
    """Compare the times of pairs of methods, with the accuracy of both; the fair one first."""
    rows, marks, machines, used = [], set[str](), dict[str, None](), []
    for one, other, words in _COMPARED:
        for name in shown:
            task = TASKS[name]
            same = task.n_nodes(settings) == task.n_views(settings)
            if same and (one, other) == ("traditional", "augmented"):
                continue  # the first comparison: as many nodes are needed as there are views
            rival = "augmented" if same and other == "equal" else other
            slow, fast = (results.get(f"{name}-{method}-closed") for method in (one, rival))
            if not (slow and fast) or slow.get("machine") != fast.get("machine"):
                continue
            mark = _mark(one, slow)
            rough = _UNEVEN if _uneven(slow, fast) else ""
            marks |= {mark, rough}
            used += [(name, slow), (name, fast)]
            machines[slow.get("machine", "")] = None
            training, whole = (_faster_by(slow, fast, k) for k in ("training_seconds", "seconds"))
            held = fast.get("held_out")
            rows.append(
                (
                    f"{TITLES[name]}: {words}",
                    f"{training} {mark}{rough}".strip(),
                    f"{whole} {mark}{rough}".strip(),
                    f"{mean_and_spread(_percent(slow))} {mark}".strip(),
                    mean_and_spread(_percent(fast)),
                    mean_and_spread([100 * value for value in held]) if held else "–",
                )
            )
    columns = (
        "compared",
        "times faster to train",
        "with prediction",
        "views or exact, %",
        "averaged, %",
        "averaged with a λ by images left out, %",
    )
    where = ", ".join(filter(None, machines))
    title = "How much faster, in closed form" + (f", on {where}" if where else "")
    return PageTable(_explained(_timed(title, used), marks), columns, tuple(rows))


_OTHERWISE = {
    "averaged": "averaged at prediction",
    "plain": "plain prediction",
    "held_out": "λ by images left out",
}


def _table(results: Results, solver: str, shown: Sequence[str]) -> PageTable:
    rows, marks, used = [], set[str](), []
    for method, title in METHODS.items():
        found = [results.get(f"{name}-{method}-{solver}") for name in shown]
        own = [_mark(method, part) if part and solver == "closed" else "" for part in found]
        marks |= set(own)
        used += zip(shown, found, strict=True)
        pairs = list(zip(found, own, strict=True))
        if any(found):
            rows.append((title, *(text for pair in pairs for text in _cell(*pair))))
        for key, words in _OTHERWISE.items():
            if any(part and key in part for part in found):
                texts = [text for pair in pairs for text in _otherwise(*pair, key)]
                rows.append((f"{title}, {words}", *texts))
    title = _timed(f"Measured, by {SOLVERS[solver]}", used)
    return PageTable(_explained(title, marks), _columns(shown), tuple(rows))


def _ridges(results: Results, shown: Sequence[str]) -> PageTable:
    """Show the λ that were chosen, which accuracies and times depend on."""
    rows = []
    for method, title in METHODS.items():
        found = [results.get(f"{name}-{method}-closed") for name in shown]
        if any(part and "ridge" in part for part in found):
            texts = [_ridge(part, _mark(method, part) if part else "") for part in found]
            rows.append((title, *texts))
        held = [part if part and "held_out_ridge" in part else None for part in found]
        if any(held):
            texts = [_tried(part["held_out_ridge"], part) if part else "–" for part in held]
            rows.append((f"{title}, {_OTHERWISE['held_out']}", *texts))
    return PageTable("The λ that were chosen", ("", *(TITLES[n] for n in shown)), tuple(rows))


def _ridge(part: dict[str, Any] | None, mark: str) -> str:
    if part is None or "ridge" not in part:
        return "–"
    return f"{_tried(statistics.median(part['ridge']), part)} {mark}".strip()


def _tried(ridge: float, part: dict[str, Any]) -> str:
    """Write λ, and say where a smaller or larger one might have been chosen."""
    tried = part.get("ridges", (0.0, 0.0))
    ends = {tried[0]: ", the least tried", tried[-1]: ", the largest tried"}
    return f"{ridge:.1e}{ends.get(ridge, '')}"


def _printed(shown: Sequence[str]) -> PageTable:
    rows = []
    for method in PRINTED:
        texts = []
        for name in shown:
            mean, spread, seconds = PAPER[name][method]
            texts += [f"{mean:.1f} ± {spread:.1f}", f"{seconds} s"]
        rows.append((METHODS[method], *texts))
    return PageTable("As printed in the paper", _columns(shown), tuple(rows))


def _columns(shown: Sequence[str]) -> tuple[str, ...]:
    return ("", *(f"{TITLES[name]}{unit}" for name in shown for unit in (", %", ", a trial")))


def _cell(part: dict[str, Any] | None, mark: str) -> tuple[str, str]:
    if part is None:
        return "–", "–"
    seconds = f"{statistics.median(_seconds(part)):.3g} s"
    return f"{mean_and_spread(_percent(part))} {mark}".strip(), f"{seconds} {mark}".strip()


def _otherwise(part: dict[str, Any] | None, mark: str, key: str) -> tuple[str, str]:
    if part is None or key not in part:
        return "–", "–"
    return f"{mean_and_spread([100 * value for value in part[key]])} {mark}".strip(), "–"


def _plots(results: Results, dataset: str) -> list[Plot]:
    series = []
    for solver, title in SOLVERS.items():
        found = [(method, results.get(f"{dataset}-{method}-{solver}")) for method in METHODS]
        points = [(method, part) for method, part in found if part]
        if points:
            series.append(
                Series(
                    title,
                    x=tuple(statistics.median(_seconds(part)) for _, part in points),
                    y=tuple(statistics.fmean(_percent(part)) for _, part in points),
                    spread=tuple(float(spread(_percent(part))) for _, part in points),
                    joined=False,
                    names=tuple(_named(method, part, solver) for method, part in points),
                )
            )
    if not series:
        return []
    title = f"{TITLES[dataset]}: accuracy against time"
    return [Plot(title, "seconds per trial", "accuracy, %", tuple(series))]


def _named(method: str, part: dict[str, Any], solver: str) -> str:
    mark = _mark(method, part) if solver == "closed" else ""
    return f"{METHODS[method]} {mark}".strip()


def _percent(part: dict[str, Any]) -> list[float]:
    return [100 * value for value in part["accuracy"]]


def _paired(these: Sequence[float], those: Sequence[float]) -> list[float]:
    return [a - b for a, b in zip(these, those, strict=True)]
