"""torchvision beside a CPU build of torch that lacks its operators."""

from __future__ import annotations

import pytest
import torch

_library = None


def torchvision():
    """Import torchvision, with the operators declared that its import asks for; else skip."""
    global _library
    if _library is None:
        _library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            if not hasattr(torch.ops.torchvision, name):
                _library.define(
                    f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
                )
    return pytest.importorskip("torchvision")
