"""The methods of training LeNet on views of its images, from none of them to all."""

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
from augury_paper.networks import LAYERS, LeNets, SummedLoss, multiply_adds

AUGMENTATION = "rotation(15)"

_LOSS = SummedLoss()


@dataclass(frozen=True)
class Method:
    """One method of training.

    Attributes
    ----------
    name
        For people.
    n_views
        The number of views of each image: 0 trains on the images as they are, 1 on one random
        view, drawn anew in each epoch (the usual practice), more on views that are made once.
    layer
        Where features are averaged, 0 to 4; None averages nowhere.
    order
        1 or 2, as in `augury.Averaging`.
    groups
        How many averages are taken of the views.
    """

    name: str
    n_views: int
    layer: int | None = None
    order: int = 1
    groups: int = 1

    def compute(self, channels: int, side: int) -> float:
        """Return the multiply-adds of a step, in forward passes of one image."""
        if self.layer is None:
            return max(1.0, self.n_views)
        counts = multiply_adds(channels, side)
        below = sum(counts[: self.layer]) / sum(counts)
        # the second order takes a pass of the mean and one Jacobian-vector product
        above = self.groups if self.order == 1 else 2
        return below * self.n_views + (1 - below) * above

    @property
    def cost(self) -> float:
        """A guess at the time of a step, for showing progress."""
        return self.compute(1, 28) + (4 if self.order == 2 else 0)

    def losses(
        self, model: LeNets, views: Tensor, weights: Tensor, y: Tensor, keys: Tensor
    ) -> Tensor:
        """Return the loss of each example ``(b,)``, summed over the members.

        Parameters
        ----------
        model
            The networks.
        views, weights
            Views ``(n, b, *shape)`` with their weights; or the images alone, ``(1, b, *shape)``.
        y
            Classes.
        keys
            A random word for each example, for what the second order draws.
        """
        if len(views) == 1:
            return _LOSS(_float(model(views[0])), y)
        if self.layer is None:
            return exact(lambda t: _float(model(t)), Orbit(views, weights), y, _LOSS)
        layer = LAYERS[self.layer]
        if self.order == 1:
            averaging = Averaging(AUGMENTATION, layer, self.n_views, groups=self.groups)
            return averaging.losses_of(model, views, y, _LOSS, weights=weights)
        return _second(model, layer, views, weights, y, _Drawn(keys))


def methods(n: int, *, few: bool = False, together: bool = False) -> dict[str, list[Method]]:
    """Return all methods or a few of them, in parts; each part begins with full and none.

    There is a single part, of the methods that people choose between, if they are `together`. One
    random view has a part of its own, which a CPU computes in minutes, unless there are only a few
    methods.
    """
    layers = range(len(LAYERS))
    first = [Method(f"layer {k}, order 1", n, k) for k in layers]
    second = [Method(f"layer {k}, order 2", n, k, 2) for k in ((1, 4) if few else layers)]
    usual = [Method("1 random view", 1)]
    fewer = [Method(f"{k} views", k) for k in ((n // 2,) if few else (n // 2, n // 4))]
    shared = ((0, n // 2),) if few else ((0, n // 2), (0, n // 4), (1, n // 4))
    fewer += [Method(f"layer {k}, {groups} groups", n, k, groups=groups) for k, groups in shared]
    both = [Method("full", n), Method("none", 0)]
    if together:
        input_too = [Method("layer 0, order 1", n, 0), Method("layer 0, order 2", n, 0, 2)]
        views = [Method(f"{k} views", k) for k in (n // 2, n // 4)]
        groups = Method(f"layer 0, {n // 2} groups", n, 0, groups=n // 2)
        return {"together": [*both, *usual, *views, groups, *input_too]}
    if few:
        return {"first": both + first, "second": both + second, "fewer": both + usual + fewer}
    parts = {"first": first, "second": second, "fewer": fewer, "usual": usual}
    return {name: both + chosen for name, chosen in parts.items()}


def _second(
    model: LeNets, layer: str, views: Tensor, weights: Tensor, y: Tensor, rng: Rng
) -> Tensor:
    """g̃ with one random combination of the deviations: Averaging's second order for LeNets.

    `augury.Averaging` itself handles dropout and batch norm here, which LeNets do not have, in a
    way that a CUDA graph cannot record.
    """
    x = views[0]
    cut = cut_at(model, layer, x)
    output = cut.lower(views.flatten(0, 1))
    features = to_features(output)
    rest = Rest(cut, features is not output, features.dtype)
    if features.dtype in HALF_FLOATS:
        features = features.float()  # deviations are small differences
    orbit = Orbit(features.unflatten(0, views.shape[:2]), weights.to(features))
    return second_order(rest.head(x, plain=True), Sketch.combined(orbit, 1, rng), y, _LOSS)


class _Drawn(Rng):
    """Random numbers from keys that were mixed before: nothing is brought to the device."""

    def __init__(self, keys: Tensor) -> None:
        self.keys = keys

    def child(self, stream: int) -> Rng:
        return self


def _float(output: Tensor) -> Tensor:
    return output.float() if output.dtype in HALF_FLOATS else output
