"""The networks that only benchmarks have, and what a result says of its machine."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections import OrderedDict
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

RESULTS = Path(__file__).resolve().parent / "results"


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
