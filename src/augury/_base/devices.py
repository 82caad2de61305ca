"""Where tensors live and how exactly they are multiplied."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from augury._base.errors import AuguryError

HALF_FLOATS = (torch.float16, torch.bfloat16)
"""Types of 16 bits, whose sums are taken in float32."""


def check_cuda() -> None:
    """Raise if CUDA is not available."""
    if not torch.cuda.is_available():
        raise AuguryError(
            "device cuda was requested, but torch finds no CUDA device; use --device cpu"
        )


def resolve_device(device: str | torch.device) -> torch.device:
    """Return a device, for ``"auto"`` a GPU if there is one; raise if it is not available."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        raise AuguryError(f"unknown device {device!r}; use auto, cpu or cuda") from None
    if found.type == "cuda":
        check_cuda()
    if found.type not in ("cpu", "cuda"):
        raise AuguryError(f"device {found.type} is not supported; use auto, cpu or cuda")
    return found


@contextlib.contextmanager
def tensor_cores(wanted: bool) -> Iterator[None]:
    """Let a GPU multiply float32 matrices in TF32 inside the block, or not at all there.

    Factors are rounded to 11 bits and sums kept in float32: about ten times the speed.
    """
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high" if wanted else "highest")
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def has_bfloat16(device: torch.device) -> bool:
    """Return whether a device multiplies bfloat16 faster than float32."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    asked = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")  # torch has no public way
    return any(getattr(torch.cpu, name, lambda: False)() for name in asked)
