"""Jobs that do not depend on each other, done by as many workers as there are.

A job is a picklable value, its result a tuple of tensors. Results come in the order of the jobs,
whoever finished first, and every job computes with one thread; so what is made of them does not
depend on the number of workers, nor on whether there is a cluster.
"""

from __future__ import annotations

import functools
import itertools
import operator
import pickle
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Future,
    ThreadPoolExecutor,
    wait,
)
from hashlib import blake2b
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.memory import available_bytes
from augury._base.parallel import keep_memory
from augury._base.text import cause, count
from augury.cluster.journal import Journal

Tensors = tuple[Tensor, ...]
Work = Callable[[Any, Any], Tensors]
"""From what all jobs share, and a job, to its result."""

Submit = Callable[[Any], Future[Tensors]]

_GONE = (
    "lost the cluster's scheduler; restart it and repeat the command (jobs in the journal are not "
    "run again)"
)
_LOOK = 2.0  # seconds between looks whether a cluster is still there
_MOMENT = 0.005  # seconds: about as long as Dask collects messages before it sends them
_AHEAD = 3  # jobs for each worker that are begun before the next result in order is there


class Workers:
    """Threads of this process that do jobs, one each.

    Parameters
    ----------
    slots
        How many jobs are done at a time; by default as many as torch has threads.
    threads
        With how many threads each computes.
    """

    remote = False
    """Whether jobs are done by other processes."""
    dashboard: str | None = None
    """The address of the page that shows a cluster at work."""

    def __init__(self, slots: int | None = None, *, threads: int = 1) -> None:
        self.slots, self.threads = slots or torch.get_num_threads(), threads

    def map(
        self,
        work: Work,
        shared: Any,
        jobs: Mapping[str, Any],
        *,
        journal: Journal | None = None,
        tick: Callable[[str], None] = lambda job: None,
        each: int = 0,
    ) -> Iterator[Tensors]:
        """Run all jobs and yield their results in order; jobs in the journal are not run again.

        Parameters
        ----------
        work
            A function of a module: ``work(shared, job)``.
        shared
            What all jobs need. It reaches each worker once.
        jobs
            By name; a name says all that sets a job apart from the others of the journal.
        journal
            Where each finished job is kept at once.
        tick
            Called with the name of each job that is finished, in the caller's thread.
        each
            The bytes of a result: no more are under way than half of the free memory holds.
        """
        journal = journal or Journal()
        ready: dict[str, Tensors] = {}
        running: dict[Future[Tensors], str] = {}
        later = iter(jobs)
        held = _most(each)
        submit, close = self._begin(work, shared, min(self.slots, held))
        try:
            for name in jobs:
                while name not in ready:
                    room = min(_AHEAD * self.slots, held) - len(running) - len(ready)
                    for begun in itertools.islice(later, room):
                        known = journal.read(begun)
                        if known is None:
                            running[submit(jobs[begun])] = begun
                        else:
                            ready[begun] = known
                            tick(begun)
                    if name in ready:
                        break
                    ended = wait(running, _LOOK, return_when=FIRST_COMPLETED).done
                    self.check_alive()
                    finished = [future for future in running if future in ended]  # in order
                    ended.clear()
                    fresh: dict[str, Tensors] = {}
                    failure: BaseException | None = None
                    while finished:  # a job that fails must not cost those that ended with it
                        done = running.pop(finished[0])
                        try:
                            fresh[done] = self._result(finished.pop(0), done)
                        except BaseException as error:  # whatever a job raises
                            failure = failure or error
                    if journal.path is not None:
                        self._forget()
                    for done in list(fresh):
                        journal.write(done, fresh[done])
                        ready[done] = fresh.pop(done)
                        tick(done)
                    if failure is not None:
                        try:
                            raise failure
                        finally:  # or frame and error hold each other, and with them the future
                            failure = None
                yield ready.pop(name)
        finally:
            for future in running:
                future.cancel()
            close()

    def _begin(self, work: Work, shared: Any, slots: int) -> tuple[Submit, Callable[[], None]]:
        """Return what submits a job, and what ends the work."""
        pool = ThreadPoolExecutor(
            slots, initializer=torch.set_num_threads, initargs=(self.threads,)
        )
        return lambda job: pool.submit(work, shared, job), pool.shutdown

    def _result(self, future: Future[Tensors], job: str) -> Tensors:
        return future.result()

    def _forget(self) -> None:
        """Return once no job whose result was received can be run again."""

    def check_alive(self) -> None:
        """Raise if nobody is there to finish a job."""


