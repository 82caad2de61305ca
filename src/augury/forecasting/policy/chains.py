"""A Markov chain of augmentations with rates that the data chose."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from augury._base.errors import AuguryError
from augury.augmentations import Augmentation, Chain
from augury.data import Dataset
from augury.forecasting.trial import shrink
from augury.markov import learn_rates, nearest_chain

_EXAMPLES, _SIDE, _VIEWS = 256, 16, 4  # nearest neighbours among few small images: under a second
_LEAST = 0.05  # a rate below which a part is hardly ever drawn
_MOST = 3.0  # steps to expect from the whole chain: longer ones destroyed images in measurements


def learned_chain(data: Dataset, parts: Sequence[Augmentation], seed: int) -> Chain | None:
    """Return the chain of some augmentations whose rates fit the labels best, or None.

    Rates start equal and follow the exact gradient of the leave-one-out log-loss of the chain's
    kernel (`augury.markov.learn_rates`). None where fewer than two parts keep a rate.
    """
    few, small = shrink(data.subsample(_EXAMPLES, seed), parts, _SIDE)
    x = few.batch(torch.arange(len(few)), torch.device("cpu"), torch.float32)
    try:
        start = nearest_chain(
            x, Chain(tuple(small), (1.0,) * len(small)), n_views=_VIEWS, seed=seed
        )
        rates = learn_rates(start, few.y, steps=20).rates
    except AuguryError:  # such as a chain that is not reversible on these examples
        return None
    most = max(1.0, sum(rates) / _MOST)
    kept = [(part, round(rate / most, 2)) for part, rate in zip(parts, rates, strict=True)]
    kept = [(part, rate) for part, rate in kept if rate >= _LEAST]
    return Chain(*map(tuple, zip(*kept, strict=True))) if len(kept) > 1 else None
