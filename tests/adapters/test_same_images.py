"""Exported code, run in the real library, gives augury's images for the parameters it drew."""

from __future__ import annotations

import math
import random
import sys

import numpy as np
import pytest
import torch
from observed import (
    EXACT,
    RECIPES,
    SIDE,
    Draws,
    Generator,
    differs,
    export,
    load,
    nearest,
    ours,
    photographs,
    run,
    seed,
    sigma_of,
)
from PIL import Image
from scipy.stats import chisquare, ks_2samp, kstest
from torchvision.transforms import v2

import augury
from augury.adapters.export import FORMATS
from augury.augmentations import FAMILIES, parse

LIBRARIES = ("torchvision", "kornia", "albumentations")
DRAWS = 20
FAMILY_MODULES = "augury.augmentations."


def _crop(top: float, left: float, height: float, width: float, area: float) -> torch.Tensor:
    """The parameters of resized_crop for a crop in pixels."""
    side = math.sqrt(height * width) / SIDE
    free = max(1 - side, 1e-6)
    at = [
        ((start + size / 2) / SIDE - 0.5) / free + 0.5
        for start, size in ((left, width), (top, height))
    ]
    return torch.tensor([(side**2 - area) / (1 - area), *at])


def _kornia_crop(p: dict) -> torch.Tensor:
    (left, top), _, (right, bottom), _ = p["src"][0].tolist()
    return _crop(top, left, bottom - top + 1, right - left + 1, 0.3)


def _shear(p: dict) -> float:
    return -math.degrees(math.atan(p["matrix"][0, 1]))


def _alb_crop(p: dict) -> torch.Tensor:
    left, top, right, bottom = p["crop_coords"]
    return _crop(top, left, bottom - top, right - left, 0.3)


def _inwards(matrix: np.ndarray) -> np.ndarray:
    """The parameters of perspective for the homography that it applies to pixels."""
    signs = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    edges = np.column_stack([(signs + 1) * SIDE / 2 - 0.5, np.ones(4)])
    x, y, w = (edges @ matrix.T).T
    return 1 - signs * ((np.stack([x / w, y / w], axis=-1) + 0.5) / (SIDE / 2) - 1)


def _tv_corners(p: dict) -> np.ndarray:
    return _inwards(np.linalg.inv(np.array([*p["coefficients"], 1.0]).reshape(3, 3)))


def _kornia_corners(p: dict) -> np.ndarray:
    return ((p["end_points"] - p["start_points"])[0].abs() / (SIDE / 2)).numpy()


# for each family: how to read augury's parameter from what each library drew
READ = {
    "rotation(30)": (
        lambda p: p["angle"],
        lambda p: p["degrees"][0],
        lambda p: p["rotate"],
    ),
    "shear(20)": (lambda p: p["shear"][0], lambda p: p["shear_x"][0], _shear),
    "scaling(0.7,1.3)": (
        lambda p: p["scale"],
        lambda p: p["scale"][0, 0],
        lambda p: p["scale"]["x"],
    ),
    "translation(0.2)": (
        lambda p: -torch.tensor(p["translate"]) / SIDE,
        lambda p: -p["translations"][0] / SIDE,
        lambda p: -p["matrix"][:2, 2] / SIDE,
    ),
    "resized_crop(0.3)": (
        lambda p: _crop(p["top"], p["left"], p["height"], p["width"], 0.3),
        _kornia_crop,
        _alb_crop,
    ),
    "blur(0.5,2.0)": (
        lambda p: p["sigma"][0],
        lambda p: p["sigma"][0],
        lambda p: sigma_of(p["kernel"]),
    ),
    "brightness(0.5)": (
        lambda p: p["brightness_factor"],
        lambda p: p["brightness_factor"][0],
        lambda p: p["brightness"],
    ),
    "contrast(0.5)": (
        lambda p: p["contrast_factor"],
        lambda p: p["contrast_factor"][0],
        lambda p: p["contrast"],
    ),
    "solarize(0.3)": (None, lambda p: p["thresholds"][0], lambda p: p["threshold"]),
    "saturation(0.5)": (
        lambda p: p["saturation_factor"],
        lambda p: p["saturation_factor"][0],
        lambda p: p["saturation"],
    ),
    "hue(0.2)": (
        lambda p: p["hue_factor"],
        lambda p: p["hue_factor"][0],
        lambda p: p["hue"],
    ),
    "gamma(0.4)": (None, lambda p: p["gamma_factor"][0], lambda p: p["gamma"]),
    "perspective(0.4)": (_tv_corners, _kornia_corners, None),
    "jpeg(50)": (None, None, lambda p: p["quality"]),
}

