"""Results of benchmarks: what each says of itself, and where it is written.

Every result names the commit, the versions, the machine and the command that gave it. It goes to
``build/benchmarks``, which is not tracked, unless ``--out`` names another folder; results that the
documentation quotes are written with ``--out benchmarks/results`` and committed.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import shlex
import sys
from pathlib import Path
from typing import Any

import torch

from augury._base.files import write
from augury_paper.machine import commit, machine

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
BUILD = ROOT / "build" / "benchmarks"
_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn")


def add_out(parser: argparse.ArgumentParser) -> None:
    """Add ``--out``, the folder for the result."""
    parser.add_argument("--out", type=Path, default=BUILD, help="folder for the result")


def environment(device: torch.device, *packages: str) -> dict[str, Any]:
    """Say with what code, versions and machine numbers were measured."""
    return {
        "command": shlex.join(["python", _relative(sys.argv[0]), *sys.argv[1:]]),
        "commit": commit(),
        "machine": machine(device),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in (*_PACKAGES, *packages)},
    }


def version(package: str, *folders: Path) -> str:
    """Return the version of a package, of one installed in another folder too."""
    paths = [*sys.path, *map(str, folders)]
    found = next(iter(importlib.metadata.distributions(name=package, path=paths)), None)
    return found.version if found else "not installed"


def save(folder: Path, name: str, result: dict[str, Any]) -> Path:
    """Write a result as JSON, one line for each of its parts."""
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / f"{name}.json"
    write(path, compact(result))
    print(f"wrote {_relative(path)}", flush=True)
    return path


def compact(result: dict[str, Any]) -> str:
    """Write JSON with a line for each entry, and for each item of a list of dicts."""
    parts = []
    for key, value in result.items():
        text = json.dumps(value, separators=(",", ":"))
        if isinstance(value, list) and value and isinstance(value[0], dict):
            items = ",\n".join(json.dumps(item, separators=(",", ":")) for item in value)
            text = f"[\n{items}\n]"
        parts.append(f"{json.dumps(key)}:{text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _relative(path: str | Path) -> str:
    full = Path(path).resolve()
    return str(full.relative_to(ROOT)) if full.is_relative_to(ROOT) else str(path)
