"""Structured frequencies: products of Hadamard and sign matrices, O(D log d) for D features."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class HadamardFrequencies(nn.Module):
    """Ω = S · (√p) · (H D₁ H D₂ H D₃)/p^{3/2} in blocks, H the p × p Hadamard matrix.

    D₁, D₂, D₃ are random signs and S gives each row a random length, as a Gaussian vector's, so
    that rows look like draws from N(0, I) and are orthogonal within a block (Yu and others, 2016,
    with the lengths of Le, Sarlós and Smola, 2013). p is d rounded up to a power of two.

    Parameters
    ----------
    count
        The number of frequencies.
    d
        The number of input values.
    generator
        Of the signs and lengths.

    Notes
    -----
    Multiplying by H is two products with Hadamard matrices of about √p rows: 4√p operations a
    value in place of 2 log p, but at the speed of matrix products.
    """

    signs: Tensor
    lengths: Tensor

    def __init__(self, count: int, d: int, generator: torch.Generator) -> None:
        super().__init__()
        self.count, self.d = count, d
        bits = max(1, math.ceil(math.log2(d)))
        p, blocks = 2**bits, -(-count // 2**bits)
        coins = torch.randint(0, 2, (3, blocks, p), generator=generator)
        self.register_buffer("signs", 2.0 * coins - 1)
        # The length of a Gaussian vector of d values, for rows of the transform that have length 1.
        gaussian = torch.randn(blocks * p, d, generator=generator) if d <= 64 else None
        lengths = (
            gaussian.norm(dim=1)
            if gaussian is not None
            else _chi(blocks * p, d, generator)
        )
        self.register_buffer("lengths", lengths[:count])
        self.sides = (2 ** (bits - bits // 2), 2 ** (bits // 2))

    def forward(self, x: Tensor) -> Tensor:
        """Multiply ``(b, d)`` by Ωᵀ: ``(b, count)``."""
        signs = self.signs.to(x)
        rows, columns = self.sides
        left, right = hadamard(rows).to(x), hadamard(columns).to(x)
        padded = torch.nn.functional.pad(x, (0, rows * columns - self.d))
        z = padded.unsqueeze(1) * signs[2]
        for sign in (signs[1], signs[0], None):
            z = (left @ z.unflatten(-1, (rows, columns)) @ right).flatten(-2)
            z = z if sign is None else z * sign
        scale = self.lengths.to(x) / (rows * columns)
        return z.flatten(1)[:, : self.count] * scale


def hadamard(size: int) -> Tensor:
    """Give the Hadamard matrix of a power of two, with entries ±1."""
    matrix = torch.ones(1, 1)
    while len(matrix) < size:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    return matrix
