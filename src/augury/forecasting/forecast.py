"""From held-out losses of a trial to the gain that the planned training is expected to show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from scipy.special import fdtri, stdtr, stdtrit
from torch import Tensor

from augury.forecasting.baseline import BaselineForecast
from augury.forecasting.trial import HeldOut
from augury.forecasting.verdicts import CLEAR, FAINT
from augury.statistics.base import group_of
from augury.statistics.jackknife import jackknife
from augury.statistics.precision import average_precision

_GROUPS = 20
_LEAST = 1e-3  # share of what can be learnt that counts as having learnt something
_SUREST = 0.1  # of an example, among those held out: no less error is counted
_FASTEST = 0.75  # exponent of a learning curve: tiny samples suggest more than larger ones keep
_UNSEEN = math.pi / math.sqrt(6)
"""Standard deviation of the logarithm of an error rate, where no error was seen at all."""
UNEQUAL = 4.0
"""Ratio of the largest to the smallest class from which all classes get the same weight."""
_FEW = 10  # examples of a class that counts as much as the others, for a verdict to be sure
_PRIOR = 4.0  # degrees of freedom that a prior on the noise of runs counts for
_UNLIKELY = 0.95  # probability of less noise, from which on what runs show overrules that prior


@dataclass(frozen=True)
class Calibration:
    """How far planned trainings stray from trials.

    Fitted to trials and real trainings on several sources of images; ``docs/prediction.md`` has
    what the same fit gives on sources that it did not see.

    Attributes
    ----------
    slope
        What planned trainings gain, over what the trial foresees, on the logit scale.
    floor
        Standard deviation of what strays, as a share of √(accuracy × error).
    share
        The same, as a share of the gain.
    noise
        Standard deviation of one training run, as a share of √(accuracy × error): the prior that
        few folds are completed with.
    freedom
        Degrees of freedom of Student's t, which the forecast's error follows.
    clear
        How sure it must be that a change is more than the noise of runs, for a verdict.
    """

    slope: float
    floor: float
    share: float
    noise: float = 0.02
    freedom: float = 6.0
    clear: float = CLEAR


PLANNED = Calibration(slope=1.08, floor=0.01, share=0.122)
"""For trials of the planned network itself.

This and the next three are what ``benchmarks/predict.py`` fits to all of its cells."""

SLIM = Calibration(slope=1.0, floor=0.0202, share=0.188, clear=0.975)
"""For trials of a slim network in its place.

