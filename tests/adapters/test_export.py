"""Exported code: runs as pasted, is formatted, keeps the shape, and bad input is one line."""

from __future__ import annotations

import ast
import json
import subprocess
import sys

import albumentations as A
import numpy as np
import pytest
import torch
from observed import load, run

import augury
from augury.adapters.export import FORMATS
from augury.augmentations import FAMILIES, parse, vertical_flip

IMAGES = ("torchvision", "kornia", "albumentations", "timm")
POLICY = (
    "rotation(15) >> (0.5*identity | 0.3*cutout(0.3) | 0.2*(elastic >> flips)) >> solarize ** 2 "
    ">> chain(blur(0.1,2):2, invert:1) >> (0.25*identity | 0.75*brightness(0.3)) >> "
    "(0.4*identity | 0.6*noise(0.05))"
)
COLOURS = {"kornia": ("saturation", "hue", "grayscale"), "albumentations": ("grayscale",)}
IMAGE_FAMILIES = [name for name, family in FAMILIES.items() if "image" in family.kinds]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("library", IMAGES)
def test_every_family_runs_and_keeps_shape_and_type(library, channels):
    image = torch.rand(channels, 16, 24)
    for name in [*IMAGE_FAMILIES, POLICY]:
        if name == "quarter_turns":
            continue  # for square images
        for shape in (None, (channels, 16, 24)):
            if (channels, shape) == (1, None) and name in COLOURS.get(library, ()):
                continue  # it raises or warns without colours; with the shape, augury's is used
            augment = load(augury.export(name, to=library, image_shape=shape))["augment"]
            out = run(library, augment, image)
            assert out.shape == image.shape, name
            assert out.dtype == image.dtype, name
            assert torch.isfinite(out).all(), name


def test_whole_numbers_stay_whole_in_albumentations():
    image = np.random.default_rng(0).integers(256, size=(16, 16, 3), dtype=np.uint8)
    augment = load(augury.export(POLICY, to="albumentations"))["augment"]
    assert augment(image=image)["image"].dtype == np.uint8


