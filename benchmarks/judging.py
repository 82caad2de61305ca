"""How well a score foretold what training showed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.stats import ConstantInputWarning, kendalltau, spearmanr

from augury.forecasting.scores.trial import DOUBT, SCALE, SHIFT


def judge(
    predicted: dict[str, float],
    truth: dict[str, list[float]],
    interval: dict[str, tuple[float, float]] | None = None,
    *,
    seed: int = 0,
) -> dict[str, Any]:
    """Compare predicted gains with real ones (accuracies by candidate, one value a seed).

    Correlations have 95 % bootstrap intervals over candidates; signs are judged where the real
    gain is over half a point; regret is how many points the best of the first one or three falls
    short of the best there is.
    """
    names = [name for name in predicted if name != "identity" and name in truth]
    base = np.mean(truth["identity"])
    real = np.array([100 * (np.mean(truth[name]) - base) for name in names])
    guess = np.array([predicted[name] for name in names])
    rng = np.random.default_rng(seed)
    draws = [rng.integers(0, len(names), len(names)) for _ in range(500)]
    clear = np.abs(real) > 0.5
    order = np.argsort(-guess, kind="stable")
    result = {
        "spearman": _with_interval(lambda i: spearmanr(real[i], guess[i])[0], draws, len(names)),
        "kendall": _with_interval(lambda i: kendalltau(real[i], guess[i])[0], draws, len(names)),
        "signs": float(np.mean(np.sign(real[clear]) == np.sign(guess[clear]))),
        "regret@1": float(real.max() - real[order[0]]),
        "regret@3": float(real.max() - real[order[:3]].max()),
    }
    if interval is not None:
        low, high = (np.array([interval[name][k] for name in names]) for k in (0, 1))
        top = set(np.argsort(-real)[:3].tolist())
        result["covered"] = float(np.mean((low <= real) & (real <= high)))
        result["top three called harmful"] = sum(high[k] < 0 for k in top)
        result["mean error"] = float(np.mean(np.abs(real - guess)))
    return result


def calibrated_on_others(results: list[dict[str, Any]]) -> dict[str, float]:
    """Give, for each table, the share of real gains that the trial's interval covers when its
    constants are fitted to the other tables alone: scale, shift, and a factor of the doubt.
    """
    tables = [_trial(found) for found in results]
    covered = {}
    for k, found in enumerate(results):
        others = [table for j, table in enumerate(tables) if j != k]
        scale, shift = min(_GRID, key=lambda pair: sum(_misfit(t, *pair) for t in others))
        strays = np.concatenate([_strays(t, scale, shift) for t in others])
        doubt = np.sqrt(np.mean(strays**2))  # in units of what is used
        covered[found["name"]] = float(
            np.mean(np.abs(_strays(tables[k], scale, shift)) <= 1.96 * doubt)
        )
    return covered


_GRID = [(a, b) for a in np.arange(0.4, 3, 0.1) for b in np.arange(0, 0.041, 0.005)]
_Trial = tuple[float, np.ndarray, np.ndarray]


def _trial(found: dict[str, Any]) -> _Trial:
    """Give a trial's error, its own gains before they were scaled, and the real gains."""
    guess, accuracy = found["scores"]["trial"], found["truth"]["cnn"]["accuracy"]
    error = 100 - guess["baseline"]
    names = [name for name in guess["gain"] if name in accuracy and name != "identity"]
    own = np.array([guess["gain"][name] for name in names])
    own = own / (SCALE * np.sqrt(error / 50)) - SHIFT * error
    real = [100 * (np.mean(accuracy[n]) - np.mean(accuracy["identity"])) for n in names]
    return error, own, np.array(real)


def _forecast(table: _Trial, scale: float, shift: float) -> np.ndarray:
    error, own, _ = table
    return scale * np.sqrt(error / 50) * (own + shift * error)


def _strays(table: _Trial, scale: float, shift: float) -> np.ndarray:
    """Give how far real gains are from the forecast, in units of its doubt."""
    gain = _forecast(table, scale, shift)
    return (table[2] - gain) / np.hypot(DOUBT[0] * table[0], DOUBT[1] * gain)


def _misfit(table: _Trial, scale: float, shift: float) -> float:
    real = table[2]
    return float(np.mean(np.abs(_forecast(table, scale, shift) - real)) / real.std())


def _with_interval(measure: Any, draws: list[np.ndarray], count: int) -> list[float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantInputWarning)  # some draws have one value alone
        values = [measure(draw) for draw in draws]
        whole = float(measure(np.arange(count)))
    low, high = np.quantile([v for v in values if np.isfinite(v)], [0.025, 0.975])
    return [whole, float(low), float(high)]
