"""The ways to train LeNet on versions of its images, from none of them to all."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from augury._base.devices import HALF_FLOATS
from augury._base.rng import Rng
from augury.features.orbit import Orbit
from augury.networks.averaging import Averaging
from augury.networks.averaging.head import Rest, to_features
from augury.networks.averaging.sketch import Sketch
from augury.networks.layers import cut_at
from augury.objectives import exact, second_order
from augury_paper.networks import LAYERS, LeNets, Together

AUGMENTATION = "rotation(15)"

_LOSS = Together()


@dataclass(frozen=True)
class Way:
    """One way of training.

    Attributes
    ----------
    name
        For people.
    n
        The number of versions of each image; 0 trains on the images as they are.
    layer
        Where features are averaged, 0 to 4; None averages nowhere.
    order
        1 or 2: `augury.Averaging`'s.
    groups
        How many averages are taken of the versions.
    """

    name: str
    n: int
    layer: int | None = None
    order: int = 1
    groups: int = 1

    @property
    def cost(self) -> float:
        """A guess at the time of a step, for showing progress."""
        if self.layer is None:
            return max(1.0, self.n)
        below = (0.05, 0.6, 0.9, 1.0, 1.0)[self.layer]
        rest = self.groups if self.order == 1 else 6
        return below * self.n + (1 - below) * rest

    def losses(
        self, model: LeNets, x: Tensor, versions: Tensor, weights: Tensor, y: Tensor, keys: Tensor
    ) -> Tensor:
        """Give the loss of each example ``(b,)``, summed over the members.

        Parameters
        ----------
        model
            The networks.
        x, versions, weights
            Images ``(b, *shape)``, their versions ``(n, b, *shape)`` with weights.
        y
            Classes.
        keys
            A random word for each example, for what the second order draws.
        """
        if self.n == 0:
            return _LOSS(_float(model(x)), y)
        if self.layer is None:
            return exact(lambda t: _float(model(t)), Orbit(versions, weights), y, _LOSS)
        layer = LAYERS[self.layer]
        if self.order == 1:
            averaging = Averaging(AUGMENTATION, layer, self.n, groups=self.groups)
            return averaging.losses_of(model, versions, y, _LOSS, weights=weights)
        return _second(model, layer, versions, weights, y, _Drawn(keys))


def ways(n: int, *, few: bool = False) -> dict[str, list[Way]]:
    """Give all ways, or a few, in the parts computed together; each has the first two ways."""
    first = [Way(f"layer {k}, order 1", n, k) for k in range(len(LAYERS))]
    second = [Way(f"layer {k}, order 2", n, k, 2) for k in ((1, 4) if few else range(len(LAYERS)))]
    fewer = [Way(f"{k} versions", k) for k in ((n // 2,) if few else (n // 2, n // 4))]
    shared = ((0, n // 2),) if few else ((0, n // 2), (0, n // 4), (1, n // 4))
    fewer += [Way(f"layer {k}, {groups} groups", n, k, groups=groups) for k, groups in shared]
    both = [Way("full", n), Way("none", 0)]
    return {"first": both + first, "second": both + second, "fewer": both + fewer}


def _second(
    model: LeNets, layer: str, versions: Tensor, weights: Tensor, y: Tensor, rng: Rng
) -> Tensor:
    """g̃ with one random combination of the deviations: Averaging's second order for LeNets.

    `augury.Averaging` itself takes care of dropout and batch norm here, which LeNets have not, by
    means that a CUDA graph cannot hold.
    """
    x = versions[0]
    cut = cut_at(model, layer, x)
    output = cut.lower(versions.flatten(0, 1))
    features = to_features(output)
    rest = Rest(cut, features is not output, features.dtype)
    if features.dtype in HALF_FLOATS:
        features = features.float()  # deviations are small differences
    orbit = Orbit(features.unflatten(0, versions.shape[:2]), weights.to(features))
    return second_order(rest.head(x, plain=True), Sketch.combined(orbit, 1, rng), y, _LOSS)


class _Drawn(Rng):
    """Random numbers from keys that were mixed before: nothing is brought to the device."""

    def __init__(self, keys: Tensor) -> None:
        self.keys = keys

    def child(self, stream: int) -> Rng:
        return self


def _float(output: Tensor) -> Tensor:
    return output.float() if output.dtype in HALF_FLOATS else output
