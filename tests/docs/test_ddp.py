"""The example for several processes: the same draws and losses whatever their number."""

from __future__ import annotations

import functools
import os
import re
import socket
from pathlib import Path

import pytest
from forked import start_forked

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "train_ddp.py"


@functools.cache
def run(folder: Path, processes: int, *options: str) -> tuple[float, str]:
    """Run the example as torchrun would, and return the loss and the checksum that it prints."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(processes)}
    words = ["python", str(EXAMPLE), "--epochs", "1", *options]
    files = [(folder / f"out {port} {k}", folder / f"errors {port} {k}") for k in range(processes)]
    started = [
        start_forked(words, folder, {**os.environ, **meeting, "RANK": str(k)}, paths)
        for k, paths in enumerate(files)
    ]
    for process in started:
        process.join(120)
        process.kill()
    out, errors = (path.read_text() for path in files[0])
    found = re.search(r"loss ([\d.]+), views (\w+)$", out, re.MULTILINE)
    assert found, errors[-2000:]
    return float(found[1]), found[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("ddp")


@pytest.mark.parametrize("method", ["averaging", "tangent", "policy"])
def test_two_processes_train_as_one(method, folder):
    one, two = (run(folder, processes, "--method", method) for processes in (1, 2))
    assert two[1] == one[1]
    assert two[0] == pytest.approx(one[0], abs=1e-4)


def test_weights_may_be_shared_out(folder):
    plain = run(folder, 2, "--method", "averaging")
    sharded = run(folder, 2, "--method", "averaging", "--fsdp")
    assert sharded[1] == plain[1]
    assert sharded[0] == pytest.approx(plain[0], abs=1e-4)
