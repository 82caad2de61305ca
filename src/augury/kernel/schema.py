"""What a model file may hold: its settings and tensors, checked once, when it is opened.

Whatever was changed in a file, either all of it passes here and the rest of the library may trust
it, or one clear line says which value does not.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury.augmentations import Augmentation, parse
from augury.data import Preparation
from augury.kernel.classifier import AugmentedKernelClassifier
from augury.kernel.estimator import FourierEstimator
from augury.kernel.parameters import even
from augury.kernel.regressor import AugmentedKernelRegressor
from augury.kernel.rules import (
    FLAG,
    NAN,
    Rule,
    check_all,
    one_of,
    real,
    sequence_of,
    text,
    whole,
)
from augury.kernel.transformer import AugmentedFourierFeatures

FORMAT = 2
KINDS: dict[str, type[FourierEstimator]] = {
    "classifier": AugmentedKernelClassifier,
    "regressor": AugmentedKernelRegressor,
    "features": AugmentedFourierFeatures,
}

_SPEC = text(10_000)
_PLAIN = Rule("a JSON object", lambda value: isinstance(value, dict))
_SCALAR = Rule("text or a number", lambda value: isinstance(value, str | int | float))
_CLASS_TYPE = re.compile(r"[<>|=]?(U\d*|[iu][1248]|f[248]|b1|O)")
_MOST_LABELS = 2**28  # bytes of labels as an array, where the longest decides for all
_POSITIVE = real(1e-300, 1e300)  # what a fit may have chosen
_COMMON: dict[str, Rule] = {
    "written_by": text(100),
    "params": _PLAIN,
    "shape": sequence_of(whole(1, 2**31), most=3),
    "bytes": FLAG,
    "beyond": FLAG,
    "gamma": _POSITIVE,
    "about": _PLAIN,
}
_FITTED: dict[str, Rule] = {
    "ridge": _POSITIVE,
    "risk": real(-1e300, 1e300) | NAN,
    "solver": one_of(["eigen", "krylov", "cholesky", "l-bfgs"]),
}
_OF_KIND: dict[str, dict[str, Rule]] = {
    "classifier": _FITTED
    | {
        "classes": sequence_of(_SCALAR, least=2, most=2**20),
        "class_type": Rule(
            "the type of an array of labels, such as '<i8' or '<U5'",
            lambda value: isinstance(value, str) and bool(_CLASS_TYPE.fullmatch(value)),
        ),
    },
    "regressor": _FITTED | {"flat": FLAG},
    "features": {},
}


@dataclass(frozen=True)
class ModelSettings:
    """The settings of a model file, each of the type and within the range that it must have.

    Attributes
    ----------
    kind
        One of `KINDS`.
    params
        The estimator's parameters but `device`, as its constructor takes them.
    augmentation
        The parsed augmentation.
    shape
        The shape of one example.
    fitted
        The other values by name: ``bytes``, ``beyond``, ``gamma`` and what the kind adds.
    classes
        The labels of a classifier, else None.
    about
        Plain values that were kept beside the model.
    """

    kind: str
    params: dict[str, Any]
    augmentation: Augmentation
    shape: tuple[int, ...]
    fitted: dict[str, Any]
    classes: np.ndarray | None
    about: dict[str, Any]


def read_settings(source: str) -> ModelSettings:
    """Read and check the settings of a model file.

    Parameters
    ----------
    source
        JSON.

    Raises
    ------
    AuguryError
        If a value is missing, unknown, of the wrong type or out of range.
    """
    try:
        found = json.loads(source)
    except (ValueError, RecursionError) as error:
        raise AuguryError(f"its settings are not JSON ({type(error).__name__})") from None
    _PLAIN.check("its settings", found)
    if found.get("format") != FORMAT:
        raise AuguryError(
            f"it has format {str(found.get('format'))[:20]}, but this version of augury reads "
            f"format {FORMAT}; fit and save it again"
        )
    one_of(KINDS).check("kind", found.get("kind"))
    kind = KINDS[found["kind"]]
    rules = _COMMON | _OF_KIND[found["kind"]]
    _check_names(found, {"format", "kind", *rules}, "its settings")
    check_all(rules, found)
    params = dict(found["params"])
    names = set(kind().get_params(deep=False)) - {"device"}
    _check_names(params, names, "its parameters")
    _SPEC.check("augmentation", params["augmentation"])
    check_all(kind.rules, params)
    shape = tuple(found["shape"])
    if params["input_shape"] is not None:
        params["input_shape"] = tuple(params["input_shape"])
    _check_channels(params, shape)
    classes = None
    if found["kind"] == "classifier":
        classes = _classes(found["classes"], found["class_type"])
    fitted = {name: found[name] for name in rules if name not in ("params", "shape", "about")}
    about = found["about"]
    if about.get("preparation") is not None:  # what `augury fit` did to the examples
        prepared = Preparation.from_dict(about["preparation"]).shape
        if prepared != shape:
            raise AuguryError(f"it prepares examples of shape {prepared} for a model of {shape}")
    return ModelSettings(
        found["kind"], params, parse(params["augmentation"]), shape, fitted, classes, about
    )


def check_tensors(settings: ModelSettings, tensors: Mapping[str, Tensor]) -> None:
    """Raise unless the tensors are those that the settings need, of the right shape and finite.

    Sizes follow from the tensors, which are in the file, and never from a number in the settings
    alone, so that nothing is allocated that the file does not hold.
    """
    shapes = _shapes(settings, tensors)
    optional = {"phi.offsets"}
    missing = sorted(set(shapes) - set(tensors) - optional)
    if missing:
        raise AuguryError(f"it has no tensor {missing[0]}")
    unknown = sorted(set(tensors) - set(shapes))
    if unknown:
        raise AuguryError(f"it has a tensor {unknown[0][:60]!r} that no model has")
    for name, value in tensors.items():
        if value.dtype not in (torch.float32, torch.float64):
            raise AuguryError(f"its {name} are of type {value.dtype}, but must be floats")
        if tuple(value.shape) != shapes[name]:
            raise AuguryError(
                f"its {name} have shape {tuple(value.shape)}, but must have {shapes[name]}"
            )
        if not bool(value.isfinite().all()):
            raise AuguryError(f"its {name} hold NaN or infinity")


def _shapes(settings: ModelSettings, tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    """Return the shape that each tensor must have."""
    d, pixels = even(settings.params["n_components"]), math.prod(settings.shape)
    count = d // 2
    shapes: dict[str, tuple[int, ...]] = {"phi.offsets": (count,)}
    if settings.params["sampling"] == "hadamard":
        p = 2 ** max(1, math.ceil(math.log2(pixels)))
        shapes["phi.scale"] = (pixels,)
        shapes["phi.structured.signs"] = (3, -(-count // p), p)
        shapes["phi.structured.lengths"] = (count,)
    else:
        shapes["phi.frequencies"] = (count, pixels)
    if settings.kind != "features":
        outputs = _outputs(settings, tensors)
        shapes |= {"weights": (d, outputs), "bias": (outputs,)}
    return shapes


def _outputs(settings: ModelSettings, tensors: Mapping[str, Tensor]) -> int:
    """Return how many numbers the model computes for an example."""
    if settings.classes is not None:
        one = settings.params["loss"] == "logistic" and len(settings.classes) == 2
        return 1 if one else len(settings.classes)
    bias = tensors.get("bias")
    if bias is None or bias.dim() != 1 or not len(bias):
        raise AuguryError("its bias must have one value for each output")
    if settings.fitted["flat"] and len(bias) != 1:
        raise AuguryError(f"its targets are flat, but its bias has {len(bias)} values")
    return len(bias)


def _classes(values: list[Any], kind: str) -> np.ndarray:
    """Return labels as an array of their type; raise if that changes one of them."""
    words = "U" in kind
    if words and 4 * len(values) * max(len(str(value)) for value in values) > _MOST_LABELS:
        raise AuguryError("its classes have labels that are too long")
    classes = np.empty(0)
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        classes = np.array(values, dtype=str if words else np.dtype(kind))
    if classes.tolist() != values:
        raise AuguryError(f"its classes are not labels of type {kind}")
    return classes


def _check_names(found: Mapping[str, Any], wanted: set[str], where: str) -> None:
    missing, unknown = sorted(wanted - set(found)), sorted(set(found) - wanted)
    if missing:
        raise AuguryError(f"{where} have no {missing[0]}")
    if unknown:
        raise AuguryError(f"{where} have {unknown[0][:60]!r}, which is unknown")


def _check_channels(params: Mapping[str, Any], shape: tuple[int, ...]) -> None:
    for name in ("mean", "std"):
        value = params[name]
        if isinstance(value, list) and len(value) not in (1, shape[0]):
            raise AuguryError(f"{name} has {len(value)} values for {shape[0]} channels")
