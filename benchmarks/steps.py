"""Time and peak memory of one training step: plain, on one view, on many, and averaged at a layer.

    python benchmarks/steps.py [--quick] [--device cuda] [--network ResNet-18]

For LeNet, ResNet-18 and a small vision transformer: a step on the images as they are, on one random
view of each (the usual practice), on all views, and with features averaged at layers, taking turns;
and the method that `augury.plan_averaging` recommends, timed again. A cheap step is not yet worth
taking: what each method keeps of the accuracy is measured by `benchmarks/reproduce.py averaging`.
"""

from __future__ import annotations

import argparse
from collections import OrderedDict
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from _result import add_out, environment, save
from torch import Tensor, nn

from augury._base.rng import Rng
from augury.augmentations import parse
from augury.networks.averaging import Averaging
from augury.networks.averaging.views import views_of
from augury.networks.layers import cuts
from augury.networks.planning import plan_averaging
from augury.networks.planning.timing import seconds
from augury.objectives import multinomial
from augury_paper.averaging.methods import AUGMENTATION
from augury_paper.networks import LAYERS, lenet, seeded
from augury_paper.sgd import now

T = parse(AUGMENTATION)


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


@dataclass(frozen=True)
class Step:
    """How a step trains: on so many views, 0 for the images as they are, or by averaging."""

    how: int | Averaging

    def loss(self, model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        if self.how == 0:
            return F.cross_entropy(model(x), y)
        if self.how == 1:  # a random one of each image, as one usually trains
            rng = Rng(0, torch.arange(len(x), device=x.device))
            return F.cross_entropy(model(T.views(x, 1, rng)[0]), y)
        if isinstance(self.how, int):
            views, weights = views_of(T, x, self.how, None)
            each = multinomial(model(views.flatten(0, 1)), y.repeat(len(views)))
            return (weights @ each.view(len(views), -1)).mean()
        return self.how.loss(model, x, y, seed=0)


def steps(options) -> list[dict]:
    """Time single training steps, and measure their memory."""
    device = torch.device(options.device)
    if options.quick:
        cases = [("LeNet", lambda: lenet(), (1, 28, 28), [32])]
    else:
        sizes = [256, 2048, 8192] if device.type == "cuda" else [64]
        deep = [64] if device.type == "cuda" else [8]
        cases = [
            ("LeNet", lambda: lenet(), (1, 28, 28), sizes),
            ("ResNet-18", lambda: resnet18(), (3, 32, 32), deep),
            ("ViT", lambda: ViT(), (3, 32, 32), deep),
        ]
    if options.network:
        cases = [case for case in cases if case[0] == options.network]
    out = []
    for name, build, shape, batches in cases:
        for batch in batches:
            out.append(steps_of(name, seeded(build, 0).to(device), shape, batch, options))
    return out


def steps_of(name: str, model: nn.Module, shape: tuple[int, ...], batch: int, options) -> dict:
    n, device = options.n_views, torch.device(options.device)
    repeats = options.repeats if name == "LeNet" else max(2, options.repeats // 4)
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(batch, *shape, generator=generator).to(device)
    y = torch.randint(0, 10, (batch,), generator=generator).to(device)
    names = cuts(model, x)
    if name == "LeNet":
        names = list(LAYERS[:3] if options.quick else LAYERS)
    else:
        names = names[:: -(-len(names) // 6)]  # six of them
    if name == "LeNet":  # some training, so that the plan's errors mean something
        optimizer = torch.optim.Adam(model.parameters(), 2e-3)
        for _ in range(30):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    chosen = plan_averaging(model, x, T, y, n_views=n, layers=names, repeats=repeats)
    # Asked for 1.3, since what a step takes varies by a tenth from one moment to the next.
    cheap = chosen.within(1.3) or min(chosen.choices, key=lambda c: c.step)
    runs = {"no augmentation": Step(0), "1 random view": Step(1), f"all {n} views": Step(n)}
    for layer in names:
        runs[f"averaged at {layer}"] = Step(Averaging(T, layer, n))
    runs["recommended for 1.5"] = Step(1)  # a plan without a layer is one random view
    if cheap.layer is not None:
        runs["recommended for 1.5"] = Step(
            Averaging(T, cheap.layer, n, order=cheap.order, groups=cheap.groups,
                      directions=1 if cheap.order == 2 else None),
        )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)

    def step(way: Step):
        def run() -> None:
            optimizer.zero_grad()
            way.loss(model, x, y).backward()
            optimizer.step()

        return run

    model.train()
    calls = {key: step(way) for key, way in runs.items()}
    took = seconds(calls, device, repeats)
    memory = {key: peak(call, device) for key, call in calls.items()}
    none, one = took["no augmentation"], took["1 random view"]
    print(f"{name}, batch {batch}, {n} views:")
    for key in runs:
        gib = "" if memory[key] is None else f", {memory[key]:.2f} GiB"
        print(f"  {key:24} {1e3 * took[key]:9.2f} ms  {took[key] / none:6.2f} × no augmentation, "
              f"{took[key] / one:6.2f} × one view{gib}")  # fmt: skip
    print(f"  plan for at most 1.5 × one view: {cheap.layer}, order {cheap.order}, "
          f"{cheap.groups} groups, error {cheap.error:.2f}")  # fmt: skip
    print(f"  plan: {' '.join(chosen.sentences())}", flush=True)
    return {
        "network": name,
        "batch": batch,
        "n_views": n,
        "seconds": took,
        "times_no_augmentation": {key: value / none for key, value in took.items()},
        "times_one_view": {key: value / one for key, value in took.items()},
        "peak_gib": memory,
        "recommended": {"layer": cheap.layer, "order": cheap.order, "groups": cheap.groups},
        "plan": chosen.to_dict(),
    }


def peak(call, device: torch.device) -> float | None:
    if device.type != "cuda":
        return None
    torch.cuda.reset_peak_memory_stats(device)
    call()
    now(device)
    return torch.cuda.max_memory_allocated(device) / 2**30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="LeNet alone, half a minute")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--network", choices=["LeNet", "ResNet-18", "ViT"], help="only this one")
    parser.add_argument("--n-views", type=int)
    parser.add_argument("--repeats", type=int)
    add_out(parser)
    options = parser.parse_args()
    options.repeats = options.repeats or (2 if options.quick else 20)
    options.n_views = options.n_views or (8 if options.quick else 16)
    found = {"environment": environment(torch.device(options.device)), "steps": steps(options)}
    save(options.out, "steps", found)


if __name__ == "__main__":
    main()
