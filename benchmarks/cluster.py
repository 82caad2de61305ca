"""Past one machine: memory and time of streams, workers beside one, kills, costs of a cluster.

    python benchmarks/cluster.py memory --folder /tmp/shards       # 10⁵ and 10⁶ images in 20 shards
    python benchmarks/cluster.py throughput                        # fit beside products of matrices
    python benchmarks/cluster.py workers --folder /tmp/shards      # 1, 2 and 4 local workers
    python benchmarks/cluster.py costs                             # of a job, of bytes, of a start
    python benchmarks/cluster.py kills scheduler                   # of workers and the scheduler
    python benchmarks/cluster.py model                             # 10 to 1,000 workers, simulated

Each part adds its numbers to ``cluster.json`` as soon as it has them. Images are generated: a
pattern for each of ten classes, and noise.
"""

from __future__ import annotations

import argparse
import heapq
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _result import add_out, environment, save

SHARDS = 20
CANDIDATES = (
    "horizontal_flip", "vertical_flip", "rotation(15)", "translation(0.1)", "noise(0.1)",
    "blur(1)", "brightness(0.2)", "cutout(0.3)",
)  # fmt: skip


def write_shard(folder: str, k: int, rows: int, side: int) -> None:
    rng = np.random.default_rng(k)
    pattern = np.random.default_rng(1234).integers(0, 96, (10, 3, side, side), dtype=np.uint8)
    y = rng.integers(0, 10, rows)
    x = np.frombuffer(rng.bytes(rows * 3 * side * side), np.uint8).reshape(rows, 3, side, side) >> 1
    np.save(Path(folder) / f"x_{k:03}.npy", x + pattern[y])
    np.save(Path(folder) / f"y_{k:03}.npy", y)


