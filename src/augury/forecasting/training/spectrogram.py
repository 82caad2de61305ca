"""What a trial's network sees: images, series and vectors as they are, sound as a spectrogram."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from augury.data.dataset import Dataset

_MELS, _FRAMES = 32, 32
"""The sides of a spectrogram at most: near those of the images that trials are made on."""
_ON_A_CPU = 10
"""Views of each image in a trial on a CPU, where making new ones for each epoch takes a fifth of
the time. They rank as well: ``docs/prediction.md`` has the comparison."""
_WINDOW = 0.032  # seconds of a frame, as is usual for speech
_FLOOR = 1e-5  # 50 dB below the mean power of a clip
_SILENCE = 1e-10  # power that is not brought to the level of others
_CENTRE, _SCALE = -2.0, 1.5
"""Of the common logarithms of power: between the floor and loud sounds they come to ±2."""


class AsItIs(nn.Module):
    """Return examples unchanged."""

    work = 1
    """Numbers in memory for each value of a view, while views are made."""
    views = None
    """Views of each example in a trial, seen in turn; None for a new one in each epoch."""
    dtype = torch.float32

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, x: Tensor) -> Tensor:
        return x


class LogMel(nn.Module):
    """Turn waveforms ``(…, 1, samples)`` to log-mel spectrograms ``(…, 1, mels, frames)``.

    Power in Hann windows of 32 ms, averaged over triangular bands that are evenly spaced on the
    mel scale 2595 log₁₀(1 + f/700), then over frames until there are 32 at most. Each clip is
    brought to one level, as is usual, since recordings differ in it more than in what they say;
    the logarithm is brought near to mean 0 and variance 1 by constants. Nothing is learnt.

    Parameters
    ----------
    rate
        Samples a second.
    samples
        The length of a clip.
    """

    work = 32
    views = 8  # a view costs as much as a step of training; 8 rank as well as new ones do
    dtype = torch.float16
    window: Tensor
    bands: Tensor

    def __init__(self, rate: int, samples: int) -> None:
        super().__init__()
        self.size = min(1 << round(math.log2(rate * _WINDOW)), 1 << (samples.bit_length() - 1))
        self.hop = max(1, self.size // 2)
        frames = samples // self.hop + 1
        self.shape = (1, _MELS, min(frames, _FRAMES))
        self.register_buffer("window", torch.hann_window(self.size))
        self.register_buffer("bands", mel_bands(rate, self.size // 2 + 1, _MELS))

    def forward(self, x: Tensor) -> Tensor:
        waves = x.reshape(-1, x.shape[-1]).float()
        found = torch.stft(
            waves, self.size, self.hop, window=self.window, pad_mode="constant", return_complex=True
        )
        power = found.abs().square() / self.window.square().sum()
        mel = F.adaptive_avg_pool1d(self.bands @ power, self.shape[-1])
        level = mel.mean(dim=(-2, -1), keepdim=True).clamp_min(_SILENCE)
        seen = (mel / level + _FLOOR).log10()
        return ((seen - _CENTRE) / _SCALE).reshape(*x.shape[:-1], *self.shape[1:])


def mel_bands(rate: int, bins: int, count: int) -> Tensor:
    """Return triangular bands over the bins of a spectrum, ``(count, bins)``, rows of sum 1.

    A band between two bins gets the nearer one.
    """
    highest = 2595 * math.log10(1 + rate / 2 / 700)
    edges = 700 * (10 ** (torch.linspace(0, highest, count + 2).double() / 2595) - 1)
    at = torch.linspace(0, rate / 2, bins).double()
    rise = (at - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    fall = (edges[2:, None] - at) / (edges[2:] - edges[1:-1])[:, None]
    bands = torch.minimum(rise, fall).clamp_min(0)
    nearest = (at - edges[1:-1, None]).abs().argmin(1)
    empty = bands.sum(1) == 0
    bands[empty, nearest[empty]] = 1.0
    return (bands / bands.sum(1, keepdim=True)).float()


def count_views(data: Dataset, device: torch.device) -> int | None:
    """Return how many views of an example a trial makes; None for a new one in each epoch."""
    if data.kind == "image" and device.type == "cpu":
        return _ON_A_CPU
    return front_end(data).views


def front_end(data: Dataset) -> AsItIs | LogMel:
    """Return what turns examples of this data into what a network sees; `shape` is its shape."""
    if data.rate is None:
        return AsItIs(data.shape)
    return LogMel(data.rate, data.shape[-1])
