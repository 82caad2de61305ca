"""What all estimators share: their features, their allowance of memory, their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import torch

from augury._base.errors import AuguryError
from augury._base.memory import GIB, available_bytes
from augury._base.text import kind_of
from augury.augmentations import Augmentation
from augury.features import AugmentedFourier, FourierFeatures
from augury.kernel.inputs import on_cpu
from augury.kernel.parameters import FourierParameters, even


class FourierEstimator(FourierParameters):
    """An estimator on augmented Fourier features that can be saved to one file once it is fitted.

    Attributes
    ----------
    shape_
        The shape of one example.
    bytes_
        Whether the examples were bytes, which stand for pixels in [0, 1].
    beyond_
        Whether they were floats that go beyond 1.
    seed_
        The seed that `random_state` stands for.
    """

    shape_: tuple[int, ...]
    n_features_in_: int
    bytes_: bool
    beyond_: bool
    gamma_: float | None
    seed_: int
    note_: str
    augmentation_: Augmentation
    _psi: AugmentedFourier

    @property
    def _d(self) -> int:
        """The number of features: `n_components`, or one more if that is odd."""
        return even(self.n_components)

    def _make_features(self, *, shared: bool = False, short: bool = False) -> AugmentedFourier:
        phi = FourierFeatures(
            self._d,
            gamma=self.gamma,
            kernel=self.kernel,
            nu=self.nu,
            sampling=self.sampling,
            mean=self.mean,
            std=self.std,
            seed=self.seed_,
        )
        phi.short = short
        return AugmentedFourier(
            self.augmentation_,
            phi,
            n_views=int(self.n_views),
            memory=2.0 if self.memory is None else self.memory / 4,
            shared=shared,
            seed=self.seed_,
        )

    def _allowed_bytes(self, device: torch.device) -> float:
        return available_bytes(device) / 2 if self.memory is None else self.memory * GIB

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to one file of safetensors and JSON."""
        from augury.kernel.persistence import save_model

        save_model(self, path)

    @classmethod
    def load(cls, path: str | Path, *, device: str = "auto") -> Self:
        """Read an estimator that `save` wrote; no code in the file is run."""
        from augury.kernel.persistence import load_model

        model = load_model(path, device=device)
        if not isinstance(model, cls):
            kind = type(model).__name__
            raise AuguryError(f"{path} holds {kind_of(model)}; read it with {kind}.load")
        return model

    def __getstate__(self) -> dict[str, Any]:
        """Pickle from the CPU, so that a machine without the device can read it."""
        return on_cpu(dict(super().__getstate__()))  # type: ignore[call-overload]  # scikit-learn leaves it untyped
