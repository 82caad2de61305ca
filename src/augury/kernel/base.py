"""What classifier and regressor share: features by plan, solved by closed form or quasi-Newton."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from augury._base.devices import resolve_device, tensor_cores
from augury._base.errors import AuguryError
from augury._base.memory import GIB
from augury._base.rng import Rng
from augury.augmentations import parse
from augury.features import AugmentedFourier
from augury.features.frequencies import bytes_to_draw
from augury.features.orbit import Orbit
from augury.kernel.estimator import FourierEstimator
from augury.kernel.inputs import check_range, to_floats, warn_of_range
from augury.kernel.parameters import POSITIVE, FourierParameters, seed_from
from augury.kernel.rules import Rule, one_of
from augury.kernel.solvers import (
    Batches,
    RidgeSolution,
    RoughProducts,
    check_fits,
    minimise,
    solve_ridge,
)
from augury.kernel.solvers.ridge import Ridges
from augury.kernel.streamed import Streamed
from augury.objectives import Loss, exact, first_order, second_order

OBJECTIVES = {
    "first-order": first_order,
    "tangent": first_order,  # with the variance along each orbit's leading direction as a penalty
    "second-order": second_order,
    "exact": exact,
}
PRECISIONS = {
    "float32": torch.float32,
    "tf32": torch.float32,
    "bfloat16": torch.float32,
    "float64": torch.float64,
}
_SHORT = ("tf32", "bfloat16")  # let a GPU's tensor cores multiply
_SAMPLE = 1000  # examples that γ is chosen on
_BLOCK, _BLOCK_CUDA = 2**25, 2**30  # bytes of features computed together: a CPU's cache, a GPU's
_TANGENTS, _RAREST = 1250, 8  # examples that give their leading direction; one in 8 at least
_KRYLOV = 80 * 16  # columns that the solver may hold

Progress = Callable[[int, int], None]


@dataclass(eq=False, repr=False, kw_only=True)
class KernelModel(FourierEstimator):
    """A linear model on (augmented) Fourier features: everything but what y means."""

    objective: str = "first-order"
    ridge: Ridges = "gcv"
    prediction: str = "averaged"
    precision: str = "float32"

    rules: ClassVar[dict[str, Rule]] = FourierParameters.rules | {
        "objective": one_of(OBJECTIVES),
        "ridge": POSITIVE | one_of(["gcv"]),
        "prediction": one_of(["averaged", "plain"]),
        "precision": one_of(PRECISIONS),
    }

    def _fit_features(self, x: Tensor, targets: Tensor) -> None:
        """Choose γ, draw the frequencies and transform them, on a sample of the examples."""
        self.seed_ = seed_from(self.random_state)
        where = resolve_device(self.device)
        like = torch.empty(0, dtype=PRECISIONS[self.precision], device=where)
        self.augmentation_ = parse(self.augmentation)
        self._psi = self._make_features()
        self._budget(like, targets.shape[1])
        generator = torch.Generator().manual_seed(self.seed_)
        index = torch.randperm(len(x), generator=generator)[:_SAMPLE].to(x.device)
        sample = to_floats(x[index], like)
        check_range(sample, x)
        warn_of_range(self.augmentation_, sample)
        self._psi.fit(sample, targets[index.to(targets.device)].to(like))
        self.gamma_ = self._psi.phi.gamma_
        self.note_ = self._psi.note

    def _make_features(self, *, shared: bool = False, short: bool = False) -> AugmentedFourier:
        shared = shared or self.objective != "first-order"  # as the views that it is trained on are
        return super()._make_features(shared=shared, short=short or self.precision == "bfloat16")

    def _budget(self, like: Tensor, outputs: int) -> tuple[float, float]:
        """Return the bytes for kept features and for a Gram matrix; raise if d is out of reach."""
        allowed = self._allowed_bytes(like.device)
        item, pixels = like.element_size(), math.prod(self.shape_)

        def need(d: int) -> float:
            drawn = bytes_to_draw(self.sampling, d // 2, pixels, item)
            width = min(_KRYLOV, d) + 4 * outputs
            return drawn + item * d * width + 4 * self._block_bytes(like)

        check_fits(need, self._d, allowed)
        left = allowed - need(self._d)
        return 0.75 * left, left / 3  # Cholesky holds the matrix twice

    def _block_bytes(self, like: Tensor) -> int:
        most = _BLOCK_CUDA if like.is_cuda else _BLOCK
        return most if self.memory is None else int(min(most, self.memory * GIB / 16))

    def _batches(self, x: Tensor, y: Tensor, progress: Progress) -> Batches:
        like = self._psi.weights
        assert like is not None
        room, self._gram_bytes = self._budget(like, y[0].numel())
        if like.is_cuda and x.nbytes < room / 2:
            x, room = x.to(like.device), room - x.nbytes
        return Batches(
            self.maker(x),
            y.to(like.device),
            size=self.block_size(),
            budget=room,
            progress=progress,
        )

    def maker(
        self, x: Tensor, first: int = 0, total: int | None = None
    ) -> Callable[[Tensor], tuple[Orbit, Tensor | None]]:
        """Return what makes orbits of `x`, whose examples begin with number `first` of `total`."""

        def make(index: Tensor) -> tuple[Orbit, Tensor | None]:
            with tensor_cores(self.precision in _SHORT):  # as at prediction, whatever sums take
                return self._block(x, index, first, total or len(x))

        return make

    def block_size(self) -> int:
        """Return how many examples' features are computed together."""
        like = self._psi.weights
        assert like is not None
        each = self._width() * self._d * like.element_size()
        return max(1, self._block_bytes(like) // each)

    def _width(self) -> int:
        """Return how many views of an example a block holds."""
        if self.objective in ("first-order", "tangent"):
            return 1
        assert self._psi.weights is not None
        return len(self._psi.weights)

    def _block(
        self, x: Tensor, index: Tensor, first: int, total: int
    ) -> tuple[Orbit, Tensor | None]:
        """Return what the objective needs of some examples: averaged features, or all views."""
        psi = self._psi
        assert psi.weights is not None
        examples = to_floats(x[int(index[0]) : int(index[-1]) + 1], psi.weights)
        one, numbers = psi.weights.new_ones(1), index + first
        if self.objective == "first-order":
            return Orbit(psi(examples).unsqueeze(0), one), None
        if self.objective == "tangent":
            step = min(max(1, total // _TANGENTS), _RAREST)
            mean, rows = psi.leading(examples, numbers, step)
            return Orbit(mean.unsqueeze(0), one), rows * math.sqrt(len(mean) / len(rows))
        if psi.shared and psi.augmentation.nodes(int(self.n_views)) is not None:
            return Orbit(psi.views_of(examples), psi.weights), None
        rng = Rng(self.seed_, numbers.to(examples.device))
        return Orbit.of(psi.phi, psi.augmentation, examples, int(self.n_views), rng), None

    @torch.no_grad()
    def _solve_quadratic(
        self, x: Tensor | Streamed, y: Tensor | None, progress: Progress
    ) -> RidgeSolution:
        found = None
        with contextlib.suppress(RoughProducts):  # tensor cores round too much for a λ so small
            found = self._solve_ridge(x, y, progress, short=self.precision in _SHORT)
        if found is None:  # what the first held is free by now
            found = self._solve_ridge(x, y, progress, short=False)
        if not bool(found.weights.isfinite().all()):
            raise AuguryError(
                "the weights are not finite: some numbers in X, or gamma, are too large; rescale "
                "X to values near 1"
            )
        self.ridge_, self.risk_, self.solver_ = found.ridge, found.risk, found.method
        self._weights = found.weights
        return found

    def _solve_ridge(
        self, x: Tensor | Streamed, y: Tensor | None, progress: Progress, *, short: bool
    ) -> RidgeSolution:
        if isinstance(x, Streamed):
            return x.solve(self, short=short, progress=progress)
        assert y is not None
        with tensor_cores(short):
            batches = self._batches(x, y, progress)
            return solve_ridge(
                batches,
                ridge=self.ridge,
                gram_bytes=self._gram_bytes,
                raising=not short,
                seed=self.seed_,
            )

    def _solve_smooth(
        self, x: Tensor, one_hot: Tensor, y: Tensor, loss: Loss, progress: Progress
    ) -> None:
        """Minimise a smooth loss, from the quadratic loss's λ and eigenvectors."""
        found = self._solve_quadratic(x, one_hot, progress)
        outputs = 1 if y.is_floating_point() else one_hot.shape[1]
        batches = self._batches(x, y, lambda done, total: None)
        head = nn.Linear(self._d, outputs, device=batches.device, dtype=batches.dtype)
        nn.init.zeros_(head.weight)
        nn.init.zeros_(head.bias)
        if self.ridge == "gcv":  # λ against a loss of this curvature is worth as much
            self.ridge_ = found.ridge * min(loss.smoothness, 2.0) / 2.0
        self.n_iter_ = minimise(
            head,
            batches,
            OBJECTIVES[self.objective],
            loss,
            ridge=self.ridge_,
            space=found.space,
        )
        self.solver_ = "l-bfgs"
        self._weights = head.weight.detach().mT.contiguous()
        self._bias = head.bias.detach()

    @torch.no_grad()
    def _outputs(self, x: Tensor) -> Tensor:
        """Return wᵀψ(x) + bias, or wᵀφ(x) for plain prediction: ``(N, C)``, float64 on the CPU."""
        psi = self._psi
        assert psi.weights is not None
        step = max(1, self._block_bytes(psi.weights) // (self._d * 8))
        plain = self.prediction == "plain"
        parts = []
        with tensor_cores(self.precision in _SHORT):
            for block in x.split(step):
                examples = to_floats(block, psi.weights)
                features = psi.phi(examples) if plain else psi(examples)
                parts.append(features @ self._weights)
        out = torch.cat(parts).double().cpu() + self._bias.double().cpu()
        if not bool(out.isfinite().all()):
            check_range(to_floats(x, psi.weights), x)
            raise AuguryError(
                "the predictions are not finite: some numbers in X are too large for the gamma and "
                "weights that were fitted; scale X as the training data was scaled"
            )
        return out

    def describe(self) -> str:
        """Return a sentence on what was fitted."""
        how = f"λ = {self.ridge_:.2g} by {self.solver_}"
        return f"{self._psi.describe()}; {self.objective} objective; {how}"
