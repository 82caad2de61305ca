"""Workers for the `cluster` argument: None, an address, a client or ``local``."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import pkgutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from augury._base.devices import resolve_device
from augury._base.errors import AuguryError
from augury._base.text import kind_of
from augury.cluster.interrupts import held_interrupts
from augury.cluster.workers import ClusterWorkers, Workers

if TYPE_CHECKING:
    from distributed import Client

Cluster: TypeAlias = "str | Client | Workers | None"
_SECONDS = 10
_LOCAL = {
    "distributed.scheduler.allowed-failures": 12,  # workers that a job may lose; Dask's 3 are few
    # Dask gives a worker up that is not back in 15 s, or that dies once more within them.
    "distributed.deploy.lost-worker-timeout": "365 days",
    "distributed.worker.profile.enabled": False,  # it stops a job a hundred times a second
}


@contextlib.contextmanager
def open_workers(cluster: Any, device: str | torch.device = "auto") -> Iterator[Workers]:
    """Connect to workers for as long as the block runs.

    Parameters
    ----------
    cluster
        None for threads of this process (where several GPUs are visible and are to be used, one
        worker for each); ``"local"`` for one process per core, ``"local:4"`` for four;
        ``"local-cuda"`` for one process per GPU; the address of a Dask scheduler; or a
        ``distributed.Client``.
    device
        Where this process would compute. On a GPU it does one job at a time.
    """
    if isinstance(cluster, Workers):
        yield cluster
        return
    if cluster is None:
        where = device if isinstance(device, torch.device) else resolve_device(device)
        if not _has_several(device, where):
            yield Workers(1 if where.type == "cuda" else None)
            return
        cluster = "local-cuda"
    with contextlib.ExitStack() as stack:
        yield _check(_connect(cluster, stack))


def _has_several(device: str | torch.device, where: torch.device) -> bool:
    """Return whether several GPUs may be used, and can be: a worker each needs Dask."""
    if where.type != "cuda" or str(device) not in ("auto", "cuda"):
        return False
    return torch.cuda.device_count() > 1 and importlib.util.find_spec("distributed") is not None


def _connect(cluster: Any, stack: contextlib.ExitStack) -> Client:
    try:
        import dask.config
        import distributed
    except ImportError:
        raise AuguryError("a cluster needs Dask; pip install 'augury[cluster]'") from None

    if isinstance(cluster, distributed.Client):
        return cluster
    if not isinstance(cluster, str):
        raise AuguryError(
            "cluster must be 'local', 'local-cuda', the address of a Dask scheduler or a "
            f"distributed.Client, got {kind_of(cluster)}"
        )
    kind, _, count = cluster.partition(":")
    if kind in ("local", "local-cuda"):
        stack.enter_context(dask.config.set(_LOCAL))
        with held_interrupts():
            started = stack.enter_context(_start(kind, count))
            # Results come from the workers themselves, and not through the scheduler once more.
            return stack.enter_context(distributed.Client(started, direct_to_workers=True))
    try:
        return stack.enter_context(distributed.Client(cluster, timeout=_SECONDS))
    except (OSError, TimeoutError):
        raise AuguryError(
            f"no Dask scheduler answered at {cluster} within {_SECONDS} s; start one with "
            "'dask scheduler', or use local"
        ) from None
    except ValueError as error:
        raise AuguryError(
            f"{cluster!r} is not the address of a Dask scheduler, such as tcp://host:8786 ({error})"
        ) from None


def _start(kind: str, count: str) -> Any:
    """Start workers on this machine: one for each core, or for each GPU that is visible."""
    from distributed import LocalCluster, Nanny, Scheduler, SpecCluster

    if count and not (count.isdecimal() and int(count) > 0):
        raise AuguryError(f"expected a number of workers after local:, got {count!r}")
    if kind == "local":
        return LocalCluster(
            n_workers=int(count) if count else os.cpu_count() or 1,
            threads_per_worker=1,
            memory_limit=0,  # what a job needs is known beforehand; Dask would stop it half-way
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        )
    options = {"nthreads": 1, "memory_limit": 0, "silence_logs": logging.CRITICAL}
    gpus = visible_gpus()[: int(count) if count else None]
    if not gpus:
        raise AuguryError("local-cuda was requested, but torch finds no CUDA device; use local")
    return SpecCluster(
        workers={
            k: {"cls": Nanny, "options": {**options, "env": {"CUDA_VISIBLE_DEVICES": gpu}}}
            for k, gpu in enumerate(gpus)
        },
        scheduler={"cls": Scheduler, "options": {"dashboard_address": "127.0.0.1:0"}},
        silence_logs=logging.CRITICAL,  # type: ignore[arg-type]  # a level, as LocalCluster's
    )


def visible_gpus() -> list[str]:
    """Return the GPUs that this process may use, by the names that CUDA_VISIBLE_DEVICES takes."""
    count = torch.cuda.device_count()
    named = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return [name.strip() for name in named[:count]] or [str(k) for k in range(count)]


def _check(client: Client) -> ClusterWorkers:
    """Raise if there are no workers, or one has no augury or another version of it."""
    import augury

    try:
        client.wait_for_workers(1, timeout=_SECONDS)
    except (OSError, TimeoutError):
        raise AuguryError(
            f"the cluster at {client.scheduler_info()['address']} had no worker within "
            f"{_SECONDS} s; start some with 'dask worker'"
        ) from None
    found: Any = client.run(pkgutil.resolve_name, "augury:__version__", on_error="return")
    for worker, version in found.items():
        if isinstance(version, Exception):
            raise AuguryError(
                f"the worker {worker} cannot import augury ({type(version).__name__}); install "
                f"augury {augury.__version__} there"
            )
        if version != augury.__version__:
            raise AuguryError(
                f"the worker {worker} has augury {version}, but this is {augury.__version__}; "
                "install the same version everywhere"
            )
    return ClusterWorkers(client, augury.__version__)
