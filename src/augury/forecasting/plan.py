"""The training that a forecast is for."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

from augury._base.errors import AuguryError
from augury._base.given import as_whole, is_one_of
from augury._base.limits import MOST_EPOCHS
from augury._base.text import shown

EPOCHS = 40
"""Assumed where the user names no number: what small image sets are commonly trained for."""
NETWORKS = ("cnn", "resnet", "lenet")
"""Networks for images that can be planned by name."""


@dataclass(frozen=True)
class TrainingPlan:
    """The planned training: number of epochs, number of examples and network.

    The gain of an augmentation depends on it: strong augmentation needs long training, and with
    many examples there is less need for augmentation.

    Attributes
    ----------
    epochs
        Passes over the training examples, at most 10,000.
    examples
        The number of training examples; None for all of the data.
    side
        The side in pixels of the images that the network sees; None for that of the data.
    network
        ``"cnn"`` (five convolutions), ``"resnet"`` (a small residual network), ``"lenet"``, or
        the name of the user's own network.
    pretrained
        Whether training starts from pretrained weights.
    tune
        Which part of the user's own network is trained: ``"all"``, the last ``"block"`` and the
        head, or only the ``"head"``.
    """

    epochs: int = EPOCHS
    examples: int | None = None
    side: int | None = None
    network: str = "cnn"
    pretrained: bool = False
    tune: str = "all"

    @classmethod
    def of(cls, plan: TrainingPlan | None, epochs: int | None) -> TrainingPlan:
        """Return the plan that was given, or one of so many epochs; raise if both were."""
        if plan is not None and not isinstance(plan, TrainingPlan):
            raise AuguryError(f"plan must be a TrainingPlan, got {plan!r}")
        if plan is not None and epochs is not None:
            raise AuguryError("pass either epochs or a plan, not both")
        return plan or (cls() if epochs is None else cls(epochs=epochs))

    @staticmethod
    def stated(plan: TrainingPlan | None, epochs: Any, network: Any) -> tuple[str, ...]:
        """Return the names of what a caller stated; a plan states at least its epochs."""
        said = {"epochs": (plan, epochs), "network": (network,)}
        return tuple(name for name, values in said.items() if any(v is not None for v in values))

    def __post_init__(self) -> None:
        for name, least, most in (
            ("epochs", 1, MOST_EPOCHS),
            ("examples", 2, None),
            ("side", 4, None),
        ):
            value = getattr(self, name)
            if value is None and name != "epochs":
                continue
            object.__setattr__(self, name, as_whole(name, value, least, most))
        if not is_one_of(self.tune, ("all", "block", "head")):
            raise AuguryError(f"tune must be all, block or head, got {shown(self.tune)}")

    def describe(
        self,
        given: TrainingPlan,
        total: int,
        shape: tuple[int, ...],
        stated: Collection[str] = (),
    ) -> dict[str, Any]:
        """Return the plan in plain values for data of `total` examples; `given` as asked for.

        ``"assumed"`` lists what has a default value and is not among the names that were `stated`.
        """
        found = asdict(self)
        found["examples"] = self.examples or total
        found["side"] = self.side or (max(shape[1:]) if len(shape) == 3 else None)
        default = TrainingPlan()
        found["assumed"] = [
            name
            for name in ("epochs", "examples", "network")
            if name not in stated and getattr(given, name) == getattr(default, name)
        ]
        return found
