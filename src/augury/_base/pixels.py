"""Pixels as bytes."""

from __future__ import annotations

import torch
from torch import Tensor


def to_bytes(x: Tensor) -> Tensor:
    """Round pixels in [0, 1] to bytes; values outside are clipped."""
    return (x.clamp(0, 1) * 255).round().to(torch.uint8)
