"""The running process: a stream of augmented examples, and long walks on a finite chain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from augury._base.given import as_seed, as_whole
from augury._base.rng import Rng
from augury.augmentations import Chain
from augury.markov.chain import FiniteChain, check_chain
from augury.markov.checks import as_generator, as_states, restart_law
from augury.markov.orbits import as_chain, as_tensor


class Step(NamedTuple):
    """One moment of the process.

    Attributes
    ----------
    example
        What it shows now: one augmented example.
    source
        The example that it last restarted from, whose label it carries.
    part
        Which augmentation was applied to get here; None after a restart.
    """

    example: Tensor
    source: int
    part: int | None


def stream(x: Any, chain: Chain, *, restart: Any = None, seed: int = 0) -> Iterator[Step]:
    """Run the process of Definition 1 on the examples x, ``(n, *shape)``, without end.

    With probability β_j/(1+β) augmentation j is applied to the current example; else the process
    goes back to an example of x, drawn by the weights `restart` (equal unless given). It starts
    with a restart.

    Examples
    --------
    >>> from itertools import islice
    >>> from augury import parse
    >>> x = torch.rand(3, 1, 8, 8)
    >>> steps = list(islice(stream(x, parse("chain(rotation(15):2, flips:1)")), 100))
    >>> steps[0].part, tuple(steps[0].example.shape)
    (None, (1, 8, 8))
    """
    x, chain, seed = as_tensor(x), as_chain(chain), as_seed(seed)
    chain.check(tuple(x.shape[1:]))
    rho = restart_law(np.ones(len(x)) if restart is None else restart, len(x)).cumsum()
    shares = np.cumsum(chain.rates) / (1 + chain.beta)
    time, source, now = 0, 0, x[0]
    while True:
        rng = Rng(seed, torch.tensor([time]))
        u, v = rng.uniform(2).flatten().tolist()
        part = int(np.searchsorted(shares, u, side="right")) if time else len(shares)
        if part == len(shares):
            source = int(np.searchsorted(rho[:-1], v, side="right"))
            now, part = x[source], None
        else:
            now = chain.parts[part].views(now.unsqueeze(0), 1, rng.child(part))[0, 0]
        yield Step(now, source, part)
        time += 1


def sample(chain: FiniteChain, starts: Any, seed: int | np.random.Generator) -> np.ndarray:
    """Draw exactly from the stationary law around each start: a geometric number of steps.

    From a start drawn by ρ that is a draw from π. There is no burn-in and no cut-off; a draw
    costs β steps on average.
    """
    check_chain(chain)
    rng, state = as_generator(seed), as_states("starts", starts, chain.states)
    move = _Mover(chain)
    steps = rng.geometric(1 / (1 + chain.beta), state.shape) - 1
    for k in range(int(steps.max(initial=0))):
        moving = steps > k
        state[moving] = move(state[moving], rng)
    return state


def walk(
    chain: FiniteChain, steps: int, seed: int | np.random.Generator, start: int | None = None
) -> np.ndarray:
    """Run the process for a number of steps and return the states visited, ``(steps,)``.

    Between two restarts lies an excursion, independent of all others; so all excursions are run
    side by side and then laid end to end. The first starts at `start`, or by ρ.
    """
    check_chain(chain)
    steps, rng = as_whole("steps", steps, 1), as_generator(seed)
    start = start if start is None else as_whole("start", start, 0, chain.states - 1)
    lengths = np.zeros(0, dtype=np.int64)
    while lengths.sum() < steps:
        more = 16 + int((steps - lengths.sum()) / (1 + chain.beta))
        lengths = np.concatenate([lengths, rng.geometric(1 / (1 + chain.beta), more)])
    heads = np.cumsum(lengths) - lengths
    visited = np.empty(int(lengths.sum()), dtype=np.int64)
    examples = np.flatnonzero(chain.rho)
    visited[heads] = rng.choice(examples, len(heads), p=chain.rho[examples])
    if start is not None:
        visited[0] = start
    move = _Mover(chain)
    for k in range(1, int(lengths.max())):
        at = heads[lengths > k] + k
        visited[at] = move(visited[at - 1], rng)
    return visited[:steps]


class _Mover:
    """Steps of many walkers at once: each row of A inverted at a uniform number."""

    def __init__(self, chain: FiniteChain) -> None:
        a = chain.A
        self.indices, self.indptr = a.indices, a.indptr
        self.cumulative = np.cumsum(a.data)
        self.before = np.concatenate([[0.0], self.cumulative])[a.indptr]

    def __call__(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        low, high = self.before[states], self.before[states + 1]
        entry = np.searchsorted(
            self.cumulative, low + (high - low) * rng.random(states.shape), side="right"
        )
        return self.indices[np.clip(entry, self.indptr[states], self.indptr[states + 1] - 1)]
