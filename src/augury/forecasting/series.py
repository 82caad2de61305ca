"""Trials of series: sets are small, so the planned network itself is cross-validated on them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from augury.data.dataset import Dataset
from augury.forecasting.forecast import Calibration
from augury.forecasting.plan import TrainingPlan
from augury.forecasting.trial import Trial

if TYPE_CHECKING:
    from augury.forecasting.effort import Level

NETWORK = "fcn"
EPOCHS = 100
"""Assumed where the user names no number: sets of series are small, so an epoch is short."""
BATCH = 16
"""As networks for series are usually trained (Wang et al., 2017)."""
LONGEST = {False: 256, True: 512}
"""Longer series are averaged down in a trial, less so where the planned network is trained."""
CALIBRATIONS = {
    "fcn": Calibration(slope=1.37, floor=0.033, share=0.0),
    "small": Calibration(slope=1.2, floor=0.0147, share=0.96),
}
"""How far planned trainings stray from trials of each network: ``docs/prediction_series.md``."""
TRUST = {
    "fcn": (
        "Forecasts were compared with real training on eleven sets of series, each with constants "
        "fitted to the other sets. On the seven sets whose real order is reproducible with other "
        "seeds and test series, the rank correlation was 0.75 to 0.96 (mean 0.85), and the best of "
        "the top three candidates fell 0.03 points short of the best candidate on average; on the "
        "other four sets, the correlation was 0.05 to 0.48. All 91 verdicts without “probably” "
        "were right, and 133 of 135 if those with “probably” are counted."
    ),
    "small": (
        "Forecasts from trials with a small network were compared with real training on eight sets "
        "of series, each with constants fitted to the other sets. On the seven sets whose real "
        "order is reproducible, the rank correlation was 0.66 to 0.83 (mean 0.75), and the best of "
        "the top three candidates fell 0.2 points short of the best candidate on average; on the "
        "eighth, the correlation was 0.17. Of 68 verdicts, all of them with “probably”, 61 were "
        "right. To try the planned network, use a GPU or --effort 9."
    ),
}
"""How far forecasts can be relied on, by the network of the trial."""
MEASURED = {"fcn": 9, "small": 7}
"""The levels of effort that this was measured at."""
_MOST_FOLDS = 16
_MOST_SHARE = 3 / 4
_PLANNED_WORK, _SMALL_WORK = 0.3, 0.5
"""Examples in all folds, as a share of those for images, since epochs are more."""


def series_plan(plan: TrainingPlan, epochs_given: bool) -> TrainingPlan:
    """Return the plan for series: their network, and their usual epochs where none are given."""
    return replace(plan, network=NETWORK, epochs=plan.epochs if epochs_given else EPOCHS)


def series_trial(plan: TrainingPlan, data: Dataset, rung: Level) -> Trial:
    """Return the trial of a level: three quarters of the data in each fold, and many folds.

    Epochs are as many as make the steps of the planned training: of few series, a fold has so few
    batches in an epoch that its networks would stop half trained, and augmentation would seem to
    cost nothing.
    """
    work = rung.examples * (rung.folds * _PLANNED_WORK if rung.planned else _SMALL_WORK)
    examples = max(2, min(int(work), int(len(data) * _MOST_SHARE)))
    planned = min(len(data), round(examples / _MOST_SHARE))
    longer = max(1, planned // BATCH) / max(1, examples // BATCH)
    return Trial(
        epochs=max(1, round(plan.epochs * rung.share * longer)),
        examples=examples,
        folds=min(_MOST_FOLDS, max(1, round(work / examples))),
        network=NETWORK if rung.planned else "small",
        replicas=rung.replicas,
        side=LONGEST[rung.planned],
        batch=BATCH,
    )
