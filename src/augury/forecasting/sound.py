"""Trials of sound: a small network on spectrograms, every part of the speakers held out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from augury.data.dataset import Dataset
from augury.forecasting.forecast import Calibration
from augury.forecasting.plan import TrainingPlan
from augury.forecasting.splits import count_parts
from augury.forecasting.trial import Trial

if TYPE_CHECKING:
    from augury.forecasting.effort import Level

NETWORK = "small"
"""It ranked candidates as well as the planned network did, at a third of the time."""
CALIBRATIONS = {NETWORK: Calibration(slope=0.92, floor=0.103, share=0.0)}
"""How far planned trainings stray from trials: ``docs/prediction_sound.md``."""
TRUST = {
    NETWORK: (
        "Forecasts were compared with real training on two data sets, each with constants fitted "
        "to the other. On spoken digits, trained on three or four speakers and tested on others, "
        "the rank correlation with the real order was 0.63 to 0.92 (mean 0.79), and the best of "
        "the top three candidates gained 2 points less, on average, than the best of all, which "
        "gained 4 to 17 points. With so few speakers, what helps on some does not always help on "
        "the others. On instrument notes, the correlation was 0.97, and the best of the top three "
        "gained as much as the best. All 32 verdicts without “probably” were right, and 75 of 81 "
        "if those with “probably” are counted."
    )
}
"""How far forecasts can be relied on."""
MEASURED = {NETWORK: 9}
"""The level of effort that this was measured at."""
_WORK = 0.6
"""Examples in all folds, as a share of those for images, since a view costs more."""
_MOST_SHARE = 2 / 3
_ROUNDS = 2  # in which every speaker is held out, at most


def sound_trial(plan: TrainingPlan, data: Dataset, rung: Level) -> Trial:
    """Return the trial of a level: speakers differ, so each part of them is held out as often."""
    parts, work = count_parts(data), rung.examples * rung.folds * _WORK
    most = rung.examples if rung.folds == 1 else work / parts  # less work cannot hold all out
    examples = max(2, int(min(most, rung.examples, len(data) * _MOST_SHARE)))
    folds = min(_ROUNDS * max(2, parts), max(1, round(work / examples)))
    if folds > parts:
        folds -= folds % parts
    return Trial(
        epochs=max(1, round(plan.epochs * rung.share)),
        examples=examples,
        folds=folds,
        network=NETWORK,
        replicas=rung.replicas,
    )
