"""The settings for ultralytics, run in the real library, differ as their comments say.

It is installed by hand, `pip install --no-deps ultralytics ultralytics-thop`: its own dependencies
would put another build of OpenCV over the one that Albumentations uses.
"""

from __future__ import annotations

import math
import random
import re

import numpy as np
import pytest
import torch
import yaml
from observed import SIDE, ours, photographs

import augury


@pytest.fixture
def augment(monkeypatch, tmp_path):
    monkeypatch.setenv("YOLO_CONFIG_DIR", str(tmp_path))  # it writes its settings on import
    monkeypatch.setenv("YOLO_OFFLINE", "true")
    pytest.importorskip("ultralytics", reason="installed by hand, see above")
    from ultralytics.data import augment

    random.seed(0)
    np.random.seed(0)  # noqa: NPY002  # what ultralytics draws from
    return augment


def array(k: int) -> np.ndarray:
    return (photographs()[k % 10].movedim(0, -1).numpy() * 255).round().astype(np.uint8)


def tensor(image: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(image.astype(np.float32) / 255).movedim(-1, 0)


def exported(spec: str) -> tuple[dict, list[float]]:
    """The settings, and the differences that their comment states."""
    text = augury.export(spec, to="ultralytics")
    note = " ".join(line.removeprefix("# ") for line in text.splitlines() if line[:1] == "#")
    note = note.partition("differs: ")[2].partition("as arguments")[0]
    return yaml.safe_load(text), [float(n) for n in re.findall(r"0\.\d{4}", note)]


WARPS = {
    "rotation(30)": lambda matrix, scale: math.degrees(math.atan2(matrix[0, 1], matrix[0, 0])),
    "scaling(0.7,1.3)": lambda matrix, scale: scale,
    "translation(0.2)": lambda matrix, scale: -np.array([matrix[0, 2], matrix[1, 2]]) / SIDE,
}


@pytest.mark.parametrize("spec", WARPS)
def test_warps_differ_as_stated(spec, augment):
    settings, (whole, inside) = exported(spec)
    names = ("degrees", "translate", "scale", "shear")
    step = augment.RandomPerspective(**{name: settings[name] for name in names}, perspective=0.0)
    found = []
    for k in range(60):
        image = array(k)
        drawn = step.get_params({"img": image.copy()})
        out = step.apply_image({"img": image.copy()}, drawn)["img"]
        params = WARPS[spec](drawn["M"], drawn["scale"])
        off = (ours(spec, tensor(image), params) - tensor(out)).abs()
        seen = ours(spec, torch.ones(3, SIDE, SIDE), params) > 0.999
        found.append((float(off.mean()), float(off[seen].mean())))
    assert np.mean(found, axis=0) == pytest.approx([whole, inside], rel=0.25)


def test_brightness_differs_as_stated(augment):
    settings, (stated,) = exported("brightness(0.5)")
    step = augment.RandomHSV(settings["hsv_h"], settings["hsv_s"], settings["hsv_v"])
    found = []
    for k in range(200):
        image = array(k)
        out = step({"img": image.copy()})["img"]
        before, after = (i.max(-1).astype(float) for i in (image, out))
        kept = (before > 20) & (after < 250)
        factor = np.median(after[kept] / before[kept])
        found.append(
            float((ours("brightness(0.5)", tensor(image), factor) - tensor(out)).abs().mean())
        )
    assert np.mean(found) == pytest.approx(stated, rel=0.25)
