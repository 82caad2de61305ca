"""The search for a policy: rounds of trials, in which the clearly worse leave early."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from augury import __version__
from augury._base.devices import resolve_device
from augury._base.errors import AuguryError
from augury._base.given import as_seed, as_whole
from augury._base.progress import Tick, ticking, with_progress
from augury.augmentations import Augmentation, Then, identity, parse
from augury.cluster import Cluster, open_workers
from augury.data import Dataset, InMemory, as_dataset, describe
from augury.forecasting.forecast import Judgement
from augury.forecasting.gallery import make_gallery
from augury.forecasting.plan import TrainingPlan
from augury.forecasting.policy import rows as rows_of
from augury.forecasting.policy.chains import learned_chain
from augury.forecasting.policy.effort import MOST_PARTS, Effort, choose_effort
from augury.forecasting.policy.journal import RoundJournal
from augury.forecasting.policy.parts import pool
from augury.forecasting.policy.policy import Policy, PolicyRow, unwritten
from augury.forecasting.policy.rounds import BUILT, FINAL, LAST, PLACES, SINGLES, Rounds
from augury.forecasting.policy.space import (
    Space,
    applications,
    best_of_families,
    build,
    complexity,
    parts_of,
    strength,
    with_strength,
    without,
)
from augury.forecasting.policy.trust import trust
from augury.forecasting.rank import as_budget, planned_network
from augury.forecasting.training.own import OwnNetwork
from augury.forecasting.verdicts import POINTS
from augury.networks.digest import digest_network

_FEW = 60  # examples, below which nothing can be told
_CLEARLY = 2.0  # standard errors of a gain: what is worse by more leaves the race
_TIED = 1.0  # standard errors: what is worse by less cannot be told from the best
MILD = "translation(0.1) >> scaling(0.9,1.1)"  # what changes the label of hardly any image


@with_progress("searching")
def search_policy(
    x: Any,
    y: Any = None,
    *,
    epochs: int | None = None,
    plan: TrainingPlan | None = None,
    always: Iterable[str | Augmentation] = (),
    never: Iterable[str] = (),
    rivals: Iterable[str | Augmentation] = (),
    network: str | nn.Module | None = None,
    pretrained: bool = False,
    tune: str = "all",
    budget: float | None = None,
    seed: int = 0,
    device: str | torch.device = "auto",
    name: str = "data",
    max_examples: int | None = 20_000,
    journal: str | Path | None = None,
    cluster: Cluster = None,
    started: float | None = None,
    progress: Tick | bool | None = None,
    command: str = "",
) -> Policy:
    """Choose an augmentation policy for a planned training, by trials in rounds.

    First, every family is tried by itself; then sequences and mixtures of the families that help,
    together with TrivialAugment, RandAugment and other common recipes; then the best policies and
    all recipes again, on other examples; then the policies that are not clearly worse than the
    best, on more examples. Among policies that cannot be told apart, a common recipe is preferred,
    and otherwise the simplest and mildest policy. If nothing beats training without augmentation,
    the result is ``identity``, with the parts in `always` if there are any.

    Parameters
    ----------
    x, y
        Images and labels, as for `augury.rank`.
    epochs, plan
        The planned training, as for `augury.rank`.
    always
        Parts that the policy must contain.
    never
        Families, or groups of families (``"colour"``, ``"flips"``, ``"geometry"``), that it must
        not contain.
    rivals
        Your own pipelines to compare with.
    network, pretrained, tune
        The planned network, as for `augury.rank`. Your own network is trained in all rounds except
        the first.
    budget
        Time limit in seconds; the amount of work is reduced to fit.
    seed
        Random seed; the same seed gives the same policy.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"`` or a torch device.
    name
        Name of the data in the result.
    max_examples
        Maximum number of examples, sampled proportionally by class; None for all.
    journal
        File in which finished rounds are saved, so that a stopped search can be resumed.
    cluster
        Where to train networks: see `augury.rank`. The policy is the same.
    started
        Start time of the budget, from `time.perf_counter`; by default, now.
    progress
        Called with (done, total, round) as work progresses; True for a progress bar, False for
        none. By default, a notebook shows a bar.
    command
        The command that repeats the search, for the report.
    """
    started = time.perf_counter() if started is None else started
    given, stated = TrainingPlan.of(plan, epochs), TrainingPlan.stated(plan, epochs, network)
    given, module = planned_network(given, network, pretrained, tune)
    budget = as_budget(budget)
    seed = as_seed(seed)
    max_examples = max_examples if max_examples is None else as_whole("max_examples", max_examples)
    space = Space.of(_listed(always), [never] if isinstance(never, str) else never)
    own_rivals = [parse(rival) for rival in _listed(rivals)]
    data = as_dataset(x, y, name=name, max_examples=max_examples, seed=seed).distinct()
    if data.kind != "image" or data.classes is None or data.tags is not None:
        images = "these images have several labels or a numeric target"
        instead = images if data.kind == "image" else f"this is {data.kind} data"
        raise AuguryError(
            f"a policy search needs images with one label each, but {instead}; use rank"
        )
    where = resolve_device(device)
    own = None if module is None else OwnNetwork(module, given.pretrained, given.tune)
    if own is not None:
        own.check(data, where)
    for candidate in (*space.always, *own_rivals):
        candidate.check(data.shape)
    planned = given.describe(given, data.total, data.shape, stated)
    if len(data) < _FEW:
        return _too_few(data, planned, space, seed, started, command)
    key = _key(data, given, own, space, own_rivals, seed, where, budget)
    kept = RoundJournal.open(journal, key)
    if kept.effort is None:
        kept.effort = asdict(choose_effort(data, given, where, budget, started, own))
    effort = Effort(**kept.effort)
    with open_workers(cluster, where) as workers:
        rounds = Rounds(data, given, where, seed, effort, own, kept, ticking(progress), workers)
        rounds.total = sum(effort.work(data))
        return _Search(rounds, space, own_rivals).run(started, command, planned)


def _key(
    data: Dataset,
    plan: TrainingPlan,
    own: OwnNetwork | None,
    space: Space,
    rivals: Sequence[Augmentation],
    seed: int,
    device: torch.device,
    budget: float | None,
) -> dict[str, Any]:
    """Return the values that a journal must agree with."""
    return {
        "version": __version__,
        "data": InMemory(data, len(data)).digest(),
        "plan": asdict(plan),
        "network": None if own is None else digest_network(own.network),
        "always": [repr(a) for a in space.always],
        "never": sorted(space.never),
        "rivals": [repr(a) for a in rivals],
        "seed": seed,
        "budget": budget,
        "device": device.type,
    }


class _Search:
    """Rounds of trials that end in a policy."""

    unstable = False

    def __init__(self, rounds: Rounds, space: Space, own: Sequence[Augmentation]) -> None:
        self.rounds, self.space = rounds, space
        self.data, self.effort = rounds.data, rounds.effort
        self.rivals = list(dict.fromkeys([*own, *space.rivals()]))

    def run(self, started: float, command: str, planned: dict[str, Any]) -> Policy:
        """Search in rounds: single families, policies, leaders, contenders, and its parts."""
        tried = self._policies(*self._singles())
        final = self._leaders(tried)
        judged, contenders = self._race(final)
        best = self._choose(final, judged, contenders)
        chosen = final[best] if best is not None else self._fallback(final, judged)
        place = final.index(chosen) if self.learnt and chosen in final else None
        counts = [1 + (p in tried) + (k in contenders) for k, p in enumerate(final)]
        rows = [
            replace(
                rows_of.as_row(p, "rival" if p in self.rivals else "tried", found, n),
                allowed=self._eligible(p),
            )
            for p, found, n in zip(final, judged, counts, strict=True)
        ]
        if place is None:
            rows = [row for row in rows if row.spec != repr(chosen)]
            rows.append(rows_of.none(chosen) if self.learnt else rows_of.untried(chosen))
        else:
            rows[place] = replace(rows[place], role="chosen")
        gain = 0.0 if place is None else judged[place].gain
        rows += [] if not self.learnt else self._variations(chosen, gain)
        self.rounds.journal.finish()
        rows.sort(key=lambda row: -row.gain)
        per_class = () if place is None else judged[place].per_class
        own, small = self.rounds.own is not None, self.rounds.device.type != "cuda"
        return Policy(
            spec=repr(chosen),
            rows=tuple(
                # other epochs have another baseline, within which theirs is already
                row if row.role == "shorter" else rows_of.bounded(row, self.baseline)
                for row in rows
            ),
            baseline=self.baseline,
            reason=self._reason(best, final, judged),
            dataset=describe(self.data),
            plan=planned,
            trust=trust(small, own, self.effort.cut) if self.learnt else "",
            path=tuple(self.rounds.path),
            per_class=dict(zip(self.data.classes or (), per_class, strict=False)),
            seed=self.rounds.seed,
            seconds=round(time.perf_counter() - started, 3),
            command=command,
            gallery=make_gallery(self.data, [chosen], self.rounds.seed),
            given=unwritten(chosen),
        )

    def _singles(self) -> tuple[list[Augmentation], list[Augmentation]]:
        """Try every family by itself; return those that help and those that do no harm."""
        data, effort = self.data, self.effort
        plain = self.space.singles(data.kind, data.shape, effort.strengths)
        singles = [self.space.complete(single) for single in plain]
        size, numbers = effort.singles, range(SINGLES, SINGLES + effort.first_folds)
        folds = self.rounds.run("single families", singles, size, numbers, planned=False)
        forecast = self.rounds.forecast(folds, size, planned=False)
        gains = [forecast.judge(k).gain for k in range(len(singles))]
        return best_of_families(plain, gains, POINTS), best_of_families(plain, gains, -POINTS)

    def _policies(
        self, helping: list[Augmentation], harmless: list[Augmentation]
    ) -> list[Augmentation]:
        """Return the policies to try: built from what helps, and the common recipes."""
        built = build(helping, harmless)
        if len(helping) > 1:
            chain = learned_chain(self.data, helping[:4], self.rounds.seed)
            built += [] if chain is None else [chain]
        completed = [self.space.complete(policy) for policy in built if self.space.allows(policy)]
        base = [self.space.complete(identity())] if self.space.always else []
        return list(dict.fromkeys([*base, *completed, *self.rivals]))

    def _leaders(self, tried: list[Augmentation]) -> list[Augmentation]:
        """Try policies; return the leaders, the first at other strengths too, and the recipes."""
        size = self.effort.built
        folds = self.rounds.run("policies", tried, size, [BUILT], curve=True)
        forecast = self.rounds.forecast(folds, size)
        gains = [forecast.judge(k).gain for k in range(len(tried))]
        order = sorted(range(len(tried)), key=lambda k: -gains[k])
        leaders = [tried[k] for k in order if tried[k] not in self.rivals]
        first = next((tried[k] for k in order if self._eligible(tried[k])), identity())
        others = [with_strength(first, step, self.space.required) for step in (-1, 1)]
        base = [self.space.complete(identity())] if self.space.always else []
        final = [*base, *leaders[: self.effort.finalists], *others, *self.rivals]
        return [p for p in dict.fromkeys(final) if p != identity()]

    def _race(self, final: list[Augmentation]) -> tuple[list[Judgement], list[int]]:
        """Try leaders and recipes, and those that are not clearly worse on more examples."""
        effort, rounds = self.effort, self.rounds
        folds = rounds.run("leaders and recipes", final, effort.final, [FINAL], large=True)
        forecast = rounds.forecast(folds, effort.final)
        judged = [forecast.judge(k) for k in range(len(final))]
        order = sorted(range(len(final)), key=lambda k: -judged[k].gain)
        able = [k for k in order if self._eligible(final[k])]
        clearly = _CLEARLY * forecast.run_spread()
        kept = [k for k in able if judged[k].gain >= judged[able[0]].gain - clearly]
        kept = kept[: effort.contenders]
        recipes = [k for k in order if final[k] in self.rivals]
        kept = sorted({*kept, *able[:2], *recipes[:1]})  # the best recipe, to compare with
        count = effort.last_folds(self.data)
        numbers = [LAST + k * (PLACES // count) for k in range(count)]  # as far apart as can be
        others = [final[k] for k in kept]
        again = rounds.run("contenders", others, effort.last, numbers, large=True)
        columns = torch.tensor([0, *(k + 1 for k in kept)])
        first = forecast
        forecast = rounds.forecast([*(fold.choose(columns) for fold in folds), *again], effort.last)
        # one training without augmentation is a poor measure: what all contenders lose or gain
        # when more folds are added is due to it, and changes the others as much
        moved = [forecast.shift(place)[0] - first.shift(k)[0] for place, k in enumerate(kept)]
        offset = sum(moved) / len(moved)
        places = {k: place for place, k in enumerate(kept)}
        judged = [
            forecast.judge(places[k]) if k in places else first.judge(k, forecast, offset)
            for k in range(len(final))
        ]
        self.baseline = 100 * forecast.baseline.expected
        self.spread = forecast.run_spread()
        self.learnt, self.unstable = forecast.baseline.learnt, forecast.baseline.unstable
        return judged, kept

    def _fallback(self, final: list[Augmentation], judged: list[Judgement]) -> Augmentation:
        """Return what to train with where nothing was chosen: with required parts, the best."""
        if not self.learnt:
            return _mild(self.space)
        able = [k for k in range(len(final)) if self._eligible(final[k])]
        if not self.space.always or not able:
            return self.space.complete(identity())
        return final[max(able, key=lambda k: judged[k].gain)]

    def _eligible(self, candidate: Augmentation) -> bool:
        """Return whether a candidate keeps to what the user fixed and forbade."""
        parts, wanted = (Then.of(p).parts for p in (candidate, self.space.complete(identity())))
        begins = not self.space.always or parts[: len(wanted)] == wanted
        return begins and self.space.allows(candidate)

    def _choose(
        self, final: list[Augmentation], judged: list[Judgement], contenders: list[int]
    ) -> int | None:
        """Return a recipe, or else the simplest, of those that cannot be told from the best.

        None where nothing beats no augmentation.
        """
        able = [k for k in contenders if self.learnt and self._eligible(final[k])]
        most = max((judged[k].gain for k in able), default=0.0)
        if most < POINTS:
            return None
        tied = [k for k in able if judged[k].gain >= max(POINTS, most - _TIED * self.spread)]
        return min(
            tied,
            key=lambda k: (
                final[k] not in self.rivals,
                complexity(final[k]),
                strength(final[k]),
                -judged[k].gain,
            ),
        )

    def _variations(self, chosen: Augmentation, gain: float) -> list[PolicyRow]:
        """Try the choice without each of its parts, milder and stronger, and for fewer epochs."""
        if chosen == identity():
            return []
        parts = [part for part in dict.fromkeys(parts_of(chosen)) if part != chosen][:MOST_PARTS]
        varied = [("part", repr(part), without(chosen, part)) for part in parts]
        varied += [
            (role, "", changed)
            for role, step in (("milder", -1), ("stronger", 1))
            if (changed := with_strength(chosen, step, self.space.required)) != chosen
        ]
        size, numbers = self.effort.final, range(LAST, LAST + self.effort.part_folds)
        rows = []
        if varied:
            tried = [chosen, *(policy for *_, policy in varied)]
            folds = self.rounds.run("parts and strengths", tried, size, numbers, large=True)
            forecast = self.rounds.forecast(folds, size)
            whole, *others = (forecast.judge(k) for k in range(len(tried)))
            lost = [whole.gain - found.gain for found in others]
            often = [applications(chosen, part) for part in parts]
            # two gains differ by the noise of two trainings, and of none without augmentation
            error = forecast.run_spread() * math.sqrt(2 / (1 + 1 / len(folds[0].replicas)))
            lost[: len(parts)] = pool(lost[: len(parts)], often, gain, error)
            for (role, part, policy), found, points in zip(varied, others, lost, strict=True):
                row = rows_of.as_row(policy, role, found, 1)
                # it had other examples than rounds before
                rows.append(replace(rows_of.at_gain(row, gain - points), part=part))
        half = max(1, self.rounds.plan.epochs // 2)
        title = "half of the epochs"
        folds = self.rounds.run(title, [chosen], size, numbers, large=True, epochs=half)
        found = self.rounds.forecast(folds, size).judge(0)
        return [*rows, replace(rows_of.as_row(chosen, "shorter", found, 1), part=str(half))]

    def _reason(self, best: int | None, final: list[Augmentation], judged: list[Judgement]) -> str:
        if not self.learnt:
            mild = _mild(self.space) != identity()
            why = (
                "Runs without augmentation differ too much to compare policies with them; plan "
                "more epochs, or give the search more time or examples"
            ) if self.unstable else (
                "In the planned number of epochs, the network without augmentation learnt nothing "
                "beyond the most frequent class, so policies cannot be told apart"
            )  # fmt: skip
            return f"{why}; {'this is a mild default' if mild else 'the mild default is excluded'}."
        enough = f"at least {POINTS:g} points better than training without augmentation"
        if best is None and self.space.always:
            return f"No policy with the required parts was {enough}; this one came closest."
        if best is None:
            free = all(self._eligible(policy) for policy in final)
            tried = "None of the policies tried" if free else "None of the allowed policies"
            return f"{tried} was {enough}."
        if final[best] in self.rivals:
            return "No policy built for this data is clearly better than this recipe."
        pairs = zip(final, judged, strict=True)
        recipes = [found.gain for p, found in pairs if p in self.rivals and self._eligible(p)]
        expected = f"It is expected to gain {judged[best].gain:.1f} points over no augmentation"
        if not recipes:
            return f"{expected}; every common recipe is excluded."
        ahead = judged[best].gain - max(recipes)
        doubt = "" if ahead > _CLEARLY * self.spread else ", which is within the noise of the trial"
        which = "common recipes" if len(recipes) == len(self.rivals) else "recipes that are allowed"
        than = f", but {-ahead:.1f} fewer than" if ahead < 0 else f", and {ahead:.1f} more than"
        return f"{expected}{than} the best of the {which}{doubt}."


def _listed(given: Iterable[str | Augmentation]) -> Iterable[str | Augmentation]:
    """Return what was given, one augmentation as a list of it."""
    return [given] if isinstance(given, str | Augmentation) else given


def _mild(space: Space) -> Augmentation:
    """Return the mild default for data that nothing can be told from."""
    mild = parse(MILD)
    return space.complete(mild if space.allows(mild) else identity())


def _too_few(
    data: Dataset, planned: dict[str, Any], space: Space, seed: int, started: float, command: str
) -> Policy:
    chosen = _mild(space)
    return Policy(
        spec=repr(chosen), rows=(rows_of.untried(chosen),), baseline=0.0,
        reason=f"{len(data)} images are too few to tell policies apart; this is a mild default.",
        dataset=describe(data),
        plan=planned, path=(), per_class={}, seed=seed,
        seconds=round(time.perf_counter() - started, 3), command=command,
        gallery=make_gallery(data, [chosen], seed), given=unwritten(chosen),
    )  # fmt: skip