RANGES = {
    "rotation(30)": (-30, 30),
    "shear(20)": (-20, 20),
    "scaling(0.7,1.3)": (0.7, 1.3),
    "translation(0.2)": (-0.2, 0.2),
    "resized_crop(0.3)": (0, 1),
    "blur(0.5,2.0)": (0.5, 2.0),
    "brightness(0.5)": (0.5, 1.5),
    "contrast(0.5)": (0.5, 1.5),
    "solarize(0.3)": (0.3, 1.0),
    "saturation(0.5)": (0.5, 1.5),
    "hue(0.2)": (-0.2, 0.2),
    "gamma(0.4)": (0.6, 1.4),
    "perspective(0.4)": (0, 0.4),
    "jpeg(50)": (49.5, 100.5),
}


def recorder(library: str, augment):
    """Return a function that gives what the pipeline's only step drew last."""
    if library == "torchvision":
        step, seen = augment.transforms[2], []
        make = step.make_params
        step.make_params = lambda inputs: seen.append(make(inputs)) or seen[-1]
        return lambda: seen[-1]
    if library == "kornia":
        return lambda: augment[0]._params
    return lambda: augment.transforms[0].params


def pairs():
    for spec, readers in READ.items():
        for library, read in zip(LIBRARIES, readers, strict=True):
            if read is not None:
                yield pytest.param(spec, library, read, id=f"{spec}-{library}")


@pytest.mark.parametrize(("spec", "library", "read"), list(pairs()))
def test_same_image_for_the_same_parameter(spec, library, read):
    torch.manual_seed(0)
    augment = load(export(spec, library))["augment"]
    if library == "albumentations":
        seed(augment)
    drawn = recorder(library, augment)
    deviations = []
    for k in range(DRAWS):
        image = photographs()[k % 10]
        out = run(library, augment, image)
        deviations.append(float((ours(spec, image, np.asarray(read(drawn()))) - out).abs().mean()))
    mean = float(np.mean(deviations))
    if spec != "translation(0.2)":  # whose stated difference is that of rounding to whole pixels
        assert mean < differs(spec, library) * 1.25 + 1e-4, "the comment in the code is too low"


@pytest.mark.parametrize(("spec", "library", "read"), list(pairs()))
def test_parameters_are_drawn_from_the_same_law(spec, library, read):
    torch.manual_seed(1)
    augment = load(export(spec, library))["augment"]
    image = photographs()[0]
    if library == "torchvision":
        drawn = [augment.transforms[2].make_params([image]) for _ in range(500)]
    elif library == "kornia":
        augment(image.expand(500, -1, -1, -1))
        every = augment[0]._params
        drawn = [{key: value[k : k + 1] for key, value in every.items()} for k in range(500)]
    else:
        seed(augment, 1)
        drawn = [
            run(library, augment, image) is not None and augment.transforms[0].params
            for _ in range(500)
        ]
    values = [np.ravel(np.asarray(read(params)))[0] for params in drawn]
    low, high = RANGES[spec]
    whole = spec.startswith(("translation", "resized", "perspective"))
    slack = (2 / SIDE if whole else 1e-6) * (high - low)
    assert low - slack <= min(values)
    assert max(values) <= high + slack
    if whole:  # pixels: spread over the pixel again
        values += np.random.default_rng(0).uniform(-0.5, 0.5, len(values)) / SIDE
    assert kstest(values, "uniform", args=(low, high - low)).statistic < 0.08


def test_the_stated_difference_of_whole_pixels():
    generator = torch.Generator().manual_seed(0)
    deviations = []
    for k in range(50):
        image = photographs()[k % 10]
        shift = (torch.rand(2, generator=generator) * 2 - 1) * 0.2
        whole = (shift * SIDE).round() / SIDE
        both = [ours("translation(0.2)", image, s) for s in (shift, whole)]
        deviations.append(float((both[0] - both[1]).abs().mean()))
    for library in ("torchvision", "albumentations"):
        assert np.mean(deviations) == pytest.approx(differs("translation(0.2)", library), abs=2e-3)


