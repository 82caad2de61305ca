"""Sound at another speed or pitch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from augury._base.rng import Rng
from augury.augmentations.base import Family, Nodes, gauss_legendre, require
from augury.augmentations.sound import SOUND

_WINDOW = 512  # samples of a frame: 32 ms at 16,000 a second, 64 ms at 8,000


@dataclass(frozen=True, repr=False)
class speed(Family):
    """Sound played up to 1 + `strength` times faster or slower, which changes its pitch.

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
    """Pitch shifted by up to ± `semitones`, at the same speed.

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
        ratio = (2 ** (params.to(x.dtype) / 12)).expand(n, x.shape[1])
        ratio = ratio.unsqueeze(-1).expand(-1, -1, x.shape[2]).reshape(-1)
        frames = torch.stft(
            x.flatten(0, 2), size, hop, window=window, pad_mode="constant", return_complex=True
        )
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
        The spectra, and a factor for each, ``(m,)``, or for each of several views of them,
        ``(views · m,)``.
    overlap
        The step from frame to frame, as a part of a frame.
    most
        The largest factor, which decides how many frames there are; what lies behind the end is
        silent.
    """
    frames = torch.nn.functional.pad(frames.transpose(1, 2), (0, 0, 0, 2))  # (m, times, bins)
    times, bins = frames.shape[1] - 2, frames.shape[2]
    parts = torch.view_as_real(frames).movedim(-1, 0).contiguous()  # in order, many times as fast
    size, phase = torch.hypot(parts[0], parts[1]), torch.atan2(parts[1], parts[0])
    k = torch.arange(bins, device=frames.device, dtype=size.dtype)
    expected = (2 * math.pi * overlap) * k
    advance = expected + _wrap(phase.diff(dim=1) - expected)
    at = torch.arange(math.ceil(times * most), device=frames.device, dtype=size.dtype)
    at = at / ratio[:, None]
    left = at.floor().to(torch.int64).clamp_max(times)
    each = torch.arange(len(ratio), device=frames.device)[:, None] % len(frames)
    low = size[each, left]
    loud = low + (at - left).unsqueeze(2) * (size[each, left + 1] - low)
    loud = loud * (at < times).unsqueeze(2) * (k * ratio[:, None] <= bins - 1).unsqueeze(1)
    turned = torch.cat([phase[each, :1][:, 0], _wrap(advance)[each, left[:, :-1]]], 1).cumsum(1)
    return torch.complex(loud * turned.cos(), loud * turned.sin()).transpose(1, 2)


def _wrap(angle: Tensor) -> Tensor:
    """Bring angles to within half a turn of 0."""
    return angle - 2 * math.pi * (angle / (2 * math.pi)).round()


def interpolate(waves: Tensor, at: Tensor, reach: int = 6, phases: int = 512) -> Tensor:
    """Read ``(m, length)`` at positions ``(m, count)`` by a windowed sinc of `reach` each side.

    Weights come from a table of `phases` places between two samples; its window is a squared
    cosine. Beyond the ends there is silence.
    """
    places = torch.arange(phases + 1, dtype=waves.dtype, device=waves.device) / phases
    away = places[:, None] - torch.arange(1 - reach, reach + 1, device=waves.device)
    table = torch.sinc(away) * (math.pi / 2 / reach * away).cos().square()
    left = at.floor()
    rows = table[((at - left) * phases).round().to(torch.int64)]
    padded = torch.nn.functional.pad(waves, (reach - 1, reach + 1))
    windows = padded.unfold(-1, 2 * reach, 1)
    first = left.to(torch.int64).clamp(0, windows.shape[1] - 1)
    each = torch.arange(len(waves), device=waves.device)[:, None]
    inside = (at >= 0) & (at <= waves.shape[-1] - 1)
    return (windows[each, first] * rows).sum(-1) * inside
