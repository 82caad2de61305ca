"""Independent jobs on the cores of a CPU: one thread of arithmetic each, instead of all on one.

Small tensors gain little from several threads and lose much when cores are shared with others.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Job = TypeVar("Job")
Result = TypeVar("Result")


class _Stopped(Exception):
    """Raised inside a job when another has failed or the user has interrupted."""


def run_parallel(
    work: Callable[[Job, Callable[[str], None]], Result],
    jobs: Sequence[Job],
    tick: Callable[[str], None],
) -> list[Result]:
    """Run all jobs, as many at a time as torch has threads; return results in order.

    Each job gets a `tick` to call as it goes; it is where an interrupted job stops.
    """
    keep_memory()
    threads = torch.get_num_threads()
    lock, stop = threading.Lock(), threading.Event()

    def checked(now: str) -> None:
        if stop.is_set():
            raise _Stopped
        with lock:
            tick(now)

    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    try:
        futures = [pool.submit(work, job, checked) for job in jobs]
        return [future.result() for future in futures]
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)


@functools.cache
def keep_memory() -> None:
    """Ask the C library to keep freed memory of up to half a GiB for what comes next.

    Training asks for the same few megabytes at each step. Left alone, glibc gives them back to the
    system in between, and a fifth of the time goes into page faults. Dask has its workers give back
    still more: half of their time went there.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    if mallopt is not None:
        for option, size in ((_MMAP_THRESHOLD, 1 << 25), (_TRIM_THRESHOLD, 1 << 29)):
            mallopt(option, size)


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as malloc.h numbers them; the second is at its most
