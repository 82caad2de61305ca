"""What all estimators share: their features, their allowance of memory, their files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import torch

from augury._base.errors import AuguryError
from augury._base.memory import GIB, available_bytes
from augury.augmentations import Augmentation
from augury.features import AugmentedFourier, FourierFeatures
from augury.kernel.inputs import on_cpu


class Saved:
    """An estimator on augmented Fourier features that one file can hold, once it is fitted."""

    features: int
    kernel: str
    nu: float
    gamma: float | str
    sampling: str
    versions: int
    mean: float | Sequence[float]
    std: float | Sequence[float]
    memory: float | None
    seed: int
    shape_: tuple[int, ...]
    bytes_: bool
    beyond_: bool
    gamma_: float | None
    augmentation_: Augmentation
    _psi: AugmentedFourier

    def _make_features(self, *, shared: bool = False, short: bool = False) -> AugmentedFourier:
        phi = FourierFeatures(
            int(self.features),
            gamma=self.gamma,
            kernel=self.kernel,
            nu=self.nu,
            sampling=self.sampling,
            mean=self.mean,
            std=self.std,
            seed=int(self.seed),
        )
        phi.short = short
        return AugmentedFourier(
            self.augmentation_,
            phi,
            versions=int(self.versions),
            memory=2.0 if self.memory is None else self.memory / 4,
            shared=shared,
            seed=int(self.seed),
        )

    def _allowed_bytes(self, device: torch.device) -> float:
        return available_bytes(device) / 2 if self.memory is None else self.memory * GIB

    def save(self, path: str | Path) -> None:
        """Write what was fitted to one file of safetensors and JSON."""
        from augury.kernel.persistence import save_model

        save_model(self, path)

    @classmethod
    def load(cls, path: str | Path, *, device: str = "auto") -> Self:
        """Read what `save` wrote; nothing in the file is run."""
        from augury.kernel.persistence import load_model

        model = load_model(path, device=device)
        if not isinstance(model, cls):
            raise AuguryError(f"{path} holds a {type(model).__name__}, not a {cls.__name__}")
        return model

    def __getstate__(self) -> dict[str, Any]:
        """Pickle from the CPU, so that a machine without the device can read it."""
        return on_cpu(dict(super().__getstate__()))  # type: ignore[call-overload]  # scikit-learn leaves it untyped
