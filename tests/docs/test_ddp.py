"""The example for several processes: the same draws and losses whatever their number."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(processes, *options):
    call = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    call += ["--nproc-per-node", str(processes), str(ROOT / "examples" / "train_ddp.py")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*call, "--epochs", "1", *options], capture_output=True, text=True, env=environment
    )
    found = re.search(r"loss ([\d.]+), views (\w+)$", done.stdout, re.M)
    assert found, done.stderr[-2000:]
    return float(found[1]), found[2]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["averaging", "tangent", "policy"])
def test_two_processes_train_as_one(method):
    one, two = run(1, "--method", method), run(2, "--method", method)
    assert two[1] == one[1]
    assert two[0] == pytest.approx(one[0], abs=1e-4)


@pytest.mark.slow
def test_weights_may_be_shared_out():
    plain, sharded = run(2, "--method", "averaging"), run(2, "--method", "averaging", "--fsdp")
    assert sharded[1] == plain[1]
    assert sharded[0] == pytest.approx(plain[0], abs=1e-4)
