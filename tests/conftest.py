"""Shared by all tests."""

from __future__ import annotations

import os
import sys

import pytest
import torch

from augury.cli.main import main

# Two threads that wait for each other cost more than they save where other processes run beside.
_usual = "1" if "PYTEST_XDIST_WORKER" in os.environ else "2"
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", _usual)))

# torchvision imports beside a CPU build of torch only once its two compiled operators are declared
TORCHVISION = torch.library.Library("torchvision", "FRAGMENT")
for _name in ("nms", "qnms"):
    if not hasattr(torch.ops.torchvision, _name):
        TORCHVISION.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run `augury …` in this process, in an empty folder: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["augury", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
