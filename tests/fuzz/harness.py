"""Run many small cases in a child process, within limits, and count what came of each.

A target is a function ``(rng, directory) -> (kind, call)`` named as ``"module:function"``. It
makes one case in an empty directory from the random numbers it is given; only `call` is judged.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

Case = tuple[str, Callable[[], object]]
Target = Callable[[random.Random, Path], Case]

READ, REFUSED = "read", "refused"
GOOD = (READ, REFUSED)
_START = 120  # seconds for the child to import what it needs
_LONGEST = 2000  # characters of one line that a person can still read
# What no reading of data has a reason to do: start programs, open sockets.
_FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.")


@dataclass(frozen=True)
class Failure:
    """A case that went wrong; its seed and index make it again."""

    index: int
    kind: str
    outcome: str
    detail: str


@dataclass
class Survey:
    """How many cases of each kind had each outcome, and those that went wrong."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    seconds: float = 0.0
    peak: int = 0

    def add(self, index: int, kind: str, outcome: str, detail: str) -> None:
        self.counts[kind, outcome] += 1
        if outcome not in GOOD:
            self.failures.append(Failure(index, kind, outcome, detail))

    def table(self) -> str:
        """Write one line for each kind of case, then one for each failure."""
        kinds = sorted({kind for kind, _ in self.counts})
        outcomes = sorted({outcome for _, outcome in self.counts}, key=lambda o: (o not in GOOD, o))
        rows = [["kind", *outcomes]]
        rows += [[kind, *(str(self.counts[kind, o]) for o in outcomes)] for kind in kinds]
        sums = [sum(n for (_, o), n in self.counts.items() if o == outcome) for outcome in outcomes]
        rows.append(["all", *map(str, sums)])
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = [
            "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in rows
        ]
        lines.append(f"{self.seconds:.0f} s; at most {self.peak / 2**20:.0f} MiB above the start")
        lines += [f"#{f.index} {f.kind}: {f.outcome}: {f.detail}" for f in self.failures]
        return "\n".join(lines)


def survey(
    target: str, count: int, seed: int = 0, *, first: int = 0, seconds: float = 20, gib: float = 2
) -> Survey:
    """Run `count` cases from number `first` on, each in so many seconds and GiB at most.

    The seconds are of CPU time, and six times as many of wall-clock time: the machine may be busy.
    """
    found, at, started = Survey(), first, time.perf_counter()
    context = multiprocessing.get_context("forkserver")  # a fork of us may inherit threads' locks
    context.set_forkserver_preload(["torch", "augury.data", "augury.kernel"])
    while at < first + count:
        ours, theirs = context.Pipe()
        args = (theirs, target, seed, at, first + count, seconds, gib)
        child = context.Process(target=_work, args=args, daemon=True)
        child.start()
        theirs.close()
        kind, wait, ended = "", float(_START), False
        while not ended:
            try:
                message = ours.recv() if ours.poll(wait) else None
            except EOFError:  # the child has died, and the case with it
                message = ("died",)
            if message is None or message[0] == "died":
                if message is None:
                    child.kill()
                child.join()
                late = message is None or child.exitcode == -signal.SIGPROF
                outcome = "hung" if late else "died"
                if not kind:
                    raise RuntimeError(f"case {at} of {target} could not be made")
                found.add(at, kind, outcome, f"exit code {child.exitcode}")
                at, ended = at + 1, True
            elif message[0] == "begin":
                kind, wait = message[1], 6 * seconds
            elif message[0] == "end":
                found.add(at, kind, *message[1:3])
                found.peak = max(found.peak, message[3])
                at, wait, kind = at + 1, float(_START), ""
                ended = at == first + count
        child.join(10)
    found.seconds = time.perf_counter() - started
    return found


def _work(
    pipe: Connection, target: str, seed: int, first: int, last: int, seconds: float, gib: float
) -> None:
    """Run cases one after the other in this process, and report each."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    warnings.simplefilter("ignore")
    module, name = target.split(":")
    make: Target = getattr(importlib.import_module(module), name)
    watch = _Watch()
    root = Path(tempfile.mkdtemp(prefix="augury-fuzz-"))
    limit = int(gib * 2**30)
    try:
        judge(make(random.Random(0), _fresh(root))[1])  # first imports are not counted
        _limit_memory(limit + (1 << 30))
        for index in range(first, last):
            directory = _fresh(root)
            kind, call = make(random.Random(f"{seed}/{index}"), directory)
            pipe.send(("begin", kind))
            before = _reset_peak()
            watch.start(directory)
            signal.setitimer(signal.ITIMER_PROF, seconds)  # its signal ends the process
            outcome, detail = judge(call)
            signal.setitimer(signal.ITIMER_PROF, 0)
            watch.stop()
            used = _peak() - before
            if watch.seen:
                outcome, detail = "code", watch.seen[0]
            elif used > limit:
                outcome, detail = "memory", f"{used / 2**30:.1f} GiB"
            pipe.send(("end", outcome, detail, used))
    finally:
        shutil.rmtree(root, ignore_errors=True)


def judge(call: Callable[[], object]) -> tuple[str, str]:
    """Call a case: it may succeed, or raise an `AuguryError` of one readable line."""
    from augury._base.errors import AuguryError

    try:
        call()
    except AuguryError as error:
        text = str(error)
        if "\n" in text or len(text) > _LONGEST or not text:
            return "not one line", repr(text[:200])
        return REFUSED, ""
    except Exception as error:  # any other exception is what is looked for
        return type(error).__name__, f"{error}"[:200].replace("\n", " ")
    return READ, ""


class _Watch:
    """Notes when a program is started, a socket opened, or a file written outside of a case."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.directory = ""
        sys.addaudithook(self._hook)

    def start(self, directory: Path) -> None:
        self.seen, self.directory = [], str(directory)

    def stop(self) -> None:
        self.directory = ""

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.directory:
            return
        if event.startswith(_FORBIDDEN):
            self.seen.append(f"{event} {args!r}"[:200])
        elif event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"):
            path = str(args[0])
            if not path.startswith((self.directory, tempfile.gettempdir(), "/dev/null")):
                self.seen.append(f"wrote {path}"[:200])


def _fresh(root: Path) -> Path:
    """Return an empty directory."""
    directory = root / "case"
    shutil.rmtree(directory, ignore_errors=True)
    if directory.exists():  # what cannot be removed is left behind
        directory = Path(tempfile.mkdtemp(dir=root))
    directory.mkdir(exist_ok=True)
    return directory


def _limit_memory(size: int) -> None:
    """Let allocations past this size fail, so that a runaway case harms nobody else."""
    used = _status("VmData")
    if used:
        resource.setrlimit(resource.RLIMIT_DATA, (used + size, used + size))


def _reset_peak() -> int:
    """Start counting the peak of resident memory anew, where the system can; return it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak() -> int:
    return _status("VmHWM")


def _status(entry: str) -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:  # not Linux: memory is not measured
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(entry)), 0)
