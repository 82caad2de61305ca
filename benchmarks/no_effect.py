"""Where no candidate has an effect: how often does a score claim one?

    python benchmarks/no_effect.py [--runs 50] [--jobs 2] [--score trial] [--case "shuffled labels"]
    python benchmarks/no_effect.py --score trial --effort 7 --name no_effect_slim
        --case "noise of one grey level"
    python benchmarks/no_effect.py --quick

Each run ranks candidates on 600 digits of 8 × 8 pixels (on a table of 569 tumours for boosting)
with another seed, where the truth is known to be nothing: either the candidates change nothing that
matters, or nothing can be learnt from the examples. "helps" and "hurts" are then wrong, and so is
"probably"; both are counted, apart. Copies are not tried on tables, whose equal rows may well be
different examples; trainings of fewer epochs are tried with the trial alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _result import add_out, compact, environment
from sklearn.datasets import load_breast_cancer, load_digits

import augury
from augury._base.files import write
from augury.features import FourierFeatures
from augury.forecasting.effort import SUREST
from augury.forecasting.scores import SCORES

EXAMPLES = 600
EPOCHS = 20
SHORT = {"noise of one grey level, 10 epochs": 10, "noise of one grey level, 5 epochs": 5}
"""Cases of the trial alone, with so few steps that runs without a difference differ most."""
FEATURES = 256  # of a closed form: a quarter of the default, for time
MOST = 0.05
"""The share of candidates that may be said to help or to hurt."""

Drawn = tuple[np.ndarray, np.ndarray, list[Any]]


def same(x: torch.Tensor) -> torch.Tensor:
    """Return the input, as a user's function that does nothing."""
    return x


