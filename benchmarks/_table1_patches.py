"""Ridge regression on random patches: another kernel of ours, for the least error on MNIST."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from augury._base.devices import tensor_cores
from augury._base.rng import Rng
from augury.augmentations import parse
from augury.features import PatchFeatures
from augury.features.orbit import Orbit
from augury.kernel.solvers import Batches, solve_ridge

_SAMPLE = 2000
_BLOCK = 2000


class PatchClassifier:
    """`PatchFeatures`, averaged over a few views, with one-hot ridge regression on them."""

    note_ = ""
    gamma_ = None

    def __init__(
        self, augmentation: str, n_views: int, device: torch.device, seed: int = 0, **patches: Any
    ) -> None:
        self.augmentation, self.n_views = parse(augmentation), n_views
        self.device, self.seed = device, seed
        self.phi = PatchFeatures(seed=seed, **patches)

    def _psi(self, x: Tensor, start: int) -> Tensor:
        rng = Rng(self.seed, torch.arange(start, start + len(x), device=self.device))
        versions, weights = self.augmentation.versions(self._floats(x), self.n_views, rng)
        out = weights[0] * self.phi(versions[0])
        for weight, version in zip(weights[1:], versions[1:], strict=True):
            out += weight * self.phi(version)
        return out

    def _floats(self, x: Tensor) -> Tensor:
        return x.to(self.device).float() / 255

    @torch.no_grad()
    def fit(self, x: Tensor, y: Tensor) -> PatchClassifier:
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(self.seed))
        self.phi.fit(self._floats(x[order[:_SAMPLE]]))
        target = torch.nn.functional.one_hot(y).to(self.device, torch.float32)
        self.mean = target.mean(0)
        one = torch.ones(1, device=self.device)

        def make(index: Tensor) -> tuple[Orbit, None]:
            start = int(index[0])
            return Orbit(self._psi(x[start : start + len(index)], start).unsqueeze(0), one), None

        with tensor_cores(self.device.type == "cuda"):
            found = solve_ridge(Batches(make, target - self.mean, size=_BLOCK))
        self.weights, self.ridge_, self.solver_ = found.weights, found.ridge, found.method
        return self

    @torch.no_grad()
    def predict(self, x: Tensor) -> Any:
        parts = [
            (self._psi(x[start : start + _BLOCK], start) @ self.weights + self.mean).argmax(1)
            for start in range(0, len(x), _BLOCK)
        ]
        return torch.cat(parts).cpu().numpy()
