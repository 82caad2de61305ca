"""Which data augmentations will help, before you train; and training with them for less.

>>> import augury
>>> augury.parse("rotation(15) >> noise(0.1)")
rotation(15) >> noise(0.1)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Where each public name lives. Loaded on first use, so that `augury --version` and the report
# layer do not wait for torch.
_HOME = {
    "AuguryError": "augury._base.errors",
    "Augmentation": "augury.augmentations",
    "Sampled": "augury.augmentations",
    "TransformedDataset": "augury.augmentations",
    "parse": "augury.augmentations",
    "export": "augury.adapters",
    "Dataset": "augury.data",
    "as_dataset": "augury.data",
    "load": "augury.data",
    "open_shards": "augury.data",
    "FeatureMap": "augury.features",
    "AugmentedFourier": "augury.features",
    "Flatten": "augury.features",
    "FourierFeatures": "augury.features",
    "GradientFeatures": "augury.features",
    "PatchFeatures": "augury.features",
    "Layer": "augury.networks.layers",
    "cuts": "augury.networks.layers",
    "Orbit": "augury.features.orbit",
    "Rng": "augury._base.rng",
    "Alignment": "augury.statistics",
    "Ranking": "augury.results.ranking",
    "Policy": "augury.forecasting.policy",
    "TrainingPlan": "augury.forecasting.plan",
    "rank": "augury.forecasting.rank",
    "search_policy": "augury.forecasting.policy",
    "Averaged": "augury.networks.averaging",
    "Averaging": "augury.networks.averaging",
    "TangentPropagation": "augury.networks.tangent",
    "load_network": "augury.networks.load",
    "measure_invariance": "augury.networks.invariance",
    "plan_averaging": "augury.networks.planning",
    "AveragingPlan": "augury.results.averaging_plan",
    "InvarianceProfile": "augury.results.invariance",
    "AugmentedFourierFeatures": "augury.kernel",
    "AugmentedKernelClassifier": "augury.kernel",
    "AugmentedKernelRegressor": "augury.kernel",
    "load_model": "augury.kernel",
    "save_model": "augury.kernel",
    "certify": "augury.objectives",
}
_PACKAGES = (
    "adapters", "augmentations", "data", "features", "kernel", "markov", "networks", "objectives",
    "statistics",
)  # fmt: skip

if TYPE_CHECKING:
    from augury._base.errors import AuguryError
    from augury._base.rng import Rng
    from augury.adapters import export
    from augury.augmentations import Augmentation, Sampled, TransformedDataset, parse
    from augury.data import Dataset, as_dataset, load, open_shards
    from augury.features import (
        AugmentedFourier,
        FeatureMap,
        Flatten,
        FourierFeatures,
        GradientFeatures,
        PatchFeatures,
    )
    from augury.features.orbit import Orbit
    from augury.forecasting.plan import TrainingPlan
    from augury.forecasting.policy import Policy, search_policy
    from augury.forecasting.rank import rank
    from augury.kernel import (
        AugmentedFourierFeatures,
        AugmentedKernelClassifier,
        AugmentedKernelRegressor,
        load_model,
        save_model,
    )
    from augury.networks.averaging import Averaged, Averaging
    from augury.networks.invariance import measure_invariance
    from augury.networks.layers import Layer, cuts
    from augury.networks.load import load_network
    from augury.networks.planning import plan_averaging
    from augury.networks.tangent import TangentPropagation
    from augury.objectives import certify
    from augury.results.averaging_plan import AveragingPlan
    from augury.results.invariance import InvarianceProfile
    from augury.results.ranking import Ranking
    from augury.statistics import Alignment

__all__ = [
    "Alignment",
    "Augmentation",
    "AugmentedFourier",
    "AugmentedFourierFeatures",
    "AugmentedKernelClassifier",
    "AugmentedKernelRegressor",
    "AuguryError",
    "Averaged",
    "Averaging",
    "AveragingPlan",
    "Dataset",
    "FeatureMap",
    "Flatten",
    "FourierFeatures",
    "GradientFeatures",
    "InvarianceProfile",
    "Layer",
    "Orbit",
    "PatchFeatures",
    "Policy",
    "Ranking",
    "Rng",
    "Sampled",
    "TangentPropagation",
    "TrainingPlan",
    "TransformedDataset",
    "__version__",
    "as_dataset",
    "certify",
    "cuts",
    "export",
    "load",
    "load_model",
    "load_network",
    "measure_invariance",
    "open_shards",
    "parse",
    "plan_averaging",
    "rank",
    "save_model",
    "search_policy",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"augury.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'augury' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES])
