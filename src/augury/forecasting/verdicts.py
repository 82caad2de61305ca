"""Verdicts: a gain, its interval and its probability in words."""

from __future__ import annotations

from collections.abc import Iterable

from augury.results.ranking import Row

UNDECIDED = "can't tell"

SURE, PROBABLE = 0.9, 0.75
"""Probabilities from which a candidate is said to help, and probably to help."""

CLEAR = 0.95
"""How sure it must be, besides, that a change in a trial is more than the noise of its runs.

On sources that the constants were not fitted to, 98 % of what is then said was right. (Trials of a
slim or small network need more: `augury.forecasting.forecast.SLIM`.)"""

FAINT = 0.9
"""How sure that must be for anything to be said at all, even "probably".

Without it, half of the candidates that have no effect would "probably" have one wherever the runs
of a trial differ by more than forecasts usually stray."""

POINTS = 0.2
"""The least gain in points that is called one: a fifth of a percentage point of accuracy."""

SHARE = 0.01
"""The least gain of a closed-form score that is called one, as a share of the baseline's."""


def verdict(gain: float, probability: float, matters: float) -> str:
    """Return the verdict on a gain.

    Parameters
    ----------
    gain
        The expected gain.
    probability
        That the candidate helps.
    matters
        The least gain or loss that counts as an effect.
    """
    if abs(gain) < matters:
        return UNDECIDED
    if gain > 0:
        return "helps" if probability >= SURE else (
            "probably helps" if probability >= PROBABLE else UNDECIDED
        )  # fmt: skip
    return "hurts" if probability <= 1 - SURE else (
        "probably hurts" if probability <= 1 - PROBABLE else UNDECIDED
    )  # fmt: skip


def explain(rows: Iterable[Row], withheld: bool = False) -> str:
    """Return the rules behind verdicts that a reader would not expect.

    These are *helps* and *hurts* with an interval that includes zero, and those `withheld`, in
    spite of their probability, since the runs of the trial differ as much.
    """
    said = []
    if any(row.verdict in ("helps", "hurts") and row.low <= 0 <= row.high for row in rows):
        said.append(
            f"The verdicts “helps” and “hurts” require a probability of {100 * SURE:.0f} % or "
            "more. A 95 % interval is stricter, so the intervals of some of these candidates "
            "include zero."
        )
    if withheld:
        said.append(
            f"Some candidates have no verdict although the probability of an effect is "
            f"{100 * PROBABLE:.0f} % or more: repeated runs of this trial differ by about as much."
        )
    return " ".join(said)
