"""The user's own recordings as noise."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.rng import Rng
from augury.augmentations.base import Augmentation, number
from augury.augmentations.sound import SOUND, mix


class background(Augmentation):
    """Recordings mixed in from a random place, at a ratio uniform in [`low`, `high`] dB.

    Parameters
    ----------
    noise
        One wave, ``(samples,)``, at the sample rate of the data: recordings joined end to end,
        which wrap round at their end.
    low, high
        The signal-to-noise ratio.
    name
        What the recordings are called in results.
    """

    ladder = ((15, 25), (5, 15), (-5, 5))
    kinds = SOUND

    def __init__(self, noise: Any, low: float = 5.0, high: float = 15.0, name: str = "") -> None:
        self.noise = torch.as_tensor(noise, dtype=torch.float32).flatten()
        self.low, self.high, self.name = low, high, name or "recordings"
        if not -60 <= low <= high <= 120:
            raise AuguryError(f"{self}: expected −60 ≤ low ≤ high ≤ 120 dB")
        if not len(self.noise) or not bool(self.noise.isfinite().all()):
            raise AuguryError(f"{self}: expected a wave of finite samples")

    def draw(self, n: int, rng: Rng) -> Tensor:
        return rng.uniform(n, 2)

    def apply(self, x: Tensor, params: Tensor) -> Tensor:
        noise = self.noise.to(x)
        start = (params[..., :1] * len(noise)).to(torch.int64)
        time = torch.arange(x.shape[-1], device=x.device)
        heard = noise[(start + time) % len(noise)].unsqueeze(2)
        return mix(x, heard, self.low + (self.high - self.low) * params[..., 1])

    def __repr__(self) -> str:
        return f"background({self.name},{number(self.low)},{number(self.high)})"
