"""Time and memory of a layerwise invariance profile, in one pass through a model of timm.

    python benchmarks/invariance.py [--model resnet18] [--images 1000] [--device cuda]

1,000 smooth random images of 224 by 224 pixels and 16 views of each run through the network once;
time (of the processor too, which other work on the machine changes little) and peak memory are
measured for a quarter of the images and for all of them: the memory should not grow. The paper's
own figure of invariance is `benchmarks/reproduce.py invariance`.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import torch
import torch.nn.functional as F
from _result import add_out, environment, save

from augury.networks.invariance import measure_invariance
from augury.networks.load import load_network


def measure(options: argparse.Namespace) -> dict[str, Any]:
    device = torch.device(options.device)
    model = load_network(options.model, (3, 224, 224)).to(device)
    generator = torch.Generator().manual_seed(0)
    # Smooth random pictures, kept as bytes: what a layer makes of them does not matter here.
    coarse = torch.rand(options.images, 3, 14, 14, generator=generator)
    pictures = (F.interpolate(coarse, 224, mode="bilinear") * 255).to(torch.uint8)
    rows = []
    for count in (options.images // 4, options.images):
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        started = time.process_time()
        found = measure_invariance(model, pictures[:count], "rotation(15)", n_views=options.n_views)
        processor = time.process_time() - started
        peak = None
        if device.type == "cuda":
            peak = round(torch.cuda.max_memory_allocated(device) / 2**30, 3)
        resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        finite = all(c.relative == c.relative and c.distance == c.distance for c in found.rows)
        rows.append(
            {
                "images": count,
                "n_views": options.n_views,
                "seconds": found.seconds,
                "processor_seconds": round(processor, 2),
                "peak_gib": peak,
                "resident_gib": resident,
                "layers": len(found.layers),
                "finite": finite,
            }
        )
        print(
            f"{options.model}: {count} images × {options.n_views} views, {len(found.layers)} "
            f"layers: {found.seconds:.1f} s, peak {peak} GiB on the device, {resident:.2f} GiB "
            f"resident, all finite: {finite}",
            flush=True,
        )
    return {"model": options.model, "passes": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="resnet18", help="a model of timm")
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--n-views", type=int, default=16)
    parser.add_argument("--device", default="cpu")
    add_out(parser)
    options = parser.parse_args()
    found = {"environment": environment(torch.device(options.device), "timm")} | measure(options)
    save(options.out, f"invariance_{options.model}", found)


if __name__ == "__main__":
    main()
