"""The same result whatever the workers: none, some, or some that are killed."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _shards import CANDIDATES, digits, generate

from augury.cluster import Journal
from augury.cluster.workers import ClusterWorkers

TWICE = "begun again after they were journalled"

Run = Callable[[Any, "Path | None"], Any]
"""A command: from the cluster and the journal to numbers that can be compared."""


def alignment(shards: Any, where: Any, journal: Path | None) -> Any:
    import augury

    features = augury.FourierFeatures(64)
    return _numbers(
        augury.rank(
            shards, None, CANDIDATES[:4], score="alignment", max_examples=None, n_views=2,
            device="cpu", cluster=where, journal=journal, feature_map=features,
        )
    )  # fmt: skip


def ridge(shards: Any, where: Any, journal: Path | None) -> Any:
    import augury

    return _numbers(
        augury.rank(
            shards.draw(40_000, 0), augmentations=CANDIDATES[:2], score="ridge", max_examples=None,
            n_views=2, device="cpu", cluster=where, journal=journal,
            feature_map=augury.FourierFeatures(64),
        )
    )  # fmt: skip


def fit(shards: Any, where: Any, journal: Path | None) -> Any:
    import augury

    model = augury.AugmentedKernelClassifier(
        "horizontal_flip", n_components=1024, device="cpu", random_state=0
    ).fit(shards, cluster=where, journal=journal)
    return model.decision_function(shards.draw(500, 0).x).tolist()


def invariance(shards: Any, where: Any, journal: Path | None) -> Any:
    import augury

    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Flatten())
    profile = augury.measure_invariance(
        network.eval(), shards.draw(len(shards) // 8, 0), CANDIDATES[:4], n_views=8, cluster=where,
        journal=journal,
    )  # fmt: skip
    return [*map(repr, profile.rows)]


def rank(shards: Any, where: Any, journal: Path | None) -> Any:
    import augury

    x, y = digits()
    found = augury.rank(
        x[:900], y[:900], CANDIDATES[:4], epochs=20, effort=2, device="cpu", cluster=where,
        journal=journal,
    )  # fmt: skip
    return _numbers(found)


def policy(shards: Any, where: Any, journal: Path | None) -> Any:
    import augury

    x, y = digits()
    found = augury.search_policy(
        x[:600], y[:600], epochs=4, device="cpu", cluster=where, journal=journal
    )
    return [found.spec, found.baseline, *map(repr, found.rows)]


def _numbers(ranking: Any) -> Any:
    return [ranking.baseline, *map(repr, ranking.rows)]


COMMANDS = {f.__name__: f for f in (rank, policy, invariance, alignment, ridge, fit)}


def _runs(options: argparse.Namespace) -> dict[str, Run]:
    """Return the chosen commands on generated shards."""
    import augury

    folder = generate(options.folder / str(options.examples[0]), options.examples[0])
    shards = augury.open_shards(folder)
    return {
        name: lambda where, journal, run=COMMANDS[name]: run(shards, where, journal)
        for name in options.what
    }


def equal(options: argparse.Namespace, add: Any) -> None:
    """Each command without a cluster and with some numbers of workers: the same numbers."""
    from augury.cluster import open_workers

    runs, expected = _runs(options), {}
    for name, run in runs.items():
        started = time.perf_counter()
        expected[name] = run(None, None)
        add(f"{name} without a cluster", {"seconds": time.perf_counter() - started})
    for count in options.workers:
        with open_workers(f"local:{count}", "cpu") as found:
            for name, run in runs.items():
                started = time.perf_counter()
                got = run(found, None)
                seconds = time.perf_counter() - started
                far = {} if name != "fit" else {"largest difference": _apart(got, expected[name])}
                same = got == expected[name]
                add(f"{name} with {count} workers", {"seconds": seconds, "bit-equal": same, **far})
    if "policy" in runs:
        add("augury policy --cluster", _by_command(options.workers))


def _apart(a: Any, b: Any) -> float:
    return float(np.abs(np.array(a) - np.array(b)).max())


def _by_command(counts: list[int]) -> dict[str, bool]:
    """Search from the command line, without a cluster and with some; return what was the same."""
    with tempfile.TemporaryDirectory() as temporary:
        data, out = Path(temporary) / "digits.npz", Path(temporary) / "policy.json"
        x, y = digits()
        np.savez(data, x=(240 * x[:400]).astype(np.uint8), y=y[:400])
        found = []
        for count in (0, *counts):
            command = [sys.executable, "-m", "augury", "policy", str(data), "--epochs", "2"]
            command += ["--device", "cpu", "--json", str(out)]
            command += ["--cluster", f"local:{count}"] if count else []
            subprocess.run(command, check=True, capture_output=True)
            said = json.loads(out.read_text())
            for part in (said, *said["path"]):  # what differs from run to run
                part.pop("seconds", None)
                part.pop("command", None)
            found.append(said)
    return {f"{n} workers": said == found[0] for n, said in zip(counts, found[1:], strict=True)}


class Traced(ClusterWorkers):
    """Workers that leave a trace of each job that they begin."""

    def __init__(self, workers: ClusterWorkers, folder: Path) -> None:
        super().__init__(workers.client, workers.version)
        self.folder = folder

    def map(self, work: Any, shared: Any, jobs: Any, **options: Any) -> Iterator[Any]:
        named = {name: (str(self.folder), name, work, job) for name, job in jobs.items()}
        return super().map(_traced, shared, named, **options)


def _traced(shared: Any, call: tuple[str, str, Any, Any]) -> Any:
    folder, name, work, job = call
    with open(Path(folder) / _digest(name), "a") as trace:
        trace.write(f"{time.time_ns()}\n")
    return work(shared, job)


def _digest(name: str) -> str:
    return blake2b(name.encode(), digest_size=16).hexdigest()


def _counts(traces: Path, journalled: dict[str, int]) -> dict[str, int]:
    """Return how many jobs there were, and how many were begun again: in vain, if journalled."""
    jobs = again = twice = 0
    for trace in traces.iterdir():
        begun = [int(line) for line in trace.read_text().split()]
        jobs, again = jobs + 1, again + len(begun) - 1
        twice += sum(moment > journalled.get(trace.name, moment) for moment in begun)
    return {"jobs": jobs, "journalled": len(journalled), "begun again": again, TWICE: twice}


def kills(options: argparse.Namespace, add: Any) -> None:
    """A worker killed at ten random moments of each: the same result, and the time that it cost."""
    from augury.cluster import open_workers

    chance = random.Random(0)
    with open_workers("local:2", "cpu") as found:
        for name, run in _runs(options).items():
            run(found, None)  # workers import what they need
            started = time.perf_counter()
            expected = run(found, None)
            whole = time.perf_counter() - started
            rows: list[dict[str, Any]] = []
            while len(rows) < options.kills:
                moment = chance.uniform(0.05, 0.95) * whole
                row = _killed_once(run, found, moment)
                if not row.pop("killed"):  # it had ended before
                    continue
                row["same result"] = row.pop("result") == expected
                row["seconds lost"] = round(row["seconds"] - whole, 2)
                rows.append(row)
                add(
                    f"{name} with a worker killed",
                    {
                        "seconds undisturbed": whole, "kills": len(rows),
                        "same result": sum(r["same result"] for r in rows),
                        "jobs": sum(r["jobs"] for r in rows),
                        "begun again": sum(r["begun again"] for r in rows),
                        TWICE: sum(r[TWICE] for r in rows),
                        "seconds lost": sorted(r["seconds lost"] for r in rows), "runs": rows,
                    },
                )  # fmt: skip


def _killed_once(run: Run, found: Any, moment: float) -> dict[str, Any]:
    """Run a command, and kill a worker at a moment of it."""
    pids, killed = _alive(found.client, 2), []

    def kill() -> None:
        os.kill(random.choice(pids), signal.SIGKILL)
        killed.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as temporary, _journalled() as journalled:
        journal, traces = Path(temporary) / "journal", Path(temporary) / "traces"
        traces.mkdir()
        killer = threading.Timer(moment, kill)
        started = time.perf_counter()
        killer.start()
        result = run(Traced(found, traces), journal)
        ended = time.perf_counter()
        killer.join()
        counts = _counts(traces, journalled)
    inside = killed[0] < ended
    return {"moment": round(moment, 2), "seconds": round(ended - started, 2), "killed": inside,
            "result": result, **counts}  # fmt: skip


def _alive(client: Any, count: int) -> list[int]:
    """Return the processes of so many workers, once they all answer."""
    while True:
        try:
            client.wait_for_workers(count)
            pids = list(client.run(os.getpid).values())
        except OSError:  # one that was killed just now
            pids = []
        if len(pids) == count:
            return pids
        time.sleep(0.2)


@contextlib.contextmanager
def _journalled() -> Iterator[dict[str, int]]:
    """Note when each job is journalled first."""
    real, written = Journal.write, {}

    def write(journal: Journal, job: str, result: Any) -> None:
        real(journal, job, result)
        written.setdefault(_digest(job), time.time_ns())

    Journal.write = write
    try:
        yield written
    finally:
        Journal.write = real


def scheduler(options: argparse.Namespace, add: Any) -> None:
    """The scheduler killed half-way, and the same again: it goes on from the journal."""
    import augury
    from augury.cluster import open_workers

    for name, run in _runs(options).items():
        with _Processes() as cluster:
            with open_workers(cluster.address, "cpu") as found:
                run(found, None)
                with tempfile.TemporaryDirectory() as temporary:
                    started = time.perf_counter()
                    expected = run(Traced(found, Path(temporary)), None)
                    whole = time.perf_counter() - started
                    jobs = len(os.listdir(temporary))
            with tempfile.TemporaryDirectory() as temporary, _journalled() as journalled:
                journal, traces = Path(temporary) / "journal", Path(temporary) / "traces"
                traces.mkdir()

                def kill(cluster: Any = cluster, jobs: int = jobs, done: Any = journalled) -> None:
                    while len(done) < jobs // 2:
                        time.sleep(0.01)
                    cluster.running[0].kill()

                said = "nothing: it had ended"
                try:
                    with open_workers(cluster.address, "cpu") as found:
                        threading.Thread(target=kill, daemon=True).start()
                        run(Traced(found, traces), journal)
                except augury.AuguryError as error:
                    said = str(error)
                kept = len(journalled)
                cluster.stop()
                cluster.start()
                with open_workers(cluster.address, "cpu") as found:
                    started = time.perf_counter()
                    got = run(Traced(found, traces), journal)
                    again = time.perf_counter() - started
                counts = _counts(traces, journalled)
        add(
            f"{name} with the scheduler killed half-way",
            {
                "seconds undisturbed": whole, "seconds of the repetition": again, "said": said,
                "journalled before": kept, "same result": got == expected, **counts,
            },
        )  # fmt: skip


class _Processes:
    """A scheduler and two workers, each in a process of its own."""

    running: list[subprocess.Popen[bytes]]

    def __enter__(self) -> _Processes:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.start()
        return self

    def start(self) -> None:
        quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        call, here = [sys.executable, "-m"], str(Path(__file__).parent)  # workers import this file
        path = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
        quiet["env"] = os.environ | {"PYTHONPATH": path}
        first = [*call, "distributed.cli.dask_scheduler", "--port", str(self.port)]
        second = [*call, "distributed.cli.dask_worker", self.address, "--nworkers", "2"]
        second += ["--nthreads", "1", "--memory-limit", "0", "--no-dashboard"]
        self.running = [subprocess.Popen([*first, "--no-dashboard"], **quiet)]
        time.sleep(3)
        self.running.append(subprocess.Popen(second, **quiet))

    def stop(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()

    def __exit__(self, *error: object) -> None:
        self.stop()
