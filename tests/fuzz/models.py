"""Mutated model files: settings, tensors and bytes."""

from __future__ import annotations

import atexit
import copy
import functools
import json
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load, save

from augury.data import Preparation
from augury.kernel import (
    AugmentedFourierFeatures,
    AugmentedKernelClassifier,
    AugmentedKernelRegressor,
    about_model,
    load_model,
    save_model,
)
from augury.kernel.persistence import _digest

MODELS = ("quadratic", "logistic", "words", "regressor", "features", "hadamard")
SHAPE = (1, 6, 6)

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 2**31, 2**63, 10**40, 10**400, -(10**400), 0.0, -0.0,
    0.5, 1.5, 1e-320, 1e308, -1e308, float("nan"), float("inf"), float("-inf"), "", "gcv", "auto",
    "cuda", "median", "hadamard", "laplacian", "matern", "exact", "tangent", "plain", "float64",
    "tf32", "logistic", "classifier", "features", "\x00", "é" * 300, "x" * 20_000,
    "../../etc/passwd",
    "os:system", "__import__('os')", "<U9", "<U999999999", "|O", "|V8", "<f16", "i8,i8", "M8[ns]",
    [], {}, [[]], [None], [0], [1, 6, 6], [6, 6], [36], [1, 2, 3, 4], [-1, -6, 6], [1.5, 2],
    ["a", "b"], [True, False], [1, "a"], [1e400], list(range(3000)), {"a": 1}, {"params": {}},
)  # fmt: skip

SPECS = (
    "identity", "rotation(15)", "rotation(1e-300)", "rotation(1e300)", "rotation(-5)", "noise(0.1)",
    "translation(0.1)", "flips >> noise(0.1)", "0.3*flips | 0.7*rotation(5)", "jitter(0.1)",
    "flips ** 2", "flips ** 3000000000", "((flips ** 500) ** 500) ** 500", "(" * 3000 + "flips",
    "flips" + " >> flips" * 400, "chain(rotation(5):1, flips:2)", "chain(rotation(5):1e300)",
    "chain(flips:1e9)", "sampled(os:getcwd)", "sampled(subprocess:run)", "quarter_turns",
    "shift(0.1)", "elastic(0.05)", "resized_crop(0.5)", "cutout(0.3)", "rotation(", "rotation(15",
    "rotation(15) >>", "1e999*flips", "-1*flips", "flips | | flips", "rotation(degrees=15)",
    "rotation(degrees=15,degrees=15)", "rotation(nonsense=1)", "rotation(1,2,3)", "é", "\n",
)  # fmt: skip


def write_models(folder: Path) -> None:
    """Fit and save one small model of each kind."""
    rng = np.random.default_rng(0)
    x, y = rng.random((40, *SHAPE)).astype(np.float32), np.arange(40) % 3
    small = {"n_components": 16, "n_views": 2, "device": "cpu", "gamma": 0.1}
    classifier = AugmentedKernelClassifier("rotation(10)", **small)
    fitted = {
        "quadratic": classifier.fit(x, y),
        "logistic": AugmentedKernelClassifier(loss="logistic", ridge=0.1, **small).fit(x, y % 2),
        "words": AugmentedKernelClassifier("noise(0.1)", mean=[0.5], **small).fit(
            x, np.array(["a", "b", "cd"])[y]
        ),
        "regressor": AugmentedKernelRegressor("flips", **small).fit(x, rng.random((40, 2))),
        "features": AugmentedFourierFeatures("translation(0.1)", **small).fit(x, y),
        "hadamard": AugmentedKernelClassifier(
            "rotation(10)", sampling="hadamard", kernel="matern", std=0.5, **small
        ).fit(x, y),
    }
    for name, model in fitted.items():
        pixels = {"pixels": "unit"} if name != "regressor" else {"pixels": "span", "span": (0, 9)}
        prepared = Preparation("image", SHAPE, ("a", "b", "c"), **pixels)
        save_model(model, folder / name, about={"preparation": prepared.to_dict()})


