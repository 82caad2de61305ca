"""Kernels that do a block of a network in one step, against torch's own layers."""

import functools
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
from augury.forecasting.training.convolution import GroupedConv
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
    near = 1e-5 if dtype == torch.float32 else 1e-2
    assert torch.allclose(first.norm.running_mean, raw.mean((0, 2, 3)) / 10, atol=near)
    assert torch.allclose(first.norm.running_var, 0.9 + raw.var((0, 2, 3)) / 10, atol=near)
    right = plain(x, blocks)
    by = torch.randn_like(right)
    with torch.autocast(device, torch.bfloat16):
        rounded = plain(x, blocks).float()
    right, ours, rounded = (results(out, blocks, by) for out in (right, ours, rounded))
    return gap(ours, right), gap(rounded, right)


def gap(found, right):
    """Return the largest relative difference; NaN, if there is one."""
    pairs = zip(found, right, strict=True)
    return float(torch.stack([(a - b).norm() / b.norm() for a, b in pairs]).max().detach())


def check_blocks():
    """Compare the kernels with torch's layers; needs Triton's interpreter."""
    from augury.forecasting.training.fused import _weigh

    for name in SHAPES:
        assert gaps(name, "cpu", torch.float32)[0] < 1e-5, name
    # so many positions that the gradient of the weights is a sum of parts
    x, grad = torch.rand(2, 11, 10, 10, 8), torch.randn(2, 11, 10, 10, 16)
    for g, found in enumerate(_weigh(x, grad)):
        weight = torch.zeros(16, 8, 3, 3, requires_grad=True)
        out = F.conv2d(x[g].permute(0, 3, 1, 2), weight, padding=1)
        (right,) = torch.autograd.grad(out, weight, grad[g].permute(0, 3, 1, 2))
        torch.testing.assert_close(
            found, right.permute(2, 3, 1, 0).flatten(0, 1), rtol=1e-3, atol=1e-3
        )


def test_blocks_are_torchs_layers():
    """Triton's interpreter runs the kernels on a CPU, in a process that is told so at its start."""
    assert find_spec("triton"), "the tests need Triton: pip install '.[dev]'"
    if os.environ.get("TRITON_INTERPRET") == "1":
        return check_blocks()
    here = Path(__file__)
    path = os.pathsep.join([str(here.parent), *sys.path])
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": path}
    code = f"import {here.stem} as t; t.check_blocks()"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not torch.cuda.is_available(), reason="kernels are compiled for a GPU alone")
@pytest.mark.parametrize("name", SHAPES)
def test_blocks_on_a_gpu_are_torchs_layers_in_bfloat16(name):
    ours, theirs = gaps(name, "cuda", torch.bfloat16)
    assert ours < 2 * theirs + 0.02


@pytest.mark.skipif(not torch.cuda.is_available(), reason="kernels are compiled for a GPU alone")
@pytest.mark.parametrize("architecture", ["small", "slim", "cnn"])
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


class Kernel:
    """Notes how a kernel is compiled and called, and does nothing."""

    def __init__(self, name, compiled, called):
        self.name, self.compiled, self.called = name, compiled, called

    def __getitem__(self, grid):
        return lambda *args, **sizes: self.called.append((self.name, grid, args, sizes))

    def warmup(self, *args, grid, **sizes):
        assert grid == (1,)
        self.compiled.append(signature(self.name, args, sizes))


def signature(name, args, sizes):
    """Return what Triton compiles a kernel for: types, and the sizes that are part of it."""
    types = tuple(a.dtype if isinstance(a, torch.Tensor) else a for a in args)
    plain = tuple("a number" if isinstance(t, int) else t for t in types)
    return name, plain, tuple(sorted(sizes.items()))


@pytest.fixture
def noted(monkeypatch):
    """Return the kernels that are compiled, and the calls, of the module without its kernels."""
    from augury.forecasting.training import fused

    compiled, called = [], []
    names = ("convolve", "weigh", "activate", "turn_back")
    kernels = SimpleNamespace(**{name: Kernel(name, compiled, called) for name in names})
    monkeypatch.setattr(fused, "kernels", kernels)
    return fused, compiled, called


def test_kernels_that_networks_need_are_compiled_beforehand(noted):
    fused, compiled, called = noted
    fused.compile_all()
    assert len(set(compiled)) == len(compiled) == 2 * 2 + 3 * 3
    for architecture, side in (("small", 9), ("cnn", 32), ("cnn", 41)):
        net = Grouped(architecture, 2, (3, side, side), 5, 0).network
        fused.run_blocks(torch.rand(2, 6, side, side), list(net[0])).sum().backward()
    assert {signature(name, args, sizes) for name, _, args, sizes in called} == set(compiled)


def test_work_is_divided_among_programs(noted):
    """By hand: 3 networks, 40 images of 12 × 10, 16 channels to 48, pooled by two."""
    fused, _, called = noted
    x = torch.rand(40, 48, 12, 10, requires_grad=True)
    fused.run_blocks(x, [Block(3, 16, 48, 2, False)], torch.float32).sum().backward()
    found = [(name, grid) for name, grid, *_ in called]
    assert found == [
        ("convolve", (19, 3)),  # 4,800 positions by 256, 48 outputs by 64
        ("activate", (10 * 2, 3)),  # 1,200 windows by 128, 48 channels by 32
        ("turn_back", (10 * 2, 3)),
        ("turn_back", (10 * 2, 3)),
        ("convolve", (19, 3)),
        ("weigh", (5, 3, 3)),  # one block of weights; 4,800 positions in parts of 1,024 at most
    ]
    assert called[-1][2][-1] == 960  # 4,800 / 5, and a multiple of 64
    called.clear()
    few = torch.rand(8, 1, 128, 128, 8)
    fused._weigh(few.expand(8, 50, 128, 128, 8), few.expand(8, 50, 128, 128, 8))
    assert called[0][1] == (43, 3, 8)  # 1,024 programs are enough
    called.clear()
    for outputs, block in ((32, 32), (40, 64)):
        fused._convolve(x.new_empty(1, 1, 2, 2, 8), x, x.new_empty(1, 1, 2, 2, outputs), None)
        assert called.pop()[3]["OUT"] == block


