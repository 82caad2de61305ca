"""How the leaders' gains change with the plan: with more or fewer epochs, and examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from augury.augmentations.base import Augmentation
from augury.data.dataset import Dataset
from augury.forecasting.forecast import Calibration, Forecast, Judgement
from augury.forecasting.training.own import OwnNetwork
from augury.forecasting.trial import HeldOut, Trial, run_folds
from augury.results.ranking import Trend

LEADERS = 3
"""How many candidates are followed."""


def find_trends(
    data: Dataset,
    leaders: Sequence[Augmentation],
    trial: Trial,
    known: Sequence[HeldOut],
    judged: list[Judgement],
    planned: int,
    *,
    names: Sequence[str],
    seed: int,
    device: torch.device,
    calibration: Calibration,
    rate: float,
    own: OwnNetwork | None = None,
) -> tuple[Trend, ...]:
    """Return the leaders' gains against epochs and against examples.

    Half and twice the planned epochs, and half of the trial's examples, are tried on one fold; what
    the trial found, and what it means for the planned number of examples, is known. Costs three
    times as much as the leaders cost in one fold.

    Parameters
    ----------
    data, leaders
        The data and candidates as the trial saw them.
    trial, known, judged
        What was tried, what its folds showed of the leaders, and what follows for the plan.
    planned
        The planned number of examples.
    names
        What the leaders are called in the result.
    seed, device, calibration, own
        As for the trial.
    rate
        The exponent of the learning curve that the trial saw.
    """
    classes = None if data.task == "regression" else data.outputs

    def judge(folds: Sequence[HeldOut], trained: int, examples: int) -> list[Judgement]:
        forecast = Forecast(
            folds, data.y, classes,
            trained=trained, planned=examples, rate=rate, calibration=calibration,
        )  # fmt: skip
        return [forecast.judge(k) for k in range(len(leaders))]

    def again(changed: Trial, examples: int) -> list[Judgement]:
        folds = run_folds(
            data, leaders, changed, [0], seed=seed, device=device, curve=False, own=own
        )
        return judge(folds, changed.examples, examples)

    half = max(2, trial.examples // 2)
    others = {max(1, trial.epochs // 2), 2 * trial.epochs} - {trial.epochs}
    along_epochs = {trial.epochs: judged} | {
        epochs: again(replace(trial, epochs=epochs), planned) for epochs in sorted(others)
    }
    along_examples = {
        half: again(replace(trial, examples=half), half),
        trial.examples: judge(known, trial.examples, trial.examples),
        planned: judged,
    }
    ways = {"epochs": along_epochs, "examples": along_examples}
    return tuple(
        _trend(name, along, found, k)
        for k, name in enumerate(names)
        for along, found in ways.items()
    )


def _trend(name: str, along: str, found: dict[int, list[Judgement]], k: int) -> Trend:
    values = sorted(found)
    own = [found[value][k] for value in values]
    return Trend(
        name, along, tuple(float(value) for value in values),
        tuple(j.gain for j in own), tuple(j.low for j in own), tuple(j.high for j in own),
    )  # fmt: skip