FINITE = (
    "horizontal_flip",
    "vertical_flip",
    "flips",
    "quarter_turns",
    "pixel_shifts",
    "invert",
    "posterize(2)",
    "grayscale(0.3)",
    "autocontrast(0.3)",
    "equalize(0.3)",
    "jpeg(97)",
)


@pytest.mark.parametrize("library", [*LIBRARIES, "timm"])
@pytest.mark.parametrize("spec", FINITE)
def test_finite_families_are_the_same_maps_equally_often(spec, library):
    if (spec, library) == ("jpeg(97)", "albumentations"):
        pytest.skip("compared above, at the quality that was drawn")
    torch.manual_seed(0)
    family = parse(spec)
    augment = load(export(spec, library))["augment"]
    if library == "albumentations":
        seed(augment)
    image = photographs()[3]
    if library == "kornia":
        outs = augment(image.expand(150, -1, -1, -1))
    else:
        outs = torch.stack([run(library, augment, image) for _ in range(150)])
    found = nearest(family, image, outs)
    claim = differs(spec, library) if library != "timm" else 0.0
    assert max(distance for distance, _ in found) < max(EXACT, claim * 1.25)
    weights = family.nodes(int(family.size or 0)).weights.numpy()
    counts = np.bincount([which for _, which in found], minlength=len(weights))
    assert chisquare(counts, weights * len(found)).pvalue > 1e-3


FUNCTIONS = ("cutout(0.4)", "resized_crop(0.3)", "solarize(0.3)", "gamma(0.4)", "sharpness(0.4)")


@pytest.mark.parametrize("library", ["torchvision", "kornia"])
@pytest.mark.parametrize("spec", FUNCTIONS)
def test_functions_of_torch(spec, library, monkeypatch):
    if library == "kornia" and spec in ("solarize(0.3)", "gamma(0.4)"):
        pytest.skip("kornia has its own")
    augment = load(augury.export(spec, to=library))["augment"]  # no shape: crops by a function
    draws = Draws(monkeypatch)
    for image in photographs():
        out = run(library, augment, image)
        (seen,) = draws.seen
        draws.seen.clear()
        params = torch.squeeze(seen)
        if spec == "solarize(0.3)":
            params = 0.3 + 0.7 * params
        if spec in ("gamma(0.4)", "sharpness(0.4)"):
            params = 1 + 0.4 * (2 * params - 1)
        assert float((ours(spec, image, params) - out).abs().mean()) < 1e-5


@pytest.mark.parametrize(
    "spec", ["cutout(0.4)", "resized_crop(0.3)", "sharpness(0.4)", "perspective(0.4)"]
)
def test_functions_of_numpy(spec):
    augment = load(augury.export(spec, to="albumentations"))["augment"]
    step = augment.transforms[0]
    for k, image in enumerate(photographs()):
        step.random_generator = rng = Generator(k)
        out = run("albumentations", augment, image)
        if spec != "resized_crop(0.3)":
            params = rng.seen[0]
        else:
            area, at = rng.seen
            params = np.array([(area - 0.3) / 0.7, *(at + 0.5)])
        assert float((ours(spec, image, params) - out).abs().mean()) < EXACT


NOISY = ("noise(0.1)", "jitter(0.1)", "elastic(0.1)")


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("spec", NOISY)
def test_noise_and_fields_are_the_same_function_of_normal_numbers(spec, library, monkeypatch):
    augment = load(export(spec, library))["augment"]
    draws = Draws(monkeypatch)
    step = getattr(augment, "transforms", [None])[0]
    for k, image in enumerate(photographs()[:4]):
        if library == "albumentations":
            step.random_generator = rng = Generator(k)
            out = run(library, augment, image)
            if spec == "noise(0.1)":
                normal = torch.as_tensor(step.params["noise_map"]).movedim(-1, 0) / 0.1
            else:
                scale = 0.1 if spec.startswith("elastic") else 1.0
                normal = torch.from_numpy(rng.seen[0]).movedim(-1, 0) / scale
        else:
            out = run(library, augment, image)
            normal = draws.seen[-1]
        given = normal.to(torch.float32).flatten()
        for module in [m for name, m in sys.modules.items() if name.startswith(FAMILY_MODULES)]:
            if hasattr(module, "normal_from"):
                monkeypatch.setattr(
                    module, "normal_from", lambda keys, size, g=given: g.expand(*keys.shape, -1)
                )
        key = torch.zeros(1, 1, dtype=torch.int64)
        same = parse(spec).apply(image[None, None], key)[0, 0]
        assert float((same - out).abs().mean()) < EXACT


