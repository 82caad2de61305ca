"""Where and with what code numbers were computed."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from pathlib import Path

import torch


def machine(device: torch.device) -> str:
    """Name the device and the version of torch."""
    name = platform.machine()
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
    return f"{name}, {device.type}, torch {torch.__version__.split('+')[0]}"


@functools.cache
def commit() -> str:
    """Return the commit of the source tree this package was imported from.

    ``AUGURY_COMMIT`` names it for a copy without its repository. The commit of a tree with changes
    that were not committed ends in ``+``; ``"unknown"`` stands for an installed package.
    """
    if given := os.environ.get("AUGURY_COMMIT"):
        return given
    here = Path(__file__).resolve().parent
    try:
        head, changes = (
            subprocess.run(
                ["git", "-C", str(here), *command], capture_output=True, text=True, check=True
            ).stdout.strip()
            for command in (
                ("rev-parse", "--short=12", "HEAD"),
                ("status", "--porcelain", "--untracked-files=no", "--", "."),
            )
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head}+" if changes else head
