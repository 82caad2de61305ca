"""A trial: a small network really trained with each candidate, briefly, all of them together.

Closed forms judge a candidate by what a fixed feature map can do with it; a network learns its
features, and gains most from what they could not know. So this score trains: a few hundred steps
of a three-layer network on at most a thousand examples, long enough to overfit them, since that
is what augmentation is there to mend. Every candidate starts from the same weights and sees the
same examples in the same order, and is judged on clean examples that were held out.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from augury._base.parallel import run_parallel
from augury.augmentations import Augmentation, identity
from augury.forecasting.scores.base import Score
from augury.forecasting.training.grouped import Grouped
from augury.forecasting.training.members import (
    Fold,
    Protocol,
    member_loss,
    run_members,
    train_members,
)
from augury.statistics.base import Estimate, group_of

SCALE, SHIFT = 1.2, 0.015
"""What real training makes of a trial's gain.

A real network is larger and has more examples. Being larger it overfits more, so that everything
gains a little over what the trial shows (`SHIFT`, a share of its error); with more examples, what
is easy is learnt without augmentation, so that gains shrink with the error."""

DOUBT = (0.05, 0.3)
"""How far real gains stray from the forecast: an sd of these shares of the error and of the gain.

All four were fitted to the tables that `benchmarks/predict.py` measures."""

_GROUPS = 20
_LEAST = 1e-3  # of what can be learnt
_PASSES = 40  # over its examples, which a trial cut short keeps by taking fewer of them


@dataclass(frozen=True)
class Plan:
    """What is affordable: a protocol for all candidates, and how often leaders are tried again."""

    protocol: Protocol
    again: int = 0


class TrialScore(Score):
    """Expected accuracy in points, from a brief training of a small network with each candidate.

    Held-out log-losses, which are far less noisy than accuracies, are turned into accuracy by the
    curve through the network without augmentation: with u the share of the labels' entropy that
    it has learnt and a its accuracy above chance, a = u^p. If G is the gain in points that this
    gives and e the error in per cent, real training is expected to gain
    ``SCALE · √(e / 50) · (G + SHIFT · e)``.

    Cost for one candidate: folds × steps × batch passes through the network, 77,000 by default,
    whatever the number of examples. With a budget in seconds, all candidates are screened by a
    shorter trial, and a quarter of them, the leaders, are tried again on other examples as often
    as time allows.
    """

    name = "trial"
    default_features = None
    protocol = Protocol()
    _plan: Plan | None = None
    _error: float | None = None  # of a whole trial without augmentation, where the plan is shorter

    def ticks(self, candidates: int) -> int:
        plan = self.plan(candidates)
        first = plan.protocol.folds * plan.protocol.steps
        later = plan.again * plan.protocol.steps
        if self._together:
            return first + later
        return first * candidates + later * (1 + _leaders(candidates - 1))

    def plan(self, candidates: int) -> Plan:
        """Fit the protocol to the budget, from the time that a few steps take here."""
        if self._plan is None:
            budget = self.setting.budget
            self._plan = Plan(self.protocol)
            if budget is not None:
                started = time.perf_counter()
                step, error = self._probe()
                left = max(1.0, budget - (time.perf_counter() - started))
                self._plan = _afford(left, candidates, self.protocol, step)
                if self._plan.protocol.steps < self.protocol.steps:
                    self._error = error
        return self._plan

    def evaluate(self, augmentation: Augmentation) -> Estimate:
        return list(self.evaluate_all([identity(), augmentation]))[1]

    def evaluate_all(self, augmentations: Sequence[Augmentation]) -> Iterator[Estimate]:
        """Judge candidates against the first one, which must be no augmentation."""
        started = time.perf_counter()
        plan = self.plan(len(augmentations))
        everyone = list(range(len(augmentations)))
        seen_by = self._losses(augmentations, everyone, range(plan.protocol.folds))
        for k in range(plan.again):
            if self._late(started, k):
                break
            found = self._estimates(seen_by, augmentations)
            order = sorted(everyone[1:], key=lambda c: -found[c].value)
            leaders = [0, *sorted(order[: _leaders(len(order))])]
            seen_by += self._losses(augmentations, leaders, [plan.protocol.folds + k])
        return iter(self._estimates(seen_by, augmentations))

    def trust(self) -> str:
        if self.setting.data.kind != "image" or self.setting.data.classes is None:
            return (
                "How far this forecast can be trusted was measured on labelled images only, and "
                "this is other data: try the leaders before you rely on them."
            )
        short = "" if self._error is None else "This trial was shortened to fit its budget. "
        return short + (
            "On six image sets where a larger network was really trained with 32 candidates each, "
            "the whole trial ranked them with a correlation of 0.59 to 0.93 (mean 0.78), had the "
            "sign of 86 % of gains over half a point right, and the best candidate was among its "
            "first three every time."
        )

    def describe(self) -> str:
        plan = self._plan or Plan(self.protocol)
        size = min(plan.protocol.examples, len(self.setting.data) // 2)
        again = f", leaders {plan.again} more" if plan.again else ""
        times = f"{plan.protocol.folds} time{'s' if plan.protocol.folds > 1 else ''}"
        return (
            f"a network of three layers tried for {plan.protocol.steps} steps on {size:,} "
            f"examples, {times}{again}"
        )

    @property
    def _together(self) -> bool:
        return self.setting.device.type == "cuda"

    def _late(self, started: float, rounds: int) -> bool:
        """Whether another round of the leaders would outrun the budget, at the pace so far."""
        spent = time.perf_counter() - started
        share = 1 if self._together else 0.3  # of the first round, which had all candidates
        budget = self.setting.budget
        return budget is not None and spent * (1 + share / (1 + rounds * share)) > budget

    def _losses(
        self, augmentations: Sequence[Augmentation], chosen: list[int], numbers: Sequence[int]
    ) -> list[_Held]:
        """Train the chosen candidates on some folds; give their losses on what each held out."""
        data, device = self.setting.data, self.setting.device
        protocol = self.plan(len(augmentations)).protocol
        folds = [Fold.of(data, protocol, self.setting.seed, k) for k in numbers]
        starts = [self._start(protocol, fold) for fold in folds]
        picked = [augmentations[c] for c in chosen]
        if self._together:  # a GPU is idle with one small network: all are one grouped network
            net = Grouped.joined([start for start in starts for _ in picked]).to(device)
            train_members(net, data, protocol, picked, folds, lambda: self.tick("all candidates"))
            outputs = run_members(net, data, [fold.held for fold in folds])
        else:  # a CPU is not, and runs plain convolutions faster than grouped ones

            def work(job: tuple[int, Augmentation], tick: Callable[[str], None]) -> Tensor:
                k, candidate = job
                net, name = copy.deepcopy(starts[k]), repr(candidate)
                train_members(net, data, protocol, [candidate], [folds[k]], lambda: tick(name))
                return run_members(net, data, [folds[k].held])[0]

            jobs = [(k, candidate) for k in range(len(folds)) for candidate in picked]
            done = run_parallel(work, jobs, self.tick)
            outputs = torch.stack(
                [
                    torch.cat(done[k * len(picked) : (k + 1) * len(picked)], dim=1)
                    for k in range(len(folds))
                ]
            )
        found = []
        for fold, out in zip(folds, outputs, strict=True):
            losses, wrong = _judge(out, data.y[fold.held].to(device), data.classes is not None)
            columns = {c: losses[:, i].double().cpu() for i, c in enumerate(chosen)}
            found.append(_Held(fold.held, columns, wrong.double().cpu()))
        return found

    def _start(self, protocol: Protocol, fold: Fold) -> Grouped:
        """Make the network that all candidates of a fold start from."""
        data = self.setting.data
        outputs = 1 if data.classes is None else len(data.classes)
        return Grouped("small", 1, protocol.seen(data.shape), outputs, fold.start)

    def _estimates(self, folds: list[_Held], candidates: Sequence[Augmentation]) -> list[Estimate]:
        """Turn losses into expected accuracy, in points, each candidate on the folds it was in."""
        y, classes = self.setting.data.y, self.setting.data.classes
        index = torch.cat([fold.index for fold in folds])
        wrong = torch.cat([fold.wrong for fold in folds])
        own = 100 * float(wrong.mean())
        error = own if self._error is None else self._error
        inside = _inside(index)
        right = 100 - error * (inside @ wrong) / inside.sum(1) / wrong.mean().clamp_min(1e-9)
        results = []
        scale = SCALE * math.sqrt(error / 50) * error / max(own, 1e-9)
        for c, candidate in enumerate(candidates):
            if isinstance(candidate, identity):
                results.append(Estimate(100 - error, right, torch.zeros(len(classes or ())), 0.0))
                continue
            joined = [fold for fold in folds if c in fold.losses]
            index = torch.cat([fold.index for fold in joined])
            curve = Curve.through(
                torch.cat([fold.losses[0] for fold in joined]),
                torch.cat([fold.wrong for fold in joined]),
                y[index],
                classes is not None,
            )
            losses = torch.cat([fold.losses[c] for fold in joined])
            inside = _inside(index)

            def gain(before: Tensor, after: Tensor, curve: Curve = curve) -> Tensor:
                return scale * (curve.accuracy(after) - curve.accuracy(before) + SHIFT * own)

            whole = gain(curve.losses.mean(), losses.mean())
            count = inside.sum(1)
            replicates = gain(inside @ curve.losses / count, inside @ losses / count)
            per_class = torch.empty(0)
            if classes is not None:
                saved = curve.losses - losses
                per_class = scale * SHIFT * own + (whole - scale * SHIFT * own) * by_class(
                    saved, y[index], len(classes)
                )
            value = 100 - error + float(whole)
            doubt = math.hypot(DOUBT[0] * error, DOUBT[1] * float(whole))
            results.append(Estimate(value, right + replicates, per_class, doubt))
        return results

    def _probe(self) -> tuple[float, float]:
        """Try no augmentation by the whole protocol, once.

        Returns the seconds that one step of one candidate takes (of all, where they train as one
        network), and the error in per cent: gains found by shorter trials are shares of it.
        """
        data, device = self.setting.data, self.setting.device
        fold = Fold.of(data, self.protocol, self.setting.seed, 0)
        one = self._start(self.protocol, fold).to(device)
        threads = torch.get_num_threads()
        times: list[float] = []
        try:
            torch.set_num_threads(1)  # as each candidate will have
            train_members(
                one, data, self.protocol, [identity()], [fold],
                lambda: times.append(time.perf_counter()),
            )  # fmt: skip
            out = run_members(one, data, [fold.held])[0]
        finally:
            torch.set_num_threads(threads)
        _, wrong = _judge(out, data.y[fold.held].to(device), data.classes is not None)
        step = (times[-1] - times[len(times) // 2]) / (len(times) - 1 - len(times) // 2)
        return 1.2 * step / (1 if self._together else threads), 100 * float(wrong.mean())


@dataclass(frozen=True)
class _Held:
    """Losses on one fold's held-out examples, by candidate, and where no augmentation erred."""

    index: Tensor
    losses: dict[int, Tensor]
    wrong: Tensor


