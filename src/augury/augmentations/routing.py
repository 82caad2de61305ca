"""Rows sent to the augmentation that each of them drew."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from augury.augmentations.base import Augmentation, Params
from augury.augmentations.symmetries import identity


def route(x: Tensor, parts: Sequence[Augmentation], steps: Sequence[tuple[Params, ...]]) -> Tensor:
    """Apply to each row the part it chose, step after step; no part sees rows that are not its own.

    Parameters
    ----------
    x
        Inputs, shape ``(n or 1, b, *shape)``.
    parts
        The augmentations to choose from. Rows that chose `identity`, or a number beyond the last
        part, stay as they are at no cost.
    steps
        For each step ``(choice, *params)``: the number of the part, shape ``(n, b)`` or ``(n, 1)``
        if shared, then the parameters of every part.

    Notes
    -----
    One copy of the inputs is made and rows are written back into it. A step waits for the device
    once, for the number of rows of each part.
    """
    n, b = steps[0][0].shape[0], x.shape[1]
    shared = steps[0][0].shape[1] == 1  # then a row is a view of all examples, else of one
    out = x.expand(n, *x.shape[1:]).clone(memory_format=torch.contiguous_format)
    if not shared:
        out = out.flatten(0, 1).unsqueeze(1)
        steps = [flatten_params(step, n, b) for step in steps]
    for choice, *params in steps:
        which = choice.flatten()
        sizes = torch.bincount(which, minlength=len(parts)).tolist()
        groups = which.argsort(stable=True).split(sizes)
        for part, p, rows in zip(parts, params, groups, strict=False):
            if len(rows) and not isinstance(part, identity):
                out.index_copy_(0, rows, part.apply(out[rows], take_params(p, rows)))
    return out if shared else out.squeeze(1).unflatten(0, (n, b))


def take_params(params: Params, index: Tensor) -> Params:
    """Return the rows of parameters at an index, for all parts."""
    if isinstance(params, tuple):
        return tuple(take_params(p, index) for p in params)
    return params[index]


def flatten_params(params: Params, n: int, b: int) -> Params:
    """Bring ``(n, b or 1, ...)`` to ``(n * b, 1, ...)``: one view of one example each."""
    if isinstance(params, tuple):
        return tuple(flatten_params(p, n, b) for p in params)
    return params.expand(n, b, *params.shape[2:]).flatten(0, 1).unsqueeze(1)
