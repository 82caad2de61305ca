"""The default score: the gain that the planned training is expected to show, from a trial."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from types import ModuleType
from typing import Any

import torch

from augury.augmentations.base import Augmentation
from augury.forecasting import series, sound
from augury.forecasting.effort import CPU, DECIDES, GPU, OWN, SUREST, choose_level, make_trial
from augury.forecasting.forecast import CUT, PLANNED, QUICK, SLIM, SMALL, Forecast, Judgement
from augury.forecasting.linear import linear_score
from augury.forecasting.scores.base import Judged, Score
from augury.forecasting.tables import run_table_folds
from augury.forecasting.trends import LEADERS, find_trends
from augury.forecasting.trial import Trial, run_folds, shrink, ticks
from augury.forecasting.verdicts import POINTS
from augury.results.ranking import Trend

_PLANNED = (
    "Trials like this one were compared with real training on six sources of images, each with "
    "constants fitted to the other sources. The rank correlation with the real order was 0.80 to "
    "0.97 (mean 0.90), the best of the top three candidates fell 0.03 points short of the best "
    "candidate on average, and 98 % of 379 verdicts were right."
)
_SLIM = (
    "Trials with a slim network instead of the planned one were compared with real training on "
    "six sources of images, each with constants fitted to the other sources. The rank correlation "
    "with the real order was 0.61 to 0.91 (mean 0.82), the best of the top three candidates fell "
    "0.18 points short of the best candidate on average, and 98 % of 259 verdicts were right. To "
    "try the planned network, use a GPU or --effort 8."
)
_QUICK_LEVEL = 5
_QUICK = (
    f"Trials with a quarter of the default work on a CPU (--effort {_QUICK_LEVEL}) were compared "
    "with real training on six sources of images: the rank correlation with the real order was "
    "0.10 to 0.90 (mean 0.70), and 97 % of 121 verdicts were right. With the default work "
    "(--effort 7), the mean correlation was 0.82, and 0.90 on a GPU."
)
_BRIEF_LEVEL = 4
_BRIEF = (
    f"Trials with an eighth of the default work on a CPU (--effort {_BRIEF_LEVEL}) were compared "
    "with real training on six sources of images: the rank correlation with the real order was "
    "0.31 to 0.89 (mean 0.65), and 89 % of 283 verdicts, most of them with “probably”, were right."
)
_CUT = (
    "Trials with fewer epochs than planned (--effort 0 to 2) were compared with real training on "
    "three sources of images: the rank correlation with the real order was 0.03 to 0.83 (mean "
    "0.41). With the default work (--effort 7), the mean correlation was 0.82, and 0.90 on a GPU."
)
_OWN = (
    "Forecasts for fine-tuning were compared with real training on only two sources of images: the "
    "rank correlations were 0.82 and 0.83, and 88 % of the signs were right."
)
_OWN_FROM_SCRATCH = (
    "Forecasts with a user's own network that is trained from scratch were not compared with real "
    "training. With augury's own networks, the rank correlation with the real order was 0.80 to "
    "0.97 (mean 0.90) on six sources of images."
)
_STAND_INS = {"small": "a network of three layers", "slim": "a slim network of five layers"}
_KINDS = {"series": series, "sound": sound}
"""Where the constants and the sentences on trust of other kinds of data are."""


class TrialScore(Score):
    """Expected accuracy in points, from training a small network with each candidate.

    `Trial` says what is done, `Forecast` what follows from it.
    """

    name = "trial"
    default_features = None
    unit = "points"
    balanced = False

    def judge_all(self, candidates: Sequence[Augmentation]) -> Judged:
        setting = self.setting
        level, own = setting.effort, setting.own
        if own is not None:
            own.check(setting.data, setting.device)
        if level is None:
            level = choose_level(
                setting.plan, setting.data, candidates, setting.device, setting.budget,
                setting.started, own,
            )  # fmt: skip
        self.level = level
        trial = make_trial(setting.plan, setting.data, level, own is not None)
        self.trial = trial
        data, fitted = shrink(setting.data, candidates, trial.side)
        self.expect(ticks(trial, len(fitted), setting.device, own is not None))
        run = run_table_folds if data.kind == "vector" else run_folds
        folds = run(
            data, fitted, trial, range(trial.folds),
            seed=setting.seed, device=setting.device, tick=self.tick, own=own,
            workers=setting.workers, journal=setting.journal,
        )  # fmt: skip
        classes = None if data.task == "regression" else data.outputs
        planned = setting.plan.examples or data.total
        calibration = SLIM if trial.network == "slim" else PLANNED
        if trial.network == "small":
            calibration = SMALL if level >= CPU else QUICK
        elif own is not None and level < OWN:
            calibration = QUICK
        if self._kind is not None:
            calibration = self._kind.CALIBRATIONS[trial.network]
        if level < DECIDES:
            calibration = CUT
        forecast = Forecast(
            folds, data.y, classes, trained=trial.examples, planned=planned,
            calibration=calibration, pooled=data.kind == "series",
        )  # fmt: skip
        self.balanced = forecast.balanced
        judgements = [forecast.judge(k) for k in range(len(forecast))]
        trends: tuple[Trend, ...] = ()
        if setting.trends and data.kind == "image":
            order = sorted(range(len(fitted)), key=lambda k: -judgements[k].gain)[:LEADERS]
            columns = torch.tensor([0, *(k + 1 for k in order)])
            trends = find_trends(
                data, [fitted[k] for k in order], trial,
                [fold.choose(columns) for fold in folds],
                [judgements[k] for k in order], planned,
                names=[repr(candidates[k]) for k in order], seed=setting.seed,
                device=setting.device, calibration=calibration, rate=forecast.rate, own=setting.own,
            )  # fmt: skip
        base = forecast.baseline
        plain = Judgement(
            100 * base.expected, 0.0, *base.interval(-math.inf if classes is None else 0.0), 0.5
        )
        warnings = self._warnings(forecast)
        return Judged(
            plain, judgements, POINTS, tuple(warnings), decides=not warnings,
            sure=level >= self._surest and not forecast.few, trends=trends,
            faultless=base.faultless,
        )  # fmt: skip

    def describe(self) -> str:
        trial = getattr(self, "trial", None) or Trial(epochs=self.setting.plan.epochs)
        times = "once" if trial.folds == 1 else f"{trial.folds} times"
        network = _STAND_INS.get(trial.network, f"the planned network ({trial.network})")
        epochs = f"{trial.epochs} epoch{'s' if trial.epochs > 1 else ''}"
        judged = ", judged by balanced accuracy" if self.balanced else ""
        return f"{network} trained for {epochs} on {trial.examples:,} examples, {times}{judged}"

    def effort(self) -> dict[str, Any]:
        return {"level": self.level, **asdict(self.trial)}

    @property
    def _kind(self) -> ModuleType | None:
        """What was measured on labelled data of this kind; None for images and other data."""
        setting = self.setting
        if setting.data.classes is None or setting.own is not None:
            return None
        return _KINDS.get(setting.data.kind)

    def trust(self) -> str:
        said, measured = self._measured()
        level = getattr(self, "level", measured)
        if level < measured:
            said += f" This trial did less work than those: --effort {level} instead of {measured}."
        if DECIDES <= level < self._surest:
            said += f" Below --effort {self._surest}, verdicts are “probably” at most."
        return said

    @property
    def _surest(self) -> int:
        """The least level whose verdicts may say more than "probably"."""
        return SUREST if self.setting.own is None else OWN

    def _measured(self) -> tuple[str, int]:
        """Return how far such trials can be relied on, and the least level that this is true of."""
        setting = self.setting
        if self._kind is not None:
            network = self.trial.network
            return self._kind.TRUST[network], self._kind.MEASURED[network]
        if setting.data.kind != "image" or setting.data.classes is None:
            return (
                "The accuracy of forecasts was measured only on images, series and sound with "
                "classes, but this is other data: train with the top candidates before you rely on "
                "the ranking."
            ), 0
        if setting.own is not None:
            return (_OWN if setting.plan.pretrained else _OWN_FROM_SCRATCH), OWN
        if self.trial.network != "small":
            return (_SLIM, CPU) if self.trial.network == "slim" else (_PLANNED, GPU)
        if self.level < DECIDES:
            return _CUT, 0
        if self.level < _QUICK_LEVEL:
            return _BRIEF, _BRIEF_LEVEL
        return _QUICK, _QUICK_LEVEL

    def _warnings(self, forecast: Forecast) -> list[str]:
        """Return reasons to give no verdict at all."""
        setting, base = self.setting, forecast.baseline
        found = []
        if setting.own and (unlike := setting.own.warning(setting.data, setting.device)):
            found.append(unlike)
        measured = setting.data.kind == "image" and setting.data.classes is not None
        if not measured and self._kind is None:
            found.append("forecasts were not checked on this kind of data")
        if self.level < DECIDES:
            found.append(
                "the trial ran for fewer epochs than planned, too few for verdicts; treat the "
                "order as a hint"
            )
        if setting.data.classes is not None and base.unstable:
            found.append(
                "runs without augmentation differ too much to compare candidates with them (a "
                f"mean accuracy of {100 * base.tried:.0f} %, with a standard error of "
                f"{100 * base.error:.0f}); use more epochs or a larger --effort"
            )
        elif setting.data.classes is not None and not base.learnt:
            found.append(
                "the network without augmentation learnt nothing beyond the most frequent class, "
                "so the trial says nothing about augmentations"
            )
        elif setting.data.task == "regression" and base.tried <= 0:
            found.append(
                "the network without augmentation predicts no better than the mean of the target, "
                "so the trial says nothing about augmentations"
            )
        if setting.data.kind == "vector" and setting.data.tags is None:
            simple = linear_score(setting.data, setting.seed, balanced=base.balanced)
            if simple > base.tried + 0.02:
                found.append(
                    f"a linear model is better than the trial's network ({100 * simple:.0f} "
                    f"against {100 * base.tried:.0f} %), so gains with this network say nothing "
                    "about gains with a better model"
                )
        return found
