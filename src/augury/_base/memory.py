"""How much memory there is, and what would fit in it."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable

import torch

from augury._base.errors import AuguryError

GIB = 2**30


def available_bytes(device: torch.device) -> int:
    """Return the memory that is free on a device now."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    _trim()
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            fields = dict(line.split(":", 1) for line in file)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):  # not Linux: half of what is built in
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _trim() -> None:
    """Release memory that was freed but the allocator still holds: gigabytes, after a large fit."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # glibc's alone
        ctypes.CDLL(None).malloc_trim(0)


def check_fits(need: Callable[[int], float], d: int, budget: float) -> None:
    """Raise one clear line if d features need more than the budget; it says how many would fit.

    Parameters
    ----------
    need
        From a number of features to bytes; it must grow.
    d
        The number asked for.
    budget
        In bytes.
    """
    if need(d) <= budget:
        return
    low, high = 0, d // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if need(2 * middle) <= budget else (low, middle)
    advice = f"{2 * low:,} would fit; use fewer, or" if low else "not even two would fit;"
    raise AuguryError(
        f"{d:,} features need {_gib(need(d))} GiB, but only {_gib(budget)} may be used: "
        f"{advice} allow more with memory= (--memory)"
    )


def _gib(size: float) -> str:
    return f"{size / GIB:,.1f}" if size >= GIB else f"{size / GIB:.2g}"
