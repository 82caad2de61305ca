"""The paper's settings in one place, and smaller ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

AUGMENTATIONS = {
    "rotation": "rotation(15)",
    "crop": "resized_crop(0.64)",
    "blur": "blur(0.5,2.0)",
}
"""The augmentations of Figure 1 and of the appendix's last figure."""

_SMALL = 5_000


@dataclass(frozen=True)
class Settings:
    """How every experiment is run: the paper's appendix, unless a comment says otherwise."""

    trials: int = 10
    n_components: int = 10_000
    learning_rate: float = 0.01
    momentum: float = 0.9
    batch_size: int = 256
    epochs: int = 15
    n_views: int = 16
    examples: int = 0  # of the training set, 0 for all
    tests: int = 0  # of the test set, 0 for all
    falling: bool = False  # whether LeNet's learning rate falls to 0 when features are averaged
    together: bool = False  # whether averaging has one cell, with fewer methods
    datasets: tuple[str, ...] = ("mnist", "cifar10", "mammograms")

    @property
    def small(self) -> bool:
        """Whether this is a quick look at a few examples, which takes fewer and smaller models."""
        return 0 < self.examples < _SMALL

    @property
    def size(self) -> float:
        """‖φ(x)‖ of the Fourier features that SGD trains a head on.

        The paper does not say. Its authors' code leaves cosines and sines at amplitude 1, for
        which the learning rate is too large: from one epoch to the next, the accuracy on CIFAR-10
        jumps by ten points and more. With norm 1 it hardly learns. The curvature of the
        multinomial loss is at most ‖φ‖²/2, and momentum m is stable up to 2(1 + m)/rate: this is
        half of that.
        """
        return math.sqrt(2 * (1 + self.momentum) / self.learning_rate)


PAPER = Settings()

FEWER = replace(
    PAPER, trials=20, learning_rate=0.05, batch_size=64, epochs=20, examples=10_000, falling=True
)
"""For averaging at a layer: with fewer images augmentation gains a point and not a few tenths, so
that a share of the gain can be told from chance; as the rate falls, the last steps add no noise."""

QUICK = replace(  # small batches, so that a network takes enough steps to learn something
    PAPER,
    trials=2,
    n_components=1_000,
    batch_size=16,
    epochs=4,
    n_views=8,
    examples=1_000,
    tests=500,
)

CPU = replace(PAPER, trials=3, examples=10_000)
"""For Table 1 in closed form on a CPU."""

CORES = replace(
    FEWER, trials=5, learning_rate=0.03, batch_size=32, epochs=20, examples=1_000, together=True
)
"""For averaging at a layer on two cores in minutes: one cell, with small batches so that 1,000
images make enough steps."""

NAMED = {"paper": PAPER, "fewer": FEWER, "cores": CORES, "cpu": CPU, "quick": QUICK}
