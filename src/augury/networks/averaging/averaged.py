"""A network and its averaged loss as one module."""

from __future__ import annotations

from torch import Tensor, nn

from augury.networks.averaging.loss import LossLike, TrainingLoss
from augury.objectives import multinomial


class Averaged(nn.Module):
    """A network and its averaged loss as one module, for wrappers around the forward pass.

    ``DistributedDataParallel(Averaged(network, averaging))`` shares gradients as it does for any
    module: call it with a batch to get the loss, then ``backward``. The network itself stays
    ``.network``, for testing and saving.

    Parameters
    ----------
    network
        The network.
    averaging
        An `Averaging` or a `TangentPropagation`.
    loss
        As in `Averaging.losses`.

    Examples
    --------
    >>> import torch
    >>> from augury import Averaging
    >>> network = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    >>> step = Averaged(network, Averaging("rotation(15)", "input", n_views=16, groups=4))
    >>> step(torch.rand(8, 1, 8, 8), torch.arange(8)).backward()
    """

    def __init__(
        self, network: nn.Module, averaging: TrainingLoss, loss: LossLike = multinomial
    ) -> None:
        super().__init__()
        self.network, self.averaging, self.criterion = network, averaging, loss

    def forward(
        self, x: Tensor, y: Tensor, *, seed: int | None = None, index: Tensor | None = None
    ) -> Tensor:
        """Return the mean loss of a batch."""
        return self.averaging.loss(self.network, x, y, self.criterion, seed=seed, index=index)