At the stricter `clear`, the trainings of few steps, whose runs differ most, give a verdict to at
most one in twenty candidates without an effect."""

SMALL = Calibration(slope=0.91, floor=0.024, share=0.4, clear=0.975)
"""For trials of a small network in its place."""

QUICK = replace(SMALL, floor=0.0354)
"""For trials of a small network with less than the default work, whose intervals are wider."""

CUT = Calibration(slope=1.0, floor=0.04, share=1.0)
"""For trials with fewer epochs than are planned, which miss real gains by as much as they foresee:
``docs/checks.md`` has what budgets of 10 to 80 seconds showed."""


@dataclass(frozen=True)
class Judgement:
    """What a score says of one candidate; gains are over no augmentation."""

    score: float
    gain: float
    low: float
    high: float
    probability: float
    """That the candidate helps."""
    per_class: tuple[tuple[float, float, float], ...] = ()
    """Gain of each class, with its interval."""
    clear: bool = True
    """Whether what was measured exceeds its own noise."""
    faint: bool = False
    """Whether it is so near to that noise that nothing can be said."""


class Forecast:
    """What trials of one plan say of all their candidates.

    With a₀ and a the accuracies without and with a candidate in the trial, the candidate moves the
    log-odds by δ = logit a − logit a₀. Planned training is expected to move them as far:
    logit a′ = logit a₀′ + slope · δ, where a₀′ follows from the learning curve of training without
    augmentation. So a forecast never leaves [0, 1], and gains shrink as the error does.

    Each accuracy is the mean of the share of right predictions and of what the held-out log-loss
    is worth on the curve a = u^p through the network without augmentation, with u the share of the
    labels' entropy that was learnt: log-losses are less noisy, accuracies are what is asked for.

    Parameters
    ----------
    folds
        What the trial's folds showed.
    y
        All targets.
    classes
        The number of classes; None for a real-valued target.
    trained
        How many examples the trial trained on.
    planned
        How many the planned training will have.
    rate
        The exponent r of the learning curve, error ∝ examples^−r; by default from the folds.
    calibration
        How far planned trainings stray from trials.
    pooled
        Whether accuracies are averaged over the folds before log-odds are taken: in a fold of few
        examples, log-odds depend mostly on whether the last one was right.
    """

    def __init__(
        self,
        folds: Sequence[HeldOut],
        y: Tensor,
        classes: int | None,
        *,
        trained: int,
        planned: int,
        rate: float | None = None,
        calibration: Calibration = PLANNED,
        pooled: bool = False,
    ) -> None:
        self.folds, self.y, self.classes = list(folds), y, classes
        self.pooled = pooled and bool(classes)
        self.held = len(torch.cat([fold.index for fold in self.folds]).unique())
        self.calibration = calibration
        self.doublings = max(0.0, math.log2(max(planned, 1) / max(trained, 1)))
        self.tagged = y.dim() == 2  # then accuracies are average precisions
        one = bool(classes) and not self.tagged
        counts = torch.bincount(y, minlength=classes or 0) if one else torch.ones(1)
        present = counts[counts > 0]
        self.balanced = one and float(present.max()) >= UNEQUAL * float(present.min())
        self.few = self.balanced and float(present.min()) < _FEW
        self.weights = [self._weigh(fold.index) for fold in self.folds]
        self._curve = self._fit_curve()
        self.accuracy = torch.stack(
            [self._accuracy(f, w) for f, w in zip(self.folds, self.weights, strict=True)]
        )  # (folds, 1 + candidates)
        self.rate = self._learning_rate() if rate is None else rate
        self.baseline = self._baseline()

    def __len__(self) -> int:
        return self.accuracy.shape[1] - 1

    def shift(self, candidate: int) -> tuple[float, float]:
        """Return δ of a candidate, numbered from 0, and its standard error."""
        links = self._links(self.accuracy)
        moved = float((links[:, candidate + 1] - links[:, 0]).mean())
        return moved, max(self._run_noise()[0], self._sample_error(candidate + 1))

    def judge(self, candidate: int, like: Forecast | None = None, offset: float = 0.0) -> Judgement:
        """Return what is expected of a candidate, numbered from 0.

        Parameters
        ----------
        candidate
            Its number.
        like, offset
            A forecast from other trials whose training without augmentation the candidate is
            compared with, and by how much that changes δ; by default, this one.
        """
        base, freedom = (like or self).baseline, self.calibration.freedom
        moved, error = self.shift(candidate)
        moved += offset
        size = float(stdtrit(freedom, 0.975))
        ends = []
        for at in (base.expected, (base.tried + base.expected) / 2):  # the curve may lead less far
            gain, spread = expect(moved, error, at, bool(self.classes), self.calibration)
            ends += [gain - size * spread, gain + size * spread]
        gain, spread = expect(moved, error, base.expected, bool(self.classes), self.calibration)
        worst, best = _bounds(base.expected, bool(self.classes))
        beyond = float(stdtr(self._run_noise()[1], abs(moved) / error))  # its own noise
        return Judgement(
            100 * base.expected + gain,
            gain,
            max(worst, min(ends)),
            min(best, max(ends)),
            float(stdtr(freedom, gain / spread)),
            self._per_class(candidate + 1),
            clear=beyond > self.calibration.clear,
            faint=beyond < FAINT,
        )

    def run_spread(self) -> float:
        """Return the standard error of a gain that training runs leave, in points."""
        return 100 * self._run_noise()[0] * _variance(self.baseline.expected)

    def _links(self, accuracy: Tensor) -> Tensor:
        """Return log-odds of ``(folds, …)``; a share of variance explained stays as it is.

        Pooled, they are linear about the log-odds of the mean, which is then the mean of them.
        """
        if not self.classes:
            return accuracy
        if self.pooled:
            least = _SUREST / (self.held + 2)
            mean = accuracy.mean(0).clamp(least, 1 - least)
            return mean.logit() + (accuracy - accuracy.mean(0)) / (mean * (1 - mean))
        least = 0.5 / max(len(fold.index) for fold in self.folds)
        return accuracy.clamp(least, 1 - least).logit()

    def _weigh(self, index: Tensor) -> Tensor:
        """Return weights of examples that sum to one; each class weighs the same if unequal."""
        if not self.balanced:
            return torch.full((len(index),), 1 / len(index), dtype=torch.float64)
        counts = torch.bincount(self.y[index], minlength=self.classes or 0)
        weights = 1 / counts[self.y[index]].double()
        return weights / weights.sum()

    def _fit_curve(self) -> tuple[float, float, float]:
        """Return chance's log-loss, its accuracy, and the power p of a = u^p."""
        if not self.classes:
            return float(self.y.double().var().clamp_min(1e-12)), 0.0, 1.0
        loss = right = 0.0
        for fold, weights in zip(self.folds, self.weights, strict=True):
            loss += float(weights @ fold.losses[:, 0]) / len(self.folds)
            right += float(weights @ fold.right[:, 0]) / len(self.folds)
        entropy, chance = self._without_learning()
        learnt = _within(1 - loss / entropy)
        # that all were right shows an error below one in so many, and not that there is none
        above = min(_within((right - chance) / max(1 - chance, 1e-9)), 1 - 1 / (self.held + 2))
        return entropy, chance, min(2.0, math.log(above) / math.log(learnt))

    def _without_learning(self) -> tuple[float, float]:
        """Return the log-loss and the accuracy of what knows how frequent labels are, no more."""
        if self.tagged:
            shares = self.y.double().mean(0)
            entropy = torch.special.entr(shares) + torch.special.entr(1 - shares)
            always = average_precision(shares.expand_as(self.y), self.y)
            return max(float(entropy.mean()), 1e-9), float(always.mean())
        shares = torch.zeros(self.classes or 0, dtype=torch.float64)
        for fold, weights in zip(self.folds, self.weights, strict=True):
            shares.index_add_(0, self.y[fold.index], weights / len(self.folds))
        shares = shares[shares > 0]
        return max(float(-(shares * shares.log()).sum()), 1e-9), float(shares.max())

    def _accuracy(self, fold: HeldOut, weights: Tensor) -> Tensor:
        """Return each column's accuracy on these examples: ``(1 + candidates,)``."""
        entropy, chance, power = self._curve
        learnt = 1 - (weights @ fold.losses) / entropy
        if not self.classes:
            return learnt.clamp(-1, 1)
        by_loss = chance + (1 - chance) * learnt.clamp(_LEAST, 1).pow(power)
        return ((by_loss + weights @ fold.right) / 2).clamp(0, 1)  # weights sum to nearly one

    def _learning_rate(self) -> float:
        """Return r of error ∝ examples^−r, from the last doubling that the trial saw."""
        half = torch.cat([fold.half for fold in self.folds])
        if not self.classes or not len(half):
            return 0.0
        own = torch.cat([fold.replicas for fold in self.folds])
        errors = (1 - float(half.mean()), 1 - float(own.mean()))
        return min(max(math.log2(max(errors[0], 1e-6) / max(errors[1], 1e-6)), 0.0), _FASTEST)

    def _baseline(self) -> BaselineForecast:
        replicas = torch.cat([fold.replicas for fold in self.folds])
        tried = float(self.accuracy[:, 0].mean())
        spread = float(replicas.std()) if len(replicas) > 1 else 0.0
        expected = tried
        if self.classes:
            # Learning curves flatten: on CIFAR-10 r fell from 0.21 to 0.15 with the next doubling,
            # so doublings past the first count half.
            reach = min(self.doublings, 1.0) + max(self.doublings - 1.0, 0.0) / 2
            expected = 1 - (1 - tried) * 2 ** (-self.rate * reach)
        error = spread / math.sqrt(max(1, len(replicas)))
        chance = self._curve[1]
        spread_of_luck = math.sqrt(max(0.0, chance * (1 - chance)) / max(1, self.held))
        luck = spread_of_luck if self.classes else 0.0
        one = bool(self.classes) and not self.tagged
        faultless = one and all(bool((fold.right[:, 0] == 1).all()) for fold in self.folds)
        # as if one more example had been right and one wrong: all that were seen may be right
        share = (tried * self.held + 1) / (self.held + 2)
        sampling = math.sqrt(share * (1 - share) / self.held) if self.classes else 0.0
        return BaselineForecast(
            tried, expected, error, chance, self.balanced, luck, faultless, sampling
        )

    def _run_noise(self) -> tuple[float, float]:
        """Return the standard error of δ that training runs leave, and its degrees of freedom.

        It is pooled from how far replicas without augmentation disagree, how far folds disagree
        about candidates, and a prior, which counts as four degrees of freedom. Where the runs
        differ by far more than the prior expects, as they do after few steps, it is left out.
        """
        folds, columns = self.accuracy.shape
        links = self._links(self.accuracy)
        size = math.sqrt(_variance(self.baseline.tried)) if self.classes else 0.5
        scale = 1 / _variance(self.baseline.tried) if self.classes else 1.0
        prior = (self.calibration.noise * size * scale) ** 2
        total, freedom = 0.0, 0.0
        for fold in self.folds:
            scores = fold.replicas * scale if self.pooled else self._links(fold.replicas)
            if len(scores) > 1:
                total += float((scores - scores.mean()).square().sum())
                freedom += len(scores) - 1
        if folds > 1 and columns > 2:
            gaps = links[:, 1:] - links[:, :1]
            # what all share is no augmentation's own error
            gaps = gaps - gaps.mean(1, keepdim=True)
            own = gaps - gaps.mean(0, keepdim=True)
            freedom_here = (folds - 1) * (columns - 2)
            total += float(own.square().sum())
            freedom += freedom_here
        if not freedom or total / freedom <= prior * float(fdtri(freedom, _PRIOR, _UNLIKELY)):
            total, freedom = total + _PRIOR * prior, freedom + _PRIOR
        replicas = max(1, len(self.folds[0].replicas))
        return math.sqrt(total / freedom / folds * (1 + 1 / replicas)), freedom

    def _sample_error(self, k: int) -> float:
        """Return the standard error of δ from leaving out groups of held-out examples."""
        found = jackknife(0.0, self._left_out[:, k] - self._left_out[:, 0]).error
        sure = self.classes and all(bool((f.right[:, [0, k]] == 1).all()) for f in self.folds)
        return max(found, _UNSEEN) if sure else found

    @cached_property
    def _left_out(self) -> Tensor:
        """Log-odds without each group of held-out examples: ``(groups, 1 + candidates)``."""
        found = []
        for g in range(_GROUPS):
            parts = []
            for fold, weights in zip(self.folds, self.weights, strict=True):
                inside = (group_of(fold.index, _GROUPS) != g).double() * weights
                total = inside.sum()
                if total > 0:
                    parts.append(self._accuracy(fold, inside / total))
            if parts:
                found.append(self._links(torch.stack(parts)).mean(0))
        return torch.stack(found)

    def _per_class(self, k: int) -> tuple[tuple[float, float, float], ...]:
        """Return the change of accuracy of each class in the trial, in points, with intervals."""
        if not self.classes or self.tagged:
            return ()
        index = torch.cat([fold.index for fold in self.folds])
        change = torch.cat([fold.right[:, k] - fold.right[:, 0] for fold in self.folds])
        found = []
        # classes that vary independently between runs vary √C times as much as their mean
        noise, freedom = self._run_noise()
        run = 100 * noise * _variance(self.baseline.tried) * math.sqrt(self.classes)
        size = float(stdtrit(freedom, 0.975))
        for c in range(self.classes):
            own = change[self.y[index] == c]
            if len(own) < 2:
                found.append((0.0, -100.0, 100.0))
                continue
            # a change for better and one for worse: what no example showed may still occur
            seen = torch.cat([own, own.new_tensor([1.0, -1.0])])
            error = 100 * float(seen.std()) / math.sqrt(len(seen))
            half = size * math.hypot(error, run)
            gain = 100 * float(own.mean())
            found.append((gain, max(-100.0, gain - half), min(100.0, gain + half)))
        return tuple(found)


