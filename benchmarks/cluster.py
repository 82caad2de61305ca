"""Past one machine: memory and time of streams, workers beside one, kills, costs of a cluster.

    python benchmarks/cluster.py memory --folder /tmp/shards       # 10⁵ and 10⁶ images in 20 shards
    python benchmarks/cluster.py throughput --data mnist.npz       # fit beside products of matrices
    python benchmarks/cluster.py workers --folder /tmp/shards      # 1, 2 and 4 local workers
    python benchmarks/cluster.py costs                             # of a job, of bytes, of a start
    python benchmarks/cluster.py equal                             # with 0, 1, 2 and 4 workers
    python benchmarks/cluster.py kills scheduler                   # of workers and the scheduler
    python benchmarks/cluster.py model                             # 10 to 1,000 workers, simulated

Each part adds its numbers to ``cluster.json`` as soon as it has them. Images are generated: a
pattern for each of ten classes, and noise.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _cluster_model import model
from _cluster_same import COMMANDS, equal, kills, scheduler
from _result import add_out, environment, save
from _shards import CANDIDATES, SHARDS, digits, generate


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
    """Fit to views of images, streamed and from memory, beside the speed of plain products."""
    import augury

    device, rows, d, nodes = options.devices[0], options.rows, options.components, 4
    where = torch.device(device)
    drawn, y, name = draw_views(options.data, rows, where)
    add("images", {"name": name, "views": VIEWS, "rows": rows, "shape": list(drawn.shape[1:])})
    folder = options.folder / "views"
    folder.mkdir(parents=True, exist_ok=True)
    for k in range(SHARDS):
        part = slice(k * rows // SHARDS, (k + 1) * rows // SHARDS)
        np.save(folder / f"x_{k:03}.npy", drawn[part])
        np.save(folder / f"y_{k:03}.npy", y[part])
    shards = augury.open_shards(folder)
    for precision in ("float32", "tf32"):
        speed = product_speed(precision, where)
        found: dict[str, Any] = {"products, TFLOP/s": speed / 1e12}
        for source, data in (("streamed", (shards,)), ("from memory", (drawn, y))):
            model = augury.AugmentedKernelClassifier(
                "rotation(15)", n_components=d, n_views=nodes, precision=precision, device=device,
                random_state=0,
            )  # fmt: skip
            started = time.perf_counter()
            model.fit(*data)
            wait(where)
            seconds = time.perf_counter() - started
            pixels = drawn[0].size
            work = rows * (2 * pixels * (d // 2) * nodes + d * d)  # features, half of the matrix
            found[source] = {
                "seconds": seconds, "rows a second": rows / seconds,
                "TFLOP/s": work / seconds / 1e12, "of products": work / seconds / speed,
                "solver": model.solver_, "ridge": model.ridge_,
                "accuracy": right(model.predict(drawn[:10_000]), y[:10_000]),
            }  # fmt: skip
            add(f"{rows:,} rows, {d:,} features, {precision} on {device}", found)


def right(found: np.ndarray, y: np.ndarray) -> float:
    """Return the share of labels that are right; those of shards are text."""
    return float((found.astype(str) == y.astype(str)).mean())


VIEWS = "rotation(15) >> translation(0.1) >> noise(0.05)"


def draw_views(
    path: Path | None, rows: int, device: torch.device
) -> tuple[np.ndarray, np.ndarray, str]:
    """Return so many views of the training images of a file, or of scikit-learn's digits."""
    import augury
    from augury._base.rng import Rng

    if path is None:
        x, y = digits()
        x = np.pad(np.kron(x, np.ones((1, 3, 3))), ((0, 0), (2, 2), (2, 2)))
    else:
        with np.load(path) as found:
            x, y = found["x_train"] / np.float32(255), found["y_train"]
    images = torch.from_numpy(x).float().unsqueeze(1)
    augmentation, parts = augury.parse(VIEWS), []
    for start in range(0, rows, 10_000):
        rank = torch.arange(start, min(start + 10_000, rows))
        source = images[rank % len(images)].to(device)
        view = augmentation.views(source, 1, Rng(0, rank.to(device)))[0]
        parts.append((view.clamp(0, 1) * 255).byte().cpu())
    count = -(-rows // len(y))
    return torch.cat(parts).numpy(), np.tile(y, count)[:rows], path.stem if path else "digits"


def product_speed(precision: str, device: torch.device) -> float:
    """Return the floating-point operations a second of large products, the best of five."""
    n, times = (8192, 4) if device.type == "cuda" else (2048, 1)
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    a = torch.randn(n, n, device=device)
    best = float("inf")
    for _ in range(5):
        wait(device)
        started = time.perf_counter()
        for _ in range(times):
            a @ a
        wait(device)
        best = min(best, time.perf_counter() - started)
    torch.set_float32_matmul_precision("highest")
    return times * 2 * n**3 / best


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def workers(options: argparse.Namespace, add: Any) -> None:
    """The same alignment with 1, 2 and 4 local workers, and none; the same numbers.

    Each worker computes with one thread. Workers are started before the clock, and have done a
    job of each kind by then.
    """
    import augury
    from augury.cluster import open_workers

    folder = generate(options.folder / str(options.examples[0]), options.examples[0])
    shards = augury.open_shards(folder)
    add("examples", options.examples[0])
    expected, one = None, 0.0
    for count in (*options.workers, 0) if options.threads else options.workers:
        with open_workers(f"local:{count}" if count else None, "cpu") as found:
            rank_with(shards, found, options.views, options.features, 0)  # workers import torch
            before, started = used(found), time.perf_counter()
            ranking = rank_with(shards, found, options.views, options.features, len(CANDIDATES))
            seconds = time.perf_counter() - started
            spent = {
                who: [round(b - a, 2) for a, b in zip(before[who], after, strict=True)]
                for who, after in used(found).items()
            }
        numbers = [(r.augmentation, r.gain, r.low, r.high) for r in ranking.rows]
        expected, one = expected or numbers, one or seconds
        add(
            f"alignment with {count or 'no'} workers",
            {
                "seconds": seconds, "times as fast as the first": one / seconds,
                "bit-equal": numbers == expected, "slots": found.slots,
                "user and system seconds": spent,
            },
        )  # fmt: skip


def used(workers: Any) -> dict[str, tuple[float, float]]:
    """Return the user and system seconds of this process and of each worker."""
    found = {"this process": cpu_seconds()}
    if workers.remote:
        every = workers.client.run(cpu_seconds)
        found |= {f"worker {k}": every[name] for k, name in enumerate(sorted(every))}
    return found


def cpu_seconds() -> tuple[float, float]:
    found = resource.getrusage(resource.RUSAGE_SELF)
    return found.ru_utime, found.ru_stime


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


PARTS = {
    part.__name__: part
    for part in (memory, throughput, workers, costs, equal, kills, scheduler, model)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "shards")
    parser.add_argument("--examples", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--devices", nargs="+", default=["cpu"])
    parser.add_argument("--views", type=int, default=2)
    parser.add_argument("--features", type=int, default=1024, help="of the alignment")
    parser.add_argument("--data", type=Path, help=".npz with x_train and y_train, as of MNIST")
    parser.add_argument("--fit", type=int, default=4000, help="features of the fit")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--components", type=int, default=10_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--threads", action="store_true", help="workers: threads for comparison")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--what", nargs="+", default=list(COMMANDS))
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