@dataclass(frozen=True)
class Kind:
    """Data of one kind, with candidates that matter and candidates that do not."""

    name: str
    x: np.ndarray
    y: np.ndarray
    real: tuple[str, ...]
    tiny: str
    small: str

    def sample(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return some examples, other ones each time."""
        chosen = rng.permutation(len(self.y))[:EXAMPLES]
        return self.x[chosen], self.y[chosen]


def kind_of(score: str) -> Kind:
    """Return digits, or for boosting a table of tumours."""
    if score == "boosting":
        table = load_breast_cancer()
        real = ("column_noise(0.2)", "swap_noise(0.15)", "column_dropout(0.15)")
        return Kind("vector", table.data, table.target, real, "jitter(0.0000001)", "jitter(0.001)")
    digits = load_digits()
    real = ("rotation(30)", "translation(0.1)", "horizontal_flip", "noise(0.2)", "cutout(0.25)")
    x = (digits.images * 15.9375).astype(np.uint8)
    return Kind("image", x, digits.target, real, "rotation(0.001)", "noise(0.004)")


def _unchanged(kind: Kind, rng: np.random.Generator) -> Drawn:
    return *kind.sample(rng), [augury.Sampled(same)]


def _tiny(kind: Kind, rng: np.random.Generator) -> Drawn:
    return *kind.sample(rng), [kind.tiny]


def _small(kind: Kind, rng: np.random.Generator) -> Drawn:
    return *kind.sample(rng), [kind.small]


def _shuffled(kind: Kind, rng: np.random.Generator) -> Drawn:
    x, y = kind.sample(rng)
    return x, rng.permutation(y), list(kind.real)


def _repeated(kind: Kind, rng: np.random.Generator) -> Drawn:
    x, y = kind.sample(rng)
    return x[rng.integers(0, 10, len(x))], rng.permutation(y), list(kind.real)


def _copies(kind: Kind, rng: np.random.Generator) -> Drawn:
    """Return each example four times, with one label of chance: copies may be held out."""
    x, y = kind.sample(rng)
    few = len(x) // 4
    x, y = np.repeat(x[:few], 4, 0), np.repeat(rng.permutation(y[:few]), 4)
    order = rng.permutation(len(x))
    return x[order], y[order], list(kind.real)


def _noise(kind: Kind, rng: np.random.Generator) -> Drawn:
    x, y = kind.sample(rng)
    noise = rng.integers(0, 256, x.shape, dtype=np.uint8)
    return noise if kind.name == "image" else noise / 7, y, list(kind.real)


CASES: dict[str, Callable[[Kind, np.random.Generator], Drawn]] = {
    "a function that returns its input": _unchanged,
    "a change below half a grey level": _tiny,
    "noise of one grey level": _small,
    **dict.fromkeys(SHORT, _small),
    "shuffled labels": _shuffled,
    "ten examples, repeated": _repeated,
    "copies with shuffled labels": _copies,
    "noise in place of the examples": _noise,
}


def run(case: str, score: str, seed: int, effort: int = SUREST) -> dict[str, Any]:
    """Rank once; return how often each verdict was given."""
    started = time.perf_counter()
    kind = kind_of(score)
    x, y, candidates = CASES[case](kind, np.random.default_rng(seed))
    trained = score in ("trial", "boosting")
    work: Any = {"effort": effort} if trained else {"feature_map": FourierFeatures(FEATURES)}
    epochs = SHORT.get(case, EPOCHS)
    work |= {"kind": kind.name, "epochs": epochs, "seed": seed, "device": "cpu"}
    found = augury.rank(x, y, candidates, score=score, **work)
    said = [row.verdict for row in found.rows]
    return {
        "case": case,
        "score": score,
        "seed": seed,
        "candidates": len(said),
        "sure": sum(one in ("helps", "hurts") for one in said),
        "probably": sum(one.startswith("probably") for one in said),
        "largest": max(abs(row.gain) for row in found.rows),
        "seconds": round(time.perf_counter() - started, 2),
    }


def summarise(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the shares of each case and score."""
    rows = []
    for case, score in dict.fromkeys((one["case"], one["score"]) for one in runs):
        own = [one for one in runs if (one["case"], one["score"]) == (case, score)]
        candidates = sum(one["candidates"] for one in own)
        rows.append(
            {
                "case": case,
                "score": score,
                "runs": len(own),
                "candidates": candidates,
                "sure": sum(one["sure"] for one in own) / candidates,
                "probably": sum(one["probably"] for one in own) / candidates,
                "runs_with_any": sum(one["sure"] > 0 for one in own) / len(own),
            }
        )
    return rows


def _one_thread() -> None:
    torch.set_num_threads(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=50, help="seeds of each case and score")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time, each on one core")
    parser.add_argument("--score", action="append", choices=list(SCORES))
    parser.add_argument("--case", action="append", choices=list(CASES))
    parser.add_argument("--effort", type=int, default=SUREST, help="of trials and boosting")
    parser.add_argument("--name", default="no_effect", help="of the result")
    parser.add_argument("--quick", action="store_true", help="two seeds of each")
    add_out(parser)
    options = parser.parse_args()
    seeds = range(2 if options.quick else options.runs)
    jobs = [
        job
        for job in product(options.case or CASES, options.score or SCORES, seeds)
        if job[:2] != ("copies with shuffled labels", "boosting")
        and (job[0] not in SHORT or job[1] == "trial")
    ]
    about = environment(torch.device("cpu"))
    path = Path(options.out) / f"{options.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    done: list[dict[str, Any]] = []

    def keep() -> list[dict[str, Any]]:
        done.sort(key=lambda one: jobs.index((one["case"], one["score"], one["seed"])))
        shares = summarise(done)
        said = [one for one in done if one["sure"] or one["probably"]]
        write(path, compact({"environment": about, "most": MOST, "shares": shares, "said": said}))
        return shares

    started = time.perf_counter()
    with ProcessPoolExecutor(options.jobs, initializer=_one_thread) as pool:
        for future in as_completed([pool.submit(run, *job, options.effort) for job in jobs]):
            done.append(future.result())
            if len(done) % 50 == 0:
                keep()
    shares = keep()
    for row in shares:
        print(
            f"{row['score']:>18} | {row['case']:<34} sure={row['sure']:.3f} "
            f"probably={row['probably']:.3f} runs_with_any={row['runs_with_any']:.3f}"
        )
    worst = max(row["sure"] for row in shares)
    print(f"runs={len(done)} worst={worst:.3f} seconds={time.perf_counter() - started:.0f}")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
