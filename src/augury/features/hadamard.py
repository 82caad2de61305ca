"""Structured frequencies: products of Hadamard and sign matrices, in place of a dense matrix."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class HadamardFrequencies(nn.Module):
    """Ω = S (H D₁)(H D₂)(H D₃) p^{−3/2} in blocks, H a p × p Hadamard matrix.

    D₁, D₂, D₃ are random signs and S gives each row the length of a Gaussian vector, so that rows
    look like draws from N(0, I) and are orthogonal within a block of p (Yu and others, 2016, with
    the lengths of Le, Sarlós and Smola, 2013). p is d rounded up to a power of two.

    Parameters
    ----------
    count
        The number of frequencies.
    d
        The number of input values.
    rng
        Of the signs and lengths.

    Notes
    -----
    A product with H is two products with Hadamard matrices of about √p rows: 4√p operations a
    value, where butterflies need log p and pass over the memory as often. O(D log d) memory-bound
    steps become O(D √d) at the speed of matrix products; a dense Ω takes O(D d) and stores it.
    """

    signs: Tensor
    lengths: Tensor

    def __init__(self, count: int, d: int, rng: np.random.Generator) -> None:
        super().__init__()
        bits = max(1, math.ceil(math.log2(d)))
        p = 2**bits
        self.count, self.d = count, d
        self.sides = (2 ** (bits - bits // 2), 2 ** (bits // 2))
        blocks = -(-count // p)
        signs = rng.integers(0, 2, (3, blocks, p)) * 2.0 - 1
        self.register_buffer("signs", torch.from_numpy(signs).to(torch.float32))
        lengths = np.sqrt(rng.chisquare(p, count)) / p**1.5
        self.register_buffer("lengths", torch.from_numpy(lengths))

    def forward(self, x: Tensor) -> Tensor:
        """Multiply ``(b, d)`` by Ωᵀ: ``(b, count)``."""
        rows, columns = self.sides
        left, right = hadamard(rows).to(x), hadamard(columns).to(x)
        z = F.pad(x, (0, rows * columns - self.d)).unsqueeze(1)
        for sign in self.signs.to(x).flip(0):
            z = (z * sign).view(-1, columns) @ right
            # Left transposed: one fixed permutation of the values, which changes no law.
            z = (z.view(-1, rows, columns).mT @ left).view(len(x), -1, rows * columns)
        return z.flatten(1)[:, : self.count] * self.lengths.to(x)


def hadamard(size: int) -> Tensor:
    """Return the Hadamard matrix of a power of two, with entries ±1."""
    matrix = torch.ones(1, 1)
    while len(matrix) < size:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    return matrix