class ClusterWorkers(Workers):
    """The workers of a Dask cluster.

    A worker that is lost is replaced by another, which does its jobs again.

    Parameters
    ----------
    client
        A ``distributed.Client`` whose workers have been checked.
    version
        The version of augury that all must have.
    """

    remote = True

    def __init__(self, client: Any, version: str) -> None:
        self.client, self.version = client, version
        threads = client.nthreads().values()
        super().__init__(max(1, sum(threads)))
        self.dashboard = client.dashboard_link
        self._keys: WeakKeyDictionary[Future[Tensors], str] = WeakKeyDictionary()
        self._taken: list[str] = []

    def _begin(self, work: Work, shared: Any, slots: int) -> tuple[Submit, Callable[[], None]]:
        import dask.config
        from distributed.protocol.pickle import dumps

        try:
            packed = dumps(shared)
        except Exception as error:  # whatever a user's objects raise when they are pickled
            raise AuguryError(
                f"the jobs cannot be sent to the workers: {cause(error)}; a network must be "
                "made by a function of a module that workers can import"
            ) from error
        self._taken.clear()
        digest = blake2b(packed, digest_size=16).hexdigest()
        # A task and not scattered data: the scheduler can place it again when a worker is lost.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
            held = self.client.submit(operator.itemgetter(0), [packed], key=f"augury-{digest}")
        pool = self.client.get_executor(pure=False)

        def submit(job: Any) -> Future[Tensors]:
            key = f"augury-job-{uuid.uuid4().hex}"
            future = pool.submit(_run, held, digest, dumps((self.version, work, job)), key=key)
            self._keys[future] = key
            return future

        return submit, functools.partial(pool.shutdown, wait=False)

    def check_alive(self) -> None:
        if self.client.status != "running":  # its futures may never be told
            raise AuguryError(_GONE)

    def _forget(self) -> None:
        """Wait until the scheduler knows which results were received.

        This takes a few milliseconds; until then, the scheduler would run a job again if its worker
        were lost.
        """
        taken, self._taken = self._taken, []
        ends = time.monotonic() + _LOOK
        while taken and time.monotonic() < ends:
            ask = self.client.scheduler.get_task_status
            try:
                found: Any = self.client.sync(ask, keys=taken, callback_timeout=_LOOK)
            except (OSError, TimeoutError):  # a scheduler that is gone does nothing again
                return
            taken = [key for key, state in found.items() if state is not None]
            if taken:
                time.sleep(_MOMENT)

    def _result(self, future: Future[Tensors], job: str) -> Tensors:
        from distributed import KilledWorker

        key = self._keys.pop(future)
        try:
            found = future.result()
        except CancelledError:
            raise AuguryError(_GONE) from None
        except KilledWorker as error:
            killed = error.allowed_failures + 1
            raise AuguryError(
                f"the job {job} killed {count(killed, 'worker')}, perhaps because "
                f"{'it' if killed == 1 else 'they'} ran out of memory; give the workers more "
                "memory, or use smaller shards"
            ) from None
        except ModuleNotFoundError as error:
            raise AuguryError(
                f"a worker has no module {error.name!r}; install the same packages there as here"
            ) from None
        self._taken.append(key)
        return found


def _most(each: int) -> int:
    """Return how many results of so many bytes may be held."""
    return max(1, available_bytes(torch.device("cpu")) // 2 // each) if each else sys.maxsize


def _run(packed: bytes, digest: str, call: bytes) -> Tensors:
    """Run a job on a worker."""
    import augury

    keep_memory()
    torch.set_num_threads(1)
    version, work, job = pickle.loads(call)
    if augury.__version__ != version:  # a worker that came after the others were checked
        raise AuguryError(
            f"a worker has augury {augury.__version__}, but this is {version}; use one version"
        )
    return tuple(part.cpu() for part in work(_unpack(digest, packed), job))


_unpacked: dict[str, Any] = {}


def _unpack(digest: str, packed: bytes) -> Any:
    """Return what jobs share, unpacked once on each worker; the last only is kept."""
    if digest not in _unpacked:
        found = pickle.loads(packed)
        _unpacked.clear()
        _unpacked[digest] = found
    return _unpacked[digest]
