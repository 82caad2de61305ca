"""Jobs give the same results in the same order wherever they are done."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
import time
from concurrent.futures import wait

import cluster_jobs as jobs
import pytest
import torch

from augury._base.errors import AuguryError
from augury.cluster import Journal, Workers, connect, open_workers
from augury.cluster import workers as workers_module
from augury.cluster.workers import ClusterWorkers


def test_results_come_in_the_order_of_the_jobs():
    named = {f"job {k}": k for k in range(5)}
    found = list(Workers(2).map(jobs.scale, torch.tensor([2.0]), named))
    assert [float(value) for value, _ in found] == [0, 2, 4, 6, 8]


def test_a_cluster_gives_the_same_and_another_process_does_it(client):
    named = {f"job {k}": k for k in range(5)}
    with open_workers(client) as workers:
        found = list(workers.map(jobs.scale, torch.tensor([2.0]), named))
    assert [float(value) for value, _ in found] == [0, 2, 4, 6, 8]
    assert os.getpid() not in {int(who) for _, who in found}


def test_large_data_is_sent_without_a_warning(client):
    shared = torch.zeros(3_000_000)  # 12 MB: Dask warns from 10 on
    with open_workers(client) as workers:
        (found,) = workers.map(jobs.scale, shared, {"job": 5})
    assert found[0].shape == shared.shape


def test_what_the_journal_has_is_not_done_again(tmp_path):
    traces = tmp_path / "traces"
    traces.mkdir()
    for expected in (2, 4):
        journal = Journal.open(tmp_path / "journal", {"data": 1})
        named = {f"job {k}": k for k in range(expected)}
        found = list(Workers(1).map(jobs.count, str(traces), named, journal=journal))
        assert [float(value) for (value,) in found] == list(range(expected))
    assert [(traces / str(k)).read_text() for k in range(4)] == ["x"] * 4


class Watched(Journal):
    """Notes how often a job had been done when it was written."""

    def write(self, job, result):
        super().write(job, result)
        self.seen = {**getattr(self, "seen", {}), job: self.times(job)}

    def times(self, job):
        assert self.path is not None
        return len((self.path.parent / "traces" / job.split()[-1]).read_text())


def test_a_killed_worker_is_replaced_and_what_is_journalled_is_not_done_again(tmp_path, client):
    traces = tmp_path / "traces"
    traces.mkdir()
    journal = Watched.open(tmp_path / "journal", {"data": 1})
    named = {f"job {k}": k for k in range(6)}
    with open_workers(client) as workers:
        found = list(workers.map(jobs.die_once, str(traces), named, journal=journal))
        again = list(workers.map(jobs.die_once, str(traces), named, journal=journal))
    assert (traces / "2-died").exists()
    assert [float(value) for (value,) in found] == list(range(6))
    assert [float(value) for (value,) in found] == [float(value) for (value,) in again]
    assert journal.seen == {job: journal.times(job) for job in named}


def wait_until(true):
    ends = time.monotonic() + 20
    while not true() and time.monotonic() < ends:
        time.sleep(0.02)


class Asking(Journal):
    """Notes how many tasks the scheduler knew whenever a job was written."""

    def write(self, job, result):
        self.seen = [*getattr(self, "seen", ()), len(self.scheduler.tasks)]
        super().write(job, result)


def test_a_job_is_forgotten_by_the_scheduler_before_it_is_journalled(tmp_path, client):
    """Or it would be done again if its worker were lost at that moment."""
    journal = Asking.open(tmp_path / "journal", {"data": 1})
    journal.scheduler = client.cluster.scheduler
    gc.collect()
    wait_until(lambda: not journal.scheduler.tasks)  # of other tests
    with open_workers(client) as workers:
        for k in range(5):
            list(workers.map(jobs.scale, torch.ones(1), {f"job {k}": k}, journal=journal))
    assert journal.seen == [1] * 5  # what jobs share


def test_a_scheduler_that_is_gone_is_said(client, monkeypatch):
    with open_workers(client) as workers:
        workers.check_alive()
        monkeypatch.setattr(client, "status", "connecting")
        with pytest.raises(AuguryError, match="lost the cluster's scheduler"):
            list(workers.map(jobs.scale, torch.tensor([1.0]), {"job": 1}))


def test_a_refusal_on_a_worker_is_the_users_line(client):
    with open_workers(client) as workers, pytest.raises(AuguryError, match=r"^job 3 is refused$"):
        list(workers.map(jobs.refuse, None, {"job": 3}))


def test_what_a_failed_job_needed_is_forgotten(client):
    with open_workers(client) as workers, contextlib.suppress(AuguryError):
        list(workers.map(jobs.refuse, None, {"job": 3}))
    gc.collect()  # the error of a job and its future hold each other
    wait_until(lambda: not client.cluster.scheduler.tasks)
    assert not client.cluster.scheduler.tasks


def test_jobs_that_end_together_with_one_that_fails_are_journalled(tmp_path, monkeypatch):
    journal = Journal.open(tmp_path / "journal", {"data": 1})
    named = {f"job {k}": k for k in range(3)}
    monkeypatch.setattr(workers_module, "wait", lambda running, *_, **__: wait(running))  # for all
    with pytest.raises(AuguryError, match=r"^job 0 is refused$"):
        list(Workers(3).map(jobs.meet, threading.Barrier(3), named, journal=journal))
    assert [journal.read(job) is not None for job in named] == [False, True, True]


def test_work_that_is_given_up_leaves_other_work_of_the_cluster_alone(client):
    named = {f"job {k}": k for k in range(5)}
    with open_workers(client) as workers:
        first = workers.map(jobs.scale, torch.tensor([2.0]), named)
        found = [next(first)]
        second = workers.map(jobs.scale, torch.tensor([3.0]), named)
        next(second)
        second.close()
        found += first
    assert [float(value) for value, _ in found] == [0, 2, 4, 6, 8]


def test_an_address_that_nobody_answers_is_refused_in_ten_seconds(monkeypatch):
    monkeypatch.setattr(connect, "_SECONDS", 0.3)
    started = time.perf_counter()
    with (
        pytest.raises(AuguryError, match=r"no Dask scheduler answered at tcp://127\.0\.0\.1:9 "),
        open_workers("tcp://127.0.0.1:9"),
    ):
        pass
    assert time.perf_counter() - started < 5


def test_a_worker_with_another_version_is_refused_before_any_work(client, monkeypatch):
    monkeypatch.setattr("augury.__version__", "99.0")
    with (
        pytest.raises(AuguryError, match=r"has augury \S+, but this is 99\.0"),
        open_workers(client),
    ):
        pass


def test_a_worker_without_augury_is_refused_before_any_work(client, monkeypatch):
    real = connect.pkgutil.resolve_name
    monkeypatch.setattr(
        client, "run", lambda *a, **k: {"tcp://1": ModuleNotFoundError("No module named 'augury'")}
    )
    assert real("augury:__version__")
    with pytest.raises(AuguryError, match="tcp://1 cannot import augury"), open_workers(client):
        pass


@pytest.mark.parametrize(
    ("cluster", "line"),
    [
        (3, "got a number"),
        ("local:none", "number of workers after local:, got 'none'"),
        ("local-cuda", "torch finds no CUDA device"),
    ],
)
def test_what_is_no_cluster_is_refused(cluster, line):
    if cluster == "local-cuda" and torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(AuguryError, match=line), open_workers(cluster):
        pass


def test_without_a_cluster_a_gpu_does_one_job_at_a_time_and_several_get_a_worker_each(monkeypatch):
    assert not connect._has_several("auto", torch.device("cpu"))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    assert connect._has_several("auto", torch.device("cuda"))
    assert not connect._has_several("cuda:1", torch.device("cuda:1"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert connect.visible_gpus() == ["0", "1", "2"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5, 7")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert connect.visible_gpus() == ["5", "7"]


@pytest.mark.slow
def test_a_worker_that_comes_back_late_is_not_given_up():
    """Dask closes its keeper after a time; a command with one worker then waited for ever."""
    dask = pytest.importorskip("dask")
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1ms"}),
        open_workers("local:1", "cpu") as workers,
    ):
        assert isinstance(workers, ClusterWorkers)
        (before,) = workers.client.run(os.getpid).values()
        os.kill(before, signal.SIGKILL)
        ends, found = time.monotonic() + 60, [before]
        while found in ([before], []) and time.monotonic() < ends:
            time.sleep(0.1)
            with contextlib.suppress(OSError):  # the one that was killed
                found = list(workers.client.run(os.getpid).values())
    assert len(found) == 1
    assert found != [before]


@pytest.mark.slow
def test_each_gpu_gets_a_worker_that_sees_no_other(monkeypatch):
    """By a fake: the machine need not have any."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    with open_workers("local-cuda") as workers:
        assert isinstance(workers, ClusterWorkers)
        found = workers.client.run(os.getenv, "CUDA_VISIBLE_DEVICES")
    assert sorted(found.values()) == ["3", "5"]
    assert workers.slots == 2
