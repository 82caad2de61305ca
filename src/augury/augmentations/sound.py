"""Augmentations of sound that change its values: gain, noise, filters, reverb, clipping.

All are free of the sample rate: levels are in decibels, times in parts of the clip and
frequencies in octaves below half of the sample rate, which is the highest that it holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from augury._base.rng import Rng, normal_from
from augury.augmentations.base import Family, Nodes, along, gauss_legendre, require

SOUND = frozenset({"sound"})
_OCTAVES = 6.0
"""How far bands reach below the highest frequency: at 16,000 samples per second, to 125 Hz."""
_ORDER = 2
"""Of the Butterworth filter that is applied forwards and backwards: 24 dB an octave in all."""


@dataclass(frozen=True, repr=False)
class gain(Family):
    """Volume changed by a level uniform in ± `decibels`."""

    ladder = ((3,), (6,), (12,), (24,))
    kinds = SOUND
    linear = True
    decibels: float = 6.0

    def __post_init__(self) -> None:
        require("gain", 0 < self.decibels <= 100, "decibels in (0, 100]", self.decibels)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, low=-self.decibels, high=self.decibels)

    def nodes(self, n: int) -> Nodes | None:
        return gauss_legendre(n, -self.decibels, self.decibels)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        return x * 10 ** (along(params, x) / 20)


@dataclass(frozen=True, repr=False)
class snr_noise(Family):
    """Noise at a signal-to-noise ratio uniform in [`low`, `high`] dB, of colour `colour`.

    The noise's power at frequency f is proportional to f^−colour: 0 is white, 1 pink, 2 brown and
    −1 blue. Silence stays silent.
    """

    ladder = ((20, 30), (10, 20), (5, 15), (0, 10), (-10, 0))
    kinds = SOUND
    low: float = 5.0
    high: float = 15.0
    colour: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        fits = -60 <= self.low <= self.high <= 120 and -4 <= self.colour <= 4
        expected = "−60 ≤ low ≤ high ≤ 120 dB, and a colour from −4 to 4"
        require("snr_noise", fits, expected, self.low, self.high, self.colour)

    @property
    def magnitude(self) -> float | None:
        """How strong it is, for white noise: curves of gain against strength are of one colour."""
        return -(self.low + self.high) / 2 if self.colour == 0 else None

    def draw(self, n: int, rng: Rng) -> tuple[Tensor, Tensor]:
        return rng.child(0).uniform(n, low=self.low, high=self.high), rng.child(1).key(n)

    def apply(self, x: Tensor, params: tuple[Tensor, Tensor]) -> Tensor:
        decibels, keys = params
        shape = x.shape[2:]
        noise = normal_from(keys, shape.numel()).unflatten(-1, shape).to(x.dtype)
        return mix(x, coloured(noise, self.colour), decibels)


def coloured(noise: Tensor, colour: float) -> Tensor:
    """Return white noise with a power spectrum ∝ f^−colour, and nothing at frequency 0."""
    if colour == 0:
        return noise
    spectrum = torch.fft.rfft(noise)
    at = torch.arange(spectrum.shape[-1], device=noise.device, dtype=noise.dtype)
    weight = at.clamp_min(1) ** (-colour / 2) * (at > 0)
    return torch.fft.irfft(spectrum * weight, n=noise.shape[-1])


def mix(x: Tensor, noise: Tensor, decibels: Tensor) -> Tensor:
    """Add noise, scaled so that x is so many decibels above it, by root mean squares."""
    level = rms(x) / rms(noise).clamp_min(1e-12)
    return x + noise * level * 10 ** (-along(decibels, x) / 20)


def rms(x: Tensor) -> Tensor:
    """Return the root mean square over channels and time: ``(n, b, 1, 1)``."""
    return x.square().mean(dim=(-2, -1), keepdim=True).sqrt()


@dataclass(frozen=True, repr=False)
class clipping(Family):
    """Clipping of the loudest samples, a share uniform in (0, `fraction`)."""

    ladder = ((0.02,), (0.1,), (0.25,), (0.5,))
    kinds = SOUND
    fraction: float = 0.1

    def __post_init__(self) -> None:
        require("clipping", 0 < self.fraction < 1, "a fraction in (0, 1)", self.fraction)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, high=self.fraction)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        ordered = x.flatten(2).sort(-1).values
        share = along(params, ordered).expand(params.shape[0], ordered.shape[1], 1) / 2
        low, high = (_quantile(ordered, q).unsqueeze(-1) for q in (share, 1 - share))
        return torch.minimum(torch.maximum(x, low), high)


def _quantile(ordered: Tensor, share: Tensor) -> Tensor:
    """Return a quantile of sorted values ``(n or 1, b, size)``, linear between two of them."""
    last = ordered.shape[-1] - 1
    at = share * last
    left = at.floor().to(torch.int64).clamp(0, last)
    values = ordered.expand(share.shape[0], -1, -1)
    low, high = values.gather(-1, left), values.gather(-1, (left + 1).clamp_max(last))
    return low + (at - left) * (high - low)


@dataclass(frozen=True, repr=False)
class band_pass(Family):
    """Only a frequency band is kept, with width uniform in [`fraction`, 1] of six octaves.

    The band lies anywhere in the six octaves below half of the sample rate, and its edges fall
    by 24 dB an octave, with no change of phase.
    """

    ladder = ((0.9,), (0.75,), (0.5,), (0.25,))
    kinds = SOUND
    linear = True
    fraction: float = 0.5

    def __post_init__(self) -> None:
        require("band_pass", 0 < self.fraction < 1, "a fraction in (0, 1)", self.fraction)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, 2)

    def edges(self, params: Tensor) -> tuple[Tensor, Tensor]:
        """Return the lower and the upper edge, as shares of the sample rate."""
        wide = self.fraction + (1 - self.fraction) * params[..., 0]
        start = params[..., 1] * (1 - wide)
        top = 0.49  # just below half: the filter is not defined there
        low, high = (top * 2 ** (_OCTAVES * (edge - 1)) for edge in (start, start + wide))
        return low, high

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        low, high = (along(edge, x) for edge in self.edges(params))
        spectrum = torch.fft.rfft(x)
        at = torch.fft.rfftfreq(x.shape[-1], device=x.device, dtype=x.dtype)
        return torch.fft.irfft(spectrum * butterworth(at, low, high), n=x.shape[-1])


def butterworth(at: Tensor, low: Tensor, high: Tensor, order: int = _ORDER) -> Tensor:
    """Return |H|² of a digital Butterworth band-pass filter: applied forwards and backwards.

    With Ω = tan(πf), |H|² = 1 / (1 + ((Ω² − Ω₁Ω₂) / ((Ω₂ − Ω₁) Ω))^2·order).
    """
    warped = (math.pi * at.clamp(1e-6, 0.5 - 1e-6)).tan()
    first, last = (math.pi * low).tan(), (math.pi * high).tan()
    ratio = (warped.square() - first * last) / ((last - first) * warped)
    return 1 / (1 + ratio.pow(2 * order))


@dataclass(frozen=True, repr=False)
class reverb(Family):
    """Room reverberation that decays by 60 dB in a time uniform in (0, `fraction`) of the clip.

    The impulse response is 1 at time 0, then noise that decays exponentially, with half of the
    energy of the direct sound in all.
    """

    ladder = ((0.05,), (0.15,), (0.4,), (1.0,))
    kinds = SOUND
    linear = True
    fraction: float = 0.2

    def __post_init__(self) -> None:
        require("reverb", 0 < self.fraction <= 4, "a fraction in (0, 4]", self.fraction)

    def draw(self, n: int, rng: Rng) -> tuple[Tensor, Tensor]:
        return rng.child(0).uniform(n, high=self.fraction), rng.child(1).key(n)

    def response(self, params: tuple[Tensor, Tensor], x: Tensor) -> Tensor:
        """Return the impulse responses, ``(n, b, 1, length)``."""
        times, keys = params
        length = x.shape[-1]
        noise = normal_from(keys, length).to(x.dtype).unsqueeze(2)
        time = torch.arange(length, device=x.device, dtype=x.dtype) / length
        tail = noise * torch.exp(-math.log(1000) * time / along(times, x)) * (time > 0)
        energy = tail.square().sum(-1, keepdim=True)
        tail = tail * (0.5 / energy.clamp_min(1e-20)).sqrt()
        return tail + (time == 0).to(x.dtype)

    def apply(self, x: Tensor, params: tuple[Tensor, Tensor]) -> Tensor:
        length = x.shape[-1]
        size = 2 * length  # so that the end does not come back at the beginning
        both = torch.fft.rfft(x, n=size) * torch.fft.rfft(self.response(params, x), n=size)
        return torch.fft.irfft(both, n=size)[..., :length]
