"""Counter-based randomness: a draw is a function of (seed, example, view, position) alone.

Nothing here has state, so a result does not change with the batch size, the order of the
examples, the device or the number of workers, and view 5 of an example is the same whether
8 or 16 views are asked for.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from augury._base.given import as_number, as_whole, check_index

# SplitMix64 (Steele, Lea and Flood, 2014): increment and multipliers, as signed 64-bit integers.
_STEP = 0x9E3779B97F4A7C15 - (1 << 64)
_MULTIPLY_1 = 0xBF58476D1CE4E5B9 - (1 << 64)
_MULTIPLY_2 = 0x94D049BB133111EB - (1 << 64)
_FRACTION = (1 << 24) - 1
_BELOW_ONE = 1 - 2.0**-24  # the largest float32 under 1
_WORD = (1 << 64) - 1


def mix(z: Tensor) -> Tensor:
    """Scramble int64 values with the SplitMix64 finaliser (a bijection)."""
    z = z + _STEP
    z = (z ^ _shift(z, 30)) * _MULTIPLY_1
    z = (z ^ _shift(z, 27)) * _MULTIPLY_2
    return z ^ _shift(z, 31)


def _shift(z: Tensor, bits: int) -> Tensor:
    """Shift right without the sign: torch's own shift on int64 is arithmetic."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def mix_int(z: int) -> int:
    """Scramble one integer as `mix` does, with no copy to a device."""
    z = (z + _STEP) & _WORD
    z = ((z ^ (z >> 30)) * _MULTIPLY_1) & _WORD
    z = ((z ^ (z >> 27)) * _MULTIPLY_2) & _WORD
    z ^= z >> 31
    return z - (1 << 64) if z >> 63 else z


def spread_bits(keys: Tensor, size: int) -> Tensor:
    """Return `size` independent 64-bit words for each key: shape ``(*keys.shape, size)``."""
    counter = torch.arange(size, device=keys.device, dtype=torch.int64)
    return mix(keys.unsqueeze(-1) + counter * _STEP)


def uniform_from(bits: Tensor) -> Tensor:
    """Turn 64-bit words into float32 in the open interval (0, 1), the same on every device."""
    # The sum rounds to even, so that the largest word would give 1 itself.
    return (((bits & _FRACTION).to(torch.float32) + 0.5) / (_FRACTION + 1)).clamp_max(_BELOW_ONE)


def normal_from(keys: Tensor, size: int) -> Tensor:
    """Return `size` standard normal values for each key, by Box and Muller, two from one word."""
    bits = spread_bits(keys, (size + 1) // 2)
    radius = (-2.0 * uniform_from(bits).log()).sqrt()
    angle = (2.0 * math.pi) * uniform_from(_shift(bits, 32))
    return torch.cat([radius * angle.cos(), radius * angle.sin()], dim=-1)[..., :size]


class Rng:
    """Random numbers for a batch of examples, each known by its index in the data.

    Parameters
    ----------
    seed
        Any integer.
    index
        The examples' indices, shape ``(b,)``; draws live on its device.

    Examples
    --------
    >>> import torch
    >>> whole = Rng(0, torch.arange(6)).uniform(2)
    >>> parts = [Rng(0, torch.arange(0, 2)).uniform(2), Rng(0, torch.arange(2, 6)).uniform(2)]
    >>> torch.equal(whole, torch.cat(parts, dim=1))
    True
    """

    def __init__(self, seed: int, index: Tensor) -> None:
        check_index(index)
        start = mix_int(as_whole("seed", seed) & 0x7FFF_FFFF_FFFF_FFFF)
        self.keys = mix(index.to(torch.int64) * _STEP + start)

    def child(self, stream: int) -> Rng:
        """Return an independent source of randomness, for a part of a composite."""
        other = object.__new__(Rng)
        other.keys = mix(self.keys ^ mix_int(as_whole("stream", stream) + 1))
        return other

    def key(self, n: int) -> Tensor:
        """Return one 64-bit word for each view and example: shape ``(n, b)``."""
        return spread_bits(self.keys, as_whole("n", n, 0)).movedim(-1, 0)

    def uniform(self, n: int, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        """Draw uniformly from (low, high): shape ``(n, b, *shape)``."""
        size = math.prod(as_whole("shape", side, 0) for side in shape)
        draws = uniform_from(spread_bits(self.key(n), size)).unflatten(-1, shape or (1,))
        low, high = as_number("low", low), as_number("high", high)
        return low + (high - low) * (draws if shape else draws.squeeze(-1))

    def integers(self, n: int, high: int) -> Tensor:
        """Draw whole numbers from 0 to ``high - 1``, evenly: shape ``(n, b)``."""
        return (self.uniform(n) * as_whole("high", high, 1)).to(torch.int64).clamp_max(high - 1)
