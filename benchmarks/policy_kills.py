"""Does a search that is killed and resumed end with the same policy? Kill it, many times.

    python benchmarks/policy_kills.py [--kills 10] [--epochs 2] [--out DIR]
    python benchmarks/policy_kills.py --quick

`augury policy` searches on scikit-learn's digits with a journal. Searches are killed by SIGKILL,
each at one random moment of its run, and resumed; one more is killed again and again.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _result import add_out, environment, save
from sklearn.datasets import load_digits

CLOCK = ("seconds", "command")
"""What differs between two runs of the same search."""


def start(data: Path, journal: Path, out: Path, epochs: int) -> subprocess.Popen[bytes]:
    """Start a search in a process of its own."""
    command = [
        sys.executable, "-m", "augury", "policy", str(data), "--epochs", str(epochs),
        "--journal", str(journal), "--json", str(out), "--device", "cpu",
    ]  # fmt: skip
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def finish(data: Path, journal: Path, out: Path, epochs: int) -> dict[str, Any]:
    """Run a search to its end and return what it found, without what the clock said."""
    if code := start(data, journal, out, epochs).wait():
        raise SystemExit(f"the search ended with status {code}")
    found = json.loads(out.read_text())
    steps = [{k: v for k, v in step.items() if k != "seconds"} for step in found["path"]]
    return {k: v for k, v in found.items() if k not in CLOCK} | {"path": steps}


def kill_at(running: subprocess.Popen[bytes], seconds: float) -> bool:
    """Kill a process after some seconds; return False if it had ended before."""
    try:
        running.wait(seconds)
        return False
    except subprocess.TimeoutExpired:
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
        return True


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="one kill, nothing written")
    add_out(parser)
    options = parser.parse_args()
    kills, where = 1 if options.quick else options.kills, environment(torch.device("cpu"))
    digits: Any = load_digits()
    rng = np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data, out = folder / "digits.npz", folder / "policy.json"
        np.savez(data, x=(15 * digits.images[:400]).astype(np.uint8), y=digits.target[:400])
        begun = time.perf_counter()
        whole = finish(data, folder / "whole.npz", out, options.epochs)
        length = time.perf_counter() - begun
        print(f"{whole['spec']} in {length:.1f} s", flush=True)
        rows = []
        while len(rows) < kills:
            journal = folder / f"{len(rows)}.npz"
            moment = float(rng.uniform(0, length))
            if not kill_at(start(data, journal, out, options.epochs), moment):
                journal.unlink()
                continue
            kept = known(journal)
            same = finish(data, journal, out, options.epochs) == whole
            rows.append({"moment": round(moment, 2), "rounds_kept": kept, "same": same})
            print(rows[-1], flush=True)
        journal, times = folder / "again.npz", 0
        while times < kills and kill_at(
            start(data, journal, out, options.epochs), float(rng.uniform(0, 0.6 * length))
        ):
            times += 1
        again = finish(data, journal, out, options.epochs) == whole
        print(f"killed {times} times in a row: {'the same' if again else 'another'}", flush=True)
    record = {
        "environment": where, "policy": whole["spec"], "seconds": round(length, 1),
        "kills": rows, "same": sum(row["same"] for row in rows),
        "in_a_row": {"kills": times, "same": again},
    }  # fmt: skip
    if options.quick:
        assert again
        assert all(row["same"] for row in rows)
    else:
        save(options.out, "policy_kills", record)


def known(journal: Path) -> int:
    """Return how many finished rounds a journal holds."""
    if not journal.exists():
        return 0
    with np.load(journal) as found:
        return len(json.loads(str(found["about"]))["rounds"])


if __name__ == "__main__":
    main()
