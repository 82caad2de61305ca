"""Trials of sound: a small network on spectrograms, every part of the speakers held out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from augury.data.dataset import Dataset
from augury.forecasting.forecast import SMALL
from augury.forecasting.plan import TrainingPlan
from augury.forecasting.splits import PARTS
from augury.forecasting.trial import Trial

if TYPE_CHECKING:
    from augury.forecasting.effort import Level

NETWORK = "small"
"""It ranked candidates as well as the planned network did, at a third of the time."""
CALIBRATIONS = {NETWORK: SMALL}
"""How far planned trainings stray from trials: ``docs/prediction_sound.md``."""
TRUST = {
    NETWORK: (
        "Forecasts were compared with real training on spoken digits, tested on speakers that were "
        "not trained on: they ranked the candidates with a correlation of 0.84 to 0.93."
    )
}
"""How far forecasts can be relied on."""
_MOST_FOLDS = 2 * PARTS


def sound_trial(plan: TrainingPlan, data: Dataset, rung: Level) -> Trial:
    """Return the trial of a level: speakers differ, so each part of them is held out as often."""
    examples = max(2, min(rung.examples, len(data) * (PARTS - 1) // PARTS))
    folds = min(_MOST_FOLDS, max(1, round(rung.examples * rung.folds / examples)))
    if folds > PARTS:
        folds -= folds % PARTS
    return Trial(
        epochs=max(1, round(plan.epochs * rung.share)),
        examples=examples,
        folds=folds,
        network=NETWORK,
        replicas=rung.replicas,
    )
