"""The finite state space of a dataset: its examples and all that augmentations make of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from augury._base.errors import AuguryError
from augury._base.given import as_batch, as_numbers, as_whole
from augury._base.pixels import to_bytes
from augury.augmentations import Augmentation, Chain, parse
from augury.augmentations.base import Params
from augury.markov.chain import FiniteChain

_CHUNK = 4096


@dataclass(frozen=True)
class Orbits:
    """The states that a chain can reach from the examples.

    Attributes
    ----------
    states
        ``(N, *shape)``: the examples and their views, each once, those found first first.
    examples
        The state of each example.
    chain
        The chain on the states; it restarts at the examples.
    """

    states: np.ndarray
    examples: np.ndarray
    chain: FiniteChain


def as_chain(spec: Chain | Augmentation | str) -> Chain:
    """Read a chain; any other augmentation becomes a chain of it alone, at rate 1."""
    found = parse(spec)
    return found if isinstance(found, Chain) else Chain((found,), (1,))


def as_tensor(x: Any) -> torch.Tensor:
    """Return examples as a tensor of its own, which a user may change without changing x."""
    return as_batch(x.copy() if isinstance(x, np.ndarray) else x).detach().clone()


def enumerate_orbits(
    x: Any, chain: Chain | str, *, restart: Any = None, limit: int = 1_000_000
) -> Orbits:
    """Find all states that finite augmentations lead to from the examples, and how they move.

    Parameters
    ----------
    x
        The examples, ``(n, *shape)``.
    chain
        The augmentations, each with a finite number of maps, and their rates.
    restart
        A weight γ_i for each example; equal unless given.
    limit
        The most states to allow.

    Notes
    -----
    States are told apart by the bytes of their values, hashed; each is transformed once by each
    map. The cost is that of N × maps views, and the memory that of the N states.
    """
    chain, limit = as_chain(chain), as_whole("limit", limit, 1)
    examples = as_tensor(x)
    examples = examples + 0 if examples.is_floating_point() else examples  # there is one zero
    for part in chain.parts:
        part.check(tuple(examples.shape[1:]))
        if part.size is None:
            raise AuguryError(
                f"{part} has no finite number of maps, so its orbit cannot be enumerated; use "
                "finite ones (flips, quarter_turns, pixel_shifts) or nearest_chain"
            )
    found = _Index(limit, f"{len(examples):,} examples under {chain}")
    places = found.add(examples)
    links: list[list[tuple[np.ndarray, ...]]] = [[] for _ in chain.parts]
    done = 0
    while done < found.size:
        batch, first = found.next(done)
        for part, link in zip(chain.parts, links, strict=True):
            rule = part.nodes(part.size or 1)
            assert rule is not None  # a finite augmentation has an exact rule of its size
            views = _apply(part, batch.unsqueeze(0), rule.params)
            to = found.add(views.flatten(0, 1))
            n, b = views.shape[:2]
            start = np.tile(np.arange(first, first + b), n)
            link.append((start, to, np.repeat(rule.weights.numpy(), b)))
        done = first + len(batch)
    matrices = []
    for link in links:
        start, to, weight = (np.concatenate(column) for column in zip(*link, strict=True))
        matrices.append(sp.csr_array((weight, (start, to)), shape=(done, done)))
    gamma = np.ones(len(places)) if restart is None else as_numbers("restart", restart)
    if gamma.shape != places.shape:
        raise AuguryError(f"expected {len(places)} restart weights, one per example")
    weights = np.bincount(places, gamma, minlength=done)
    return Orbits(found.states(), places, FiniteChain(matrices, chain.rates, weights))


def _apply(part: Augmentation, x: torch.Tensor, params: Params) -> torch.Tensor:
    """Apply an augmentation; bytes stand for pixels in [0, 1], and stay bytes."""
    if x.dtype != torch.uint8:
        return part.apply(x, params)
    return to_bytes(part.apply(x / 255, params))


class _Index:
    """States by their bytes, in the order in which they were first seen."""

    def __init__(self, limit: int, what: str) -> None:
        self.limit, self.what = limit, what
        self.known: dict[bytes, int] = {}
        self.blocks: list[torch.Tensor] = []
        self.starts: list[int] = []

    @property
    def size(self) -> int:
        return len(self.known)

    def add(self, x: torch.Tensor) -> np.ndarray:
        """Return the number of each state of x; those not seen before get the next ones."""
        before, known = self.size, self.known
        rows = np.ascontiguousarray(x.numpy()).reshape(len(x), -1)
        keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel().tolist()
        places = np.array([known.setdefault(key, len(known)) for key in keys])
        if self.size > self.limit:
            raise AuguryError(
                f"the orbits of {self.what} have more than {self.limit:,} states; raise limit=, or "
                "use fewer examples or augmentations"
            )
        if self.size > before:
            fresh, at = np.unique(places, return_index=True)
            for block in x[torch.from_numpy(at[fresh >= before])].split(_CHUNK):
                self.starts.append(before)
                self.blocks.append(block)
                before += len(block)
        return places

    def next(self, done: int) -> tuple[torch.Tensor, int]:
        """Return the block of states that starts where the last one ended."""
        k = int(np.searchsorted(self.starts, done))
        return self.blocks[k], self.starts[k]

    def states(self) -> np.ndarray:
        return torch.cat(self.blocks).numpy()
