"""What the losses of a training step share: the mean over a batch, and checks of what comes in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from augury._base.errors import AuguryError
from augury._base.given import check_batch, is_one_of
from augury._base.text import shown
from augury.networks.layers.find import unwrapped
from augury.objectives import multinomial

LossLike = Callable[[Tensor, Tensor], Tensor]


class TrainingLoss(ABC):
    """A loss of a network on augmented examples: of each example, and its mean over a batch."""

    @abstractmethod
    def losses(
        self,
        network: nn.Module,
        x: Tensor,
        y: Tensor,
        loss: LossLike = multinomial,
        *,
        seed: int | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of each example of a batch: ``(b,)``.

        Parameters
        ----------
        network
            The network, in training mode. A compiled one runs compiled.
        x, y
            Inputs ``(b, *shape)`` and targets.
        loss
            Maps outputs and targets to one number for each example: cross-entropy by default, or
            a function of your own; it must not reduce over examples (``reduction="none"``).
        seed
            For views that are drawn: a new one at each step, for example the step's number.
        index
            The examples' numbers in the data ``(b,)``, so that a draw depends on the seed and the
            example alone; their positions in the batch by default.
        """

    def loss(
        self,
        network: nn.Module,
        x: Tensor,
        y: Tensor,
        loss: LossLike = multinomial,
        *,
        seed: int | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """Return the mean loss of a batch, to be differentiated; parameters as in `losses`."""
        return self.losses(network, x, y, loss, seed=seed, index=index).mean()


def check_floats(x: Tensor) -> None:
    """Raise if a batch is not floating-point, as pixels read from files are not."""
    check_batch(x)
    if not x.is_floating_point():
        raise AuguryError(
            f"the batch must be floating-point, not {x.dtype}; pass pixels as x.float() / 255"
        )


def check_curvature(curvature: str) -> None:
    """Raise if the second order has no such curvature."""
    if not is_one_of(curvature, ("gauss-newton", "hessian")):
        raise AuguryError(f"curvature must be 'gauss-newton' or 'hessian', not {shown(curvature)}")


def check_training(network: nn.Module) -> None:
    """Raise if a network that is to be trained is in eval mode."""
    if torch.is_grad_enabled() and not unwrapped(network).training:
        raise AuguryError(
            "the network is in eval mode, where batch norm and dropout are frozen: call "
            "network.train() to train it, or use torch.no_grad() to measure"
        )
