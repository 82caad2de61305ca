"""Every argument of the mathematical functions, wrong in every way: it works, or one line says why.

A call that is right is repeated with one argument replaced at a time.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from refusal import refused
from torch import nn

import augury
from augury import AuguryError, features, markov, objectives, statistics

BAD = (
    None, "x", -1, float("nan"), 1.5, True, [], [1, 2], [["a"]], {"a": 1}, object(),
    np.array(["a", "b"]), torch.zeros(0), torch.zeros(3, 7, 2), torch.zeros(6, dtype=torch.int32),
)  # fmt: skip

HALF = [[0.5, 0.5], [0.5, 0.5]]
X = torch.rand(6, 1, 8, 8, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 1] * 3)
TARGETS = nn.functional.one_hot(LABELS, 2).float()
ORBIT = augury.Orbit(torch.rand(2, 6, 4), torch.full((2,), 0.5), torch.rand(6, 4))
RNG = augury.Rng(0, torch.arange(6))
CHAIN = markov.FiniteChain([HALF], [1], [1, 0])
HELD = statistics.HeldOutRisk(torch.rand(6, 4), TARGETS, True)
ROTATION = augury.parse("rotation(10)")
FLIPS = "chain(flips:1)"
OBJECTIVE = {"head": nn.Linear(4, 2), "orbit": ORBIT, "y": LABELS, "loss": objectives.multinomial}
SECOND = {**OBJECTIVE, "curvature": "gauss-newton"}
UPDATE = {"orbit": ORBIT, "y": TARGETS, "index": torch.arange(6)}
LABELLED = {"chain": CHAIN, "labels": [0, 1], "examples": [0, 1]}
OUTPUTS = torch.rand(6, 2)


def solved(method: str) -> Any:
    return lambda **given: CHAIN.solve(method=method, **given)


def streamed(x: Any, chain: Any, restart: Any, seed: Any) -> list[Any]:
    return list(islice(markov.stream(x, chain, restart=restart, seed=seed), 3))


def jitter(sigma: Any, beta: Any, X: Any, Y: Any) -> Any:
    return markov.JitterKernel(sigma, beta)(X, Y)


def jittered(X: Any, **given: Any) -> Any:
    return markov.JitterFeatures(**given).fit(X).transform(X)


def classified(chain: Any, X: Any, y: Any, **given: Any) -> Any:
    return markov.ChainClassifier(chain, **given).fit(X, y).predict_proba(X)


def fitted(make: Any) -> Any:
    def call(x: Any, y: Any = None, **given: Any) -> Any:
        return make(**given).fit(x, y)(x)

    return call


CALLS: dict[str, tuple[Any, dict[str, Any]]] = {
    "Rng": (augury.Rng, {"seed": 0, "index": torch.arange(4)}),
    "Rng.child": (RNG.child, {"stream": 1}),
    "Rng.key": (RNG.key, {"n": 2}),
    "Rng.integers": (RNG.integers, {"n": 2, "high": 3}),
    "Rng.uniform": (RNG.uniform, {"n": 2, "low": 0.0, "high": 1.0}),
    "Orbit": (
        augury.Orbit,
        {"features": ORBIT.features, "weights": ORBIT.weights, "origin": ORBIT.origin},
    ),
    "Orbit.of": (
        augury.Orbit.of,
        {"phi": features.Flatten(), "augmentation": ROTATION, "x": X, "n_views": 2, "rng": RNG},
    ),
    "Orbit.joined": (augury.Orbit.joined, {"parts": [ORBIT, ORBIT]}),
    "views": (ROTATION.views, {"x": X, "n_views": 2, "rng": RNG}),
    "weighted_views": (ROTATION.weighted_views, {"x": X, "n_views": 2, "rng": RNG}),
    "at_scale": (ROTATION.at_scale, {"factor": 0.5}),
    "export": (
        augury.export,
        {"augmentation": "flips", "to": "torchvision", "image_shape": (3, 8, 8)},
    ),
    "Chain": (markov.Chain, {"parts": (ROTATION,), "rates": (1,)}),
    "FiniteChain": (markov.FiniteChain, {"matrices": [HALF], "rates": [1], "restart": [1, 0]}),
    "solve": (CHAIN.solve, {"c": np.ones(2), "method": "auto", "tol": 1e-8, "workers": 1}),
    "cg": (solved("cg"), {"c": np.ones(2), "tol": 1e-8, "start": np.ones(2)}),
    "series": (solved("series"), {"c": np.ones(2), "tol": 1e-8, "start": np.ones(2)}),
    "with_rates": (CHAIN.with_rates, {"rates": [2]}),
    "stationary": (CHAIN.stationary, {"method": "auto", "tol": 1e-8}),
    "distribution": (CHAIN.distribution, {"n": 3, "start": [1, 0]}),
    "mixing_bound": (CHAIN.mixing_bound, {"n": 3}),
    "symmetrised": (CHAIN.symmetrised, {"how": "footnote"}),
    "ChainKernel": (markov.ChainKernel, {"chain": CHAIN}),
    "kernel.solve": (CHAIN.kernel().solve, {"b": np.ones(2), "start": np.ones(2)}),
    "kernel.columns": (CHAIN.kernel().columns, {"indices": [0]}),
    "kernel.inverse_times": (CHAIN.kernel().inverse_times, {"x": np.ones(2)}),
    "add_augmentation": (
        markov.add_augmentation,
        {"kernel": CHAIN.kernel(), "matrix": HALF, "rate": 1.0, "route": "auto"},
    ),
    "remove_augmentation": (
        markov.remove_augmentation,
        {"kernel": markov.FiniteChain([HALF, HALF], [1, 1], [1, 0]).kernel(), "j": 0},
    ),
    "change_rates": (markov.change_rates, {"kernel": CHAIN.kernel(), "rates": [2.0]}),
    "alignment": (markov.alignment, LABELLED),
    "loo_log_loss": (markov.loo_log_loss, {**LABELLED, "background": 0.1}),
    "learn_rates": (
        markov.learn_rates,
        {**LABELLED, "objective": "log-loss", "floor": 1e-6, "ceiling": 10.0, "steps": 2},
    ),
    "effective_bandwidth": (markov.effective_bandwidth, {"sigma": 1.0, "beta": 1.0}),
    "jitter_density": (
        markov.jitter_density,
        {"squared": [1.0], "sigma": 1.0, "beta": 1.0, "d": 2},
    ),
    "JitterKernel": (jitter, {"sigma": 1.0, "beta": 1.0, "X": np.eye(2), "Y": np.eye(2)}),
    "JitterFeatures": (
        jittered,
        {"sigma": 1.0, "beta": 1.0, "n_components": 4, "random_state": 0, "X": np.eye(2)},
    ),
    "ChainClassifier": (
        classified,
        {
            "chain": FLIPS, "input_shape": (1, 8, 8), "relabel": [None], "limit": 100, "tol": 1e-8,
            "X": X.flatten(1).numpy(), "y": LABELS.numpy(),
        },
    ),
    "enumerate_orbits": (
        markov.enumerate_orbits,
        {"x": X, "chain": FLIPS, "restart": np.ones(6), "limit": 100},
    ),
    "nearest_chain": (
        markov.nearest_chain,
        {"x": X, "chain": FLIPS, "n_views": 4, "seed": 0, "restart": np.ones(6)},
    ),
    "stream": (streamed, {"x": X, "chain": FLIPS, "restart": np.ones(6), "seed": 0}),
    "sample": (markov.sample, {"chain": CHAIN, "starts": [0], "seed": 0}),
    "walk": (markov.walk, {"chain": CHAIN, "steps": 3, "seed": 0, "start": 0}),
    "metropolis": (markov.metropolis, {"matrix": HALF, "pi0": [0.5, 0.5]}),
    "footnote": (markov.footnote, {"matrix": HALF}),
    "certify": (
        augury.certify,
        {"orbits": ORBIT, "loss": objectives.multinomial, "ridge": 0.1},
    ),
    "any_loss": (
        objectives.any_loss,
        {"fn": lambda out, y: (out - y) ** 2, "convexity": 0.0, "smoothness": 1.0},
    ),
    "original": (objectives.original, OBJECTIVE),
    "exact": (objectives.exact, OBJECTIVE),
    "first_order": (objectives.first_order, OBJECTIVE),
    "second_order": (objectives.second_order, SECOND),
    "second_order_only": (objectives.second_order_only, SECOND),
    "variance_term": (objectives.variance_term, SECOND),
    "quadratic": (objectives.quadratic, {"output": OUTPUTS, "y": TARGETS}),
    "logistic": (objectives.logistic, {"output": OUTPUTS[:, 0], "y": TARGETS[:, 0]}),
    "multinomial": (objectives.multinomial, {"output": OUTPUTS, "y": LABELS}),
    "multinomial.curvature": (
        objectives.multinomial.curvature,
        {"output": OUTPUTS, "delta": OUTPUTS},
    ),
    "Alignment": (statistics.Alignment, {"groups": 3}),
    "Alignment.update": (lambda **given: statistics.Alignment(groups=2).update(**given), UPDATE),
    "Alignment.of": (statistics.Alignment().of, {"parts": []}),
    "HeldOutRisk": (
        statistics.HeldOutRisk,
        {"features": HELD.features, "targets": TARGETS, "classes": True, "groups": 3},
    ),
    "HeldOutRisk.losses": (HELD.losses, {"predictions": TARGETS}),
    "HeldOutRisk.estimate": (HELD.estimate, {"loss": torch.rand(6)}),
    "RidgeRisk": (statistics.RidgeRisk, {"held_out": HELD, "folds": 2, "ratios": (0.1, 1.0)}),
    "RidgeRisk.update": (lambda **given: statistics.RidgeRisk(HELD).update(**given), UPDATE),
    "calibrated_log_loss": (
        statistics.calibrated_log_loss,
        {"logits": TARGETS, "y": LABELS, "bounds": (0.1, 10.0)},
    ),
    "group_of": (statistics.group_of, {"index": torch.arange(6), "groups": 3}),
    "jackknife": (statistics.jackknife, {"value": 1.0, "replicates": [1.0, 2.0], "level": 0.9}),
    "FourierFeatures": (
        fitted(features.FourierFeatures),
        {
            "d": 8, "gamma": "median", "kernel": "gaussian", "nu": 1.5, "sampling": "iid",
            "mean": 0.0, "std": 1.0, "seed": 0, "x": X, "y": TARGETS,
        },
    ),
    "fitted Fourier features": (features.FourierFeatures(8, gamma=0.5).fit(X), {"x": X}),
    "PatchFeatures": (
        fitted(features.PatchFeatures),
        {"filters": 3, "size": 3, "pool": 2, "layers": 1, "threshold": 0.5, "seed": 0, "x": X},
    ),
    "GradientFeatures": (
        fitted(features.GradientFeatures),
        {"model": nn.Sequential(nn.Flatten(), nn.Linear(64, 2)), "d": 8, "seed": 0, "x": X},
    ),
    "Composed": (features.Composed, {"inner": features.Flatten(), "outer": features.Flatten()}),
    "Layer": (augury.Layer, {"network": nn.Sequential(nn.Linear(64, 2)), "name": "0"}),
    "Averaging": (
        augury.Averaging,
        {"augmentation": "flips", "layer": "0", "n_views": 4, "order": 1, "groups": 1},
    ),
    "TrainingPlan": (augury.TrainingPlan, {"epochs": 3, "examples": 4, "side": 8, "tune": "all"}),
    "Sampled": (augury.Sampled, {"fn": lambda x: x, "takes": "tensor"}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")  # of what NumPy thinks of a list of words
@pytest.mark.parametrize("name", CALLS)
def test_each_argument_is_taken_or_refused_in_one_line(name: str) -> None:
    call, right = CALLS[name]
    call(**right)
    for argument in right:
        for bad in BAD:
            try:
                call(**{**right, argument: bad})
            except AuguryError as error:
                message = str(error)
                said = "\n" not in message and len(message) < 1000
                if not said or "NoneType" in message or "<class" in message:
                    pytest.fail(f"{argument}={bad!r}: {message}")


def test_what_is_said() -> None:
    refused("index must be a tensor of whole numbers|got a list", augury.Rng, 0, [0, 1])
    refused("seed must be a whole number, got 'x'", augury.Rng, "x", torch.arange(2))
    refused("rng must be an Rng|got None", ROTATION.views, X, 2, None)
    refused("n_views must be a whole number of 1 or more, got 0", ROTATION.views, X, 0, RNG)
    refused("weights must be one for each of the 2 views, got shape (3,)", augury.Orbit,
            ORBIT.features, torch.ones(3))  # fmt: skip
    refused("orbit must be an Orbit, got a tensor", objectives.exact, **{**OBJECTIVE, "orbit": X})
    refused("y must have one target for each of the 6 examples, got shape (2,)", objectives.exact,
            **{**OBJECTIVE, "y": LABELS[:2]})  # fmt: skip
    refused("class numbers must be from 0 to 1|got 0 to 5", objectives.multinomial, OUTPUTS,
            torch.arange(6))  # fmt: skip
    refused("one label for each of the outputs (6,)|(6, 1)", objectives.logistic, OUTPUTS[:, 0],
            TARGETS[:, :1])  # fmt: skip
    refused("level must be a probability", statistics.jackknife, 1.0, [1.0, 2.0], level=2)
    refused("replicates must be numbers, got a string", statistics.jackknife, 1.0, "ab")
    refused("chain must be a FiniteChain, got a string", markov.walk, FLIPS, 3, 0)
    refused("rates must be a list, got None", markov.FiniteChain, [HALF], None, [1, 0])
    refused("restart weights must be numbers, got a string", markov.FiniteChain, [HALF], [1], "x")
    refused("a square matrix of probabilities, got a string", markov.footnote, "x")
    refused("these Fourier features are of examples of shape (1, 8, 8)",
            CALLS["fitted Fourier features"][0], X[:, :, :4])  # fmt: skip
    refused("features of these examples are not finite", augury.certify,
            augury.Orbit(torch.full((2, 3, 4), torch.inf), torch.ones(2) / 2),
            objectives.multinomial)  # fmt: skip
