"""Ridge regression on orbits: the exact augmented objective of the quadratic loss, closed form."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from augury._base.errors import AuguryError
from augury.kernel.solvers.batches import Batches
from augury.kernel.solvers.gram import Sums, accumulate, probes_for
from augury.kernel.solvers.krylov import Subspace, block_lanczos
from augury.kernel.solvers.spectrum import Spectrum

_SMALL = 768  # a matrix of this side is taken apart whole
_WIDE = 32  # more targets than these choose λ by random combinations of them
_STEPS, _TYPICAL = 80, 30
_SETTLED = 0.7  # of log λ, between two looks
_CHOSEN = 0.3  # of log λ, while the space grew by half: where a look is cheap beside what follows
_FACTORISED = 16_384  # features, up to which a GPU factorises sooner than it multiplies

Ridges = float | Literal["gcv"]


class RoughProducts(ArithmeticError):
    """Rounding has moved an eigenvalue of E[φφᵀ] below −λ."""


@dataclass(frozen=True)
class RidgeSolution:
    """The solution w = (E[φφᵀ] + λI)⁻¹ E[ψyᵀ].

    Attributes
    ----------
    weights
        w, ``(d, C)``.
    ridge
        λ.
    risk
        Its estimate of the squared error on new data (generalised cross-validation); NaN where
        it was not needed.
    method
        ``"eigen"``, ``"krylov"`` or ``"cholesky"``.
    residual
        ‖(E[φφᵀ] + λI)w − E[ψyᵀ]‖ / ‖E[ψyᵀ]‖ as the solver knows it; 0 for the direct ones.
    steps
        Products with E[φφᵀ] that it took.
    space
        The leading eigenvectors of E[φφᵀ] that it found on the way.
    """

    weights: Tensor
    ridge: float
    risk: float
    method: str
    residual: float = 0.0
    steps: int = 0
    space: Subspace | None = field(default=None, repr=False, compare=False)


def solve_ridge(
    batches: Batches,
    *,
    ridge: Ridges = "gcv",
    tol: float = 3e-4,
    gram_bytes: float = math.inf,
    method: Literal["auto", "cholesky", "krylov"] = "auto",
    raising: bool = True,
    seed: int = 0,
) -> RidgeSolution:
    """Minimise E‖wᵀφ(t) − y‖² + λ‖w‖² over all views of all examples.

    For orbits of one view, the averaged features, that is the first-order objective; for whole
    orbits it is the exact one, and also the second-order one, which is exact for this loss.

    Parameters
    ----------
    batches
        Orbits and targets ``(b, C)``, centred.
    ridge
        λ, or ``"gcv"`` to choose it by generalised cross-validation. All λ come from one
        factorisation or one Krylov space.
    tol
        The residual at which the Krylov space is large enough.
    gram_bytes
        The most memory for E[φφᵀ]; without it, products go through the features.
    method
        ``"cholesky"`` factorises E[φφᵀ] + λI; ``"krylov"`` multiplies only; ``"auto"`` takes
        eigenvalues where a side is small; else, on a GPU, Cholesky with λ by a small Krylov space
        where the matrix fits, and has few enough columns or features are not kept; else Krylov
        alone.
    raising
        What to do where products are too rough to factorise with λ: raise λ, with a warning, or
        give up with `RoughProducts`, for a caller who can make finer ones.
    seed
        Of the probes that measure the effective number of parameters.

    Notes
    -----
    Krylov: about 15 to 60 products with C and a few more columns, by the features (4 N n d
    operations a column) or by E[φφᵀ], whichever is cheaper. Cholesky: N n d² + d³/3.
    """
    number = not isinstance(ridge, str) and math.isfinite(ridge) and ridge > 0
    if not number and ridge != "gcv":
        raise AuguryError(f"ridge must be positive or 'gcv', not {ridge!r}")
    d, classes = batches.d, batches.y.shape[1]
    if method == "auto" and len(batches) * batches.n <= min(_SMALL, d):
        return _dual(batches, ridge)
    if method == "auto" and d <= _SMALL:
        return _primal(accumulate(batches, gram=True, dtype=torch.float64), ridge, batches.dtype)
    fits = batches.dtype.itemsize * d * d <= gram_bytes
    # A GPU factorises sooner than it makes a hundred small steps that wait for each other, as long
    # as the cube of d is small.
    factorised = fits and (d <= _FACTORISED or not batches.kept)
    direct = method == "cholesky" or (
        method == "auto" and batches.device.type == "cuda" and factorised
    )
    many = 4 * _TYPICAL * (classes + probes_for(classes)) > d or not batches.kept
    sums = accumulate(batches, gram=direct or (fits and many), seed=seed)
    if direct and ridge != "gcv":
        return _cholesky(sums, float(ridge), math.nan, raising=raising)
    fallback = fits and method != "krylov"
    return _krylov(
        sums, batches, ridge, tol, direct=direct, fallback=fallback, raising=raising, seed=seed
    )


def dtype_of_sums(d: int) -> torch.dtype | None:
    """Return the type of sums that are taken apart whole; None for that of the features."""
    return torch.float64 if d <= _SMALL else None


def solve_sums(
    sums: Sums, dtype: torch.dtype, *, ridge: Ridges, tol: float = 3e-4, raising: bool, seed: int
) -> RidgeSolution:
    """Minimise as `solve_ridge` does, from sums with E[φφᵀ] and without the examples."""
    if len(sums.cross) <= _SMALL:
        return _primal(sums, ridge, dtype)
    if ridge != "gcv":
        return _cholesky(sums, float(ridge), math.nan, raising=raising)
    # Not by Krylov alone, whose result depends on rounding within `tol`.
    return _krylov(sums, None, ridge, tol, direct=True, fallback=True, raising=raising, seed=seed)


def _primal(sums: Sums, ridge: Ridges, dtype: torch.dtype) -> RidgeSolution:
    assert sums.gram is not None
    values, vectors = torch.linalg.eigh(sums.gram)
    return _eigen(sums, values, vectors, ridge, dtype)


def _dual(batches: Batches, ridge: Ridges) -> RidgeSolution:
    """Take FFᵀ apart in place of FᵀF, for fewer rows than features: Fᵀu/√s for eigenvectors."""
    parts = []
    for block in batches:
        for rows, weights in block.rows():
            share = 1.0 if weights is None else weights.double().sqrt()
            parts.append(rows.double() * share / math.sqrt(len(batches)))
    f = torch.cat(parts)
    values, vectors = torch.linalg.eigh(f @ f.mT)
    some = values > 1e-12 * values[-1]  # the others have no features to speak of
    lifted = f.mT @ (vectors[:, some] / values[some].sqrt())
    sums = accumulate(batches, gram=False, dtype=torch.float64)
    return _eigen(sums, values[some], lifted, ridge, batches.dtype)


def _eigen(
    sums: Sums, values: Tensor, vectors: Tensor, ridge: Ridges, dtype: torch.dtype
) -> RidgeSolution:
    """Solve with all eigenvalues known, and the eigenvectors ``(d, k)``."""
    whole = torch.eye(len(values)).to(values)
    space = Subspace(vectors, values.clamp_min(0), whole, whole[:0, :0], 0)
    spectrum = _View(sums, sums.cross, whole=True).spectrum(space)
    chosen = spectrum.best_ridge() if ridge == "gcv" else ridge
    weights = (vectors @ spectrum.solve(chosen)).to(dtype)
    space = replace(space, basis=vectors.to(dtype))
    return RidgeSolution(weights, chosen, _risk(spectrum, chosen), "eigen", space=space)


class _View:
    """The data along the vectors of a space: all eigenvectors, or those that probes lead to.

    The space may grow between looks; every column of its basis meets the rows once.
    """

    def __init__(self, sums: Sums, cross: Tensor, *, whole: bool) -> None:
        self._sums, self._cross, self._whole = sums, cross, whole
        self._rows = sums.penalty if sums.sample is None else sums.sample[0]
        self._seen = cross.new_empty(0 if self._rows is None else len(self._rows), 0).double()

    def spectrum(self, space: Subspace) -> Spectrum:
        sums, sample, penalty = self._sums, None, None
        if self._rows is not None:
            new = self._rows @ space.basis[:, self._seen.shape[1] :]
            self._seen = torch.cat([self._seen, new.double()], 1)
            rows = self._seen @ space.vectors
            sample = None if sums.sample is None else (rows, sums.sample[1].double())
            penalty = rows if sample is None else None
        if not self._whole:  # grown from the targets' columns and the probes
            start = space.start()
            targets = self._cross.shape[1]
            cross, mass = start[:, :targets], start[:, targets:].square().mean(1)
            return Spectrum(space.values, cross, mass, sums.power, sums.count, sample, penalty)
        if sample is not None:
            mass = sample[0].square().mean(0)
        else:
            mass = space.values if penalty is None else space.values - penalty.square().sum(0)
        cross = space.project(self._cross)
        return Spectrum(space.values, cross, mass, sums.power, sums.count, sample, penalty)


def _krylov(
    sums: Sums,
    batches: Batches | None,
    ridge: Ridges,
    tol: float,
    *,
    direct: bool,
    fallback: bool,
    raising: bool,
    seed: int,
) -> RidgeSolution:
    """Choose λ in a Krylov space and solve there; or, if `direct`, solve by Cholesky after it."""
    cross, gram = sums.cross, sums.gram
    generator = torch.Generator().manual_seed(seed)
    columns, mix = cross, torch.eye(cross.shape[1])
    if cross.shape[1] > _WIDE:  # λ by random combinations; the solution by Cholesky
        mix = torch.randn(cross.shape[1], _WIDE, generator=generator, dtype=torch.float64)
        mix /= math.sqrt(_WIDE)
        columns = cross @ mix.to(cross)

    if sums.sample is not None and columns is not cross:
        psi, y = sums.sample
        sums = replace(sums, sample=(psi, y @ mix.to(y)))
    view, norm = _View(sums, columns, whole=False), float(columns.norm()) or 1.0
    before: list[tuple[int, float, float]] = []

    def look(space: Subspace) -> int:
        spectrum = view.spectrum(space)
        chosen = spectrum.best_ridge() if ridge == "gcv" else ridge
        short = math.log(max(space.residual(spectrum.solve(chosen)) / (tol * norm), 1e-9))
        known = before[-1] if before else None
        # λ falls while the space grows, so that a look just before says little.
        past = [one for steps, one, _ in before if 3 * steps <= 2 * space.steps]
        before.append((space.steps, chosen, short))
        wait = max(1, space.steps // 3)
        against, limit = (past[-1:], _CHOSEN) if direct else ([known[1]] if known else [], _SETTLED)
        settled = ridge != "gcv" or any(abs(math.log(chosen / one)) < limit for one in against)
        if settled and (direct or short <= 0):
            return 0
        if known and 0 < short < known[2]:  # residuals fall by about the same factor each step
            wait = min(wait, math.ceil(short * (space.steps - known[0]) / (known[2] - short)))
        return wait

    assert gram is not None or batches is not None  # one of them to multiply by
    product = _by_features(batches) if gram is None else _by_gram(gram)  # type: ignore[arg-type]  # as asserted
    space = block_lanczos(product, torch.cat([columns, sums.probes], 1), look, most=_STEPS)
    spectrum = view.spectrum(space)
    chosen = spectrum.best_ridge() if ridge == "gcv" else ridge
    coordinates = spectrum.solve(chosen)
    residual = space.residual(coordinates) / norm
    risk = _risk(spectrum, chosen)
    if not direct and columns is cross and (residual <= tol or space.complete):
        return RidgeSolution(
            space.lift(coordinates), chosen, risk, "krylov", residual, space.steps, space
        )
    if fallback or gram is not None:
        whole = sums if batches is None or gram is not None else accumulate(batches, gram=True)
        return _cholesky(whole, chosen, risk, space, raising=raising)
    if columns is not cross:
        raise AuguryError(
            f"{cross.shape[1]} targets need a matrix of {len(cross):,} × {len(cross):,}, which is "
            "more than memory allows; use fewer features or allow more with memory="
        )
    warnings.warn(
        f"the solver stopped after {space.steps} products with a residual of {residual:.1e}, over "
        f"{tol:g}; try a larger ridge or more memory",
        ConvergenceWarning,
        stacklevel=3,
    )
    return RidgeSolution(
        space.lift(coordinates), chosen, risk, "krylov", residual, space.steps, space
    )


def _by_gram(gram: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda v: gram @ v


def _by_features(batches: Batches) -> Callable[[Tensor], Tensor]:
    def product(v: Tensor) -> Tensor:
        v = v.contiguous()  # a factorisation gives it by columns, which takes a fifth longer
        out = torch.zeros_like(v)
        for block in batches:
            for rows, weights in block.rows():
                along = rows @ v
                if weights is not None:
                    along *= weights.to(along)
                out.addmm_(rows.mT, along)
        return out / len(batches)

    return product


def _cholesky(
    sums: Sums, ridge: float, risk: float, space: Subspace | None = None, *, raising: bool
) -> RidgeSolution:
    assert sums.gram is not None
    used = ridge
    factor, info = torch.linalg.cholesky_ex(_shifted(sums.gram, used))
    if int(info):  # not positive in the features' own precision
        factor, info = torch.linalg.cholesky_ex(_shifted(sums.gram.double(), used))
    while int(info):  # nor in itself
        if not raising:
            raise RoughProducts
        used *= 4
        if not math.isfinite(used):
            raise AuguryError("the features are not finite; check the inputs and gamma")
        factor, info = torch.linalg.cholesky_ex(_shifted(sums.gram.double(), used))
    if used > ridge:
        warnings.warn(
            f"products of features are too rough for a ridge of {ridge:.1e}, so it was raised to "
            f"{used:.1e}; float64 would make them finer",
            ConvergenceWarning,
            stacklevel=4,
        )
        risk = math.nan
    weights = torch.cholesky_solve(sums.cross.to(factor), factor).to(sums.cross)
    return RidgeSolution(weights, used, risk, "cholesky", space=space)


def _shifted(gram: Tensor, ridge: float) -> Tensor:
    gram = gram.clone()
    gram.diagonal().add_(ridge)
    return gram


def _risk(spectrum: Spectrum, ridge: float) -> float:
    at = torch.tensor([ridge], dtype=torch.float64, device=spectrum.values.device)
    return float(spectrum.gcv(at))
