"""Feature averaging in Lightning: only one line of `training_step` changes.

    pip install lightning
    python examples/averaging_lightning.py

It works with Lightning's strategies for several devices as well: the averaged loss is computed
inside `training_step`, which Lightning runs through its wrapper, so gradients are shared.
"""

from __future__ import annotations

import lightning
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from augury import Averaging


class Classifier(lightning.LightningModule):
    """A small network for digits, trained on 4 averages of 4 rotated views at its input."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(256, 64),
            nn.ReLU(),
            nn.Linear(64, 10),
        )
        self.averaging = Averaging("rotation(15)", "input", n_views=16, groups=4)

    def training_step(self, batch: tuple[Tensor, Tensor], number: int) -> Tensor:
        x, y = batch
        return self.averaging.loss(self.network, x, y, seed=self.global_step)

    def validation_step(self, batch: tuple[Tensor, Tensor], number: int) -> None:
        x, y = batch
        right = (self.network(x).argmax(1) == y).float().mean()
        self.log("accuracy", right, prog_bar=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), 2e-3)


def main() -> None:
    """Train for ten epochs and print the accuracy."""
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(digits.target)
    training = DataLoader(TensorDataset(x[:300], y[:300]), 64, shuffle=True)
    testing = DataLoader(TensorDataset(x[300:], y[300:]), 512)
    trainer = lightning.Trainer(max_epochs=10, logger=False, enable_checkpointing=False)
    trainer.fit(Classifier(), training, testing)
    print({name: float(value) for name, value in trainer.callback_metrics.items()})


if __name__ == "__main__":
    main()