@pytest.mark.parametrize("library", [*IMAGES, "augury"])
def test_code_is_formatted(library, tmp_path):
    for k, name in enumerate([*IMAGE_FAMILIES, POLICY, f"({POLICY}) ** 2 | identity"]):
        code = augury.export(name, to=library, image_shape=(3, 32, 32))
        (tmp_path / f"{library}_{k}.py").write_text(code, encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff"]
    subprocess.run([*ruff, "format", "--isolated", "--check", "."], check=True, cwd=tmp_path)
    select = ["--isolated", "--select", "F,I", "."]
    subprocess.run([*ruff, "check", *select], check=True, cwd=tmp_path)


@pytest.mark.parametrize("library", ["kornia", "albumentations"])
def test_probabilities_are_always_written(library):
    code = augury.export(POLICY, to=library)
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    steps = [node for node in calls if ast.unparse(node.func).startswith(("K.", "A."))]
    without = {
        ast.unparse(node.func)
        for node in steps
        if "p" not in {keyword.arg for keyword in node.keywords}
    }
    assert len(steps) > 5
    assert without <= {"K.AugmentationSequential", "K.ImageSequential"}


def test_a_family_without_a_translation_is_written_as_a_call_to_augury(monkeypatch):
    for library in IMAGES:
        table = {k: v for k, v in FORMATS[library].table.items() if k is not vertical_flip}
        monkeypatch.setattr(FORMATS[library], "table", table)
    image = torch.rand(3, 8, 8)
    for library in IMAGES:
        code = augury.export("vertical_flip", to=library)
        assert "augury.parse" in code
        augment = load(code)["augment"]
        outs = [run(library, augment, image) for _ in range(40)]
        for like in (image, image.flip(-2)):
            assert any(float((out - like).abs().mean()) < 3e-3 for out in outs)


def test_json_is_what_albumentations_loads():
    spec = "rotation(15) >> (0.5*identity | 0.3*blur(0.5,2.0) | 0.2*flips) >> brightness(0.3)"
    loaded = A.from_dict(json.loads(augury.export(spec, to="albumentations-json")))
    made = load(augury.export(spec, to="albumentations"))["augment"]
    assert str(loaded) == str(made)


@pytest.mark.parametrize("name", IMAGE_FAMILIES)
def test_json_of_each_family_is_its_code_or_is_refused(name):
    try:
        text = augury.export(name, to="albumentations-json", image_shape=(3, 32, 32))
    except augury.AuguryError as error:
        assert "JSON cannot hold a function" in str(error)  # noqa: PT017  # some families are refused
        return
    made = load(augury.export(name, to="albumentations", image_shape=(3, 32, 32)))["augment"]
    assert str(A.from_dict(json.loads(text))) == str(made)


def test_ultralytics_switches_off_what_is_not_in_the_policy():
    yaml = pytest.importorskip("yaml")
    text = augury.export(
        "rotation(10) >> (0.5*identity | 0.5*horizontal_flip) >> elastic(0.1)", to="ultralytics"
    )
    settings = yaml.safe_load(text)
    assert settings.pop("degrees") == 10
    assert settings.pop("fliplr") == 0.25
    assert settings.pop("auto_augment") is None
    assert set(settings.values()) == {0.0}
    assert "NOT TRANSLATED: elastic(0.1)" in text
    assert "fliplr=0.25" in text


@pytest.mark.parametrize(
    ("spec", "argument"),
    [
        ("rand_augment(2,9)", "rand-m3-n2-p1-inc1"),
        ("trivial_augment(1)", "rand-m10-n1-mstd101-p1-inc1"),
    ],
)
def test_the_argument_of_timm(spec, argument):
    from timm.data.auto_augment import rand_augment_transform

    assert f"--aa {argument} is the nearest" in augury.export(spec, to="timm")
    made = rand_augment_transform(argument, {})
    assert {operation.prob for operation in made.ops} == {1.0}
    assert len(made.ops) == 15


def test_an_augmentation_exports_itself():
    rotated = parse("rotation(15)")
    assert rotated.to("kornia") == augury.export("rotation(15)", to="kornia")


@pytest.mark.parametrize("to", ["torchvision", "kornia", "albumentations", "timm"])
def test_a_setting_that_code_has_not_is_left_to_augury(to):
    """The copied function has cells of four pixels."""
    assert "import augury" not in augury.export("elastic(0.1)", to=to)
    assert "elastic(0.1,cell=8" in augury.export("elastic(0.1,cell=8)", to=to).replace(" ", "")
    assert "import augury" in augury.export("elastic(0.1,cell=8)", to=to)


BAD = [
    ("rotation", "torchvison", "unknown format 'torchvison'; did you mean torchvision?"),
    ("shift(0.1)", "torchvision", "torchvision is for images, but shift(0.1) is for series"),
    (
        "rotation(15)",
        "audiomentations",
        "audiomentations is for sound and series, but rotation(15) is for",
    ),
    ("elastic", "albumentations-json", "JSON cannot hold a function"),
    ("elastic", "ultralytics", "ultralytics has no setting for elastic(0.05)"),
    ("rotaton", "kornia", "did you mean rotation"),
]


@pytest.mark.parametrize(("spec", "to", "message"), BAD)
def test_bad_input_is_one_line(spec, to, message):
    with pytest.raises(augury.AuguryError) as caught:
        augury.export(spec, to=to)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("shape", [(0, 3), (3, 32, 32, 3), ("a", 2), (3.5, 2, 2)])
def test_bad_shapes(shape):
    with pytest.raises(augury.AuguryError, match="image_shape is"):
        augury.export("rotation", to="torchvision", image_shape=shape)


def test_a_function_of_the_users_cannot_be_exported():
    own = augury.Sampled(lambda image: image)
    with pytest.raises(augury.AuguryError, match="cannot be exported"):
        augury.export(parse("rotation") >> own, to="torchvision")


def test_many_equal_shares_leave_no_chance_of_no_change():
    spec = " | ".join(f"rotation({k})" for k in range(1, 29))
    assert "Identity" not in augury.export(spec, to="torchvision")


@pytest.mark.parametrize("level", [5, 250])
@pytest.mark.parametrize("spec", ["jitter(0.1)", "brightness(0.5,clip=false)"])
def test_levels_of_8_bits_do_not_wrap_round(spec, level):
    image = np.full((32, 32, 3), level, dtype=np.uint8)
    augment = load(augury.export(spec, to="albumentations"))["augment"]
    augment.set_random_seed(0)
    for _ in range(5):
        assert np.abs(augment(image=image)["image"].astype(int) - level).max() < 200


@pytest.mark.parametrize("library", ["torchvision", "kornia", "albumentations"])
def test_only_what_stays_in_the_range_is_said_to(library):
    image = torch.rand(3, 16, 16).round()  # black and white
    shape = (3, 16, 16)
    for name in [*IMAGE_FAMILIES, "contrast(0.5,clip=false)"]:
        code = augury.export(name, to=library, image_shape=shape)
        out = run(library, load(code)["augment"], image)
        within = float(out.min()) >= -1e-5 and float(out.max()) <= 1 + 1e-5
        assert within or "may lie beyond [0, 1]" in code, name
    code = augury.export("flips >> jitter(0.1)", to=library)
    assert "Values" in code
    assert "beyond [0, 1] where they are not clipped: jitter(0.1)." in code.replace("\n# ", " ")
    assert "beyond" not in augury.export("noise(0.1)", to=library)


def test_timm_says_what_is_clipped():
    """Images of PIL hold whole levels from 0 to 255: there is no way not to clip."""
    code = augury.export("jitter(0.5) >> brightness(0.5,clip=false)", to="timm")
    note = "clipped to [0, 1] where augury does not: jitter(0.5) and brightness(0.5,clip=false)."
    assert note in code.replace("\n# ", " ")
    assert "clipped" not in augury.export("noise(0.1) >> brightness(0.5)", to="timm")


@pytest.mark.parametrize("library", ["torchvision", "kornia", "albumentations"])
def test_a_crop_by_a_function_is_not_said_to_differ(library):
    assert "differs from augury by 0.0004" in augury.export("resized_crop", library, (3, 9, 9))
    assert "differs" not in augury.export("resized_crop(0.5)", library)


def test_what_fails_on_grey_images_says_so():
    note = "hue(0.05): differs from augury: it fails on grey images, which augury does not change;"
    assert note in augury.export("hue(0.05)", "kornia").replace("\n    # ", " ")
    for shape in ((1, 16, 16), (3, 16, 16)):
        assert "differs" not in augury.export("hue(0.05)", "kornia", shape)


@pytest.mark.parametrize("library", ["torchvision", "kornia", "timm"])
def test_blur_says_how_small_an_image_may_be(library):
    """The libraries reflect the border, which a smaller image has not enough pixels for."""
    code = augury.export("blur(0.5,2)", library)
    assert "sides of 7 pixels or more" in " ".join(code.replace("#", " ").split())
    augment = load(code)["augment"]
    assert run(library, augment, torch.rand(3, 7, 9)).shape == (3, 7, 9)
    with pytest.raises((RuntimeError, ValueError), match=r"[Pp]adding|at least 7 pixel"):
        run(library, augment, torch.rand(3, 6, 9))
    for shape in ((3, 7, 9), (3, 6, 9)):
        assert "or more" not in augury.export("blur(0.5,2)", library, shape)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("spec", ["trivial_augment", "rand_augment", "rotation(15)", "cutout"])
def test_albumentations_takes_grey_images_without_channels(spec, dtype):
    image = (np.random.default_rng(0).random((16, 24)) * 255).astype(np.uint8)
    image = image if dtype == np.uint8 else image.astype(np.float32) / 255
    out = load(augury.export(spec, to="albumentations"))["augment"](image=image)["image"]
    assert (out.shape, out.dtype) == (image.shape, image.dtype)


def test_a_function_that_cannot_be_imported_is_not_exported():
    for own in (lambda x: x, type("Local", (), {"__call__": lambda self, x: x})()):
        with pytest.raises(augury.AuguryError, match="cannot be exported; define it by name"):
            augury.export(augury.parse("flips") >> augury.parse(own), "augury")
