"""Feature averaging in a plain training loop, on the handwritten digits inside scikit-learn.

    python examples/averaging_torch.py

A small network is trained three ways: without augmentation, on 16 rotated versions of each digit,
and on the same versions averaged in 4 groups at its input. Nothing else of the loop changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn

from augury import plan_averaging
from augury.networks.averaging import Averaging

EPOCHS, BATCH = 10, 64
LossOf = Callable[[nn.Module, Tensor, Tensor, int], Tensor]


def network() -> nn.Module:
    """Build a small network for images of 8 by 8 pixels; always the same one."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(512, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def train(loss_of: LossOf, x: Tensor, y: Tensor) -> tuple[nn.Module, float]:
    """Train a network with a loss of your choice; give it and the seconds it took."""
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    generator = torch.Generator().manual_seed(0)
    step, start = 0, time.perf_counter()
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(x), generator=generator).split(BATCH):
            loss = loss_of(model, x[rows], y[rows], step)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
    return model.eval(), time.perf_counter() - start


def main() -> None:
    """Train in three ways, then ask where averaging would pay."""
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(digits.target)
    few = 300  # augmentation helps most where examples are few
    training, testing = slice(0, few), slice(few, None)

    full = Averaging("rotation(15)", "8", n_views=16, groups=16)  # a group per view: no average
    averaging = Averaging("rotation(15)", "input", n_views=16, groups=4)
    ways: dict[str, LossOf] = {
        "no augmentation": lambda model, x, y, step: F.cross_entropy(model(x), y),
        "16 versions": lambda model, x, y, step: full.loss(model, x, y),
        "averaged": lambda model, x, y, step: averaging.loss(model, x, y),
    }
    for name, loss_of in ways.items():
        model, took = train(loss_of, x[training], y[training])
        with torch.no_grad():
            right = (model(x[testing]).argmax(1) == y[testing]).float().mean()
        print(f"{name:16} accuracy {right:.1%}, {took:.1f} s")

    layers = ["input", "2", "5", "8"]
    print(plan_averaging(model, x[:BATCH], "rotation(15)", y[:BATCH], n_views=16, layers=layers))


if __name__ == "__main__":
    main()
