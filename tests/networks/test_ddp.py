"""Averaging under DistributedDataParallel: two processes do what one would on the joined batch."""

from __future__ import annotations

import multiprocessing
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from forked import IMPORTED
from reference_networks import lenet
from torch.nn.parallel import DistributedDataParallel

from augury.networks.averaging import Averaged, Averaging

SETTINGS = {
    "first": {"order": 1},
    "second": {"order": 2},
    "combined": {"order": 2, "directions": 1},
    "groups": {"order": 1, "groups": 2},
}


def setting(name: str) -> Averaging:
    return Averaging("rotation(15)", "pool1", 4, **SETTINGS[name])


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return lenet().double()


def data() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    x = torch.rand(6, 1, 12, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return x, torch.arange(6) % 3, torch.arange(6)


def work(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/meet", rank=rank, world_size=2)
    x, y, index = (part[rank::2] for part in data())
    grads = {}
    for name in SETTINGS:
        model = network()
        parallel = DistributedDataParallel(Averaged(model, setting(name)))
        for step in (0, 1):  # gradients are shared at every step, the first with its checks too
            parallel.zero_grad()
            parallel(x, y, seed=step, index=index).backward()
        grads[name] = [p.grad for p in model.parameters()]
    torch.save(grads, f"{folder}/{rank}.pt")
    dist.barrier()
    os._exit(0)  # gloo may wait for ever for the other process when its group is destroyed


def test_two_processes_share_their_gradients(tmp_path):
    multiprocessing.set_forkserver_preload(IMPORTED)
    mp.start_processes(work, (str(tmp_path),), nprocs=2, start_method="forkserver")
    found = [torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1)]
    x, y, index = data()
    for name in SETTINGS:
        model = network()
        setting(name).loss(model, x, y, seed=1, index=index).backward()
        for one, other, whole in zip(
            found[0][name], found[1][name], model.parameters(), strict=True
        ):
            torch.testing.assert_close(one, other, rtol=0, atol=0)
            torch.testing.assert_close(one, whole.grad)
