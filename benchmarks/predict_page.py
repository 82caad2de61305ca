"""Draw docs/prediction.md from the committed results: predicted against real, losses included.

python benchmarks/predict_page.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from judging import calibrated_on_others
from matplotlib.figure import Figure
from predict import MIXTURE, RESULTS, table

DOCS = Path(__file__).parent.parent / "docs"

HEAD = """# How often such advice was right

A score is only worth what training confirms. `benchmarks/predict.py` trains a network with every
candidate, several seeds each, all at once as one grouped network, and compares the real gains in
clean test accuracy with what each score said beforehand from the training images alone. This page
is made by `python benchmarks/predict_page.py` from the results in `benchmarks/results/predict/`;
losses are shown beside wins.

The network is a five-layer CNN with batch norm (a LeNet and a small ResNet where the table says
so); the data are subsets of MNIST (300 and 1,000
images), Fashion-MNIST (2,000), CIFAR-10 (1,500 and 5,000) and mammogram masses from CBIS-DDSM
(1,153, tested on 343 images only, so its own truth is noisy: one seed ranks the candidates like
another with a correlation of 0.64 there, 0.81 on Fashion-MNIST and over 0.95 elsewhere).

- **spearman**: rank correlation of predicted and real gains over the candidates, with a 95 %
  bootstrap interval;
- **signs**: share of candidates with a real gain beyond half a point whose sign was right;
- **regret@1, @3**: how many points the best of the score's first one or three falls short of the
  best candidate there is;
- **covered**: share of real gains inside the 95 % interval that the score gave;
- **time**: the score's time over that of training all candidates, on the same machine.
"""


def points(found: dict[str, Any], score: str) -> tuple[np.ndarray, np.ndarray]:
    accuracy = found["truth"]["cnn"]["accuracy"]
    base = np.mean(accuracy["identity"])
    gain = found["scores"][score]["gain"]
    names = [name for name in gain if name in accuracy]
    real = np.array([100 * (np.mean(accuracy[name]) - base) for name in names])
    return np.array([gain[name] for name in names]), real


def draw(results: list[dict[str, Any]], scores: list[str], path: Path, label: str) -> None:
    figure = Figure(figsize=(2.3 * len(results), 2.2 * len(scores) + 0.4), layout="constrained")
    axes = figure.subplots(len(scores), len(results), squeeze=False)
    for i, score in enumerate(scores):
        for j, found in enumerate(results):
            axis = axes[i, j]
            axis.tick_params(labelsize=7)
            axis.axhline(0, color="0.7", linewidth=0.6)
            axis.axvline(0, color="0.7", linewidth=0.6)
            if score in found["scores"]:
                axis.scatter(*points(found, score), s=9, color="#1f5fa8", linewidth=0)
            if i == 0:
                axis.set_title(f"{found['name']} ({found['train']:,})", fontsize=8)
            if j == 0:
                axis.set_ylabel(f"{score}\nreal gain, points", fontsize=7)
            if i == len(scores) - 1:
                axis.set_xlabel(label, fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "augury"}):  # the same drawing every time
        figure.savefig(path, metadata={"Date": None})


def cell(row: dict[str, Any], key: str) -> str:
    value = row.get(key)
    if value is None:
        return ""
    if isinstance(value, list):
        return f"{value[0]:.2f} ({value[1]:.2f} to {value[2]:.2f})"
    return f"{value:.2f}"


def main() -> None:
    results = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    scores = list(dict.fromkeys(name for found in results for name in found["scores"]))
    draw(results, ["trial"], DOCS / "figures" / "prediction.svg", "predicted gain, points")
    others = [score for score in scores if score != "trial"]
    draw(results, others, DOCS / "figures" / "prediction_others.svg", "score's gain, its own unit")
    rows = table(RESULTS)
    text = [HEAD, "![Predicted against real gains of the trial score](figures/prediction.svg)\n"]
    text += ["## Every score, every data set\n"]
    keys = ("spearman", "signs", "regret@1", "regret@3", "covered", "time share")
    text += ["| data | network | score | spearman | signs | regret@1 | regret@3 | covered | time |"]
    text += ["| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for row in rows:
        about = f"| {row['data']} | {row['network']} | {row['score']} | "
        text.append(about + " | ".join(cell(row, k) for k in keys) + " |")
    text += ["", "## Means over the data sets, five-layer CNN\n"]
    text += ["| score | spearman | signs | regret@3 | data sets |"]
    text += ["| --- | --- | --- | --- | --- |"]
    for score in scores:
        own = [row for row in rows if row["score"] == score and row["network"] == "cnn"]
        means = (
            np.mean([row["spearman"][0] for row in own]),
            np.mean([row["signs"] for row in own]),
            np.mean([row["regret@3"] for row in own]),
        )
        text.append(f"| {score} | " + " | ".join(f"{m:.2f}" for m in means) + f" | {len(own)} |")
    mixed = any(MIXTURE in found["truth"]["cnn"]["accuracy"] for found in results)
    text += ["", "![The other scores and rivals](figures/prediction_others.svg)\n"]
    harmful = sum(row.get("top three called harmful", 0) for row in rows)
    covered = calibrated_on_others(results)
    each = ", ".join(f"{name} {100 * share:.0f} %" for name, share in covered.items())
    text += [
        "## How far to trust the interval\n",
        "The constants that turn a trial into points (`SCALE`, `SHIFT` and `DOUBT` in "
        "`augury.forecasting.scores.trial`) were fitted to these very tables. With these fitted to "
        f"the other tables and judged on the one left out, the 95 % interval covers: {each}; "
        f"{100 * np.mean(list(covered.values())):.0f} % on average. “Hurts” was said of "
        f"{harmful} of the true top threes' candidates. Tables and series have not been judged.",
    ]
    if mixed:
        text.append(
            f"\n“No choice ({MIXTURE})” trains with a uniform mixture of all candidates, as "
            "TrivialAugment does."
        )
    (DOCS / "prediction.md").write_text("\n".join(text) + "\n")
    print(f"wrote {DOCS / 'prediction.md'}")


if __name__ == "__main__":
    main()