def expect(
    shift: float,
    error: float,
    expected: float,
    classes: bool,
    calibration: Calibration,
) -> tuple[float, float]:
    """Return the expected gain in points and the standard deviation of what it may miss.

    It may miss the gain by the error of δ, and by what planned trainings stray from trials.

    Parameters
    ----------
    shift, error
        δ and its standard error.
    expected
        Accuracy expected of the planned training without augmentation, as a share.
    classes
        Whether the target is a class; else δ is a change of the share of variance explained.
    calibration
        How far planned trainings stray from trials.
    """
    moved = calibration.slope * shift

    def points(value: float) -> float:
        worst, best = _bounds(expected, classes)
        raw = 100 * (_logistic(_logit(expected) + value) - expected) if classes else 100 * value
        return min(best, max(worst, raw))

    gain = points(moved)
    slope = max(abs(points(moved + 1e-3) - points(moved - 1e-3)) / 2e-3, 1e-6)
    size = 100 * math.sqrt(_variance(expected)) if classes else 50.0
    spread = math.hypot(
        calibration.slope * slope * error,
        calibration.floor * size,
        calibration.share * gain,
    )
    return gain, spread


def _bounds(expected: float, classes: bool) -> tuple[float, float]:
    return (-100 * expected, 100 * (1 - expected)) if classes else (-100.0, 100.0)


def _variance(share: float) -> float:
    return max(share * (1 - share), 1e-4)


def _logit(share: float) -> float:
    share = min(max(share, 1e-6), 1 - 1e-6)
    return math.log(share / (1 - share))


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-min(max(value, -30.0), 30.0)))


def _within(share: float) -> float:
    return min(max(share, _LEAST), 1 - _LEAST)
