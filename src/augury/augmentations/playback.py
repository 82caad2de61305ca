"""Sound at another speed or pitch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from augury._base.rng import Rng
from augury.augmentations.base import Family, Nodes, flat, gauss_legendre, require
from augury.augmentations.sound import SOUND

_WINDOW = 512  # samples of a frame: 32 ms at 16,000 a second, 64 ms at 8,000


@dataclass(frozen=True, repr=False)
class speed(Family):
    """Sound played faster or slower about its middle, pitch and all; at most 1 + `strength` times.

    The factor is log-uniform in [1/(1 + strength), 1 + strength]. What lies beyond the ends is
    silent, and what would be higher than the sample rate can hold is left out.
    """

    ladder = ((0.05,), (0.1,), (0.2,), (0.4,))
    kinds = SOUND
    linear = True
    strength: float = 0.1

    def __post_init__(self) -> None:
        require("speed", 0 < self.strength <= 3, "a strength in (0, 3]", self.strength)

    def draw(self, n: int, rng: Rng) -> Tensor:
        reach = math.log1p(self.strength)
        return rng.uniform(n, low=-reach, high=reach).exp()

    def nodes(self, n: int) -> Nodes | None:
        reach = math.log1p(self.strength)
        rule = gauss_legendre(n, -reach, reach)
        return rule and Nodes(rule.params.exp(), rule.weights)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        return read_faster(x, params)


def read_faster(x: Tensor, factor: Tensor) -> Tensor:
    """Read ``(n or 1, b, c, length)`` at factors ``(n, b or 1)``, band-limited, about the middle.

    With X the Fourier coefficients, out[t] = Σ_k X[k] exp(2πi k u(t) / length) / length at
    u(t) = m + (t − m) factor, over the k that the new speed keeps below half of the sample rate:
    a chirp-z transform (Bluestein), three FFTs of 1.5 times the length.
    """
    length = x.shape[-1]
    spectrum = torch.fft.rfft(x)
    bins = spectrum.shape[-1]
    rate = factor.to(torch.float64)[..., None, None]
    k = torch.arange(bins, device=x.device, dtype=torch.float64)
    t = torch.arange(length, device=x.device, dtype=torch.float64)
    middle = (length - 1) / 2
    weight = torch.full_like(k, 2.0)
    weight[0] = 1.0
    if length % 2 == 0:
        weight[-1] = 1.0
    kept = (weight * (k * rate.clamp_min(1) <= length / 2)).to(x.dtype)
    start = _turn(2 * (middle / length) * (1 - rate) * k, x.dtype)
    chirp = _turn((rate / length) * t.square(), x.dtype)
    terms = spectrum * kept * start * chirp[..., :bins]
    size = 1 << (length + bins - 2).bit_length()
    back = chirp.conj()  # as a filter: of t − k, which begins at 1 − bins
    gap = back.new_zeros(*back.shape[:-1], size - length - bins + 1)
    filters = torch.cat([back, gap, back[..., 1:bins].flip(-1)], dim=-1)
    mixed = torch.fft.ifft(torch.fft.fft(terms, n=size) * torch.fft.fft(filters))[..., :length]
    out = (mixed.real * chirp.real - mixed.imag * chirp.imag) / length
    at = middle + (t - middle) * rate
    return out * ((at > -0.5) & (at < length - 0.5))


def _turn(half_turns: Tensor, dtype: torch.dtype) -> Tensor:
    """Return exp(πi · phase), the phase reduced in double before it is rounded."""
    angle = ((half_turns - 2 * (half_turns / 2).round()) * math.pi).to(dtype)
    return torch.complex(angle.cos(), angle.sin())


@dataclass(frozen=True, repr=False)
class pitch(Family):
    """Higher or lower, by up to ± `semitones`, at the same speed.

    A phase vocoder stretches the sound in frames of 512 samples, and it is read faster or slower
    by as much; what would be higher than the sample rate can hold is left out.
    """

    ladder = ((1,), (2,), (4,), (8,))
    kinds = SOUND
    semitones: float = 2.0

    def __post_init__(self) -> None:
        require("pitch", 0 < self.semitones <= 24, "semitones in (0, 24]", self.semitones)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, low=-self.semitones, high=self.semitones)

    def nodes(self, n: int) -> Nodes | None:
        return gauss_legendre(n, -self.semitones, self.semitones)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        n, length = params.shape[0], x.shape[-1]
        size = min(_WINDOW, 1 << (length.bit_length() - 1))
        if size < 8:
            return x.expand(n, *x.shape[1:])
        hop, window = size // 4, torch.hann_window(size, dtype=x.dtype, device=x.device)
        ratio = 2 ** (params.to(x.dtype) / 12)
        ratio = ratio.expand(n, x.shape[1]).unsqueeze(-1).expand(-1, -1, x.shape[2]).reshape(-1)
        frames = torch.stft(
            flat(x, n).flatten(0, 1), size, hop, window=window, pad_mode="constant",
            return_complex=True,
        )  # fmt: skip
        longer = stretch(frames, ratio, hop / size, 2 ** (self.semitones / 12))
        waves = torch.istft(longer, size, hop, window=window)
        at = torch.arange(length, dtype=x.dtype, device=x.device) * ratio[:, None]
        return interpolate(waves, at).reshape(n, *x.shape[1:])


def stretch(frames: Tensor, ratio: Tensor, overlap: float, most: float) -> Tensor:
    """Stretch spectra ``(m, bins, times)`` to `ratio` times their length, by a phase vocoder.

    Between two frames sizes are interpolated, and phases go on as fast as from one to the other
    (Flanagan and Golden, 1966). Bins that reading `ratio` times as fast would put beyond the last
    are left out.

    Parameters
    ----------
    frames, ratio
        The spectra, and a factor for each, ``(m,)``.
    overlap
        The step from frame to frame, as a part of a frame.
    most
        The largest factor, which decides how many frames there are; what lies behind the end is
        silent.
    """
    bins, times = frames.shape[1:]
    frames = torch.nn.functional.pad(frames, (0, 2))
    size, phase = frames.abs(), torch.atan2(frames.imag, frames.real)
    k = torch.arange(bins, device=frames.device, dtype=size.dtype)
    expected = (2 * math.pi * overlap) * k[:, None]
    advance = expected + _wrap(phase.diff(dim=-1) - expected)
    at = torch.arange(math.ceil(times * most), device=frames.device, dtype=size.dtype)
    at = at / ratio[:, None]
    left = at.floor().to(torch.int64).clamp_max(times)

    def pick(values: Tensor, index: Tensor) -> Tensor:
        return values.gather(2, index.unsqueeze(1).expand(-1, bins, -1))

    low = pick(size, left)
    loud = low + (at - left).unsqueeze(1) * (pick(size, left + 1) - low)
    loud = loud * (at < times).unsqueeze(1) * (k * ratio[:, None] <= bins - 1).unsqueeze(2)
    turned = torch.cat([phase[..., :1], _wrap(pick(advance, left))[..., :-1]], dim=-1).cumsum(-1)
    return torch.complex(loud * turned.cos(), loud * turned.sin())


def _wrap(angle: Tensor) -> Tensor:
    """Bring angles to within half a turn of 0."""
    return angle - 2 * math.pi * (angle / (2 * math.pi)).round()


def interpolate(waves: Tensor, at: Tensor, reach: int = 5) -> Tensor:
    """Read ``(m, length)`` at positions ``(m, count)`` by a windowed sinc of `reach` each side.

    The window is (1 − (away/reach)²)², which costs no function but powers.
    """
    last = waves.shape[-1] - 1
    left = at.floor()
    share = at - left
    wave = (math.pi * share).sin() / math.pi  # sin(π(share − step)) but for its sign
    first = left.to(torch.int64)
    out = torch.zeros_like(at)
    for step in range(1 - reach, reach + 1):
        away = share - step
        weight = torch.where(away.abs() < 1e-4, 1.0, (-1) ** step * wave / away)
        weight = weight * (1 - (away / reach).square()).square()
        index = first + step
        inside = (index >= 0) & (index <= last)
        out = out + waves.gather(-1, index.clamp(0, last)) * (weight * inside)
    return out
