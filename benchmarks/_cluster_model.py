"""A cluster simulated from measured costs: when workers or the client bound the time."""

from __future__ import annotations

import argparse
import heapq
import json
from typing import Any

from _shards import CANDIDATES, SHARDS


def simulate(jobs: int, count: int, work: float, client: float, window: int) -> float:
    """Return the seconds of jobs that workers do and whose results one client takes in turn.

    Job k begins when a worker is free and the result of job k − window has been taken.
    """
    free = [0.0] * count
    taken: list[float] = []
    client_free = 0.0
    for k in range(jobs):
        opened = taken[k - window] if k >= window else 0.0
        ended = max(heapq.heappop(free), opened) + work
        heapq.heappush(free, ended)
        client_free = max(client_free, ended) + client
        taken.append(client_free)
    return client_free


def model(options: argparse.Namespace, add: Any) -> None:
    """Predict alignments of eight candidates from the measured costs, for many workers."""
    costs_ = json.loads((options.out / "cluster_costs.json").read_text())
    runs = json.loads((options.out / "cluster_workers.json").read_text())
    one = costs_["costs with 1 workers"]
    groups, candidates, rows = 20, 1 + len(CANDIDATES), 65_536
    measured = runs["alignment with 1 workers"]["seconds"]
    bytes_ = 8 * groups * options.features**2
    client = one["a job, ms"] / 1e3 + bytes_ / 2**20 / one["results, MiB/s"]
    shards = runs["examples"] // SHARDS
    each = measured / (candidates * SHARDS) / shards  # seconds of an example
    add("model", {"an example, us": 1e6 * each, "a result, MiB": bytes_ / 2**20,
                  "client, s a job": client})  # fmt: skip
    for count in options.workers:
        work, jobs = each * shards, candidates * SHARDS
        found = simulate(jobs, count, work, client, 3 * count)
        real = runs[f"alignment with {count} workers"]["seconds"]
        add(f"{count} workers, simulated", {"seconds": found, "measured": real})
    for examples in (10**6, 10**8, 10**9):
        jobs = candidates * -(-examples // rows)
        times = {}
        for count in (10, 100, 1000):
            window = min(3 * count, int(64 * 2**30 / bytes_))  # results in 64 GiB of memory
            times[f"{count} workers"] = simulate(jobs, count, each * rows, client, window)
        times["client alone"] = jobs * client
        add(f"{examples:,} examples", times)