@pytest.mark.parametrize("library", LIBRARIES)
def test_erasing_leaves_the_rest_and_erases_as_much(library):
    torch.manual_seed(0)
    augment = load(export("erasing(0.5)", library))["augment"]
    if library == "albumentations":
        seed(augment)
    image = photographs()[0]
    theirs = torch.stack([run(library, augment, image) for _ in range(150)])
    mine = parse("erasing(0.5)").views(image[None], 150, augury.Rng(0, torch.arange(1)))[:, 0]
    erased = [(out != image).any(1).float().mean((1, 2)).numpy() for out in (theirs, mine)]
    assert ks_2samp(*erased).pvalue > 1e-3
    for out in (theirs, mine):  # whole grey levels, evenly
        new = out[(out != image)] * 255
        assert float((new - new.round()).abs().max()) < 1e-3
        assert float(new.mean()) == pytest.approx(127.5, abs=2)


TIMM = {
    "rotation(30)": lambda arg: arg,
    "brightness(0.5)": lambda arg: arg,
    "contrast(0.5)": lambda arg: arg,
    "saturation(0.5)": lambda arg: arg,
    "sharpness(0.5)": lambda arg: arg,
    "solarize(0.3)": lambda arg: (arg - 0.5) / 255,
    "translation(0.2)": lambda arg: (arg, 0.0),
}


@pytest.mark.parametrize("spec", TIMM)
def test_operations_of_timm(spec):
    random.seed(0)
    step = load(export(spec, "timm"))["augment"].transforms[0]
    level, seen = step.level_fn, []
    step.level_fn = lambda *args: seen.append(level(*args)[0]) or (seen[-1],)
    outs = [run("timm", step, photographs()[k % 10]) for k in range(DRAWS)]
    deviations = [
        (ours(spec, photographs()[k % 10], TIMM[spec](seen[k])) - out).abs().mean()
        for k, out in enumerate(outs)
    ]
    assert np.mean(deviations) < FORMATS["timm"].own[type(parse(spec))].differs * 1.25 + 1e-4
    for _ in range(500):
        step.level_fn(random.uniform(0, step.magnitude), step.hparams)
    low, high = RANGES.get(spec, (0.5, 1.5))
    assert (
        kstest(
            np.ravel([np.ravel(TIMM[spec](v))[0] for v in seen]), "uniform", args=(low, high - low)
        ).statistic
        < 0.08
    )


BY_FUNCTION = {
    "torchvision": FUNCTIONS,
    "kornia": FUNCTIONS[:2] + FUNCTIONS[4:],
    "albumentations": ("cutout(0.4)", "sharpness(0.4)", "perspective(0.4)"),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_family_of_a_library_is_compared_with_it(library):
    read = [spec for spec, readers in READ.items() if readers[LIBRARIES.index(library)]]
    compared = {*read, *FINITE, *NOISY, *BY_FUNCTION[library], "erasing(0.5)"}
    compared |= set(RECIPES) if library == "torchvision" else set()
    assert set(FORMATS[library].table) == {type(parse(spec)) for spec in compared}


def test_every_image_family_is_compared_with_some_library():
    claimed = {family for library in LIBRARIES for family in FORMATS[library].table}
    missing = [n for n, f in FAMILIES.items() if "image" in f.kinds and f not in claimed]
    assert missing == ["identity"]


ON_TENSORS = (*READ, *FINITE, *NOISY, *FUNCTIONS, "erasing(0.5)", *RECIPES)


@pytest.mark.parametrize("spec", dict.fromkeys(ON_TENSORS))
def test_what_timm_lacks_is_torchvisions_on_rounded_levels(spec):
    if type(parse(spec)) in FORMATS["timm"].own:
        pytest.skip("timm has its own, compared above")
    theirs, timms = (load(export(spec, library))["augment"] for library in ("torchvision", "timm"))
    deviations = []
    for k, image in enumerate(photographs()):
        pixels = (image.movedim(0, -1) * 255).round().to(torch.uint8).numpy()
        outs = []
        for augment in (theirs, timms):
            torch.manual_seed(k)
            outs.append(v2.functional.to_image(augment(Image.fromarray(pixels))))
        expected, out = outs[0].clamp(0, 1), outs[1] / 255
        deviations.append(float((expected - out).abs().mean()))
    assert np.mean(deviations) < EXACT
