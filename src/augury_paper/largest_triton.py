"""Kernels over values in fours, ``(…, 4, k)``: a program has a block of the ``(…, k)``."""

# mypy: ignore-errors
# pyright: reportMissingImports=false, reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# Triton comes with torch's CUDA builds, and has types and ranges of its own.
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def find(four, one, which, total, k, BLOCK: tl.constexpr):
    """Write the largest of each four, and which it is; the first of equals."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    start = four + at // k * (4 * k) + at % k
    best = tl.load(start, mask=inside).to(tl.float32)
    place = tl.zeros((BLOCK,), dtype=tl.uint8)
    for j in tl.static_range(1, 4):
        value = tl.load(start + j * k, mask=inside).to(tl.float32)
        place = tl.where(value > best, j, place).to(tl.uint8)
        best = tl.where(value > best, value, best)
    tl.store(one + at, best, mask=inside)
    tl.store(which + at, place, mask=inside)


@triton.jit
def take(four, one, which, total, k, BLOCK: tl.constexpr):
    """Write the value of each four at its place."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    place = tl.load(which + at, mask=inside, other=0).to(tl.int64)
    value = tl.load(four + at // k * (4 * k) + place * k + at % k, mask=inside)
    tl.store(one + at, value, mask=inside)


@triton.jit
def spread(four, one, which, total, k, BLOCK: tl.constexpr):
    """Write each value at its place among four, and zeros elsewhere."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    place = tl.load(which + at, mask=inside)
    value = tl.load(one + at, mask=inside)
    start = four + at // k * (4 * k) + at % k
    for j in tl.static_range(4):
        tl.store(start + j * k, tl.where(place == j, value, 0.0).to(value.dtype), mask=inside)
