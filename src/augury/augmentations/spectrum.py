"""Augmentations of series in their spectrum: bands removed, frequencies moved."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from augury._base.rng import Rng
from augury.augmentations.base import Family, Nodes, gauss_legendre, require
from augury.augmentations.series import window


@dataclass(frozen=True, repr=False)
class frequency_mask(Family):
    """A frequency band removed, with width uniform in (0, `fraction`) of the spectrum."""

    ladder = ((0.05,), (0.1,), (0.25,), (0.5,))
    kinds = frozenset({"series", "sound"})
    linear = True
    fraction: float = 0.1

    def __post_init__(self) -> None:
        require("frequency_mask", 0 < self.fraction <= 1, "a fraction in (0, 1]", self.fraction)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, 2)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        spectrum = torch.fft.rfft(x)
        band = window(params, self.fraction, spectrum.shape[-1])
        return torch.fft.irfft(spectrum * ~band, n=x.shape[-1])


@dataclass(frozen=True, repr=False)
class frequency_shift(Family):
    """All frequencies shifted up or down by up to `fraction` of the highest one.

    The series' analytic signal z, whose negative frequencies are zero, is turned at a constant
    speed: Re z(t) exp(iπft), with f uniform in ± `fraction`. The mean stays where it is.
    """

    ladder = ((0.005,), (0.01,), (0.02,), (0.05,), (0.1,))
    kinds = frozenset({"series"})
    linear = True
    fraction: float = 0.02

    def __post_init__(self) -> None:
        require("frequency_shift", 0 < self.fraction <= 1, "a fraction in (0, 1]", self.fraction)

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, low=-self.fraction, high=self.fraction)

    def nodes(self, n: int) -> Nodes | None:
        return gauss_legendre(n, -self.fraction, self.fraction)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        length = x.shape[-1]
        mean = x.mean(-1, keepdim=True)
        spectrum = torch.fft.fft(x - mean)
        weight = torch.zeros(length, dtype=x.dtype, device=x.device)
        weight[: length // 2 + 1] = 2
        if length % 2 == 0:
            weight[length // 2] = 1  # its own mirror image
        analytic = torch.fft.ifft(spectrum * weight)
        time = torch.arange(length, dtype=x.dtype, device=x.device)
        angle = (math.pi * params.to(x.dtype)).reshape(*params.shape, 1, 1) * time
        return mean + analytic.real * angle.cos() - analytic.imag * angle.sin()
