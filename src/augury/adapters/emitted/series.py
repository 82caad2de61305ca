"""What audiomentations lacks, in NumPy: copied from here into exported code.

Functions take samples ``(samples,)`` or ``(channels, samples)`` and the sample rate.
"""

from functools import partial  # noqa: F401  # binds the options of a function in exported code

import audiomentations as am  # noqa: F401  # the import that exported code uses
import augury
import numpy as np
import torch
from audiomentations.core.composition import BaseCompose


class Chain(BaseCompose):
    """Apply steps drawn by their rates until a restart, whose rate is 1."""

    def __init__(self, transforms, rates, p):
        super().__init__(transforms, p)
        self.weights = np.array([*rates, 1.0]) / (sum(rates) + 1)

    def __call__(self, samples, sample_rate):
        if np.random.random() >= self.p:
            return samples
        stop = len(self.transforms)
        while (k := np.random.choice(stop + 1, p=self.weights)) < stop:
            samples = self.transforms[k](samples, sample_rate)
        return samples


def shift(samples, sample_rate, fraction):
    """Move along the axis by up to this fraction of the length; the ends are held."""
    length = samples.shape[-1]
    at = np.arange(length) - np.random.uniform(-fraction, fraction) * length
    at = at.clip(0, length - 1)
    left = at.astype(int)
    right = (left + 1).clip(max=length - 1)
    share = (at - left).astype(samples.dtype)
    return samples[..., left] + share * (samples[..., right] - samples[..., left])


def scaling(samples, sample_rate, low, high):
    """Multiply by a factor drawn evenly from low to high."""
    return samples * np.float32(np.random.uniform(low, high))


def feature_dropout(samples, sample_rate, rate):
    """Set each value to zero with this probability."""
    return samples * (np.random.random(samples.shape) >= rate).astype(samples.dtype)


def clipping(samples, sample_rate, fraction):
    """Clip the loudest samples, a share drawn evenly up to this fraction."""
    share = np.random.uniform(0, fraction) / 2
    low, high = np.quantile(samples, [share, 1 - share]).astype(samples.dtype)
    return samples.clip(low, high)


def augury_view(samples, sample_rate, spec):
    """Apply an augmentation of augury, drawn from NumPy's generator."""
    series = torch.from_numpy(samples).reshape(1, -1, samples.shape[-1])
    draws = augury.Rng(int(np.random.randint(2**31)), torch.arange(1))
    return (
        augury.parse(spec).views(series, 1, draws)[0, 0].reshape(samples.shape).numpy()
    )
