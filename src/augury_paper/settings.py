"""The paper's settings, in one place, and their quick form."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

AUGMENTATIONS = {
    "rotation": "rotation(15)",
    "crop": "resized_crop(0.64)",
    "blur": "blur(0.5,2.0)",
}
"""Those of Figure 1 and of the appendix's last."""


@dataclass(frozen=True)
class Settings:
    """How every experiment is run: the paper's appendix, unless a comment says otherwise."""

    trials: int = 10
    features: int = 10_000
    rate: float = 0.01
    momentum: float = 0.9
    batch: int = 256
    epochs: int = 15
    versions: int = 16
    examples: int = 0  # of the training set, 0 for all
    tests: int = 0  # of the test set, 0 for all
    datasets: tuple[str, ...] = ("mnist", "cifar10", "mammograms")

    @property
    def size(self) -> float:
        """‖φ(x)‖ of the Fourier features that SGD trains a head on.

        The paper does not say. Its authors' code leaves cosines and sines at amplitude 1, with
        which the rate is beyond what SGD can take: from one epoch to the next, the accuracy on
        CIFAR-10 jumps by ten points and more. With norm 1 it hardly learns. The curvature of the
        multinomial loss is at most ‖φ‖²/2, and momentum m is stable up to 2(1 + m)/rate: this is
        half of that.
        """
        return math.sqrt(2 * (1 + self.momentum) / self.rate)


PAPER = Settings()

QUICK = replace(  # small batches, so that a network takes enough steps to learn something
    PAPER, trials=2, features=1_000, batch=16, epochs=4, versions=8, examples=1_000, tests=500
)
