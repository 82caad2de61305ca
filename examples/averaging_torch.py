"""Train on many views of each example at a lower cost, in a plain training loop.

    python examples/averaging_torch.py

A small network is trained on scikit-learn's handwritten digits in five ways: without augmentation,
on one random view of each digit per step (the usual practice), on 4 and on 16 views, and on 16
views averaged in 4 groups at its input. Only the loss changes. Finally, an averaging plan measures
all choices.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn

import augury

AUGMENTATION = augury.parse("rotation(15)")
BATCH, EXAMPLES = 64, 300  # augmentation helps most where examples are few
Loss = Callable[[nn.Module, Tensor, Tensor], Tensor]


def build_network() -> nn.Module:
    """Build a small network for images of 8 × 8 pixels, always with the same initial weights."""
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


def plain(network: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Return the loss without augmentation."""
    return F.cross_entropy(network(x), y)


def one_random_view(network: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Return the loss of one random view of each example, the usual practice."""
    return F.cross_entropy(network(AUGMENTATION(x)), y)


LOSSES: dict[str, Loss] = {
    "no augmentation": plain,
    "1 random view": one_random_view,
    "4 views": augury.Averaging(AUGMENTATION, "input", n_views=4, groups=4).loss,
    "4 averages of 4": augury.Averaging(AUGMENTATION, "input", n_views=16, groups=4).loss,
    "16 views": augury.Averaging(AUGMENTATION, "input", n_views=16, groups=16).loss,
}


def train(loss: Loss, x: Tensor, y: Tensor, epochs: int) -> tuple[nn.Module, float]:
    """Train a network with a loss; return it and the seconds it took."""
    network = build_network()
    optimizer = torch.optim.Adam(network.parameters(), 2e-3)
    generator = torch.Generator().manual_seed(0)
    start = time.perf_counter()
    for _ in range(epochs):
        for rows in torch.randperm(len(x), generator=generator).split(BATCH):
            optimizer.zero_grad()
            loss(network, x[rows], y[rows]).backward()
            optimizer.step()
    return network.eval(), time.perf_counter() - start


def main(epochs: int = 20, repeats: int = 5) -> None:
    """Train in each way and print its accuracy, then print the averaging plan."""
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(digits.target)
    for name, loss in LOSSES.items():
        network, took = train(loss, x[:EXAMPLES], y[:EXAMPLES], epochs)
        with torch.no_grad():
            right = (network(x[EXAMPLES:]).argmax(1) == y[EXAMPLES:]).float().mean()
        print(f"{name:16} accuracy {right:.1%}, {took:.1f} s")

    x, y = x[:BATCH], y[:BATCH]
    print(augury.plan_averaging(network, x, AUGMENTATION, y, n_views=16, repeats=repeats))


if __name__ == "__main__":
    main()
