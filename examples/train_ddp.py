"""Train on several processes with averaged views, tangent propagation or a policy.

    torchrun --nproc-per-node 2 examples/train_ddp.py --method averaging
    torchrun --nproc-per-node 2 examples/train_ddp.py --method tangent --fsdp

A draw depends only on the seed, the epoch and the index of the example, so every example gets the
same views whatever the number of processes: the printed checksum is the same, and the loss is the
same up to rounding. The loss is computed inside a module, because `DistributedDataParallel` and
`fully_shard` need this to exchange gradients.
"""

from __future__ import annotations

import argparse
from hashlib import blake2b
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import augury

AUGMENTATION = "rotation(15) >> noise(0.1)"
BATCH, SEED = 64, 0


class Step(nn.Module):
    """A network and the loss that it is trained with, as one module."""

    def __init__(self, network: nn.Module, method: str) -> None:
        super().__init__()
        self.network = network
        self.method = {
            "averaging": augury.Averaging(AUGMENTATION, "input", n_views=8, groups=4),
            "tangent": augury.TangentPropagation("rotation(15)"),
        }.get(method)

    def forward(self, x: Tensor, y: Tensor, seed: int, index: Tensor) -> Tensor:
        """Return the mean loss of some examples, given with their indices."""
        if self.method is None:
            return F.cross_entropy(self.network(x), y)
        return self.method.loss(self.network, x, y, seed=seed, index=index)


def wrap(step: Step, sharded: bool) -> nn.Module:
    """Wrap the module so that gradients are exchanged, and weights are sharded if `sharded`."""
    if not sharded:
        return DistributedDataParallel(step)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    fully_shard(step, mesh=mesh)
    return step


def checksum(policy: Any, x: Tensor, rows: Tensor) -> str | None:
    """Return a checksum of the views of all examples, gathered from all processes."""
    views = {int(i): policy(x[i], index=int(i)).numpy().tobytes() for i in rows}
    every: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(every, views)
    joined = {i: view for part in every for i, view in part.items()}
    return blake2b(b"".join(joined[i] for i in sorted(joined)), digest_size=8).hexdigest()


def train(method: str, epochs: int, sharded: bool) -> tuple[float, str | None]:
    """Train on this process's part of each batch; return the loss and a checksum."""
    digits: Any = load_digits()
    x = torch.from_numpy(digits.images / 16).float().unsqueeze(1)[:1024]
    y = torch.from_numpy(digits.target)[:1024]
    torch.manual_seed(SEED)
    layers = nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(576, 10)
    model = wrap(Step(nn.Sequential(*layers), method), sharded)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    policy = augury.parse(AUGMENTATION).transform(seed=SEED)
    rank, size = dist.get_rank(), dist.get_world_size()
    mean, seen = torch.zeros(()), None
    for epoch in range(epochs):
        policy.set_epoch(epoch)
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(SEED + epoch))
        if epoch == 0:
            seen = checksum(policy, x, order[rank::size])
        for batch in order.split(BATCH):
            rows = batch[rank::size]
            inputs = policy(x[rows], index=rows) if method == "policy" else x[rows]
            optimizer.zero_grad()
            loss = model(inputs, y[rows], SEED + epoch, rows)
            loss.backward()
            optimizer.step()
            mean = loss.detach() / size
    dist.all_reduce(mean)
    return float(mean), seen


def main() -> None:
    """Train, and print the last loss and the checksum from the first process."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--method", choices=["averaging", "tangent", "policy"], default="averaging")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--fsdp", action="store_true", help="shard the weights over the processes")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    try:
        loss, seen = train(options.method, options.epochs, options.fsdp)
        if dist.get_rank() == 0:
            print(f"{options.method}: loss {loss:.6f}, views {seen}")
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