def test_running_variances_are_of_all_positions_of_images_that_are_not_square(noted, monkeypatch):
    fused, *_ = noted
    made = SimpleNamespace(apply=lambda x, *_: (x, torch.zeros(1, 8), torch.ones(1, 8)))
    monkeypatch.setattr(fused, "_Block", made)
    block = Block(1, 8, 8, 1, False)
    fused.run_blocks(torch.rand(2, 8, 3, 5), [block], torch.float32)
    expected = 0.9 + 0.1 * 30 / 29  # 2 images of 3 × 5
    assert block.norm.running_var.tolist() == pytest.approx([expected] * 8, rel=1e-5)


class OnGpu(torch.Tensor):
    """A tensor that says that it is on a GPU."""

    is_cuda = True


@pytest.fixture
def autocast():
    """Return what switches half precision on a GPU on and off, without a GPU."""
    before = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    torch.set_autocast_dtype("cuda", torch.bfloat16)
    yield functools.partial(torch.set_autocast_enabled, "cuda")
    torch.set_autocast_enabled("cuda", before[0])
    torch.set_autocast_dtype("cuda", before[1])


@pytest.mark.parametrize("fused_is_there", [True, False])
def test_blocks_are_fused_in_training_in_half_precision_on_a_gpu(
    fused_is_there, autocast, monkeypatch
):
    calls = []

    def run_blocks(x, blocks):
        calls.append(len(blocks))
        for block in blocks:
            x = block(x)
        return x.unflatten(1, (2, -1)).permute(1, 0, 3, 4, 2)

    kernels = SimpleNamespace(run_blocks=run_blocks) if fused_is_there else None
    monkeypatch.setattr(blocks_module, "fused_kernels", lambda device: kernels)
    blocks = blocks_module.Blocks(2, 1, ((3, 2), (5, 1)))
    plain = torch.rand(3, 2, 8, 6)
    right = blocks(plain)
    assert right.shape == (3, 10)
    blocks(plain.as_subclass(OnGpu))
    autocast(True)
    monkeypatch.setattr(blocks_module.GroupedConv, "forward", torch.nn.Conv2d.forward)
    blocks(plain)
    blocks.eval()(plain.as_subclass(OnGpu))
    assert calls == []
    found = blocks.train()(plain.as_subclass(OnGpu))
    assert calls == [2] * fused_is_there
    torch.testing.assert_close(found.as_subclass(torch.Tensor), right)


@pytest.mark.parametrize(("groups", "dtype"), [(1, torch.float32), (2, torch.bfloat16)])
@pytest.mark.parametrize("bias", [True, False])
def test_a_convolution_in_groups_is_by_patches_on_a_gpu(groups, dtype, bias, autocast):
    torch.manual_seed(0)
    conv = GroupedConv(groups, 3, 4, 3, bias)
    x = torch.rand(2, 3 * groups, 7, 5)
    right = conv(x)
    assert conv(x.as_subclass(OnGpu)).dtype == torch.float32
    autocast(True)
    assert torch.equal(conv(x), right)
    found = conv(x.as_subclass(OnGpu))
    assert found.dtype == dtype
    torch.testing.assert_close(found.as_subclass(torch.Tensor).float(), right, atol=0.02, rtol=0.02)


def test_trying_the_kernels_leaves_the_global_generator_alone(monkeypatch):
    tried = []

    def run_blocks(x, blocks):
        tried.append((x, *blocks))
        return blocks[0](x)

    kernels = SimpleNamespace(compile_all=lambda: tried.append("compiled"), run_blocks=run_blocks)
    monkeypatch.setattr(training, "fused", kernels, raising=False)
    monkeypatch.setitem(sys.modules, "augury.forecasting.training.fused", kernels)
    before = torch.get_rng_state()
    assert blocks_module.fused_kernels.__wrapped__(torch.device("cpu")) is kernels
    assert torch.equal(torch.get_rng_state(), before)
    first, (x, block) = tried
    assert first == "compiled"
    assert x.numel() <= 2048  # a moment's work
    assert (x.shape[1], block.conv.groups) == (4, 2)  # two networks
    assert block.conv.out_channels % (2 * 8) == 0  # channels come in eights
    assert block.window in (1, 2, 4)  # kernels for others are not compiled


def test_kernels_that_find_no_memory_are_tried_again(monkeypatch):
    def run_blocks(x, blocks):
        raise torch.OutOfMemoryError

    kernels = SimpleNamespace(compile_all=lambda: None, run_blocks=run_blocks)
    monkeypatch.setattr(training, "fused", kernels, raising=False)
    monkeypatch.setitem(sys.modules, "augury.forecasting.training.fused", kernels)
    with pytest.raises(torch.OutOfMemoryError):
        blocks_module.fused_kernels.__wrapped__(torch.device("cpu"))


def test_without_triton_layers_are_torchs_own(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.delitem(sys.modules, "augury.forecasting.training.kernels", raising=False)
    monkeypatch.delitem(sys.modules, "augury.forecasting.training.fused", raising=False)
    assert blocks_module.fused_kernels.__wrapped__(torch.device("cpu")) is None
