"""How long does a step of many networks take, with kernels of our own and with torch's layers?

    python benchmarks/grouped_steps.py [--device cuda] [--steps 12] [--name NAME] [--out DIR]
    python benchmarks/grouped_steps.py --quick

Trains networks of a trial on random images, all as one, 64 examples a step, and times the steps: as
they come, and recorded as a CUDA graph. Without a GPU, or without Triton, torch's layers alone are
timed.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import torch
from _result import add_out, environment, save
from torch import Tensor

from augury._base.devices import resolve_device
from augury.forecasting.training import blocks
from augury.forecasting.training.adamw import AdamW
from augury.forecasting.training.grouped import Grouped
from augury.forecasting.training.members import member_loss, precision
from augury.forecasting.training.recorded import Recorded

SIZES = (("cnn", 76, 32), ("small", 76, 32), ("cnn", 38, 64), ("cnn", 12, 32))
"""Architecture, networks and pixels a side."""

BATCH, CLASSES = 64, 10


def measure(
    architecture: str, networks: int, side: int, device: torch.device, steps: int, recorded: bool
) -> float:
    """Return the milliseconds of a step, after a few that are not counted."""
    net = Grouped(architecture, networks, (3, side, side), CLASSES, 0).to(device)
    net = net.to(memory_format=torch.channels_last).train()  # type: ignore[call-overload]  # torch types it for tensors alone
    optimizer = AdamW(net.parameters(), 0.005)
    x = torch.rand(BATCH, networks, 3, side, side, device=device)
    y = torch.randint(0, CLASSES, (BATCH, networks), device=device)

    def compute(x: Tensor, y: Tensor) -> None:
        with precision(device, net.shape, cache=False):
            out = net(x).float()
        (member_loss(out, y, True).sum() / len(x)).backward()

    step = Recorded(compute, recorded)

    def train(count: int) -> float:
        if device.type == "cuda":
            torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(count):
            step(x, y)
            optimizer.step(0.003, 0.9)
            if not step.repeats:
                optimizer.forget()
        if device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - begun

    train(6)
    return 1000 * train(steps) / steps


def main() -> None:
    """Time the steps and write them down."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--name", default="grouped_steps")
    parser.add_argument("--quick", action="store_true", help="a few networks, two steps")
    add_out(parser)
    options = parser.parse_args()
    device = resolve_device(options.device)
    sizes = (("cnn", 3, 16), ("small", 3, 16)) if options.quick else SIZES
    steps = 2 if options.quick else options.steps
    usual = blocks.fused_kernels
    ways = {"torch": lambda device: None}
    if device.type == "cuda" and usual(device) is not None:
        ways["kernels"] = usual
    rows: list[dict[str, Any]] = []
    for way, found in ways.items():
        blocks.fused_kernels = found
        for architecture, networks, side in sizes:
            row = {"way": way, "network": architecture, "networks": networks, "side": side}
            kinds = {"step": False, **({"recorded": True} if device.type == "cuda" else {})}
            for name, recorded in kinds.items():
                spent = measure(architecture, networks, side, device, steps, recorded)
                row[f"{name}, ms"] = round(spent, 2)
            rows.append(row)
            print(row, flush=True)
    save(options.out, options.name, {"environment": environment(device), "rows": rows})


if __name__ == "__main__":
    main()
