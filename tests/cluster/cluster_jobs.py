"""Work that tests send to workers, in a module that they can import."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import torch

from augury._base.errors import AuguryError


def scale(shared, job):
    """Later jobs finish first."""
    time.sleep(0.02 * (5 - job))
    return (shared * job, torch.tensor(os.getpid()))


def count(shared, job):
    """Leave a trace for each time that it is done."""
    with open(Path(shared) / str(job), "a") as file:
        file.write("x")
    return (torch.tensor([float(job)]),)


def die_once(shared, job):
    """End the worker's process by kill -9 where the job is 2 and this has not happened before."""
    trace = Path(shared) / f"{job}-died"
    if job == 2 and not trace.exists():
        trace.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return count(shared, job)


def meet(shared, job):
    """End together with the other jobs, the first by an error."""
    shared.wait(timeout=20)
    if job == 0:
        raise AuguryError("job 0 is refused")
    return (torch.tensor([float(job)]),)


def refuse(shared, job):
    raise AuguryError(f"job {job} is refused")
