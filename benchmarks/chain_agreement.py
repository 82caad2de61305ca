"""The theorem at work: neighbours on N steps of the process come to agree with the kernel.

    python benchmarks/chain_agreement.py            # measure, then draw
    python benchmarks/chain_agreement.py --figure   # draw again from the JSON

500 digits are augmented by one-pixel shifts and quarter turns; their orbits are enumerated, and the
kernel classifier is the Bayes rule on the stationary law. The other 1,297 digits are classified by
it, and by k-nearest neighbours on the examples that N steps of the process visit, for k = 1 and for
a k that grows as the theorem asks, ⌈N^¼⌉. Five walks; agreement is the share of digits on which
both say the same.

One neighbour can differ only where the state nearest to a digit has not been visited. A step starts
an excursion with probability 1/(1+β), and an excursion hits state s with probability π(s)/g, where
g = ((1+β)I − A)⁻¹(s,s) is its mean number of visits, once there, over 1+β. So the share of
digits whose nearest state is not visited is the mean of (1 − π(s)/g)^(N/(1+β)): the rate.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits

from augury.markov import enumerate_orbits
from augury_paper.chain import CHAIN, Rule, neighbours

HERE = Path(__file__).resolve().parent
RESULT = HERE / "results" / "chain_agreement.json"
FIGURE = HERE.parent / "docs" / "figures" / "chain_agreement.svg"
STEPS = (1_000, 10_000, 100_000, 1_000_000)
TRAIN, SEED, WALKS = 500, 0, 5


def measure() -> dict:
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(y))
    x, y = x[order], y[order]
    orbits = enumerate_orbits(x[:TRAIN].reshape(-1, 1, 8, 8), CHAIN)
    rule = Rule.of(orbits, y[:TRAIN], x[TRAIN:], torch.device("cpu"))
    chain = orbits.chain
    # generic digits have no symmetry, so g is the same at all their states
    g = float(chain.kernel().columns([0])[0, 0] / chain.kernel().pi0[0])
    hit = rule.law[rule.nearest].sum(1) / g
    rows = []
    for steps in STEPS:
        one, many = zip(*(rule.agreement(steps, seed) for seed in range(WALKS)), strict=True)
        unseen = float(np.mean((1 - hit) ** (steps / (1 + chain.beta))))
        k = neighbours(steps)
        rows.append({"steps": steps, "k": k, "one": one, "many": many, "unseen": unseen})
        print(
            f"N={steps:<9,} agreement: k=1 {np.mean(one):.4f}, k={k} {np.mean(many):.4f}; "
            f"nearest state not visited {unseen:.4f}",
            flush=True,
        )
    packages = ("numpy", "scipy", "scikit-learn", "torch")
    return {
        "command": "python benchmarks/chain_agreement.py",
        "chain": CHAIN,
        "examples": TRAIN,
        "held_out": len(y) - TRAIN,
        "states": chain.states,
        # the label of a state that two classes reach is drawn
        "states_of_two_classes": int(((rule.law > 0).sum(1) > 1).sum()),
        "kernel_accuracy": float((rule.said == y[TRAIN:]).mean()),
        "seed": SEED,
        "walk_seeds": list(range(WALKS)),
        "versions": {name: importlib.metadata.version(name) for name in packages},
        "rows": rows,
    }


def draw(result: dict) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "augury", "font.size": 9})
    import matplotlib.pyplot as plt

    rows = result["rows"]
    steps = [row["steps"] for row in rows]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    for name, shown, colour, mark in (
        ("one", "$k = 1$", "#0072b2", "o"),
        ("many", r"$k = \lceil N^{1/4} \rceil$", "#d55e00", "s"),
    ):
        values = np.array([row[name] for row in rows])
        mean = values.mean(1)
        left.fill_between(steps, values.min(1), values.max(1), color=colour, alpha=0.2, lw=0)
        left.plot(steps, mean, marker=mark, color=colour, label=shown)
        right.plot(
            steps, np.where(mean < 1, 1 - mean, np.nan), marker=mark, color=colour, label=shown
        )
    unseen = [row["unseen"] for row in rows]
    right.plot(steps, unseen, "k--", lw=1, label="nearest state not visited (theory)")
    left.set(xscale="log", xlabel="steps of the process, N", ylabel="agreement with the kernel")
    right.set(xscale="log", yscale="log", xlabel="steps of the process, N", ylabel="disagreement")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURE, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", action="store_true", help="only draw, from the JSON")
    if not parser.parse_args().figure:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps(measure(), indent=2) + "\n")
    draw(json.loads(RESULT.read_text()))
    print(f"wrote {FIGURE.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
