"""Kernels for a convolution, batch norm, ReLU and pooling of many networks at once, in Triton.

Activations lie as ``(networks, positions, channels)``, a position being an example, a row and a
column. Written with patches, a convolution of 3 × 3 moves nine times its input; here neighbours
are read where they lie, and what follows a convolution is computed while it is at hand. Sums are
added in a fixed order, so that a result can be repeated.

Channels come in eights (`c8`, `o8`: how many), so that a load moves 16 bytes; blocks of channels
have a few fixed sizes, so that there are few kernels to compile, whatever the network. A position
and its neighbours left and right lie side by side in memory, and are one row of a product.
"""

# pyright: reportMissingImports=false, reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# Triton comes with torch's CUDA builds, and has types and ranges of its own.
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["positions", "height", "width", "c8", "o8", "with_sums"])
def convolve(
    x, weight, out, sums, positions, height, width, c8, o8, with_sums,
    ROWS: tl.constexpr, IN: tl.constexpr, OUT: tl.constexpr,
):  # fmt: skip
    """Convolve `x` with ``(networks, 9, c, o)``; write the sums that batch norm needs beside it."""
    c_all, o_all = c8 * 8, o8 * 8
    blocks = tl.cdiv(o_all, OUT)
    tile, g = tl.program_id(0) // blocks, tl.program_id(1).to(tl.int64)
    row = tile * ROWS + tl.arange(0, ROWS)
    o = (tl.program_id(0) % blocks) * OUT + tl.arange(0, OUT)
    j, i = row % width, (row // width) % height
    x += g * positions * c_all
    weight += g * 9 * c_all * o_all
    total = tl.zeros((ROWS, OUT), tl.float32)
    chunks = tl.cdiv(3 * c_all, IN)
    for n in range(3 * chunks):
        down = n // chunks - 1
        k = (n % chunks) * IN + tl.arange(0, IN)
        inside = (i + down >= 0) & (i + down < height) & (row < positions)
        here = _three(x, row + down * width, k, inside, j, width, c_all)
        at = ((down + 1) * 3 * c_all + k)[:, None] * o_all + o[None, :]
        some = (k < 3 * c_all)[:, None] & (o < o_all)[None, :]
        total += tl.dot(here, tl.load(weight + at, mask=some, other=0.0))
    known = (row < positions)[:, None] & (o < o_all)[None, :]
    tl.store(out + g * positions * o_all + row[:, None] * o_all + o[None, :], total, mask=known)
    if with_sums:
        total = tl.where(known, total, 0.0)
        to = sums + (g * (tl.num_programs(0) // blocks) + tile) * 2 * o_all + o
        tl.store(to, tl.sum(total, 0), mask=o < o_all)
        tl.store(to + o_all, tl.sum(total * total, 0), mask=o < o_all)


@triton.jit
def _three(x, row, k, inside, j, width, c_all):
    """Load values `k` of positions and their neighbours left and right, which lie side by side."""
    mask = inside[:, None] & (k < 3 * c_all)[None, :]
    mask &= ((j > 0)[:, None] | (k >= c_all)[None, :]) & (
        (j < width - 1)[:, None] | (k < 2 * c_all)[None, :]
    )
    return tl.load(x + (row - 1)[:, None] * c_all + k[None, :], mask=mask, other=0.0)


@triton.jit(do_not_specialize=["positions", "height", "width", "c8", "o8", "part"])
def weigh(
    x, grad, out, positions, height, width, c8, o8, part,
    ROWS: tl.constexpr, IN: tl.constexpr, OUT: tl.constexpr,
):  # fmt: skip
    """Compute the gradient of the weights, a row of taps and a part of the positions at a time."""
    c_all, o_all = c8 * 8, o8 * 8
    outs = tl.cdiv(o_all, OUT)
    blocks = tl.cdiv(3 * c_all, IN) * outs
    block, split = tl.program_id(0) % blocks, tl.program_id(0) // blocks
    splits = tl.num_programs(0) // blocks
    down, g = tl.program_id(1) - 1, tl.program_id(2).to(tl.int64)
    k = (block // outs) * IN + tl.arange(0, IN)
    o = (block % outs) * OUT + tl.arange(0, OUT)
    x += g * positions * c_all
    grad += g * positions * o_all
    total = tl.zeros((IN, OUT), tl.float32)
    for first in range(split * part, tl.minimum(split * part + part, positions), ROWS):
        row = first + tl.arange(0, ROWS)
        j, i = row % width, (row // width) % height
        inside = (i + down >= 0) & (i + down < height) & (row < positions)
        here = _three(x, row + down * width, k, inside, j, width, c_all)
        known = (row < positions)[:, None] & (o < o_all)[None, :]
        by = tl.load(grad + row[:, None] * o_all + o[None, :], mask=known, other=0.0)
        total += tl.dot(tl.trans(here), by)
    out += ((g * splits + split) * 9 + (down + 1) * 3) * c_all * o_all
    known = (k < 3 * c_all)[:, None] & (o < o_all)[None, :]
    tl.store(out + k[:, None] * o_all + o[None, :], total, mask=known)


@triton.jit(do_not_specialize=["windows", "rows", "columns", "height", "width", "o8"])
def activate(
    x, scale, shift, out, windows, rows, columns, height, width, o8,
    ROWS: tl.constexpr, OUT: tl.constexpr, POOL: tl.constexpr,
):  # fmt: skip
    """Scale and shift, take the highest of each window, and what is above zero of that."""
    o_all = o8 * 8
    blocks = tl.cdiv(o_all, OUT)
    g = tl.program_id(1).to(tl.int64)
    window = (tl.program_id(0) // blocks) * ROWS + tl.arange(0, ROWS)
    o = (tl.program_id(0) % blocks) * OUT + tl.arange(0, OUT)
    some = (o < o_all)[None, :]
    a = tl.load(scale + g * o_all + o, mask=o < o_all, other=0.0)[None, :]
    b = tl.load(shift + g * o_all + o, mask=o < o_all, other=0.0)[None, :]
    j, i = (window % columns) * POOL, ((window // columns) % rows) * POOL
    first = (window // (columns * rows)) * height * width + i * width + j
    x += g * (windows // (columns * rows)) * height * width * o_all
    best = tl.zeros((ROWS, OUT), tl.float32)
    for k in tl.static_range(POOL * POOL):
        down, right = k // POOL, k % POOL
        inside = (window < windows) & (i + down < height) & (j + right < width)
        at = (first + down * width + right)[:, None] * o_all + o[None, :]
        here = tl.load(x + at, mask=inside[:, None] & some, other=0.0).to(tl.float32)
        best = tl.maximum(best, tl.where(inside[:, None], here * a + b, 0.0))
    to = out + g * windows * o_all + window[:, None] * o_all + o[None, :]
    tl.store(to, best, mask=(window < windows)[:, None] & some)


@triton.jit(
    do_not_specialize=[
        "windows", "rows", "columns", "out_rows", "out_columns", "height", "width", "o8"
    ]
)  # fmt: skip
def turn_back(
    x, grad, scale, shift, mean, slope, sums, out,
    windows, rows, columns, out_rows, out_columns, height, width, o8,
    ROWS: tl.constexpr, OUT: tl.constexpr, POOL: tl.constexpr, WRITE: tl.constexpr,
):  # fmt: skip
    """Go back through `activate` and batch norm, in two rounds.

    The first writes partial sums of the gradient and of its product with ``x - mean``. The second
    (`WRITE`) is given what follows from their totals, `slope`: the factors of ``x - mean`` and of
    the gradient, and a constant; and writes the gradient of `x`.
    """
    o_all = o8 * 8
    blocks = tl.cdiv(o_all, OUT)
    tile, g = tl.program_id(0) // blocks, tl.program_id(1).to(tl.int64)
    window = tile * ROWS + tl.arange(0, ROWS)
    o = (tl.program_id(0) % blocks) * OUT + tl.arange(0, OUT)
    some = (o < o_all)[None, :]
    a = tl.load(scale + g * o_all + o, mask=o < o_all, other=0.0)[None, :]
    b = tl.load(shift + g * o_all + o, mask=o < o_all, other=0.0)[None, :]
    middle = tl.load(mean + g * o_all + o, mask=o < o_all, other=0.0)[None, :]
    wj, wi, example = window % columns, (window // columns) % rows, window // (columns * rows)
    j, i = wj * POOL, wi * POOL
    first = example * height * width + i * width + j
    examples = windows // (columns * rows)
    x += g * examples * height * width * o_all
    out += g * examples * height * width * o_all
    grad += g * examples * out_rows * out_columns * o_all
    known = (window < windows) & (wi < out_rows) & (wj < out_columns)
    at = ((example * out_rows + wi) * out_columns + wj)[:, None] * o_all + o[None, :]
    given = tl.load(grad + at, mask=known[:, None] & some, other=0.0).to(tl.float32)
    best = tl.zeros((ROWS, OUT), tl.float32)  # nothing below zero is passed on
    value = tl.zeros((ROWS, OUT), tl.float32)
    place = tl.full((ROWS, OUT), -1, tl.int32)
    for k in tl.static_range(POOL * POOL):
        down, right = k // POOL, k % POOL
        inside = (window < windows) & (i + down < height) & (j + right < width)
        at = (first + down * width + right)[:, None] * o_all + o[None, :]
        here = tl.load(x + at, mask=inside[:, None] & some, other=0.0).to(tl.float32)
        now = tl.where(inside[:, None], here * a + b, 0.0)
        higher = now > best
        best = tl.where(higher, now, best)
        value = tl.where(higher, here, value)
        place = tl.where(higher, k, place)
    if WRITE:
        slope += g * 3 * o_all + o
        of_value = tl.load(slope, mask=o < o_all, other=0.0)[None, :]
        of_grad = tl.load(slope + o_all, mask=o < o_all, other=0.0)[None, :]
        rest = tl.load(slope + 2 * o_all, mask=o < o_all, other=0.0)[None, :]
        for k in tl.static_range(POOL * POOL):
            down, right = k // POOL, k % POOL
            inside = (window < windows) & (i + down < height) & (j + right < width)
            to = (first + down * width + right)[:, None] * o_all + o[None, :]
            here = tl.load(x + to, mask=inside[:, None] & some, other=0.0).to(tl.float32)
            back = tl.where(place == k, given, 0.0) * of_grad + (here - middle) * of_value + rest
            tl.store(out + to, back, mask=inside[:, None] & some)
    else:
        given = tl.where(place >= 0, given, 0.0)
        to = sums + (g * (tl.num_programs(0) // blocks) + tile) * 2 * o_all + o
        tl.store(to, tl.sum(given, 0), mask=o < o_all)
        tl.store(to + o_all, tl.sum(given * (value - middle), 0), mask=o < o_all)
