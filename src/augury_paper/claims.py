"""The rules by which claims are judged and their numbers written, in one place."""

from __future__ import annotations

import base64
import math
import statistics
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from augury_paper.section import Claim, Verdict

TITLES = {"mnist": "MNIST", "cifar10": "CIFAR-10", "mammograms": "Mammograms"}

SCALED = (
    "The paper does not say how its Fourier features are scaled. Its authors' code leaves cosines "
    "and sines at amplitude 1, with which SGD at its rate does not converge on CIFAR-10. Here, the "
    "norm is the same for any number of features: half of ‖φ‖² = 4(1 + momentum)/rate, up to "
    "which descent is stable."
)
"""What all experiments that train heads on Fourier features by SGD do differently."""


def graded(value: float, claimed: float, least: float, error: float = 0.0) -> Verdict:
    """Judge a number that should be large, known up to a standard `error`.

    It holds from `claimed` up; above `least`, where there would be no effect, it holds weaker.
    What is within two errors of no effect does not hold, or cannot be judged if it is also within
    two of the whole claim.
    """
    if not (math.isfinite(value) and math.isfinite(error)):
        return "could not be checked"
    if value - 2 * error > least:
        return "holds" if value >= claimed else "holds weaker"
    return "could not be checked" if value + 2 * error >= claimed else "does not hold"


NOT_COMPUTED = "not computed"


def unchecked(words: str, paper: str, why: str = NOT_COMPUTED, *, own: bool = False) -> Claim:
    """Return a claim that could not be checked, with the reason in place of a number."""
    return Claim(words, paper, why, "could not be checked", own)


def packed(counts: np.ndarray) -> str:
    """Write how many trials classified each test image right, as compressed text."""
    return base64.b64encode(zlib.compress(counts.astype(np.uint8).tobytes(), 9)).decode()


def unpacked(text: str) -> np.ndarray:
    """Read what `packed` wrote: one number for each test image."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=np.uint8).astype(float)


def gain_error(these: dict[str, Any], those: dict[str, Any], tests: int) -> float:
    """Return the standard error of a difference of accuracies, over trials and test images.

    Where it is known which images were classified right (``"right"``), the two accuracies are
    compared image by image; else their binomial errors are added, which is too much for two
    classifiers of the same images.

    Parameters
    ----------
    these, those
        Results with ``"accuracy"`` by trial.
    tests
        The number of test images.
    """
    a, b = (np.asarray(part["accuracy"], float) for part in (these, those))
    over_trials = standard_error((a - b).tolist())
    if "right" in these and "right" in those:
        apart = (unpacked(these["right"]) - unpacked(those["right"])) / len(a)
        return math.hypot(over_trials, float(apart.std()) / math.sqrt(len(apart)))
    binomial = sum(p * (1 - p) / tests for p in (a.mean(), b.mean()))
    return math.hypot(over_trials, math.sqrt(binomial))


def share_of(part: ArrayLike, whole: ArrayLike) -> tuple[float, float]:
    """Return the ratio of two means over the same trials, and its standard error.

    The error comes from leaving trials out in turn; it is 0 for one trial.
    """
    a, b = np.asarray(part, float), np.asarray(whole, float)
    trials = len(a)
    if trials < 2:
        return float(a.mean() / b.mean()), 0.0
    others = [np.arange(trials) != k for k in range(trials)]
    left = np.array([a[o].mean() / (b[o].mean() or np.nan) for o in others])
    return float(a.mean() / b.mean()), float(np.sqrt((trials - 1) * left.var()))


def spread(values: ArrayLike) -> np.ndarray:
    """Return the standard deviation over trials, the first axis; 0 for one trial."""
    found = np.asarray(values, float)
    return found.std(0, ddof=1) if len(found) > 1 else np.zeros(found.shape[1:])


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of a mean over trials; 0 for one trial."""
    return float(spread(values)) / math.sqrt(len(values))


def mean_and_spread(values: Sequence[float], digits: int = 2) -> str:
    """Write a mean with the standard deviation over trials: ``97.31 ± 0.12``."""
    mean = f"{statistics.fmean(values):.{digits}f}".replace("-", "−")
    return mean if len(values) < 2 else f"{mean} ± {float(spread(values)):.{digits}f}"


def share_and_error(share: float, error: float) -> str:
    """Write a share with its standard error, if it is known: ``84 ± 16 %``."""
    known = f" ± {100 * error:.0f}" if error > 0 else ""
    return f"{100 * share:.0f}{known} %".replace("-", "−")
