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
import math
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances_argmin
from sklearn.neighbors import NearestNeighbors

HERE = Path(__file__).resolve().parent
RESULT = HERE / "results" / "chain_agreement.json"
FIGURE = HERE.parent / "docs" / "figures" / "chain_agreement.svg"
CHAIN = "chain(pixel_shifts:8, quarter_turns:1)"
STEPS = (1_000, 10_000, 100_000, 1_000_000)
TRAIN, SEED, WALKS = 500, 0, 5


def measure() -> dict:
    from augury.markov import enumerate_orbits, walk

    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(y))
    x, y = x[order], y[order]
    held, truth = x[TRAIN:], y[TRAIN:]
    orbits = enumerate_orbits(x[:TRAIN].reshape(-1, 1, 8, 8), CHAIN)
    chain, states = orbits.chain, orbits.states.reshape(len(orbits.states), -1)
    restart = np.zeros((chain.states, 10))
    np.add.at(restart, (orbits.examples, y[:TRAIN]), 1 / TRAIN)
    law = chain.solve(restart).x
    label = law.argmax(1)
    mixed = int(((law > 0).sum(1) > 1).sum())  # states that two classes reach: the label is drawn
    nearest = pairwise_distances_argmin(held, states)
    kernel = label[nearest]
    # generic digits have no symmetry, so g is the same at all their states
    g = float(chain.kernel().columns([0])[0, 0] / chain.kernel().pi0[0])
    hit = law[nearest].sum(1) / g
    rows = []
    for steps in STEPS:
        one, many = [], []
        k = math.ceil(steps**0.25)
        for seed in range(WALKS):
            visited, counts = np.unique(walk(chain, steps, seed), return_counts=True)
            near = NearestNeighbors(n_neighbors=min(k, len(visited)), algorithm="brute")
            found = near.fit(states[visited]).kneighbors(held, return_distance=False)
            one.append(float((label[visited[found[:, 0]]] == kernel).mean()))
            votes = np.zeros((len(held), 10))
            left = np.full(len(held), k)
            for column in found.T:  # the nearest states in turn, each with its visits, until k
                taken = np.minimum(counts[column], left)
                votes[np.arange(len(held)), label[visited[column]]] += taken
                left -= taken
            many.append(float((votes.argmax(1) == kernel).mean()))
        unseen = float(np.mean((1 - hit) ** (steps / (1 + chain.beta))))
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
        "held_out": len(held),
        "states": chain.states,
        "states_of_two_classes": mixed,
        "kernel_accuracy": float((kernel == truth).mean()),
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
