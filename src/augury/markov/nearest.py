"""A finite chain for any augmentations: their views are moved to the nearest example."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.given import as_seed, as_whole
from augury._base.limits import MOST_VIEWS
from augury._base.rng import Rng
from augury.augmentations import Chain
from augury.markov.chain import FiniteChain
from augury.markov.orbits import as_chain, as_tensor
from augury.markov.symmetrise import metropolis

_CHUNK = 4096


def nearest_chain(
    x: Any, chain: Chain | str, *, n_views: int = 16, seed: int = 0, restart: Any = None
) -> FiniteChain:
    """Build a finite chain whose states are the examples themselves.

    A_j(u, v) is the share of the views of example u under augmentation j to which v is the
    nearest of the other examples: where a view would be found in the data if u were not there.
    So a step says what the data say of the augmentation: a useful one leads to examples of the
    same class. The A_j are then made symmetric by `metropolis`.

    Parameters
    ----------
    x
        The examples, ``(N, *shape)``.
    chain
        The augmentations, of any kind, and their rates.
    n_views
        How many views are made of each example by each augmentation, at most.
    seed
        For augmentations that are drawn.
    restart
        A weight for each example; equal unless given.

    Notes
    -----
    The cost is parts × views × N² distances; one block of them is held at a time.
    """
    chain = as_chain(chain)
    examples = as_tensor(x)
    n_views, seed = as_whole("n_views", n_views, 1, MOST_VIEWS), as_seed(seed)
    if len(examples) < 2:
        raise AuguryError(f"nearest_chain needs at least 2 examples, but got {len(examples)}")
    if not examples.is_floating_point():
        raise AuguryError(f"nearest_chain takes floating-point examples, not {examples.dtype}")
    count = len(examples)
    matrices = []
    for k, part in enumerate(chain.parts):
        rows, columns, weights = [], [], []
        for index in torch.arange(count).split(max(1, _CHUNK // n_views)):
            made, weight = part.weighted_views(examples[index], n_views, Rng(seed, index).child(k))
            columns.append(_nearest_other(made, index, examples).flatten())
            rows.append(index.repeat(len(made)))
            weights.append(weight.repeat_interleave(len(index)))
        entries = (torch.cat(rows).numpy(), torch.cat(columns).numpy())
        share = torch.cat(weights).to(torch.float64).numpy()
        moves = sp.csr_array((share, entries), shape=(count, count))
        moves = sp.diags_array(1 / moves.sum(axis=1)) @ moves  # weights in x's precision
        matrices.append(metropolis(moves))
    return FiniteChain(matrices, chain.rates, np.ones(count) if restart is None else restart)


def _nearest_other(made: Tensor, index: Tensor, examples: Tensor) -> Tensor:
    """Return the nearest example to each view but the one it was made from: ``(n, b)``."""
    flat, against = made.flatten(2), examples.flatten(1)
    distance = against.square().sum(1) - 2 * flat @ against.T
    own = index.reshape(1, -1, 1).expand(len(made), -1, 1)
    return distance.scatter_(2, own, torch.inf).argmin(2)
