"""How long each part of `augury reproduce` will take here, from a few seconds of each.

    python benchmarks/reproduce_probe.py [WHAT]… [--device cuda] [--seconds 4] [--quick]

Every cell is run at its real settings until `--seconds` have passed since it first said how far it
is; its whole time is projected from the share it says. The device is waited for at each word, so
the projection is of work done and not of work queued.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import time
import traceback
from pathlib import Path

import torch

from augury_paper import PAPER, QUICK, WHATS
from augury_paper.cells import Bench, Cell
from augury_paper.images import Library, default_folder


class Enough(BaseException):
    """The cell has been seen for long enough."""


def probe(cell: Cell, library: Library, device: torch.device, seconds: float) -> float:
    """Run a cell for a while; give the projected seconds of all of it."""
    started, marks = time.perf_counter(), []

    def tick(share: float, words: str) -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        marks.append((time.perf_counter(), share))
        if marks[-1][0] - marks[0][0] > seconds:
            raise Enough

    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    whole = None
    try:
        cell.run(Bench(device, library.images, tick))
        whole = time.perf_counter() - started
    except Enough:
        pass
    except Exception:  # printed whole, and the next cell is probed
        traceback.print_exc()
        return float("nan")
    finally:
        gc.collect()
    if whole is None:
        (first, low), (last, high) = marks[0], marks[-1]
        whole = first - started + (last - first) / max(high - low, 1e-9) * (1 - low)
    setup = marks[0][0] - started if marks else 0.0
    peak = torch.cuda.max_memory_allocated(device) / 2**30 if device.type == "cuda" else 0.0
    print(
        f"{cell.what:14} {cell.name:26} {whole:8.1f} s projected, {setup:5.1f} s until the first "
        f"word, {marks[-1][1] if marks else 1:6.1%} seen, peak {peak:.1f} GiB",
        flush=True,
    )
    return whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=WHATS)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--data", type=Path, default=default_folder())
    parser.add_argument("--seconds", type=float, default=4.0, help="to look at each cell")
    parser.add_argument("--only", default="", help="cells whose name holds this")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    settings = QUICK if options.quick else PAPER
    library, device = Library(options.data, settings), torch.device(options.device)
    totals: dict[tuple[str, str], float] = {}
    for what in options.what:
        for cell in importlib.import_module(f"augury_paper.{what}").cells(settings):
            if options.only in cell.name and not library.missing(cell.dataset):
                library.images(cell.dataset)  # reading a data set is no part of a cell's time
                key = (cell.dataset, what)
                totals[key] = totals.get(key, 0) + probe(cell, library, device, options.seconds)
                if device.type == "cuda":
                    torch.cuda.empty_cache()
    for (dataset, what), seconds in totals.items():
        print(f"{dataset:12} {what:14} {seconds:8.1f} s")


if __name__ == "__main__":
    main()
