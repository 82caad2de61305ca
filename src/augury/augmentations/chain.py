"""The Markov chain of augmentations with restarts, as one more augmentation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.given import as_list
from augury._base.rng import Rng
from augury._base.text import count, shown
from augury.augmentations.base import Augmentation, Params, number
from augury.augmentations.combine import Mixture, Then, _Composite, bracket
from augury.augmentations.routing import route

MOST_STEPS = 1000
"""The largest mean number of steps: a draw of more would take minutes."""


@dataclass(frozen=True, repr=False)
class Chain(_Composite):
    """A random walk of augmentations that goes back to the example now and then.

    At each step the walk applies part j with probability β_j / (1 + β), β = Σ β_j, or restarts
    with probability 1 / (1 + β). Its long-run law round an example is that of the example after
    a geometric number of steps, P(N = k) = (1/(1+β)) (β/(1+β))^k, each by part j with probability
    β_j / β: the power series of the stationary law (Lemma 1). So a draw is exact, with no burn-in.

    Parameters
    ----------
    parts
        The augmentations.
    rates
        β_j, one for each part, against a restart rate of 1; β is the mean number of steps.

    Notes
    -----
    A view costs β applications on average. There is no cut-off: as many steps are drawn as the
    longest walk of the batch needs, and a walk that has ended is left out of later ones.

    Examples
    --------
    >>> from augury.augmentations import blur, rotation
    >>> Chain((rotation(15), blur(0.5, 2.0)), (2, 1))
    chain(rotation(15):2, blur(0.5,2.0):1)
    """

    parts: tuple[Augmentation, ...]
    rates: tuple[float, ...]

    def __post_init__(self) -> None:
        for name in ("parts", "rates"):
            object.__setattr__(self, name, tuple(as_list(name, getattr(self, name))))
        for part in self.parts:
            if not isinstance(part, Augmentation):
                raise AuguryError(f"expected an augmentation in a chain, got {shown(part)}")
        check_rates(self.rates, len(self.parts))
        if self.beta > MOST_STEPS:
            raise AuguryError(
                f"a chain's rates may sum to {MOST_STEPS} at most, the mean number of steps of a "
                f"view, but these sum to {self.beta:g}"
            )
        self._combine(lambda sizes: None)  # walks of every length: never finite

    @property
    def beta(self) -> float:
        """β = Σ β_j: the mean number of steps."""
        return math.fsum(self.rates)

    def draw(self, n: int, rng: Rng) -> Params:
        stop = len(self.parts)
        shares = torch.tensor(self.rates, dtype=torch.float64) / (1 + self.beta)
        steps: list[Params] = []
        while True:  # one uniform number says both whether the walk goes on and by which part
            at = rng.child(len(steps))
            u = at.child(stop).uniform(n).contiguous()
            choice = torch.bucketize(u, shares.cumsum(0).to(u), right=True)
            if steps:
                choice = choice.where(steps[-1][0] != stop, stop)
            steps.append((choice, *self._draw_parts(n, at)))
            if bool((choice == stop).all()):
                return tuple(steps)

    def apply(self, x: Tensor, params: Params) -> Tensor:
        return route(x, self.parts, params)

    def __repr__(self) -> str:
        shown = (
            f"{bracket(part, Then, Mixture)}:{number(rate)}"
            for part, rate in zip(self.parts, self.rates, strict=True)
        )
        return f"chain({', '.join(shown)})"


def check_rates(rates: Sequence[float], parts: int) -> None:
    """Raise one clear line unless there is a rate for each part, none negative and some over 0."""
    if not parts:
        raise AuguryError("a chain needs at least one augmentation, but none was given")
    if len(rates) != parts:
        raise AuguryError(
            f"a chain needs one rate for each augmentation: got {count(parts, 'augmentation')} and "
            f"{count(len(rates), 'rate')}"
        )
    for k, rate in enumerate(rates):
        if not (isinstance(rate, Real) and math.isfinite(rate) and rate >= 0):
            raise AuguryError(
                f"a chain's rates must be 0 or more, but rate {k} is {rate}; "
                "use 0 to leave an augmentation out"
            )
    if not any(rates):
        raise AuguryError(
            "all rates of the chain are zero, so it would never move; set a positive rate"
        )


def read_chain(parser: Any) -> Chain:
    """Read ``chain(a:2, b:1)`` after its name; a part without a rate has rate 1."""
    parts: list[Augmentation] = []
    rates: list[float] = []
    parser.take("(")
    while parser.peek() != ")":
        parts.append(parser.mixture())
        rates.append(1)
        if parser.peek() == ":":
            parser.take()
            rates[-1] = parser.number()
        if parser.peek() != ")":
            parser.take(",")
    parser.take(")")
    return Chain(tuple(parts), tuple(rates))
