"""The search for a policy: rounds of trials, in which the clearly worse leave early."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from augury._base.devices import resolve_device
from augury._base.errors import AuguryError
from augury._base.progress import Tick, ticking, with_progress
from augury.augmentations import Augmentation, identity
from augury.data import Dataset, as_dataset, describe
from augury.forecasting.forecast import PLANNED, SMALL, Forecast, Judgement
from augury.forecasting.plan import TrainingPlan
from augury.forecasting.policy.journal import Journal
from augury.forecasting.policy.policy import Policy, PolicyRow
from augury.forecasting.policy.space import (
    Space,
    best_of_families,
    build,
    complexity,
    parts_of,
    without,
)
from augury.forecasting.rank import make_gallery
from augury.forecasting.trial import HeldOut, Trial, run_folds, shrink
from augury.forecasting.verdicts import POINTS

_FEW = 60  # examples, below which nothing can be told
MILD = "horizontal_flip >> translation(0.1)"


@dataclass(frozen=True)
class Effort:
    """Examples of a fold in each of the rounds, finalists, and folds of the last round.

    With `planned`, policies are tried with the planned network, and only the first round, which
    chooses what they are built from, with a small one.
    """

    singles: int
    built: int
    final: int
    finalists: int = 8
    folds: int = 2
    planned: bool = False


EFFORTS = {"cpu": Effort(250, 250, 500, 6), "cuda": Effort(1000, 750, 1250, 6, planned=True)}


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
    budget: float | None = None,
    seed: int = 0,
    device: str | torch.device = "auto",
    name: str = "data",
    max_examples: int | None = 20_000,
    journal: str | Path | None = None,
    progress: Tick | bool | None = None,
    command: str = "",
) -> Policy:
    """Choose an augmentation policy for a planned training, by trials in rounds.

    First every family is tried by itself; then stacks and mixtures of those that help, with the
    usual recipes, TrivialAugment and RandAugment; then the leaders and all recipes again, on other
    examples. Among those that cannot be told apart the simplest is chosen; where nothing beats
    training without augmentation, that is the answer.

    Parameters
    ----------
    x, y
        Images and labels, as for `augury.rank`.
    epochs, plan
        The planned training, as for `augury.rank`.
    always
        Parts that the policy must have.
    never
        Families, or groups of them (``"colour"``, ``"flips"``, ``"geometry"``), that it may not
        have.
    rivals
        Pipelines of your own to compare with.
    budget
        Seconds that the search may take; the work is cut to fit.
    seed
        Random seed; the same seed gives the same policy.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"`` or a torch device.
    name
        What the data is called in the result.
    max_examples
        More examples than these are subsampled, each class in proportion; None for all.
    journal
        A file in which finished rounds are kept, so that a search that was stopped goes on.
    progress
        Called with (done, total, round) as work goes on; True for a bar, False for none. By
        default a notebook shows a bar.
    command
        The command that repeats this, for the report.
    """
    started = time.perf_counter()
    if plan is not None and epochs is not None:
        raise AuguryError("give either epochs or a plan, which holds them; got both")
    given = plan or (TrainingPlan() if epochs is None else TrainingPlan(epochs=epochs))
    space = Space.of(always, never)
    data = as_dataset(x, y, name=name, max_examples=max_examples, seed=seed).distinct()
    if data.kind != "image" or data.classes is None:
        raise AuguryError(
            f"a policy is searched for labelled images, and this is {data.kind} data; use rank"
        )
    where = resolve_device(device)
    search = _Search(data, given, space, where, seed, _effort(data, given, where, budget))
    search.journal = Journal.open(journal, search.key())
    search.progress = ticking(progress)
    if len(data) < _FEW:
        return search.too_few(started, command)
    return search.run([*rivals], started, command)


class _Search:
    def __init__(
        self,
        data: Dataset,
        plan: TrainingPlan,
        space: Space,
        device: torch.device,
        seed: int,
        effort: Effort,
    ) -> None:
        self.data, self.plan, self.space = data, plan, space
        self.device, self.seed, self.effort = device, seed, effort
        self.path: list[dict[str, Any]] = []
        self._rate: float | None = None
        self.journal = Journal()
        self.progress: Callable[[int, int, str], None] = lambda done, total, now: None

    def key(self) -> dict[str, Any]:
        """Return what a journal must agree in."""
        return {
            "data": [len(self.data), *self.data.shape, int(self.data.y.sum()),
                     int(self.data.x[:: max(1, len(self.data) // 64)].double().sum())],
            "plan": asdict(self.plan),
            "always": [repr(a) for a in self.space.always],
            "never": sorted(self.space.never),
            "seed": self.seed,
            "effort": asdict(self.effort),
            "device": self.device.type,
        }  # fmt: skip

    def run(self, own: Sequence[str | Augmentation], started: float, command: str) -> Policy:
        """Search in four rounds: single families, policies, the last, and its parts."""
        from augury.augmentations import parse

        space, effort = self.space, self.effort
        singles = [space.complete(a) for a in space.singles(self.data.kind, self.data.shape)]
        plain = space.singles(self.data.kind, self.data.shape)
        rivals = [*map(parse, own), *space.rivals(self.data.shape)]
        base = [space.complete(identity())] if space.always else []

        first = self._round("single families", singles, effort.singles, [0])
        gains = [j.gain for j in self._judge([first], len(singles), effort.singles)]
        helping = best_of_families(plain, gains, POINTS)

        built = [space.complete(policy) for policy in build(helping) if space.allows(policy)]
        tried = list(dict.fromkeys([*base, *built, *rivals]))
        second = self._round("policies", tried, effort.built, [1])
        found = self._judge([second], len(tried), effort.built)
        order = sorted(range(len(tried)), key=lambda k: -found[k].gain)
        leaders = [k for k in order if tried[k] not in rivals][: effort.finalists]
        kept = [*leaders, *(k for k in range(len(tried)) if tried[k] in rivals)]

        final = [tried[k] for k in kept]
        numbers = list(range(2, 2 + effort.folds))
        third = self._round("leaders and recipes", final, effort.final, numbers)
        columns = torch.tensor([0, *(k + 1 for k in kept)])
        again = [fold.choose(columns) for fold in second]
        judged = self._judge([again, third], len(final), effort.final)
        allowed = [k for k in range(len(final)) if final[k] in rivals or space.allows(final[k])]
        allowed = [k for k in allowed if self._fits(final[k], own)]
        best = self._choose(final, judged, allowed)
        chosen = identity() if best is None else final[best]
        if best is None and space.always:
            chosen = space.complete(identity())
        return self._policy(chosen, best, final, judged, rivals, [again, third], started, command)

    def _fits(self, candidate: Augmentation, own: Sequence[str | Augmentation]) -> bool:
        """Return whether a rival keeps to what the user fixed and forbade."""
        if not self.space.always and not self.space.never:
            return True
        begins = repr(candidate).startswith(repr(self.space.complete(identity())))
        return self.space.allows(candidate) and (not self.space.always or begins)

    def _choose(
        self, final: list[Augmentation], judged: list[Judgement], allowed: list[int]
    ) -> int | None:
        """Return the simplest of those that cannot be told from the best; None for no change."""
        if not allowed:
            return None
        best = max(allowed, key=lambda k: judged[k].gain)
        if judged[best].gain < POINTS:
            return None
        near = 0.25 * self._spread
        tied = [k for k in allowed if judged[k].gain >= judged[best].gain - near]
        return min(tied, key=lambda k: (complexity(final[k]), -judged[k].gain))

    def _policy(
        self,
        chosen: Augmentation,
        best: int | None,
        final: list[Augmentation],
        judged: list[Judgement],
        rivals: list[Augmentation],
        folds: list[list[HeldOut]],
        started: float,
        command: str,
    ) -> Policy:
        rows = []
        for k, (policy, found) in enumerate(zip(final, judged, strict=True)):
            role = "chosen" if k == best else "rival" if policy in rivals else "tried"
            rows.append(_row(policy, role, found, len(folds) + 1))
        if best is None:
            rows.append(PolicyRow(repr(chosen), "chosen", 0.0, 0.0, 0.0, 0.5, len(folds) + 1))
        parts = [p for p in dict.fromkeys(parts_of(chosen)) if p != chosen]
        if parts:
            rows += self._contributions(chosen, parts, 0.0 if best is None else judged[best].gain)
        rows.sort(key=lambda row: -row.gain)
        per_class = () if best is None else judged[best].per_class
        return Policy(
            spec=repr(chosen),
            rows=tuple(rows),
            baseline=self._baseline,
            reason=self._reason(chosen, best, final, judged, rivals),
            dataset=describe(self.data),
            plan=self.plan.describe(self.plan, self.data.total, self.data.shape),
            path=tuple(self.path),
            per_class=dict(zip(self.data.classes or (), per_class, strict=False)),
            seed=self.seed,
            seconds=round(time.perf_counter() - started, 3),
            command=command,
            gallery=make_gallery(self.data, [chosen], self.seed),
        )

    def _contributions(
        self, chosen: Augmentation, parts: list[Augmentation], gain: float
    ) -> list[PolicyRow]:
        """Try the choice without each of its parts, beside the choice itself."""
        tried = [chosen, *(without(chosen, part) for part in parts)]
        numbers = list(range(2, 2 + self.effort.folds))
        fold = self._round("parts", tried, self.effort.built, numbers)
        found = self._judge([fold], len(tried), self.effort.built)
        whole, *others = found
        rows = []
        for part, policy, judgement in zip(parts, tried[1:], others, strict=True):
            lost = gain - (whole.gain - judgement.gain)
            row = _row(policy, "part", judgement, 1)
            rows.append(replace(row, part=repr(part), gain=lost))
        return rows

    def _reason(
        self,
        chosen: Augmentation,
        best: int | None,
        final: list[Augmentation],
        judged: list[Judgement],
        rivals: list[Augmentation],
    ) -> str:
        if best is None:
            return "Nothing that was tried beats training without augmentation."
        if chosen in rivals:
            return "A usual recipe was at least as good as anything built for this data."
        recipe = max((j.gain for p, j in zip(final, judged, strict=True) if p in rivals), default=0)
        return (
            f"It is expected to gain {judged[best].gain:.1f} points over no augmentation, and "
            f"{judged[best].gain - recipe:+.1f} over the best of the usual recipes."
        )

    def _round(
        self, title: str, candidates: list[Augmentation], examples: int, numbers: list[int]
    ) -> list[HeldOut]:
        """Try candidates on some folds; a round that the journal holds is not run again."""
        planned = self.effort.planned and bool(self.path)
        trial = Trial(
            epochs=self.plan.epochs,
            examples=max(2, min(examples, len(self.data) * 2 // 3)),
            folds=max(4, len(numbers)),
            network=self.plan.network if planned else "small",
        )
        specs = [repr(candidate) for candidate in candidates]
        started = time.perf_counter()
        known = self.journal.read(title, specs)
        if known is None:
            data, fitted = shrink(self.data, candidates, trial.side)
            done = 0

            def tick(now: str) -> None:
                nonlocal done
                done += 1
                self.progress(done, len(numbers) * (len(fitted) + 6), f"{title}: {now}")

            known = run_folds(
                data, fitted, trial, numbers,
                seed=self.seed, device=self.device, tick=tick, curve=len(self.path) < 2,
            )  # fmt: skip
            self.journal.write(title, specs, known)
        self.path.append(
            {
                "round": title,
                "policies": len(candidates),
                "examples": trial.examples,
                "epochs": trial.epochs,
                "folds": len(numbers),
                "seconds": round(time.perf_counter() - started, 1),
            }
        )
        return known

    def _judge(self, rounds: list[list[HeldOut]], count: int, examples: int) -> list[Judgement]:
        folds = [fold for part in rounds for fold in part]
        classes = len(self.data.classes or ())
        planned = self.plan.examples or self.data.total
        trained = min(examples, len(self.data) * 2 // 3)
        same = self.effort.planned and len(self.path) > 1
        forecast = Forecast(
            folds, self.data.y, classes, trained=trained, planned=planned,
            rate=self._rate if len(self.path) > 2 else None,
            calibration=PLANNED if same else SMALL,
        )  # fmt: skip
        self._rate = forecast.rate
        judged = [forecast.judge(k) for k in range(count)]
        self._baseline = 100 * forecast.baseline.expected
        self._spread = forecast.run_spread()
        return judged

    def too_few(self, started: float, command: str) -> Policy:
        """Return the mild default for data that nothing can be told from."""
        from augury.augmentations import parse

        chosen = self.space.complete(parse(MILD)) if self.space.allows(parse(MILD)) else (
            self.space.complete(identity())
        )  # fmt: skip
        row = PolicyRow(repr(chosen), "chosen", 0.0, -100.0, 100.0, 0.5, 0)
        return Policy(
            spec=repr(chosen), rows=(row,), baseline=0.0,
            reason=f"{len(self.data)} images are too few to tell policies apart, so this is a mild "
            "default.",
            dataset=describe(self.data),
            plan=self.plan.describe(self.plan, self.data.total, self.data.shape),
            path=(), per_class={}, seed=self.seed,
            seconds=round(time.perf_counter() - started, 3), command=command,
            gallery=make_gallery(self.data, [chosen], self.seed),
        )  # fmt: skip


def _row(policy: Augmentation, role: str, found: Judgement, rounds: int) -> PolicyRow:
    return PolicyRow(
        repr(policy), role, found.gain, found.low, found.high, found.probability, rounds
    )


def _effort(
    data: Dataset, plan: TrainingPlan, device: torch.device, budget: float | None
) -> Effort:
    """Return the work to do, cut to the budget by taking fewer examples."""
    effort = EFFORTS[device.type]
    if budget is None:
        return effort
    from augury.forecasting.effort import measure_pace

    pace = measure_pace(data, [identity()] * 8, device)
    cores = 1 if device.type == "cuda" else torch.get_num_threads()

    def seconds(e: Effort) -> float:
        passes = 55 * e.singles + 50 * e.built + (e.finalists + 12) * 2 * e.folds * e.final
        return passes * plan.epochs * pace / cores

    while seconds(effort) > 0.85 * budget:
        if effort.singles <= 64:
            raise AuguryError(
                f"a budget of {budget:g} s is too short for one search; give at least "
                f"{seconds(effort) / 0.85:.0f} s"
            )
        halves = {name: max(64, getattr(effort, name) // 2) for name in ("singles", "built")}
        effort = replace(effort, **halves, final=max(128, effort.final // 2))
    return effort
