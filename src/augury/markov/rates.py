"""Learning the rates: objectives of the induced kernel, their gradients in log β, and the fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.optimize import minimize

from augury._base.errors import AuguryError
from augury._base.given import as_list, as_number, as_whole, is_one_of
from augury._base.text import shown
from augury.markov.chain import FiniteChain, check_chain
from augury.markov.checks import as_states

Objective = Literal["log-loss", "alignment"]


@dataclass(frozen=True)
class LearnedRates:
    """What a fit found.

    Attributes
    ----------
    rates
        β_j; those of no use are at the floor.
    value
        The objective at these rates.
    history
        The objective at the start and after each step of the optimiser.
    chain
        The chain at these rates.
    """

    rates: tuple[float, ...]
    value: float
    history: tuple[float, ...]
    chain: FiniteChain


def alignment(chain: FiniteChain, labels: Any, examples: Any = None) -> tuple[float, np.ndarray]:
    """Return the alignment of the kernel with the labels, and its gradient in log β.

    With G the kernel between the examples and Y their one-hot labels it is
    ⟨G, YYᵀ⟩ / (‖G‖ ‖YYᵀ‖), in Frobenius norms. Costs as `loo_log_loss`.
    """
    y, places = _labelled(chain, labels, examples)
    columns, gram = _gram(chain, places)
    same = (y[:, None] == y[None, :]).astype(np.float64)
    size, target = np.linalg.norm(gram), np.linalg.norm(same)
    value = (gram * same).sum() / (size * target)
    slope = same / (size * target) - value * gram / size**2
    return float(value), _pull_back(chain, columns, slope)


def loo_log_loss(
    chain: FiniteChain, labels: Any, examples: Any = None, *, background: float = 0.01
) -> tuple[float, np.ndarray]:
    """Return the leave-one-out log-loss of the chain's classifier, and its gradient in log β.

    Example i is classified by the stationary law of the chain that restarts at all the others:
    the mass of label y at z_i is m_i(y) = Σ_{k≠i, y_k=y} α_k K(z_k, z_i). So that an example that
    no other reaches has a law too, a share `background` of the restarts goes to the common law
    π₀ with a label at random; π₀ is stationary, so that adds background · π₀(z_i)/C. The loss is
    the mean of −log of the true label's share.

    Parameters
    ----------
    chain
        A reversible chain whose augmentations keep labels.
    labels
        The examples' labels.
    examples
        The examples' states; all states, in order, unless given.
    background
        In (0, 1).

    Notes
    -----
    The derivative of K in log β_j is −β_j K(I − A_j)Π₀⁻¹K: the columns of K at the n examples
    give the value and all the gradients. It costs these n solves, one product of each A_j with n
    columns and O(N n²), and holds N × n numbers.
    """
    if not 0 < as_number("background", background) < 1:
        raise AuguryError(f"background={background}: expected a share in (0, 1)")
    y, places = _labelled(chain, labels, examples)
    columns, gram = _gram(chain, places)
    n, classes = len(y), int(y.max()) + 1
    pi0 = chain.reversibility.pi0[places]
    together = np.bincount(places, minlength=chain.states)[places]  # examples that share a state
    alpha = chain.rho[places] / together / pi0
    spread = background * pi0
    own = alpha * gram.diagonal()
    one_hot = np.eye(classes)[y]
    mass = (gram * alpha) @ one_hot - own[:, None] * one_hot
    right = (1 - background) * mass[np.arange(n), y] + spread / classes
    total = (1 - background) * mass.sum(1) + spread
    value = np.mean(np.log(total) - np.log(right))
    # d value / d m_i(y), then d value / d G(z_i, z_k) = α_k · that at y = y_k, for k ≠ i
    by_mass = (1 - background) / n * (1 / total[:, None] - one_hot / right[:, None])
    slope = by_mass[:, y] * alpha
    np.fill_diagonal(slope, 0)
    return float(value), _pull_back(chain, columns, slope)


def learn_rates(
    chain: FiniteChain,
    labels: Any,
    *,
    examples: Any = None,
    objective: Objective = "log-loss",
    floor: float = 1e-6,
    ceiling: float = 1e3,
    steps: int = 100,
) -> LearnedRates:
    """Fit the rates β_j to labelled examples, from those of the chain.

    The leave-one-out log-loss is minimised, or the alignment maximised, over log β by L-BFGS with
    exact gradients. A harmful augmentation's rate goes to the floor, which stands for zero.

    Parameters
    ----------
    chain
        A reversible chain; its rates, which must be over 0, are the start.
    labels, examples
        As in `loo_log_loss`.
    objective
        ``"log-loss"`` or ``"alignment"``.
    floor, ceiling
        The least and the largest rate to allow.
    steps
        The most steps of the optimiser; each costs an evaluation or two.
    """
    check_chain(chain)
    if not is_one_of(objective, _OBJECTIVES):
        raise AuguryError(f"objective={shown(objective)}: expected one of {', '.join(_OBJECTIVES)}")
    if not min(chain.rates) > 0:
        raise AuguryError(
            "learn_rates needs positive initial rates: a rate of 0 would never change"
        )
    floor = as_number("floor", floor, positive=True)
    ceiling, steps = as_number("ceiling", ceiling, floor), as_whole("steps", steps, 1)
    function, sign = _OBJECTIVES[objective]
    chain.reversibility.require("learning the rates")
    seen: dict[bytes, float] = {}

    def loss(log_rates: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = function(chain.with_rates(np.exp(log_rates).tolist()), labels, examples)
        seen[log_rates.tobytes()] = value
        return sign * value, sign * gradient

    start = np.clip(np.log(chain.rates), np.log(floor), np.log(ceiling))
    history: list[float] = []
    fit = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(np.log(floor), np.log(ceiling))] * len(start),
        callback=lambda at: history.append(seen[at.tobytes()]),
        options={"maxiter": steps},
    )
    rates = tuple(float(rate) for rate in np.exp(fit.x))
    first = seen[start.tobytes()]
    return LearnedRates(rates, sign * float(fit.fun), (first, *history), chain.with_rates(rates))


_OBJECTIVES: dict[str, tuple[Callable[..., tuple[float, np.ndarray]], int]] = {
    "log-loss": (loo_log_loss, 1),
    "alignment": (alignment, -1),
}


def _labelled(chain: FiniteChain, labels: Any, examples: Any) -> tuple[np.ndarray, np.ndarray]:
    check_chain(chain)
    given = np.asarray(as_list("labels", labels))
    places = np.arange(chain.states)
    if examples is not None:
        places = as_states("examples", examples, chain.states)
    if given.shape != places.shape:
        got = f"{len(given)} labels" if given.ndim == 1 else f"labels of shape {given.shape}"
        raise AuguryError(f"expected one label per example, got {places.size} examples and {got}")
    try:
        y = np.unique(given, return_inverse=True)[1]
    except TypeError:
        raise AuguryError("labels must be all numbers or all strings, got a mixture") from None
    return y, places


def _gram(chain: FiniteChain, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the kernel's columns at the examples, ``(N, n)``, and between them, ``(n, n)``."""
    columns = chain.kernel(tol=1e-12).columns(places)
    return columns, columns[places]


def _pull_back(chain: FiniteChain, columns: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Turn ∂f/∂G into ∂f/∂log β_j = −β_j ⟨∂f/∂G, Zᵀ(I − A_j)Π₀⁻¹Z⟩, with Z the columns of K."""
    weighted = columns @ slope
    lifted = columns / chain.reversibility.pi0[:, None]
    return np.array(
        [
            -rate * np.vdot(weighted, lifted - a @ lifted)
            for rate, a in zip(chain.rates, chain.matrices, strict=True)
        ]
    )
