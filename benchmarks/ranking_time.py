"""Where does the time of a ranking go?

    python benchmarks/ranking_time.py DATA.npz [--examples N] [--candidates N] [--epochs N]
        [--effort N] [--device auto] [--calls 2] [--name after_cpu] [--out DIR]
    python benchmarks/ranking_time.py --quick

Ranks default candidates in this process, `calls` times, with a clock around each stage; the
first call pays for what is loaded once. On a CPU the seconds of a stage are summed over cores. On a
GPU the clock waits for the device at both ends of each stage, so the sum is a little more than a
ranking takes without clocks, which is measured too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _result import RESULTS, add_out, environment, save
from matplotlib.figure import Figure

import augury
from augury._base.devices import resolve_device
from augury.augmentations import default_augmentations
from augury.data import as_dataset
from augury.forecasting import forecast
from augury.forecasting.training import grouped, members, runners

RANK = import_module("augury.forecasting.rank")  # the package has a function of the same name
IMPORTS = """
import json, time
begun = time.perf_counter(); import torch
torched = time.perf_counter(); import augury.forecasting.rank
print(json.dumps({"torch": torched - begun, "augury": time.perf_counter() - torched}))
"""


class Clock:
    """Seconds of each stage, without those of stages inside it."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.seconds = device, dict[str, float]()
        self._lock, self._own = threading.Lock(), threading.local()

    def around(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with a clock around it."""

        def timed(*args: Any, **options: Any) -> Any:
            inner = getattr(self._own, "inner", 0.0)
            self._own.inner, begun = 0.0, self._now()
            try:
                return function(*args, **options)
            finally:
                spent = self._now() - begun
                with self._lock:
                    own = spent - self._own.inner
                    self.seconds[stage] = self.seconds.get(stage, 0.0) + own
                self._own.inner = inner + spent

        return timed

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()


STAGES: list[tuple[str, Any, str]] = [
    ("reading", RANK, "as_dataset"),
    ("views", members, "_views"),
    ("forward", grouped.Grouped, "forward"),
    ("backward", torch.Tensor, "backward"),
    ("held-out examples", members, "run_members"),
    ("judging", forecast.Forecast, "__init__"),
    ("judging", forecast.Forecast, "judge"),
    ("gallery", RANK, "make_gallery"),
]


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Rank with clocks and without, and return the seconds of each stage and call."""
    with np.load(options.data) as arrays:
        x, y = arrays["x_train"][: options.examples], arrays["y_train"][: options.examples]
    device = resolve_device(options.device)
    imports = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, check=True)
    chosen = options.chosen
    if options.candidates:
        every = default_augmentations("image", as_dataset(x, y).shape)
        chosen = every[:: max(1, len(every) // options.candidates)][: options.candidates]
    settings: dict[str, Any] = {
        "epochs": options.epochs, "effort": options.effort, "device": device, "trends": False,
    }  # fmt: skip
    calls = []
    for _ in range(options.calls):
        begun = time.perf_counter()
        found = augury.rank(x, y, chosen, **settings)
        calls.append(round(time.perf_counter() - begun, 2))
    clock = Clock(device)
    kept = [getattr(owner, name) for _, owner, name in STAGES]
    for (stage, owner, name), function in zip(STAGES, kept, strict=True):
        timed = clock.around(stage, function)
        setattr(owner, name, timed)
        if hasattr(runners, name):
            setattr(runners, name, timed)
    begun = time.perf_counter()
    augury.rank(x, y, chosen, **settings)
    whole = time.perf_counter() - begun
    cores = torch.get_num_threads() if device.type == "cpu" else 1
    stages = {name: round(seconds, 2) for name, seconds in clock.seconds.items()}
    stages["the rest"] = round(max(0.0, whole * cores - sum(clock.seconds.values())), 2)
    return {
        "environment": environment(device),
        "examples": len(x), "candidates": len(found.rows), "effort": found.effort,
        "imports": {k: round(v, 2) for k, v in json.loads(imports.stdout).items()},
        "calls": calls, "with_clocks": round(whole, 2), "cores": cores, "stages": stages,
    }  # fmt: skip


def draw() -> Figure:
    """Draw the stages of committed rankings, before and after, on a CPU and on a GPU."""
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    for axes, device in zip(figure.subplots(1, 2), ("cpu", "gpu"), strict=True):
        for row, when in enumerate(("after", "before")):
            found = json.loads((RESULTS / "ranking_time" / f"{when}_{device}.json").read_text())
            left = 0.0
            stages = {"imports": sum(found["imports"].values())}
            stages |= {name: seconds / found["cores"] for name, seconds in found["stages"].items()}
            for k, (name, seconds) in enumerate(stages.items()):
                label = name if row else None
                axes.barh(row, seconds, left=left, color=f"C{k}", label=label)
                left += seconds
        axes.set_yticks([0, 1], ["after", "before"])
        axes.set_xlabel("seconds")
        axes.set_title("two cores" if device == "cpu" else "one H200")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", type=Path)
    parser.add_argument("--examples", type=int, default=5000)
    parser.add_argument("--candidates", type=int, help="so many of the defaults, spread over them")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--effort", type=int)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--calls", type=int, default=2)
    parser.add_argument("--name", default="ranking_time")
    parser.add_argument("--quick", action="store_true")
    add_out(parser)
    options = parser.parse_args()
    options.chosen = None
    if options.quick:
        from sklearn.datasets import load_digits

        digits = load_digits()
        options.data = options.out / "digits.npz"
        options.out.mkdir(parents=True, exist_ok=True)
        np.savez(options.data, x_train=digits.images, y_train=digits.target)
        options.epochs, options.effort, options.calls = 2, 0, 1
        options.chosen = ["rotation(10)", "flips"]
    found = measure(options)
    print(found["imports"], found["calls"], found["stages"])
    save(options.out, options.name, found)


if __name__ == "__main__":
    main()
