"""The parameters that all estimators share: each declared, given its default and stored once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from augury.augmentations import Augmentation
from augury.features.bandwidth import RULES
from augury.features.frequencies import KERNELS, NUS, SAMPLINGS
from augury.kernel.rules import NONE, Rule, check_all, one_of, real, sequence_of, whole

POSITIVE = real(1e-30, 1e30)  # what float32 can take with room to spare
_SHAPE = Rule(
    "the shape of one example, such as (1, 28, 28), or None",
    (NONE | sequence_of(whole(1, 2**31), most=3)).accepts,
)
_FINITE = real(-1e30, 1e30)
_SEEDS = whole(0, 2**63 - 1)
_MOST_CHANNELS = 65_536
_SEED = Rule(
    f"{_SEEDS.expected}, None or a numpy RandomState",
    lambda value: (_SEEDS | NONE).accepts(value) or isinstance(value, np.random.RandomState),
)


@dataclass(eq=False, repr=False)
class FourierParameters(BaseEstimator):
    """The parameters of augmented Fourier features, as scikit-learn sees them.

    A dataclass writes `__init__` with the explicit signature that `clone` and `get_params` read,
    and stores each parameter as it came; they are checked when `fit` is called. Subclasses add
    their own in the same way. `AugmentedKernelClassifier` says what each of them means.
    """

    augmentation: str | Augmentation = "identity"
    _: KW_ONLY
    input_shape: tuple[int, ...] | None = None
    n_components: int = 4096
    kernel: str = "gaussian"
    nu: float = 1.5
    gamma: float | str = "alignment"
    sampling: str = "iid"
    n_views: int = 6
    mean: float | Sequence[float] = 0.0
    std: float | Sequence[float] = 1.0
    memory: float | None = None
    device: str = "auto"
    random_state: int | np.random.RandomState | None = 0

    rules: ClassVar[dict[str, Rule]] = {
        "input_shape": _SHAPE,
        "n_components": whole(1, 2**40),
        "kernel": one_of(KERNELS),
        "nu": one_of(NUS),
        "gamma": POSITIVE | one_of(RULES),
        "sampling": one_of(SAMPLINGS),
        "n_views": whole(1, 4096),
        "mean": _FINITE | sequence_of(_FINITE, most=_MOST_CHANNELS),
        "std": POSITIVE | sequence_of(POSITIVE, most=_MOST_CHANNELS),
        "memory": POSITIVE | NONE,
        "random_state": _SEED,
    }

    def check_parameters(self) -> None:
        """Raise one clear line if a parameter is of the wrong type or out of range."""
        check_all(self.rules, self.get_params(deep=False))


def even(n_components: int) -> int:
    """Return the number of features: each frequency has a cosine and a sine, so it is even."""
    return 2 * -(-int(n_components) // 2)


def seed_from(random_state: Any) -> int:
    """Return a seed: a whole number itself, or one that a generator or the system draws."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return int(random_state)