def mutate(whole: bytes, path: Path, seed: int) -> bytes:
    """Return a model file with some of its bytes, settings or tensors changed, by the seed alone.

    Settings and tensors that are changed get a new checksum, as somebody who changes them on
    purpose would give them.
    """
    draw = random.Random(seed)
    if draw.random() < 0.1:
        return _change_bytes(bytearray(whole), draw)
    with safe_open(str(path), framework="pt") as file:
        settings = json.loads(file.metadata()["augury"])
    tensors = dict(load(whole))
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        if draw.random() < 0.75:
            _change_settings(settings, draw)
        else:
            _change_tensors(tensors, draw)
    text = json.dumps(settings)
    if draw.random() < 0.03:
        text = draw.choice(("[" * 100_000, "{}", "[]", "null", text[:-1], text * 2, '"' + "a" * 9))
    contiguous = {name: value.contiguous() for name, value in tensors.items()}
    return save(contiguous, {"augury": text, "digest": _digest(text, contiguous)})


def _change_bytes(whole: bytearray, draw: random.Random) -> bytes:
    for _ in range(draw.randint(1, 8)):
        whole[draw.randrange(len(whole))] = draw.randrange(256)
    return bytes(whole[: draw.randrange(len(whole))] if draw.random() < 0.4 else whole)


def _change_settings(settings: dict[str, Any], draw: random.Random) -> None:
    place: Any = settings
    if draw.random() < 0.7:
        place = settings.get(draw.choice(("params", "params", "about")), settings)
        if isinstance(place, dict) and isinstance(place.get("preparation"), dict):
            place = place["preparation"] if draw.random() < 0.8 else place
    if not isinstance(place, dict) or not place:
        place = settings
    name = draw.choice(sorted(place)) if place else "kind"
    kind = draw.random()
    if name == "augmentation" or kind < 0.1:
        settings.setdefault("params", {})
        if isinstance(settings["params"], dict):
            settings["params"]["augmentation"] = draw.choice(SPECS)
    elif kind < 0.2:
        place.pop(name, None)
    elif kind < 0.25:
        place[draw.choice(("surprise", "__class__", "device", "seed", "1"))] = draw.choice(VALUES)
    elif kind < 0.35 and isinstance(place[name], list) and place[name]:
        place[name] = copy.deepcopy(place[name])
        place[name][draw.randrange(len(place[name]))] = draw.choice(VALUES)
    elif kind < 0.45 and isinstance(place[name], int | float):
        place[name] = place[name] * draw.choice((2, -1, 0.5, 1e9, 10**9)) + draw.choice((0, 1, 2))
    else:
        place[name] = copy.deepcopy(draw.choice(VALUES))


def _change_tensors(tensors: dict[str, torch.Tensor], draw: random.Random) -> None:
    if not tensors:
        return
    name = draw.choice(sorted(tensors))
    value = torch.atleast_1d(tensors[name])  # an earlier change may have left a scalar
    if not value.dtype.is_floating_point or value.element_size() == 1:
        value = value.float()
    changes = (
        lambda: value.flatten(),
        lambda: value[:-1],
        lambda: torch.cat([value, value]),
        lambda: value.unsqueeze(0),
        lambda: value[:0],
        lambda: torch.zeros(()),
        lambda: value * float("nan"),
        lambda: value * float("inf"),
        lambda: value * 1e30,
        lambda: value.double(),
        lambda: value.half(),
        lambda: value.bfloat16(),
        lambda: value.to(torch.float8_e4m3fn),
        lambda: value.to(torch.int64),
        lambda: value > 0,
        lambda: value.to(torch.complex64),
    )
    choice = draw.randrange(len(changes) + 2)
    if choice == len(changes):
        del tensors[name]
    elif choice == len(changes) + 1:
        tensors[draw.choice(("surprise", "phi.offsets", "phi.scale", "../x"))] = value.clone()
    else:
        tensors[name] = changes[choice]()


def case(rng: random.Random, directory: Path) -> tuple[str, Callable[[], object]]:
    """Make a changed model file, to be loaded, looked at and used."""
    name = rng.choice(MODELS)
    original = _models() / name
    path = directory / name
    path.write_bytes(mutate(original.read_bytes(), original, rng.getrandbits(32)))
    return name, lambda: use(path)


@functools.cache
def _models() -> Path:
    """Write the models that are changed, once for each process."""
    folder = tempfile.mkdtemp(prefix="augury-fuzz-models-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    write_models(Path(folder))
    return Path(folder)


def use(path: Path) -> None:
    """Load a file, look at it and predict with it."""
    x = np.full((2, *SHAPE), 0.5, dtype=np.float32)
    kept = about_model(path).get("preparation")
    model: Any = load_model(path, device="cpu")
    if hasattr(model, "predict"):
        model.predict(x)
    else:
        model.transform(x)
    if kept is not None:
        Preparation.from_dict(kept).apply(x)
