"""A trial: a small network really trained with each candidate, briefly, all of them together.

Closed forms judge a candidate by what a fixed feature map can do with it; a network learns its
features, and gains most from what they could not know. So this score trains: a few hundred steps
of a three-layer network on at most a thousand examples, long enough to overfit them, since that
is what augmentation is there to mend. Every candidate starts from the same weights and sees the
same examples in the same order, and is judged on clean examples that were held out.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from augury.augmentations import Augmentation, identity
from augury.parallel import run_parallel
from augury.scores.base import Score
from augury.statistics.base import Estimate, group_of
from augury.training.grouped import Grouped
from augury.training.members import Fold, Protocol, member_loss, seen, train_members

UP, DOWN = 0.26, 0.67
"""Real gains and losses over the trial's own: a trial has fewer examples, so gains loom larger."""

DOUBT = 0.056
"""How far real training strays from the forecast (sd), as a share of the trial's error.

All three were fitted to the tables that `benchmarks/predict.py` measures."""

_GROUPS = 20
_PASSES = 40  # over its examples, which a trial cut short keeps by taking fewer of them


@dataclass(frozen=True)
class Plan:
    """What is affordable: a protocol for all candidates, and how often leaders are tried again."""

    protocol: Protocol
    again: int = 0


class TrialScore(Score):
    """Expected accuracy in points, from a brief training of a small network with each candidate.

    The gain is ``s · e · (1 − L_T / L)`` with e the trial network's error in per cent, L its
    held-out log-loss without augmentation and L_T with; s is `UP` for a gain and `DOWN` for a
    loss. Cost for one candidate: folds × steps × batch passes through the network, 77,000 by
    default, whatever the number of examples. With a budget in seconds, all candidates are screened
    by a shorter trial, and a quarter of them, the leaders, are tried again on other examples as
    often as time allows.
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
        seen_by = [self._losses(augmentations, everyone, k) for k in range(plan.protocol.folds)]
        for k in range(plan.again):
            if self._late(started, k):
                break
            found = self._estimates(seen_by, len(augmentations))
            order = sorted(everyone[1:], key=lambda c: -found[c].value)
            leaders = [0, *sorted(order[: _leaders(len(order))])]
            seen_by.append(self._losses(augmentations, leaders, plan.protocol.folds + k))
        return iter(self._estimates(seen_by, len(augmentations)))

    def trust(self) -> str:
        if self.setting.data.kind != "image" or self.setting.data.classes is None:
            return (
                "How far this forecast can be trusted was measured on labelled images only, and "
                "this is other data: try the leaders before you rely on them."
            )
        short = "" if self._error is None else "This trial was shortened to fit its budget. "
        return short + (
            "On six image sets where a larger network was really trained with 32 candidates each, "
            "the whole trial ranked them with a correlation of 0.47 to 0.90 (mean 0.74), had the "
            "sign of 87 % of gains over half a point right, and the best of its first three fell "
            "at most 0.4 points short of the best."
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

    def _losses(self, augmentations: Sequence[Augmentation], chosen: list[int], k: int) -> _Held:
        """Train the chosen candidates on one fold; give their losses on what it held out."""
        data, device = self.setting.data, self.setting.device
        protocol = self.plan(len(augmentations)).protocol
        fold = Fold.of(data, protocol, self.setting.seed, k)
        outputs = 1 if data.classes is None else len(data.classes)
        picked = [augmentations[c] for c in chosen]
        one = Grouped("small", 1, seen(data.shape), outputs, fold.seed)
        if self._together:  # a GPU is idle with one small network: all are one grouped network
            net = one.tiled(len(picked)).to(device)
            out = train_members(
                net, data, protocol, picked, fold, lambda: self.tick("all candidates")
            )
        else:  # a CPU is not, and runs plain convolutions faster than grouped ones

            def work(candidate: Augmentation, tick: Callable[[str], None]) -> Tensor:
                net, name = copy.deepcopy(one), repr(candidate)
                return train_members(net, data, protocol, [candidate], fold, lambda: tick(name))

            out = torch.cat(run_parallel(work, picked, self.tick), dim=1)
        losses, wrong = _judge(out, data.y[fold.held].to(device), data.classes is not None)
        columns = {c: losses[:, i].double().cpu() for i, c in enumerate(chosen)}
        return _Held(fold.held, columns, wrong.double().cpu())

    def _estimates(self, folds: list[_Held], candidates: int) -> list[Estimate]:
        """Turn losses into expected accuracy, in points, each candidate on the folds it was in."""
        index = torch.cat([fold.index for fold in folds])
        wrong = torch.cat([fold.wrong for fold in folds])
        error = 100 * float(wrong.mean()) if self._error is None else self._error
        inside = _inside(index)
        right = 100 - error * (inside @ wrong) / inside.sum(1) / wrong.mean().clamp_min(1e-9)
        results = []
        for c in range(candidates):
            joined = [fold for fold in folds if c in fold.losses]
            base = torch.cat([fold.losses[0] for fold in joined])
            saved = error * (base - torch.cat([fold.losses[c] for fold in joined]))
            saved = saved * (UP if float(saved.sum()) > 0 else DOWN)
            index = torch.cat([fold.index for fold in joined])
            inside = _inside(index)
            gain = float(saved.mean() / base.mean())
            replicates = (inside @ saved) / (inside @ base)
            per_class = torch.empty(0)
            if self.setting.data.classes is not None:
                member = F.one_hot(
                    self.setting.data.y[index], len(self.setting.data.classes)
                ).double()
                per_class = (saved @ member) / member.sum(0).clamp_min(1) / base.mean()
            value = 100 - error + gain
            results.append(Estimate(value, right + replicates, per_class, DOUBT * error))
        return results

    def _probe(self) -> tuple[float, float]:
        """Try no augmentation by the whole protocol, once.

        Returns the seconds that one step of one candidate takes (of all, where they train as one
        network), and the error in per cent: gains found by shorter trials are shares of it.
        """
        data, device = self.setting.data, self.setting.device
        fold = Fold.of(data, self.protocol, self.setting.seed, 0)
        outputs = 1 if data.classes is None else len(data.classes)
        one = Grouped("small", 1, seen(data.shape), outputs, fold.seed).to(device)
        threads = torch.get_num_threads()
        times: list[float] = []
        try:
            torch.set_num_threads(1)  # as each candidate will have
            out = train_members(
                one, data, self.protocol, [identity()], fold,
                lambda: times.append(time.perf_counter()),
            )  # fmt: skip
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
