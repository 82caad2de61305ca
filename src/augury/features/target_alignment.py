"""Plain functions of kernel matrices."""

from __future__ import annotations

from torch import Tensor


def kernel_alignment(kernel: Tensor, target: Tensor) -> Tensor:
    """⟨K, K_Y⟩ / √(⟨K, K⟩⟨K_Y, K_Y⟩) of two kernel matrices ``(N, N)`` (Section 5.1)."""
    return (kernel * target).sum() / (kernel.norm() * target.norm())
