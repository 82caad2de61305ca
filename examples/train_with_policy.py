"""Train a small network on digits with and without a policy, in plain PyTorch.

    python examples/train_with_policy.py --policy 'shear(10) >> scaling(0.9,1.1)'
    augury policy digits --epochs 40 --json policy.json
    python examples/train_with_policy.py --policy policy.json

The policy is the transform of the data loader: every image has its own draw in every epoch, which
depends only on the seed, the epoch and the index of the image, whatever the number of workers.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import augury


def network() -> nn.Module:
    """Return a small convolutional network for 8 × 8 digits."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 10),
    )


def train(policy: Any, train_set: TensorDataset, test_set: TensorDataset, epochs: int) -> float:
    """Train with a policy and return the accuracy on the test set, in %."""
    torch.manual_seed(0)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    data = augury.TransformedDataset(train_set, policy, seed=0)
    loader = DataLoader(data, batch_size=64, shuffle=True)
    for epoch in range(epochs):
        data.set_epoch(epoch)  # new draws
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
    images, labels = test_set.tensors
    with torch.no_grad():
        return 100 * float((model(images).argmax(1) == labels).float().mean())


def main() -> None:
    """Compare training with the policy to training without one."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument(
        "--policy",
        default="shear(10) >> scaling(0.9,1.1)",
        help="a spec, or the JSON file written by a search",
    )
    parser.add_argument("--epochs", type=int, default=40)
    arguments = parser.parse_args()
    chosen = arguments.policy
    if chosen.endswith(".json"):
        chosen = augury.Policy.from_json(Path(chosen).read_text())
    digits: Any = load_digits()
    images = torch.tensor(digits.images / 16, dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(digits.target)
    parts = train_test_split(images, labels, train_size=100, random_state=0, stratify=labels)
    train_set, test_set = TensorDataset(*parts[::2]), TensorDataset(*parts[1::2])
    for policy in ("identity", chosen):
        started = time.perf_counter()
        accuracy = train(policy, train_set, test_set, arguments.epochs)
        print(f"{policy}: {accuracy:.1f} % ({time.perf_counter() - started:.1f} s)")


if __name__ == "__main__":
    main()
