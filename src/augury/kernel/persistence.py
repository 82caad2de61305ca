"""Fitted models in one file: tensors by safetensors, settings as JSON; nothing runs on loading."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from augury import __version__
from augury._base.devices import resolve_device
from augury._base.errors import AuguryError
from augury._base.files import write
from augury._base.given import as_path
from augury.augmentations import parse
from augury.data import Preparation
from augury.features.hadamard import HadamardFrequencies
from augury.kernel.base import PRECISIONS, KernelModel
from augury.kernel.classifier import AugmentedKernelClassifier
from augury.kernel.estimator import FourierEstimator
from augury.kernel.regressor import AugmentedKernelRegressor
from augury.kernel.schema import FORMAT, KINDS, ModelSettings, check_tensors, read_settings


def save_model(model: Any, path: str | Path, *, about: Mapping[str, Any] | None = None) -> None:
    """Write a fitted model to one file.

    Parameters
    ----------
    model
        A fitted classifier, regressor or transformer. Its augmentation must be one that text can
        name.
    path
        Where to; an existing file is replaced whole.
    about
        Plain values to keep beside it.
    """
    path = as_path(path)
    if not hasattr(model, "_weights" if isinstance(model, KernelModel) else "gamma_"):
        raise AuguryError(f"this {type(model).__name__} is not fitted yet; call fit before save")
    spec = repr(model.augmentation_)
    try:
        parse(spec)
    except AuguryError as error:
        raise AuguryError(
            f"{spec} contains code, which a model file cannot store; use named families ({error})"
        ) from None
    params = model.get_params(deep=False) | {"augmentation": spec, "random_state": model.seed_}
    settings = {
        "format": FORMAT,
        "written_by": f"augury {__version__}",
        "kind": next(name for name, kind in KINDS.items() if isinstance(model, kind)),
        "params": {name: _plain(value) for name, value in params.items() if name != "device"},
        "shape": list(model.shape_),
        "bytes": bool(model.bytes_),
        "beyond": bool(model.beyond_),
        "gamma": _plain(model.gamma_),
        "about": dict(about or {}),
    }
    tensors = {}
    if isinstance(model, KernelModel):
        tensors = {"weights": model._weights, "bias": model._bias}
        settings |= {
            "ridge": _plain(model.ridge_),
            "risk": _plain(model.risk_),
            "solver": model.solver_,
        }
    if isinstance(model, AugmentedKernelRegressor):
        settings["flat"] = model._flat
    if isinstance(model, AugmentedKernelClassifier):
        settings["classes"] = _plain(model.classes_)
        settings["class_type"] = model.classes_.dtype.str
    for name, value in model._psi.phi.state_dict().items():
        tensors[f"phi.{name}"] = value
    tensors = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    text = json.dumps(settings, sort_keys=True)
    write(path, save(tensors, {"augury": text, "digest": _digest(text, tensors)}))


def load_model(path: str | Path, *, device: str = "auto") -> FourierEstimator:
    """Read a model written by `save_model`. The file contains no code, and none is run.

    A model written by ``augury fit`` may expect preprocessed examples; if so, a warning is issued.
    """
    model, about = read_model(path, device=device)
    kept = about.get("preparation")
    if kept is not None and Preparation.from_dict(kept).notes():
        warnings.warn(
            f"{path} expects examples preprocessed as by `augury fit`: x = augury.data.Preparation"
            f".from_dict(augury.kernel.about_model({str(path)!r})['preparation']).transform(x); "
            "`augury predict` does this automatically",
            UserWarning,
            stacklevel=2,
        )
    return model


def read_model(
    path: str | Path, *, device: str = "auto"
) -> tuple[FourierEstimator, dict[str, Any]]:
    """Read a model, and the plain values saved with it."""
    path = as_path(path)
    settings, tensors = _open(path)
    try:
        return _rebuild(settings, tensors, device), dict(settings.about)
    except AuguryError as error:
        raise AuguryError(f"{path} cannot be used: {error}") from None


def about_model(path: str | Path) -> dict[str, Any]:
    """Return the plain values saved with a model."""
    return dict(_open(as_path(path))[0].about)


def _open(path: Path) -> tuple[ModelSettings, dict[str, Tensor]]:
    """Read the settings and the tensors of a model file, whole, unchanged and checked."""
    if path.is_dir():
        raise AuguryError(f"{path} is a directory; give the path of the model file in it")
    try:
        with safe_open(str(path), framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # no dict
    except FileNotFoundError:
        raise AuguryError(f"there is no model file {path}; check the path") from None
    except (SafetensorError, OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:160]
        raise AuguryError(
            f"{path} is not a model file, or is damaged or cut short ({reason}); fit and save it "
            "again"
        ) from None
    text = metadata.get("augury", "")
    if not text:
        raise AuguryError(
            f"{path} contains tensors but no augury model; use a file written by `augury fit`"
        )
    if metadata.get("digest") != _digest(text, tensors):
        raise AuguryError(f"{path} was changed after it was written; fit and save it again")
    try:
        settings = read_settings(text)
        check_tensors(settings, tensors)
    except AuguryError as error:
        raise AuguryError(f"{path} is not an augury model: {error}") from None
    return settings, tensors


def _rebuild(settings: ModelSettings, tensors: dict[str, Tensor], device: str) -> FourierEstimator:
    model: Any = KINDS[settings.kind](**settings.params, device=device)
    fitted = settings.fitted
    model.augmentation_, model.shape_ = settings.augmentation, settings.shape
    model.n_features_in_ = math.prod(settings.shape)
    seed = settings.params["random_state"]
    if type(seed) is not int:  # a model may be made without one, and is saved with what it drew
        raise AuguryError(f"its random_state is {seed!r}; expected a whole number")
    model.seed_ = seed
    model.bytes_, model.beyond_ = fitted["bytes"], fitted["beyond"]
    model.gamma_ = float(fitted["gamma"])
    where = resolve_device(device)
    if isinstance(model, KernelModel):
        like = torch.empty(0, dtype=PRECISIONS[model.precision], device=where)
        model.ridge_, model.risk_ = float(fitted["ridge"]), float(fitted["risk"])
        model.solver_ = fitted["solver"]
        model._weights, model._bias = tensors["weights"].to(like), tensors["bias"].to(where)
    else:
        like = torch.empty(0, dtype=_widest(tensors), device=where)
        model._n_features_out = model._d
    if isinstance(model, AugmentedKernelClassifier):
        assert settings.classes is not None
        model.classes_ = settings.classes
    if isinstance(model, AugmentedKernelRegressor):
        model._flat = fitted["flat"]
    model._psi = model._make_features()
    _restore(model._psi.phi, tensors, model)
    model._psi.to(like)
    model._psi.prepare(like)
    model.note_ = model._psi.note
    return model


def _widest(tensors: dict[str, Tensor]) -> torch.dtype:
    """Return the type that a transformer computes in: that of its frequencies."""
    name = "phi.frequencies" if "phi.frequencies" in tensors else "phi.scale"
    return tensors[name].dtype


def _restore(phi: Any, tensors: dict[str, Tensor], model: Any) -> None:
    """Put the frequencies back."""
    phi.shape, phi.gamma_ = model.shape_, model.gamma_
    phi.offsets = tensors.get("phi.offsets")
    if phi.sampling != "hadamard":
        phi.frequencies = tensors["phi.frequencies"]
        return
    phi.scale = tensors["phi.scale"]
    pixels = model.n_features_in_
    phi.structured = HadamardFrequencies(model._d // 2, pixels, np.random.default_rng(0))
    for name in ("signs", "lengths"):
        setattr(phi.structured, name, tensors[f"phi.structured.{name}"])


def _digest(text: str, tensors: Mapping[str, Tensor]) -> str:
    """Sum up settings and tensors, to notice damage: a checksum, not a signature."""
    summed = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        value = tensors[name].contiguous()
        summed.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        summed.update(value.flatten().view(torch.uint8).numpy().data)  # NumPy lacks some types
    return summed.hexdigest()


def _plain(value: Any) -> Any:
    """Turn NumPy's numbers and arrays into what JSON has; refuse the rest."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, tuple):
        value = list(value)
    try:
        json.dumps(value)
    except TypeError:
        raise AuguryError(f"a model file can store only plain values, not {value!r}") from None
    return value
