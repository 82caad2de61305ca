"""Run code on many bad inputs, with limits on time and memory for each of them.

Cases run in forked processes, so that one that crashes or never ends is a result like any other.
The process that calls `survey` must not have used torch's autograd yet, which cannot be forked.
"""

from __future__ import annotations

import os
import pickle
import resource
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import torch

SECONDS = 20
"""CPU time that a case may take; of wall-clock time, six times as much, on a busy machine."""
BYTES = 2 * 2**30
"""Memory that a case may take beyond what the process has when it starts."""
_BATCH = 100  # cases for one process

Case = tuple[int, bytes]
Outcome = tuple[int, str]


def survey(
    use: Callable[[Path], str], cases: Iterable[Case], folder: Path, *, suffix: str = ""
) -> list[Outcome]:
    """Run `use` on each case, written to a file, and return the seeds with what came of them.

    Parameters
    ----------
    use
        From a file to a word for what happened; exceptions that it lets rise are defects.
    cases
        Seeds and contents.
    folder
        Where the files are written.
    suffix
        Of the files' names.

    Returns
    -------
    outcomes
        For each case its seed, and the word; or the exception with the place that raised it; or
        ``"out of time"``, ``"died"``.
    """
    found: list[Outcome] = []
    for batch in _batches(list(cases), _BATCH):
        while batch:
            done = in_fork(lambda batch=batch: _each(use, batch, folder, suffix))
            found += done
            batch = batch[len(done) :]
            if batch:
                found.append((batch[0][0], "died"))
                batch = batch[1:]
    return found


def in_fork(work: Callable[[], Iterator[Outcome]]) -> list[Outcome]:
    """Run work in a child process and return what it yielded, up to where it died if it did."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        with os.fdopen(writer, "wb") as pipe:
            torch.set_num_threads(1)
            for outcome in work():
                pickle.dump(outcome, pipe)
                pipe.flush()
        os._exit(0)
    os.close(writer)
    found = []
    with os.fdopen(reader, "rb") as pipe:
        while True:
            try:
                found.append(pickle.load(pipe))
            except EOFError:
                break
    os.waitpid(child, 0)
    return found


def _each(
    use: Callable[[Path], str], cases: list[Case], folder: Path, suffix: str
) -> Iterator[Outcome]:
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + BYTES, held + BYTES))
    for name in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(name, _out_of_time)
    path = folder / f"case-{os.getpid()}{suffix}"
    for seed, content in cases:
        path.write_bytes(content)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.setitimer(signal.ITIMER_REAL, 6 * SECONDS)
        try:
            word = use(path)
        except _OutOfTime:
            word = "out of time"
        except BaseException as error:  # all that users could see is a defect, even an exit
            at = traceback.extract_tb(error.__traceback__)[-1]
            word = f"{type(error).__name__} at {Path(at.filename).name}:{at.lineno}: {error}"[:300]
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
        yield seed, word
    path.unlink()


class _OutOfTime(BaseException):
    """Raised by the clock inside a case."""


def _out_of_time(signum: int, frame: object) -> None:
    raise _OutOfTime


def _batches(cases: list[Case], size: int) -> Iterator[list[Case]]:
    for start in range(0, len(cases), size):
        yield cases[start : start + size]
