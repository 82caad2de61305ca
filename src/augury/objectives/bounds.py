"""How far the averaged features can lead from the true objective (Proposition 1, Appendix C)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.given import as_number, check_kind
from augury._base.text import kind_of
from augury.features.orbit import Orbit
from augury.objectives.losses import Loss
from augury.results.base import Result
from augury.results.facts import below_zero

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_TRUSTED, _ROUGH = 0.01, 0.25  # of the squared norm: a tenth, and a half, of the norm


@dataclass(frozen=True)
class Certificate(Result):
    """What data and loss guarantee about training on ĝ in place of g, for a linear head.

    Attributes
    ----------
    a, b
        The least and the largest eigenvalue of (1/n) Σ Cov[φ(t_i)].
    c
        The least eigenvalue of (1/n) Σ ψ(x_i)ψ(x_i)ᵀ.
    alpha, beta
        The loss's strong convexity and smoothness.
    ridge
        λ, where λ‖w‖² is added to both objectives; it makes ĝ more convex, by 2λ.
    """

    name: ClassVar[str] = "certificate"

    a: float
    b: float
    c: float
    alpha: float
    beta: float
    ridge: float = 0.0

    def _problem(self) -> str:
        values = asdict(self).items()
        odd = next((name for name, value in values if not math.isfinite(value)), None)
        if odd is not None:
            return f"{odd} must be finite, got {getattr(self, odd)}"
        return below_zero(self, "a", "b", "c", "beta", "ridge")

    def gap(self, w: Tensor) -> tuple[float, float]:
        """Return the interval of g(w) − ĝ(w): (αa/2)‖w‖² to (βb/2)‖w‖²; w may have columns."""
        square = float(w.detach().double().square().sum())
        return 0.5 * self.alpha * self.a * square, 0.5 * self.beta * self.b * square

    @property
    def distance(self) -> float:
        """The bound on ‖w* − ŵ‖² / ‖ŵ‖²: βb / (αc + 2λ); infinite where nothing is known."""
        curvature = self.alpha * self.c + 2 * self.ridge
        if self.b == 0:
            return 0.0
        return self.beta * self.b / curvature if curvature > 0 else math.inf

    @property
    def sentence(self) -> str:
        """Return a sentence on whether training on averaged features can be trusted here."""
        if math.isinf(self.distance):
            return (
                "Nothing is guaranteed here: the averaged features leave some direction of the "
                "weights free; use a ridge penalty, fewer features or more examples."
            )
        away = f"{math.sqrt(self.distance):.2g} times their norm"
        if self.distance <= _TRUSTED:
            return f"Averaged features can be trusted: the true weights are within {away}."
        if self.distance <= _ROUGH:
            return f"Averaged features are a fair guide: the true weights are within {away}."
        return (
            f"Averaged features are not guaranteed to be near: the true weights may be {away} "
            "away; add the second-order term, or narrow the augmentation."
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table of one row: the constants and the bound."""
        import pandas as pd

        return pd.DataFrame([asdict(self) | {"distance": self.distance}])

    def plot(self) -> Figure:
        """Draw the bound on the distance of the weights."""
        from augury.report.certificate import certificate_figure

        return certificate_figure(self)

    def _report(self) -> Any:
        from augury.report import certificate

        return certificate


def certify(orbits: Orbit | Iterable[Orbit], loss: Loss, *, ridge: float = 0.0) -> Certificate:
    """Estimate a, b, c from data and return what they guarantee.

    Parameters
    ----------
    orbits
        Of all examples, or of batches of them one by one.
    loss
        With known `convexity` and `smoothness`.
    ridge
        λ of a penalty λ‖w‖² that both objectives carry.

    Notes
    -----
    O(N n d² + d³) time and O(d²) memory, in float64: the constants are sums over examples.
    """
    check_kind("loss", loss, Loss, "a Loss, such as multinomial")
    if not math.isfinite(loss.smoothness):
        raise AuguryError(
            "a certificate needs a loss with known smoothness; use any_loss(fn, smoothness=…)"
        )
    if as_number("ridge", ridge) < 0:
        raise AuguryError(f"a ridge penalty must be 0 or more, not {ridge}")
    covariance, outer, count = torch.zeros(()), torch.zeros(()), 0
    if not isinstance(orbits, Iterable | Orbit):
        raise AuguryError(f"orbits must be an Orbit, or several, got {kind_of(orbits)}")
    for orbit in [orbits] if isinstance(orbits, Orbit) else orbits:
        check_kind("orbits", orbit, Orbit, "an Orbit, or several")
        mean = orbit.mean.flatten(1).double()
        spread = orbit.deviations.flatten(2).double() * orbit.weights.sqrt().view(-1, 1, 1)
        flat = spread.flatten(0, 1)
        if count and mean.shape[1] != len(outer):
            raise AuguryError(
                f"all orbits must have the same features, got {len(outer)} and {mean.shape[1]}"
            )
        covariance = covariance + flat.mT @ flat
        outer = outer + mean.mT @ mean
        count += len(mean)
    if not count:
        raise AuguryError("a certificate needs at least one example, but there was none")
    if not (covariance.isfinite().all() and outer.isfinite().all()):
        raise AuguryError("the features of these examples are not finite; use another feature map")
    spread_values = torch.linalg.eigvalsh(covariance / count)
    mean_values = torch.linalg.eigvalsh(outer / count)
    low, high = (max(0.0, float(spread_values[k])) for k in (0, -1))
    return Certificate(
        low, high, max(0.0, float(mean_values[0])), loss.convexity, loss.smoothness, ridge
    )