@dataclass(frozen=True)
class Curve:
    """Accuracy in points as a function of log-loss: a = u^p, through what a network showed.

    u is the share learnt of the loss that chance has, a the accuracy above chance as a share of
    what there is. For two classes near chance p is ½, since loss is then of second order in
    accuracy; for ten it is near 0.85.
    """

    losses: Tensor
    chance: float
    right: float
    power: float

    @classmethod
    def through(cls, losses: Tensor, wrong: Tensor, y: Tensor, classes: bool) -> Curve:
        """Take the curve through the losses and errors of a network on examples of targets y."""
        if not classes:  # the share of variance explained is both loss and accuracy
            return cls(losses, float(y.var()), 0.0, 1.0)
        share = torch.bincount(y).double() / len(y)
        share = share[share > 0]
        chance, right = float(-(share * share.log()).sum()), float(share.max())
        learnt = _within(1 - float(losses.mean()) / max(chance, 1e-9))
        above = _within((1 - float(wrong.mean()) - right) / max(1 - right, 1e-9))
        return cls(losses, chance, right, min(2.0, math.log(above) / math.log(learnt)))

    def accuracy(self, loss: Tensor) -> Tensor:
        """Give the accuracy in points at a mean loss."""
        learnt = 1 - loss / max(self.chance, 1e-9)
        if self.power != 1.0:
            learnt = learnt.clamp(_LEAST, 1).pow(self.power)
        return 100 * (self.right + (1 - self.right) * learnt)


