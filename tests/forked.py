"""Commands in processes of their own, forked from one that has imported torch already.

A process that starts from nothing spends some seconds importing what the tests have imported long
ago. The standard library's fork server imports it once and forks for each command; the command has
its own directory, environment and output, and can end or be killed like any other.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch

IMPORTED = [
    "torch",
    "torch._dynamo",  # which the first step of an optimizer imports
    "sklearn.datasets",
    "matplotlib.figure",
    "rich.progress",
    "augury.cli.rank",
]

TORCHVISION = torch.library.Library("torchvision", "FRAGMENT")


def declare_torchvision() -> None:
    """Declare torchvision's two compiled operators, for torchvision beside a CPU build of torch.

    A build for CUDA comes with a torchvision that has them.
    """
    for name in ("nms", "qnms") if torch.version.cuda is None else ():
        if not hasattr(torch.ops.torchvision, name):
            TORCHVISION.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def run_forked(
    words: list[str], folder: Path, environment: dict[str, str], timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run ``augury …``, ``python FILE`` or ``python -c CODE`` in a directory."""
    with tempfile.TemporaryDirectory() as place:
        paths = (Path(place) / "out", Path(place) / "err")
        process = start_forked(words, folder, environment, paths)
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(words, timeout)
        out, err = (path.read_text(encoding="utf-8") for path in paths)
    return subprocess.CompletedProcess(words, process.exitcode, out, err)


def start_forked(
    words: list[str], folder: Path, environment: dict[str, str], paths: tuple[Path, Path]
) -> BaseProcess:
    """Start such a command, with its output and its errors in files or named pipes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    threads = torch.get_num_threads()
    process = context.Process(target=_child, args=(words, folder, environment, paths, threads))
    process.start()
    return process


def _child(
    words: list[str],
    folder: Path,
    environment: dict[str, str],
    paths: tuple[Path, Path],
    threads: int,
) -> None:
    torch.set_num_threads(threads)
    declare_torchvision()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, path in zip((1, 2), paths, strict=True):
        with path.open("wb") as file:
            os.dup2(file.fileno(), number)  # what C extensions print too
    program, *arguments = words
    sys.path.insert(0, str(folder))
    if program == "augury":
        from augury.cli.main import main

        sys.argv = words
        main()
    elif arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")
