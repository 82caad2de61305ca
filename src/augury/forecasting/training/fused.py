"""Convolution, batch norm, ReLU and pooling of many networks as one step, on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from augury.forecasting.training import kernels as compiled

if TYPE_CHECKING:
    from augury.forecasting.training.blocks import Block

kernels: Any = compiled  # Triton calls them with a grid, which types do not know

_ROWS, _IN = 256, 32  # positions that a convolution works on at a time, and inputs of each
_SUMMED, _WEIGHED = 64, 64  # the same of the gradient of its weights
_WINDOWS, _CHANNELS = 128, 32  # windows and channels that pooling works on at a time
_PROGRAMS = 1024  # that keep a GPU busy
_EIGHT = 8  # channels are moved in words of so many
_ANY = 9  # a size to compile kernels with, which they do not depend on


class _Block(torch.autograd.Function):
    """One block: ``(g, b, h, w, c)`` to ``(g, b, h / pool, w / pool, o)``."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, gain: Tensor, bias: Tensor, pool: int, ceil: bool,
        epsilon: float,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        """Return activations, and mean and variance of what batch norm was given."""
        g, b, height, width, _ = x.shape
        o, positions = weight.shape[-1], b * height * width
        short = weight.to(x.dtype).contiguous()
        raw = x.new_empty(g, b, height, width, o)
        sums = x.new_empty((g, _parts(positions, _ROWS), 2, o), dtype=torch.float32)
        _convolve(x, short, raw, sums)
        mean, square = (sums.sum(1) / positions).transpose(0, 1).contiguous()
        variance = (square - mean.square()).clamp_min(0)
        inverse = (variance + epsilon).rsqrt()
        scale = gain * inverse
        shift = bias - mean * scale
        rows, columns = (_parts(s, pool) if ceil else s // pool for s in (height, width))
        out = x.new_empty(g, b, rows, columns, o)
        windows = b * rows * columns
        kernels.activate[_grid(windows, o, g)](
            raw, scale, shift, out, windows, rows, columns, height, width, o // _EIGHT,
            ROWS=_WINDOWS, OUT=_CHANNELS, POOL=pool,
        )  # fmt: skip
        ctx.save_for_backward(x, short, raw, scale, shift, mean, inverse)
        ctx.pool = pool
        ctx.mark_non_differentiable(mean, variance)
        return out, mean, variance

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, raw, scale, shift, mean, inverse = ctx.saved_tensors
        grad = grads[0].contiguous()
        g, b, height, width, o = raw.shape
        positions, pool = b * height * width, ctx.pool
        rows, columns = _parts(height, pool), _parts(width, pool)
        windows = b * rows * columns
        sums = raw.new_empty((g, _parts(windows, _WINDOWS), 2, o), dtype=torch.float32)
        back = torch.empty_like(raw)

        def run(slope: Tensor, write: bool) -> None:
            kernels.turn_back[_grid(windows, o, g)](
                raw, grad, scale, shift, mean, slope, sums, back, windows, rows, columns,
                grad.shape[2], grad.shape[3], height, width, o // _EIGHT,
                ROWS=_WINDOWS, OUT=_CHANNELS, POOL=pool, WRITE=write,
            )  # fmt: skip

        run(scale, False)
        first, second = sums.sum(1).unbind(1)
        of_value = -scale * inverse.square() * second / positions
        run(torch.stack([of_value, scale, -scale * first / positions], 1), True)
        before = None
        if ctx.needs_input_grad[0]:
            # the transposed convolution: taps in reverse, inputs and outputs exchanged
            before = torch.empty_like(x)
            _convolve(back, weight.flip(1).transpose(2, 3).contiguous(), before, None)
        return before, _weigh(x, back), second * inverse, first, None, None, None


def run_blocks(x: Tensor, blocks: Sequence[Block], dtype: torch.dtype = torch.bfloat16) -> Tensor:
    """Run ``(b, g·c, h, w)`` through blocks; return ``(g, b, h', w', o)``.

    Running means and variances are kept as batch norm keeps them.
    """
    g = blocks[0].conv.groups
    given = x.unflatten(1, (g, -1)).permute(1, 0, 3, 4, 2)
    x = given.new_zeros((*given.shape[:-1], _parts(given.shape[-1], _EIGHT) * _EIGHT), dtype=dtype)
    x[..., : given.shape[-1]] = given
    for block in blocks:
        norm = block.norm
        weight = block.conv.weight.unflatten(0, (g, -1)).permute(0, 3, 4, 2, 1).flatten(1, 2)
        weight = F.pad(weight, (0, 0, 0, x.shape[-1] - weight.shape[2]))
        gain, bias = norm.weight.view(g, -1), norm.bias.view(g, -1)
        positions = x.shape[1] * x.shape[2] * x.shape[3]
        x, mean, variance = _Block.apply(x, weight, gain, bias, block.window, block.ceil, norm.eps)
        with torch.no_grad():
            assert norm.momentum is not None  # blocks have a fixed one
            unbiased = variance * (positions / max(1, positions - 1))
            norm.get_buffer("running_mean").lerp_(mean.flatten(), norm.momentum)
            norm.get_buffer("running_var").lerp_(unbiased.flatten(), norm.momentum)
    return x


def compile_all() -> None:
    """Compile the kernels that networks need, side by side; later processes find them on disk."""
    short, number = torch.bfloat16, torch.float32
    jobs: list[Callable[[], Any]] = []
    for outputs in (32, 64):
        sizes = {"OUT": outputs, "grid": (1,)}
        jobs += [
            lambda s=sizes: kernels.convolve.warmup(
                short, short, short, number, *[_ANY] * 6, ROWS=_ROWS, IN=_IN, **s
            ),
            lambda s=sizes: kernels.weigh.warmup(
                short, short, number, *[_ANY] * 6, ROWS=_SUMMED, IN=_WEIGHED, **s
            ),
        ]
    for pool in (1, 2, 4):
        sizes = {"ROWS": _WINDOWS, "OUT": _CHANNELS, "POOL": pool, "grid": (1,)}
        jobs.append(
            lambda s=sizes: kernels.activate.warmup(short, number, number, short, *[_ANY] * 6, **s)
        )
        jobs += [
            lambda s=sizes, write=write: kernels.turn_back.warmup(
                short, short, *[number] * 5, short, *[_ANY] * 8, WRITE=write, **s
            )
            for write in (False, True)
        ]
    with ThreadPoolExecutor(len(jobs)) as pool_of_threads:
        for job in [pool_of_threads.submit(job) for job in jobs]:
            job.result()


def _parts(whole: int, part: int) -> int:
    return -(-whole // part)


def _grid(windows: int, channels: int, networks: int) -> tuple[int, int]:
    return _parts(windows, _WINDOWS) * _parts(channels, _CHANNELS), networks


def _block_of(outputs: int) -> int:
    """Return how many outputs are computed at a time."""
    return 32 if outputs <= 32 else 64


def _convolve(x: Tensor, weight: Tensor, out: Tensor, sums: Tensor | None) -> None:
    g, b, height, width, c = x.shape
    o, positions = out.shape[-1], b * height * width
    outs = _block_of(o)
    kernels.convolve[(_parts(positions, _ROWS) * _parts(o, outs), g)](
        x, weight, out, x.new_empty(1, dtype=torch.float32) if sums is None else sums,
        positions, height, width, c // _EIGHT, o // _EIGHT, int(sums is not None),
        ROWS=_ROWS, IN=_IN, OUT=outs,
    )  # fmt: skip


def _weigh(x: Tensor, grad: Tensor) -> Tensor:
    """Return the gradient of ``(g, 9, c, o)`` weights."""
    g, b, height, width, c = x.shape
    o, positions = grad.shape[-1], b * height * width
    outs = _block_of(o)
    blocks = _parts(3 * c, _WEIGHED) * _parts(o, outs)
    splits = min(_parts(_PROGRAMS, 3 * g * blocks), _parts(positions, 16 * _SUMMED))
    part = _parts(positions, splits * _SUMMED) * _SUMMED
    out = x.new_empty((g, splits, 9, c, o), dtype=torch.float32)
    kernels.weigh[(blocks * splits, 3, g)](
        x, grad, out, positions, height, width, c // _EIGHT, o // _EIGHT, part,
        ROWS=_SUMMED, IN=_WEIGHED, OUT=outs,
    )  # fmt: skip
    return out.sum(1) if splits > 1 else out[:, 0]