def _within(share: float) -> float:
    return min(max(share, _LEAST), 1 - _LEAST)


def by_class(saved: Tensor, y: Tensor, classes: int) -> Tensor:
    """Give each class's mean of `saved` over the mean of all: their average is 1."""
    member = F.one_hot(y, classes).double()
    mean = saved.mean()
    least = 1e-12 if float(mean) >= 0 else -1e-12
    return (saved @ member) / member.sum(0).clamp_min(1) / (mean + least)


def _leaders(candidates: int) -> int:
    return min(candidates, max(3, candidates // 4))


def _afford(budget: float, candidates: int, full: Protocol, step: float) -> Plan:
    """Spend about two thirds on screening and the rest on leaders; whole trials if they fit."""
    steps = budget / step  # steps of one candidate that fit
    leaders = 1 + _leaders(candidates - 1)
    if steps >= candidates * full.folds * full.steps:
        spare = steps - candidates * full.folds * full.steps
        return Plan(full, min(6, int(spare / (leaders * full.steps))))
    each = int(min(full.steps, max(40, 0.65 * steps / candidates)))
    again = max(0, min(6, int((steps - each * candidates) / (leaders * each))))
    size = max(2, min(full.examples // full.batch, each // _PASSES)) * full.batch
    short = replace(full, steps=each, folds=1, examples=size, held=min(full.held, 8 * size))
    return Plan(short, again)


def _inside(index: Tensor) -> Tensor:
    """Give, for each group of examples left out, who is still in: ``(G, examples)``."""
    group = group_of(index, _GROUPS)
    return torch.stack([group != g for g in range(_GROUPS)]).double()


def _judge(out: Tensor, y: Tensor, classes: bool) -> tuple[Tensor, Tensor]:
    """Give losses ``(examples, candidates)`` and where the first candidate errs ``(examples,)``.

    Log-losses are taken after one temperature for each candidate has been fitted, so that it is
    not confidence that is judged but what is known.
    """
    target = y.unsqueeze(1).expand(-1, out.shape[1])
    if not classes:
        losses = member_loss(out, target, classes)
        return losses, losses[:, 0] / y.var()
    wrong = (out[:, 0].argmax(-1) != y).float()
    grid = torch.linspace(-3, 1.5, 19).exp().tolist()
    tried = torch.stack([member_loss(out * t, target, classes) for t in grid])
    best = tried.mean(1).argmin(0)
    return tried.gather(0, best.expand(1, *target.shape)).squeeze(0), wrong
