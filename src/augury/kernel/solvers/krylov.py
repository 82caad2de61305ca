"""A symmetric matrix seen through a few products: block Lanczos with full orthogonalisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from augury._base.devices import tensor_cores

_NOTHING, _ROUNDED = 1e-7, 1e-4  # of the largest product: is all rounding, is more than it can be


@dataclass(frozen=True)
class Subspace:
    """An orthonormal basis V of a block Krylov space of A, and A on it.

    Attributes
    ----------
    basis
        V, ``(d, k)``.
    values, vectors
        The eigenvalues and eigenvectors of VᵀAV, float64.
    coupling
        ``(q, q)``, float64: how the last block of V leads out of the space, for residuals.
    steps
        Products with A that it took, each with q columns.
    first
        ``(q, q)``, float64: the columns that it grew from, along the first q columns of V; None
        where it was not grown.
    complete
        Whether all that leads out of the space is rounding, so that more steps would add nothing.
    """

    basis: Tensor
    values: Tensor
    vectors: Tensor
    coupling: Tensor
    steps: int
    first: Tensor | None = None
    complete: bool = False

    def start(self) -> Tensor:
        """Return the coordinates of the columns that it grew from: ``(k, q)``, float64."""
        assert self.first is not None
        return self.vectors[: len(self.first)].mT @ self.first

    def project(self, x: Tensor) -> Tensor:
        """Return the coordinates of ``(d, C)`` along the Ritz vectors: ``(k, C)``, float64."""
        return self.vectors.mT @ (self.basis.mT @ x).double()

    def lift(self, coordinates: Tensor) -> Tensor:
        """Return the vectors ``(d, C)`` with these coordinates."""
        return self.basis @ (self.vectors @ coordinates).to(self.basis)

    def residual(self, coordinates: Tensor) -> float:
        """Return ‖b − (A + λ)w‖ for w with these coordinates, b in the space, at its own λ."""
        last = self.vectors[-len(self.coupling) :] @ coordinates
        return float((self.coupling @ last).norm())


def block_lanczos(
    product: Callable[[Tensor], Tensor],
    start: Tensor,
    look: Callable[[Subspace], int],
    *,
    most: int,
) -> Subspace:
    """Grow a block Krylov space from `start` until it is good enough, in full precision.

    Parameters
    ----------
    product
        A times ``(d, q)``.
    start
        ``(d, q)``.
    look
        Looks at the space, now and then, and says after how many steps to look again; 0 to stop.
    most
        The most steps.

    Notes
    -----
    `steps` products with A and O(d k²) for orthogonality, k = q · steps: a pass against the last
    two blocks, which is all that exact arithmetic needs, and one against the whole space, since
    rounding loses it. Factors rounded to a tensor core's 11 bits would lose it in any case.
    """
    with tensor_cores(False):
        return _grow(product, start, look, most)


def _grow(
    product: Callable[[Tensor], Tensor],
    start: Tensor,
    look: Callable[[Subspace], int],
    most: int,
) -> Subspace:
    block, first = orthonormal(start)
    d, q = block.shape
    most = min(most, -(-d // q))
    width = min(most * q, d)
    # By rows, so that memory that is not reached is never touched.
    rows = start.new_empty(width, d)
    image = torch.zeros(width, width, dtype=torch.float64, device=start.device)
    # Looking takes eigenvalues: cheap beside a product on a CPU, dear beside one on a GPU.
    check = 12 if start.is_cuda else 4
    scale = 0.0
    for step in range(most):
        block = block[:, : d - step * q]  # the last may be cut off by the whole space
        k, end = step * q, step * q + block.shape[1]
        rows[k:end] = block.mT
        known = rows[:end].mT
        out = product(block)
        scale = max(scale, float(out.norm()))
        near = rows[max(0, k - q) : end].mT  # the rest of the space lies across A times its end
        along = near.mT @ out
        out = out - near @ along
        again = known.mT @ out
        out = out - known @ again
        again[-len(along) :] += along
        image[:end, k:end] = again.double()
        following, coupling = orthonormal(out)
        # A column that is left may be rounding for the most part, and then points anywhere: turn
        # it out of the space.
        if float(coupling.diagonal().abs().min()) <= _ROUNDED * scale:
            following = orthonormal(following - known @ (known.mT @ following))[0]
        block = following
        ended = end == d or float(coupling.norm()) <= _NOTHING * scale
        if ended or step + 1 >= min(check, most):
            values, vectors = _eigen(image[:end, :end])
            found = Subspace(
                known, values, vectors, coupling.double(), step + 1, first.double(), ended
            )
            wait = 0 if ended or step + 1 == most else look(found)
            if not wait:
                return found
            check = step + 1 + wait
    raise AssertionError("unreachable: the last step returns")


def orthonormal(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return Q and R with QR = x, for a few columns ``(d, q)``.

    On a GPU by Cholesky factors of xᵀx in float64, twice: a Householder factorisation goes column
    by column there, and waits at each. Where x lacks rank, that is what is done after all.
    """
    if not x.is_cuda:
        q, r = torch.linalg.qr(x)
        return q, r
    return cholesky_qr(x)


def cholesky_qr(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return Q and R with QR = x from the Gram matrix of the columns, refined once."""
    q, r = x.double(), torch.eye(x.shape[1], dtype=torch.float64, device=x.device)
    for _ in range(2):
        upper, info = torch.linalg.cholesky_ex(q.mT @ q, upper=True)
        if int(info):
            q, r = torch.linalg.qr(x)
            return q, r
        q = torch.linalg.solve_triangular(upper, q, upper=True, left=False)
        r = upper @ r
    return q.to(x), r.to(x)


def _eigen(image: Tensor) -> tuple[Tensor, Tensor]:
    # Filled by columns up to the diagonal block: the upper half is the whole.
    values, vectors = torch.linalg.eigh(image.mT, UPLO="L")
    return values.clamp_min(0), vectors
