"""A network and its averaged loss as one module."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from augury.networks.averaging.average import LossLike
from augury.objectives import multinomial


class Averaged(nn.Module):
    """A network and its averaged loss as one module, for what must wrap the forward pass.

    ``DistributedDataParallel(Averaged(model, averaging))`` shares gradients as it does for any
    module: call it with a batch to get the loss, then ``backward``. The network itself stays
    ``.model``, for testing and for saving.

    Parameters
    ----------
    model
        The network.
    averaging
        An `Averaging`, or a `TangentPropagation`.
    loss
        As for `Averaging.loss`.
    """

    def __init__(self, model: nn.Module, averaging: Any, loss: LossLike = multinomial) -> None:
        super().__init__()
        self.model, self.averaging, self.criterion = model, averaging, loss

    def forward(
        self, x: Tensor, y: Tensor, *, seed: int | None = None, index: Tensor | None = None
    ) -> Tensor:
        """Give the mean loss of a batch."""
        return self.averaging.loss(self.model, x, y, self.criterion, seed=seed, index=index)
