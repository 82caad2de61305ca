"""Shared by all tests."""

from __future__ import annotations

import os
import sys

import pytest
import torch
from forked import declare_torchvision

from augury.cli.main import main

# Two threads that wait for each other cost more than they save where other processes run beside.
_usual = "1" if "PYTEST_XDIST_WORKER" in os.environ else "2"
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", _usual)))

declare_torchvision()


@pytest.fixture
def one_thread():
    """Compute in one thread: in small problems threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


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
