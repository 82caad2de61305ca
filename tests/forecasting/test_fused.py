"""Kernels that do a block of a network in one step, against torch's own layers."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from augury.augmentations import flips, rotation
from augury.data import as_dataset
from augury.forecasting import training
from augury.forecasting.training import blocks as blocks_module
from augury.forecasting.training.blocks import Block
from augury.forecasting.training.grouped import Grouped
from augury.forecasting.training.members import Fold, Schedule, run_members, train_members

SHAPES = {  # networks, examples, height, widths, pooling, whether it keeps the border
    "odd": (2, 3, 9, (3, 24, 24), (1, 2), False),
    "border": (2, 2, 9, (1, 16, 32), (2, 2), True),
    "four": (1, 2, 10, (3, 24, 48), (4, 1), False),
    "wide": (2, 2, 6, (48, 96), (1,), False),
}


def plain(x, blocks):
    for block in blocks:
        x = F.conv2d(x, block.conv.weight, padding=1, groups=block.conv.groups)
        x = F.batch_norm(x, None, None, block.norm.weight, block.norm.bias, True).relu()
        if block.window > 1:
            x = F.max_pool2d(x, block.window, ceil_mode=block.ceil)
    return x


def make_blocks(name, device):
    torch.manual_seed(0)
    g, b, side, widths, pools, ceil = SHAPES[name]
    pairs = zip(widths, widths[1:], pools, strict=False)
    blocks = [Block(g, c, o, pool, ceil).to(device) for c, o, pool in pairs]
    for block in blocks:
        torch.nn.init.normal_(block.norm.weight)
        torch.nn.init.normal_(block.norm.bias)
    return torch.rand(b, g * widths[0], side, side + 1, device=device), blocks


def results(out, blocks, by):
    """Return outputs and the gradients of all weights."""
    weights = [p for block in blocks for p in block.parameters()]
    return [out, *torch.autograd.grad((out * by).sum(), weights)]


def gaps(name, device, dtype):
    """Return how far the kernels are from torch's layers in float32, and torch's in bfloat16."""
    from augury.forecasting.training.fused import run_blocks

    x, blocks = make_blocks(name, device)
    ours = run_blocks(x, blocks, dtype).permute(1, 0, 4, 2, 3).flatten(1, 2).float()
    first = blocks[0]
    raw = F.conv2d(x, first.conv.weight, padding=1, groups=first.conv.groups)
    assert torch.allclose(first.norm.running_mean, raw.mean((0, 2, 3)) / 10, atol=1e-2)
    assert torch.allclose(first.norm.running_var, 0.9 + raw.var((0, 2, 3)) / 10, atol=1e-2)
    right = plain(x, blocks)
    by = torch.randn_like(right)
    with torch.autocast(device, torch.bfloat16):
        rounded = plain(x, blocks).float()
    right, ours, rounded = (results(out, blocks, by) for out in (right, ours, rounded))
    return tuple(
        max(float(((a - b).norm() / b.norm()).detach()) for a, b in zip(found, right, strict=True))
        for found in (ours, rounded)
    )


def test_blocks_are_torchs_layers():
    """Triton's interpreter runs the kernels on a CPU, in a process that is told so at its start."""
    assert find_spec("triton"), "the tests need Triton: pip install '.[dev]'"
    here = Path(__file__)
    every = "t.gaps(name, 'cpu', torch.float32)[0] for name in t.SHAPES"
    code = f"import {here.stem} as t, torch; print(*({every}))"
    path = os.pathsep.join([str(here.parent), *sys.path])
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert max(map(float, done.stdout.split())) < 1e-5


@pytest.mark.skipif(not torch.cuda.is_available(), reason="kernels are compiled for a GPU alone")
@pytest.mark.parametrize("name", SHAPES)
def test_blocks_on_a_gpu_are_torchs_layers_in_bfloat16(name):
    ours, theirs = gaps(name, "cuda", torch.bfloat16)
    assert ours < 2 * theirs + 0.02


@pytest.mark.skipif(not torch.cuda.is_available(), reason="kernels are compiled for a GPU alone")
@pytest.mark.parametrize("architecture", ["small", "cnn"])
def test_networks_learn_the_same_on_a_gpu_with_and_without(architecture, monkeypatch):
    assert blocks_module.fused_kernels(torch.device("cuda")) is not None
    x = np.random.default_rng(0).integers(0, 255, (400, 32, 32, 3), np.uint8)
    x[::2, 8:24, 8:24] //= 2
    data = as_dataset(x, np.arange(400) % 2)
    fold = Fold(torch.arange(256), torch.arange(256, 400), 0)
    found = []
    for _ in range(3):
        net = Grouped(architecture, 3, data.shape, 2, 0).to("cuda")
        train_members(net, data, Schedule(15), [flips(), rotation(9)], [fold], [fold])
        found.append(torch.cat(run_members(net, data, [fold.held, fold.held], [2, 1]), 1))
        if len(found) == 2:
            monkeypatch.setattr(blocks_module, "fused_kernels", lambda device: None)
    assert torch.equal(found[0], found[1])
    assert (found[0].softmax(-1) - found[2].softmax(-1)).abs().mean() < 0.02


def test_trying_the_kernels_leaves_the_global_generator_alone(monkeypatch):
    kernels = SimpleNamespace(compile_all=lambda: None, run_blocks=lambda x, blocks: blocks[0](x))
    monkeypatch.setattr(training, "fused", kernels, raising=False)
    monkeypatch.setitem(sys.modules, "augury.forecasting.training.fused", kernels)
    before = torch.get_rng_state()
    assert blocks_module.fused_kernels.__wrapped__(torch.device("cpu")) is kernels
    assert torch.equal(torch.get_rng_state(), before)


def test_without_triton_layers_are_torchs_own(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.delitem(sys.modules, "augury.forecasting.training.kernels", raising=False)
    monkeypatch.delitem(sys.modules, "augury.forecasting.training.fused", raising=False)
    assert blocks_module.fused_kernels.__wrapped__(torch.device("cpu")) is None
