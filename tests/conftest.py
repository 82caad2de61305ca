"""Shared by all tests."""

from __future__ import annotations

import os
import sys

import pytest
import torch

from augury.cli.main import main

torch.set_num_threads(1 if "PYTEST_XDIST_WORKER" in os.environ else 2)

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
