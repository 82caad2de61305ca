"""Fitted estimators that one file can hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from augury.augmentations import Augmentation
from augury.errors import AuguryError
from augury.estimators.inputs import on_cpu
from augury.features import AugmentedFourier


class Saved:
    """Saves, loads and pickles a fitted estimator on augmented Fourier features."""

    shape_: tuple[int, ...]
    bytes_: bool
    beyond_: bool
    gamma_: float | None
    augmentation_: Augmentation
    _psi: AugmentedFourier

    def save(self, path: str | Path) -> None:
        """Write what was fitted to one file of safetensors and JSON."""
        from augury.estimators.persistence import save_model

        save_model(self, path)

    @classmethod
    def load(cls, path: str | Path, *, device: str = "auto") -> Self:
        """Read what `save` wrote; nothing in the file is run."""
        from augury.estimators.persistence import load_model

        model = load_model(path, device=device)
        if not isinstance(model, cls):
            raise AuguryError(f"{path} holds a {type(model).__name__}, not a {cls.__name__}")
        return model

    def __getstate__(self) -> dict[str, Any]:
        """Pickle from the CPU, so that a machine without the device can read it."""
        return on_cpu(dict(super().__getstate__()))  # type: ignore[call-overload]  # scikit-learn leaves it untyped
