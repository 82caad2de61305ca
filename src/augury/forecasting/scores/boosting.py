"""The default score for tables: gradient boosting, trained with augmented copies of the rows.

Tables are mostly learnt by boosted trees, which gain from other augmentations than networks do, and
mostly from none. So each candidate is judged by what it does to them: held-out predictions of
scikit-learn's histogram gradient boosting, trained on the rows and on views of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from augury._base.parallel import run_parallel
from augury._base.rng import Rng
from augury.augmentations.base import Augmentation
from augury.augmentations.tables import Table
from augury.data.dataset import Dataset
from augury.forecasting.effort import too_short
from augury.forecasting.forecast import Calibration, Forecast, Judgement
from augury.forecasting.linear import linear_score
from augury.forecasting.scores.base import Judged, Score
from augury.forecasting.tables import table_of
from augury.forecasting.training.members import Fold
from augury.forecasting.trial import HeldOut, Trial, make_fold, summarise
from augury.forecasting.verdicts import POINTS

_LEAF = 20  # rows of a leaf, scikit-learn's default
_MOST = 5000  # rows that a fold trains on
_FOLDS = 4
_REPEATS = {0: 1, 4: 2, 8: 4}
"""How often every row is held out, from each level of effort on."""
_USUAL = 4  # the level of effort without a budget
_SAFETY = 0.85  # of the budget: fits vary in time
BEATEN = 0.02
"""By how much a linear model must be better for no verdict to be given."""

CALIBRATION = Calibration(slope=0.73, floor=0.041, share=0.72)
"""How far boosting on all rows strays from that on three quarters: docs/prediction_tables.md."""


_TRUST = (
    "Forecasts were compared with boosting on the other halves of eight tables of 150 to 2,000 "
    "rows, each with constants fitted to the other tables. The mean rank correlation with the real "
    "gains was 0.22, hardly better than chance; 1 of 13 verdicts “probably helps” and 3 of 11 "
    "“probably hurts” were wrong by more than half a point. Treat the order as a hint."
)


class BoostingScore(Score):
    """Expected accuracy in points (or R² in points) of gradient boosting with augmented copies.

    Costs (candidates + 1) × folds × repeats fits, each on `copies` + 1 times the rows.
    """

    name = "boosting"
    default_features = None
    unit = "points"
    copies = 3
    balanced = False

    def judge_all(self, candidates: Sequence[Augmentation]) -> Judged:
        with threadpool_limits(1, "openmp"):  # small tables gain nothing from threads in each fit
            return self._judge_all(candidates)

    def _judge_all(self, candidates: Sequence[Augmentation]) -> Judged:
        data = self.setting.data
        forecast = self.forecast(candidates)
        judgements = [forecast.judge(k) for k in range(len(forecast))]
        self.balanced = forecast.balanced
        base = forecast.baseline
        value = 100 * base.expected
        warnings = []
        if data.classes is not None and not base.learnt:
            warnings.append(
                "boosting without augmentation learnt nothing beyond the most frequent class, so "
                "the result says nothing about augmentations"
            )
        if data.tags is not None:
            warnings.append("forecasts were not checked on tables with several labels")
        else:
            simple = linear_score(data, self.setting.seed, balanced=base.balanced)
            if data.task == "regression" and max(simple, base.tried) <= 0:
                warnings.append(
                    "neither boosting without augmentation nor a linear model predicts better than "
                    "the mean of the target, so the result says nothing about augmentations"
                )
            elif simple > base.tried + BEATEN:
                warnings.append(
                    f"a linear model is better than boosting here ({100 * simple:.0f} against "
                    f"{100 * base.tried:.0f} %), so gains with boosting say little about gains "
                    "with a better model"
                )
        lowest = -math.inf if data.task == "regression" else 0.0
        own = Judgement(value, 0.0, *base.interval(lowest), 0.5)
        return Judged(
            own, judgements, POINTS, tuple(warnings), decides=not warnings, sure=not forecast.few,
            faultless=base.faultless,
        )  # fmt: skip

    def forecast(self, candidates: Sequence[Augmentation]) -> Forecast:
        """Fit every candidate on every fold, and return what follows."""
        data, seed = self.setting.data, self.setting.seed
        trial = Trial(1, min(_MOST, len(data) * 3 // 4), _FOLDS, self.name, replicas=1)
        self.repeats = self._repeats(make_fold(data, trial, seed, 0), candidates)
        self.expect(self.repeats * _FOLDS * (len(candidates) + 1))
        folds = self._folds(
            [
                make_fold(data, trial, seed + repeat, number)
                for repeat in range(self.repeats)
                for number in range(_FOLDS)
            ],
            candidates,
        )
        classes = None if data.task == "regression" else data.outputs
        return Forecast(
            folds, data.y, classes, trained=trial.examples, planned=data.total, rate=0.0,
            calibration=CALIBRATION,
        )  # fmt: skip

    def _repeats(self, fold: Fold, candidates: Sequence[Augmentation]) -> int:
        """Return how often every row is held out: by the effort, or by what the budget affords."""
        setting = self.setting
        if setting.budget is None:
            level = _USUAL if setting.effort is None else setting.effort
            return max(repeats for least, repeats in _REPEATS.items() if level >= least)
        table, begun = table_of(setting.data, fold.train), perf_counter()
        for candidate in (None, *candidates[:1]):
            begun = perf_counter()  # of the last: the first fit also imports the library
            fit_trees(setting.data, fold.train, candidate, table, setting.seed, self.copies)
        once = (perf_counter() - begun) * _FOLDS * (1 + len(candidates))
        left = setting.budget * _SAFETY - (perf_counter() - setting.started)
        fitting = [repeats for repeats in _REPEATS.values() if repeats * once <= left]
        if not fitting:
            needed = (once + perf_counter() - setting.started) / _SAFETY
            raise too_short(setting.budget, needed, len(candidates))
        return max(fitting)

    def _folds(self, folds: list[Fold], candidates: Sequence[Augmentation]) -> list[HeldOut]:
        """Fit every candidate on every fold, as many at a time as there are cores."""
        data, seed = self.setting.data, self.setting.seed
        tables = [table_of(data, fold.train) for fold in folds]

        def work(job: tuple[int, Augmentation | None], tick: Callable[[str], None]) -> Tensor:
            k, candidate = job
            model = fit_trees(data, folds[k].train, candidate, tables[k], seed, self.copies)
            tick("no augmentation" if candidate is None else repr(candidate))
            return _predict(model, trees_take(data.x[folds[k].held], tables[k]), data)

        each = [None, *candidates]
        jobs = [(k, candidate) for k in range(len(folds)) for candidate in each]
        done = run_parallel(work, jobs, self.tick)
        found = []
        for k, fold in enumerate(folds):
            out = torch.stack(done[k * len(each) : (k + 1) * len(each)], 1)
            found.append(summarise(fold, out, out[:, :0], data.y[fold.held], 1, data))
        return found

    def describe(self) -> str:
        times = "once" if self.repeats == 1 else f"{self.repeats} times"
        return (
            f"gradient boosting (scikit-learn's) on the rows and {self.copies} views of each, with "
            f"every row held out {times}{', judged by balanced accuracy' * self.balanced}"
        )

    def trust(self) -> str:
        return _TRUST

    def plan(self, planned: dict[str, Any]) -> dict[str, Any]:
        return {**planned, "epochs": None, "network": self.name, "assumed": []}

    def effort(self) -> dict[str, Any]:
        return {"folds": _FOLDS, "repeats": self.repeats, "copies": self.copies}


def fit_trees(
    data: Dataset,
    rows: Tensor,
    candidate: Augmentation | None,
    table: Table,
    seed: int,
    copies: int,
) -> Any:
    """Fit boosted trees to rows and views of them.

    Copies count towards the least size of a leaf, which grows with them: so copies that change
    nothing give the same trees, and a gain is the augmentation's own.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    x, y = data.x[rows], data.y[rows]
    if candidate is not None:
        views = candidate.bound(table).views(x, copies, Rng(seed, rows))
        x = torch.cat([x, views.flatten(0, 1)])
        y = torch.cat([y] * (copies + 1))
    times = 1 if candidate is None else copies + 1
    leaf = max(1, min(_LEAF, len(rows) // 10)) * times
    options: dict[str, Any] = {
        "min_samples_leaf": leaf, "early_stopping": False, "random_state": seed & 0x7FFF_FFFF
    }  # fmt: skip
    taken = trees_take(x, table)
    if data.task == "regression":
        return HistGradientBoostingRegressor(**options).fit(taken, y.numpy())
    if data.tags is None:
        return HistGradientBoostingClassifier(**options).fit(taken, y.numpy())
    return [HistGradientBoostingClassifier(**options).fit(taken, tag) for tag in y.T.numpy()]


def trees_take(x: Tensor, table: Table) -> np.ndarray:
    """Return rows as trees expect them: missing values are NaN again."""
    return torch.where(table.is_missing(x), torch.nan, x).numpy()


def _predict(model: Any, x: np.ndarray, data: Dataset) -> Tensor:
    """Return log-probabilities of all classes, log-odds of labels, or predictions ``(m, 1)``."""
    if data.task == "regression":
        return torch.from_numpy(model.predict(x)).unsqueeze(1)
    if data.tags is not None:
        odds = [torch.from_numpy(tag.predict_proba(x)) for tag in model]
        has = [p[:, -1] if p.shape[1] == 2 else p[:, 0] * float(t.classes_[0])
               for p, t in zip(odds, model, strict=True)]  # fmt: skip
        return torch.stack(has, 1).clamp(1e-6, 1 - 1e-6).logit()
    out = torch.full((len(x), len(data.classes or ())), 1e-6, dtype=torch.float64)
    out[:, torch.from_numpy(model.classes_)] = torch.from_numpy(model.predict_proba(x))
    return out.clamp_min(1e-6).log()