def generate(folder: Path, examples: int, side: int = 32) -> Path:
    """Write examples in 20 shards, unless they are there."""
    if not folder.exists():
        folder.mkdir(parents=True)
        jobs = [(str(folder), k, examples // SHARDS, side) for k in range(SHARDS)]
        with multiprocessing.get_context("spawn").Pool(min(8, os.cpu_count() or 1)) as pool:
            pool.starmap(write_shard, jobs)
    return folder


def peak() -> float:
    """Return the most memory that this process had, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def align(folder: str, device: str, views: int, features: int) -> dict[str, Any]:
    import augury

    shards = augury.open_shards(folder)
    started = time.perf_counter()
    augury.rank(
        shards, None, CANDIDATES, score="alignment", max_examples=None, n_views=views,
        device=device, feature_map=augury.FourierFeatures(features, seed=0),
    )  # fmt: skip
    return {"seconds": time.perf_counter() - started}


def fit(folder: str, device: str, features: int) -> dict[str, Any]:
    import augury

    shards = augury.open_shards(folder)
    model = augury.AugmentedKernelClassifier(
        "horizontal_flip", n_components=features, device=device, random_state=0
    )
    started = time.perf_counter()
    model.fit(shards)
    return {"seconds": time.perf_counter() - started, "ridge": model.ridge_}


def alone(what: str, *arguments: Any) -> dict[str, Any]:
    """Run a part in a process of its own, so that its peak of memory is its own."""
    call = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import cluster, json; "
    call += f"r = cluster.{what}(*{arguments!r}); r['GiB'] = cluster.peak(); "
    call += "import torch; r['GiB on the GPU'] = torch.cuda.max_memory_allocated() / 2**30 if "
    call += "torch.cuda.is_available() else 0; print(json.dumps(r))"
    done = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True)
    if done.returncode:
        return {"error": done.stderr[-600:]}
    return json.loads(done.stdout.splitlines()[-1])


def memory(options: argparse.Namespace, add: Any) -> None:
    """Alignment of eight candidates and a fit, at two sizes: constant memory, linear time."""
    for examples in options.examples:
        folder = generate(options.folder / str(examples), examples)
        for device in options.devices:
            found = alone("align", str(folder), device, options.views, options.features)
            add(f"alignment of {examples:,} on {device}", found)
            add(f"fit of {examples:,} on {device}", alone("fit", str(folder), device, options.fit))
        if options.clean:
            shutil.rmtree(folder)


def throughput(options: argparse.Namespace, add: Any) -> None:
    """Fit to views of digits, streamed and from memory, beside the speed of plain products."""
    import augury

    device, rows, d = options.devices[0], options.rows, options.components
    where = torch.device(device)
    images = torch.from_numpy(np.kron(_digits(), np.ones((1, 3, 3)))).clamp(0, 1)
    images = torch.nn.functional.pad(images, (4, 4, 4, 4)).float().unsqueeze(1)
    from augury._base.rng import Rng

    views = augury.parse("rotation(15) >> translation(0.1) >> noise(0.05)")
    count = -(-rows // len(images))
    drawn = torch.cat(
        [
            (views.views(images, 1, Rng(k, torch.arange(len(images))))[0].clamp(0, 1) * 255).byte()
            for k in range(count)
        ]
    )[:rows, :, 2:30, 2:30]
    y = np.tile(_labels(), count)[:rows]
    folder = options.folder / "digits"
    folder.mkdir(parents=True, exist_ok=True)
    for k in range(SHARDS):
        part = slice(k * rows // SHARDS, (k + 1) * rows // SHARDS)
        np.save(folder / f"x_{k:03}.npy", drawn[part].numpy())
        np.save(folder / f"y_{k:03}.npy", y[part])
    shards = augury.open_shards(folder)
    n = 8192 if where.type == "cuda" else 2048
    for precision in ("float32", "tf32"):
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        a = torch.randn(n, n, device=where)
        a @ a
        _wait(where)
        started = time.perf_counter()
        for _ in range(4 if where.type == "cuda" else 1):
            a @ a
        _wait(where)
        speed = (4 if where.type == "cuda" else 1) * 2 * n**3 / (time.perf_counter() - started)
        found: dict[str, Any] = {"products, TFLOP/s": speed / 1e12}
        torch.set_float32_matmul_precision("highest")
        for name, data in (("streamed", (shards,)), ("from memory", (drawn.numpy(), y))):
            model = augury.AugmentedKernelClassifier(
                "rotation(15)", n_components=d, n_views=4, precision=precision, device=device,
                random_state=0,
            )  # fmt: skip
            started = time.perf_counter()
            model.fit(*data)
            _wait(where)
            seconds = time.perf_counter() - started
            nodes = 4
            work = rows * (2 * 784 * (d // 2) * nodes + d * d)  # features, and half of the matrix
            found[name] = {
                "seconds": seconds, "rows a second": rows / seconds,
                "TFLOP/s": work / seconds / 1e12, "of products": work / seconds / speed,
                "solver": model.solver_, "ridge": model.ridge_,
            }  # fmt: skip
            add(f"{rows:,} rows, {d:,} features, {precision} on {device}", found)


def _digits() -> np.ndarray:
    from sklearn.datasets import load_digits

    digits: Any = load_digits()
    return digits.images / 16


def _labels() -> np.ndarray:
    from sklearn.datasets import load_digits

    digits: Any = load_digits()
    return digits.target


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def workers(options: argparse.Namespace, add: Any) -> None:
    """The same alignment with 1, 2 and 4 local workers, and none; the same numbers."""
    import augury
    from augury.cluster import open_workers

    folder = generate(options.folder / str(options.examples[0]), options.examples[0])
    shards = augury.open_shards(folder)
    add("examples", options.examples[0])
    expected = None
    for count in (*options.workers, 0):
        with open_workers(f"local:{count}" if count else None, "cpu") as found:
            rank_with(shards, found, options.views, options.features, 0)  # workers import torch
            started = time.perf_counter()
            ranking = rank_with(shards, found, options.views, options.features, len(CANDIDATES))
            seconds = time.perf_counter() - started
        numbers = [(r.augmentation, r.gain, r.low, r.high) for r in ranking.rows]
        expected = expected or numbers
        add(
            f"alignment with {count or 'no'} workers",
            {"seconds": seconds, "bit-equal": numbers == expected, "slots": found.slots},
        )


def rank_with(shards: Any, where: Any, views: int, features: int, count: int) -> Any:
    import augury

    return augury.rank(
        shards, None, CANDIDATES[: count or 1], score="alignment", max_examples=None, device="cpu",
        n_views=views if count else 1, cluster=where,
        feature_map=augury.FourierFeatures(features if count else 16, seed=0),
    )  # fmt: skip


def nothing(shared: Any, job: int) -> tuple[torch.Tensor, ...]:
    return (torch.zeros(job),)


def costs(options: argparse.Namespace, add: Any) -> None:
    """What a job costs beside its work, and what moving its result or its data costs."""
    from augury.cluster import open_workers

    for count in options.workers:
        started = time.perf_counter()
        with open_workers(f"local:{count}") as found:
            list(found.map(nothing, None, {"first": 1}))
            start = time.perf_counter() - started

            def timed(jobs: dict[str, int], shared: Any = None, found: Any = found) -> float:
                began = time.perf_counter()
                for _ in found.map(nothing, shared, jobs):
                    pass
                return time.perf_counter() - began

            many = timed({str(k): 1 for k in range(1000)})
            size = 1 << 25  # floats: 128 MiB
            large = timed({str(k): size for k in range(8)})
            sent = timed({"one": 1}, torch.zeros(size))
        add(
            f"costs with {count} workers",
            {
                "start of the workers, s": start,
                "a job, ms": many,  # of 1,000
                "results, MiB/s": 8 * 128 / large,
                "shared data, MiB/s": 128 / sent,
            },
        )


def kills(options: argparse.Namespace, add: Any) -> None:
    """A worker killed at ten random moments of each: the same result, and the time that it cost."""
    import augury
    from augury.cluster import open_workers

    folder = generate(options.folder / str(options.examples[0]), options.examples[0])
    shards = augury.open_shards(folder)
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Flatten())
    some = shards.draw(2000, 0)
    digits = _digits()[:600], _labels()[:600]

    def alignment(where: Any, journal: Any) -> Any:
        ranking = augury.rank(
            shards, None, CANDIDATES[:4], score="alignment", max_examples=None, n_views=2,
            device="cpu", cluster=where, journal=journal, feature_map=augury.FourierFeatures(64),
        )  # fmt: skip
        return [(r.augmentation, r.gain, r.low, r.high) for r in ranking.rows]

    def fitted(where: Any, journal: Any) -> Any:
        model = augury.AugmentedKernelClassifier(
            "horizontal_flip", n_components=512, device="cpu", random_state=0
        )
        return model.fit(shards, cluster=where, journal=journal).decision_function(some.x).tolist()

    def invariance(where: Any, journal: Any) -> Any:
        profile = augury.measure_invariance(
            network.eval(), some, CANDIDATES[:4], n_views=16, cluster=where, journal=journal
        )
        return [(r.layer, r.augmentation, r.relative) for r in profile.rows]

    def trial(where: Any, journal: Any) -> Any:
        ranking = augury.rank(
            *digits, augmentations=CANDIDATES[:4], epochs=10, effort=1, device="cpu", cluster=where,
            journal=journal,
        )  # fmt: skip
        return [(r.augmentation, r.gain, r.low, r.high) for r in ranking.rows]

    parts = {"alignment": alignment, "fit": fitted, "invariance": invariance, "trial": trial}
    chance = random.Random(0)
    with open_workers("local:2", "cpu") as found:
        for name in options.what:
            run = parts[name]
            run(found, None)  # workers import what they need
            started = time.perf_counter()
            expected = run(found, None)
            whole = time.perf_counter() - started
            lost, same, kept = [], [], []
            for _ in range(options.kills):
                with tempfile.TemporaryDirectory() as temporary:
                    journal = Path(temporary) / "journal"
                    at = chance.uniform(0.05, 0.95) * whole
                    before: dict[str, int] = {}
                    killer = threading.Timer(at, kill_one, (found, journal, before))
                    killer.start()
                    started = time.perf_counter()
                    got = run(found, journal)
                    lost.append(time.perf_counter() - started - whole)
                    killer.join()
                    same.append(got == expected)
                    after = {p.name: p.stat().st_mtime_ns for p in journal.glob("*.safetensors")}
                    kept.append(all(after[name] == changed for name, changed in before.items()))
                add(
                    f"{name} with a worker killed",
                    {
                        "seconds undisturbed": whole, "kills": len(lost),
                        "same result": sum(same), "journal untouched": sum(kept),
                        "seconds lost": sorted(round(s, 2) for s in lost),
                    },
                )  # fmt: skip


def kill_one(workers: Any, journal: Path, before: dict[str, int]) -> None:
    """Kill a worker, and note what the journal held."""
    before.update({p.name: p.stat().st_mtime_ns for p in journal.glob("*.safetensors")})
    pids = list(workers.client.run(os.getpid).values())
    os.kill(random.choice(pids), signal.SIGKILL)


def scheduler(options: argparse.Namespace, add: Any) -> None:
    """The scheduler killed half-way, and the same again: it goes on from the journal."""
    import augury

    folder = generate(options.folder / str(options.examples[0]), options.examples[0])
    shards = augury.open_shards(folder)
    address = "tcp://127.0.0.1:18786"

    def start() -> list[subprocess.Popen[Any]]:
        call = [sys.executable, "-m", "distributed.cli."]
        quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        first = [*call[:-1], f"{call[-1]}dask_scheduler", "--port", "18786", "--no-dashboard"]
        second = [*call[:-1], f"{call[-1]}dask_worker", address, "--nworkers", "2"]
        second += ["--nthreads", "1", "--memory-limit", "0", "--no-dashboard"]
        made = [subprocess.Popen(first, **quiet)]
        time.sleep(3)
        return [*made, subprocess.Popen(second, **quiet)]

    def run(journal: Path | None) -> tuple[Any, float]:
        started = time.perf_counter()
        ranking = augury.rank(
            shards, None, CANDIDATES[:4], score="alignment", max_examples=None, n_views=2,
            device="cpu", cluster=address, journal=journal, feature_map=augury.FourierFeatures(64),
        )  # fmt: skip
        rows = [(r.augmentation, r.gain, r.low, r.high) for r in ranking.rows]
        return rows, time.perf_counter() - started

    running = start()
    try:
        run(None)
        expected, whole = run(None)
        with tempfile.TemporaryDirectory() as temporary:
            journal = Path(temporary) / "journal"
            threading.Timer(whole / 2, running[0].kill).start()
            said = ""
            try:
                run(journal)
            except augury.AuguryError as error:
                said = str(error)
            before = {p.name: p.stat().st_mtime_ns for p in journal.glob("*.safetensors")}
            for process in running:
                process.kill()
            running = start()
            found, again = run(journal)
            after = {p.name: p.stat().st_mtime_ns for p in journal.glob("*.safetensors")}
        add(
            "the scheduler killed half-way",
            {
                "seconds undisturbed": whole, "seconds of the repetition": again, "said": said,
                "jobs": len(after), "jobs kept": len(before), "same result": found == expected,
                "journal untouched": all(after[name] == at for name, at in before.items()),
            },
        )  # fmt: skip
    finally:
        for process in running:
            process.kill()


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


PARTS = {f.__name__: f for f in (memory, throughput, workers, costs, kills, scheduler, model)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "shards")
    parser.add_argument("--examples", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--devices", nargs="+", default=["cpu"])
    parser.add_argument("--views", type=int, default=2)
    parser.add_argument("--features", type=int, default=1024, help="of the alignment")
    parser.add_argument("--fit", type=int, default=4000, help="features of the fit")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--components", type=int, default=10_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--what", nargs="+", default=["fit", "invariance", "trial", "alignment"])
    parser.add_argument("--clean", action="store_true", help="remove the images afterwards")
    parser.add_argument("--name", default="cluster")
    add_out(parser)
    options = parser.parse_args()
    result: dict[str, Any] = environment(torch.device(options.devices[0]), "distributed")

    def add(what: str, found: Any) -> None:
        result[what] = found
        save(options.out, options.name, result)
        print(what, json.dumps(found), flush=True)

    for part in options.parts:
        PARTS[part](options, add)


if __name__ == "__main__":
    main()
