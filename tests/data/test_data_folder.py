"""A folder of images a class: what is read, in what form, and what is refused."""

from __future__ import annotations

import struct
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from refusal import refused

from augury.data import as_dataset, limits, load, load_new
from augury.data.readers import folder as folder_module

X = np.random.default_rng(0).integers(0, 256, (10, 9, 8), dtype=np.uint8)


def save_all(root: Path, images: Any = X, suffix: str = ".png") -> Path:
    """Write images in turn to the classes cat and dog."""
    for i, pixels in enumerate(images):
        path = root / ("cat", "dog")[i % 2] / f"{i:02}{suffix}"
        path.parent.mkdir(exist_ok=True, parents=True)
        image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
        image.save(path)
    return root


def in_folder_order(images: np.ndarray) -> np.ndarray:
    return np.concatenate([images[0::2], images[1::2]])


def huge_png(width: int, height: int) -> bytes:
    """Claim a size in the header, with next to no pixels behind it."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + check

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(1000))), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


@pytest.mark.parametrize("suffix", [".png", ".PNG", ".bmp", ".tif", ".pgm"])
def test_grey_images(suffix: str, tmp_path: Path) -> None:
    save_all(tmp_path, suffix=suffix)
    (tmp_path / "cat" / ".hidden.png").write_bytes(b"no image")
    (tmp_path / ".git").mkdir()
    seen: list[tuple[int, int]] = []
    data = load(tmp_path, progress=lambda done, total: seen.append((done, total)))
    np.testing.assert_array_equal(data.x[:, 0].numpy(), in_folder_order(X))
    assert data.x.dtype == torch.uint8
    assert data.classes == ("cat", "dog")
    assert data.y.tolist() == [0] * 5 + [1] * 5
    assert data.notes == ()
    assert seen == [(i + 1, 10) for i in range(10)]


def test_lossy_formats(tmp_path: Path) -> None:
    smooth = np.broadcast_to(np.linspace(0, 255, 16).astype(np.uint8), (4, 16, 16))
    for suffix in (".jpg", ".webp", ".gif"):
        data = load(save_all(tmp_path / suffix, smooth, suffix))
        found = data.x.float().mean(1).numpy()
        assert np.abs(found - smooth).max() < 20


def test_images_in_colour(tmp_path: Path) -> None:
    rgb = np.random.default_rng(1).integers(0, 256, (10, 9, 8, 3), dtype=np.uint8)
    data = load(save_all(tmp_path, rgb))
    np.testing.assert_array_equal(data.x.numpy(), in_folder_order(rgb).transpose(0, 3, 1, 2))


def of_mode(mode: str, pixels: np.ndarray) -> tuple[Image.Image, str]:
    """Return a picture of this mode that shows these grey pixels, and the suffix of its file."""
    grey = Image.fromarray(pixels)
    if mode == "I;16":
        return Image.fromarray(pixels.astype(np.uint16) * 257), ".png"
    if mode == "I":
        return Image.fromarray(pixels.astype(np.int32) * 257), ".tif"
    if mode == "F":
        return Image.fromarray(pixels.astype(np.float32) / 255), ".tif"
    return grey.convert(mode), ".tif" if mode == "CMYK" else ".png"


@pytest.mark.parametrize("mode", ["LA", "I;16", "I", "F", "P", "RGBA", "CMYK", "transparent"])
def test_modes(mode: str, tmp_path: Path) -> None:
    pixels = X // 128 * 128 if mode == "P" else X
    for i, grey in enumerate(pixels):
        path = tmp_path / ("cat", "dog")[i % 2]
        path.mkdir(exist_ok=True)
        if mode == "transparent":  # a palette with one transparent colour
            Image.fromarray(grey).convert("P").save(path / f"{i:02}.png", transparency=b"\0\1\2")
        else:
            picture, suffix = of_mode(mode, grey)
            picture.save(path / f"{i:02}{suffix}")
    data = load(tmp_path)
    channels = 1 if mode in ("LA", "I;16", "I", "F") else 3
    assert data.shape == (channels, 9, 8)
    for c in range(channels):
        np.testing.assert_array_equal(data.x[:, c].numpy(), in_folder_order(pixels))
    assert ("alpha" in " ".join(data.notes)) == (mode in ("LA", "RGBA", "transparent"))
    assert ("reduced to 8" in " ".join(data.notes)) == (mode in ("I;16", "I", "F"))


def test_one_image_in_colour_makes_all_rgb(tmp_path: Path) -> None:
    save_all(tmp_path)
    Image.fromarray(X[0]).convert("RGB").save(tmp_path / "cat" / "00.png")
    data = load(tmp_path)
    assert data.shape == (3, 9, 8)
    np.testing.assert_array_equal(data.x[:, 1].numpy(), in_folder_order(X))


def test_float_pixels_out_of_range_are_refused(tmp_path: Path) -> None:
    save_all(tmp_path, X.astype(np.float32), ".tif")
    refused("cat/00.tif|float pixels|8 bits", load, tmp_path)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif"])
def test_the_camera_may_be_held_in_any_way(orientation: int, suffix: str, tmp_path: Path) -> None:
    upright = np.zeros((16, 24), dtype=np.uint8)
    upright[:8, :8] = 255  # a white top left corner
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.T,
        6: upright.T[::-1],
        7: upright.T[::-1, ::-1],
        8: upright.T[:, ::-1],
    }[orientation]
    exif = Image.Exif()
    exif[274] = orientation
    for i in range(4):
        path = tmp_path / ("cat", "dog")[i % 2]
        path.mkdir(exist_ok=True)
        Image.fromarray(stored.copy()).save(path / f"{i}{suffix}", exif=exif)
    found = load(tmp_path).x[0, 0].numpy()
    assert found.shape == (16, 24)
    assert np.abs(found.astype(int) - upright).max() < 40


def test_mixed_sizes(tmp_path: Path) -> None:
    save_all(tmp_path)
    Image.fromarray(np.zeros((30, 20), dtype=np.uint8)).save(tmp_path / "cat" / "00.png")
    data = load(tmp_path)
    assert data.shape == (1, 8, 8)  # the median of the shorter sides
    assert data.notes == (
        "images of 2 sizes, 8 × 9 (9) and 20 × 30 (1), were resized to 8 × 8 pixels; choose "
        "another side with --size (size= in Python)",
    )
    assert load(tmp_path, size=6).shape == (1, 6, 6)
    data = load(tmp_path, size=(5, 7))
    assert data.shape == (1, 5, 7)
    assert data.notes == ("images were resized to 7 × 5 pixels",)
    refused("size must be a whole number of 1 or more, got 0", load, tmp_path, size=0)


@pytest.mark.parametrize("suffix", [".png", ".jpg"])
def test_resizing_is_antialiased(suffix: str, tmp_path: Path) -> None:
    board = (np.indices((256, 256)).sum(0) % 2 * 255).astype(np.uint8)
    data = load(save_all(tmp_path, [board] * 4, suffix), size=8)
    assert (data.x.float() - 127.5).abs().max() < 12  # picking every 32nd pixel would give 0 or 255


# Which are read


def test_what_is_not_kept_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.random.default_rng(2).integers(0, 256, (60, 6, 6), dtype=np.uint8)
    save_all(tmp_path, images)
    opened: set[Path] = set()
    real = folder_module.read_header

    def counted(path: Path) -> Any:
        opened.add(path)
        return real(path)

    monkeypatch.setattr(folder_module, "read_header", counted)
    data = load(tmp_path, max_examples=12, seed=5)
    assert len(opened) == 12
    whole = as_dataset(in_folder_order(images), np.repeat([0, 1], 30), max_examples=12, seed=5)
    assert torch.equal(data.x, whole.x)
    assert data.notes == whole.notes
    assert torch.equal(data.x, load(tmp_path, max_examples=12, seed=5).x)


def test_stray_images_and_empty_folders_are_noted(tmp_path: Path) -> None:
    save_all(tmp_path)
    Image.fromarray(X[0]).save(tmp_path / "stray.png")
    (tmp_path / "empty").mkdir()
    data = load(tmp_path)
    assert len(data) == 10
    assert "1 images outside" in data.notes[0]
    assert "empty" in data.notes[1]


def test_images_in_deeper_directories_have_the_class_of_the_top_one(tmp_path: Path) -> None:
    save_all(tmp_path)
    deep = tmp_path / "dog" / "2024" / "may"
    deep.mkdir(parents=True)
    Image.fromarray(X[0]).save(deep / "a.png")
    (tmp_path / "dog" / "again").symlink_to(tmp_path / "dog")  # a loop
    data = load(tmp_path)
    assert data.y.tolist() == [0] * 5 + [1] * 6
    assert "1 of 11 images are in nested directories" in data.notes[0]


def test_files_that_are_not_read_are_counted_and_named(tmp_path: Path) -> None:
    save_all(tmp_path)
    for name in ("a.heic", "b.HEIC", "notes.txt", "Thumbs.db", "README"):
        (tmp_path / "cat" / name).write_text("no image")
    (tmp_path / "labels.csv").write_text("")
    assert load(tmp_path).notes == (
        "5 files were not read: 2 .heic, 1 .csv, 1 .txt and 1 without suffix; convert .heic to "
        ".jpg or .png",
    )


@pytest.mark.parametrize("test", ["val", "test", "Validation"])
def test_the_training_part_is_read(test: str, tmp_path: Path) -> None:
    save_all(tmp_path / "train")
    save_all(tmp_path / test, X[:4])
    data = load(tmp_path)
    assert len(data) == 10
    assert data.classes == ("cat", "dog")
    assert data.notes == (f"train/ was read, but not {test}",)
    new = load_new(tmp_path, data.preparation, shape=data.shape, real=False)
    assert len(new.x) == 4
    assert new.y is not None
    assert new.y.tolist() == ["cat", "cat", "dog", "dog"]
    assert new.notes == (f"{test}/ was read, but not train",)


def test_data_for_detection_is_told_apart(tmp_path: Path) -> None:
    save_all(tmp_path / "images")
    save_all(tmp_path / "labels")
    refused("object detection|one sub-directory per class", load, tmp_path)


def test_large_images_of_one_size_are_made_smaller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_all(tmp_path, np.zeros((4, 90, 100), dtype=np.uint8))
    assert load(tmp_path).shape == (1, 90, 100)
    monkeypatch.setattr(folder_module, "_LARGE", 1000)
    data = load(tmp_path)
    assert data.shape == (1, 64, 64)
    assert "large images, 100 × 90 (4), were resized to 64 × 64" in data.notes[0]


def test_new_images_get_the_models_size_and_colours(tmp_path: Path) -> None:
    data = load(save_all(tmp_path / "grey"))
    rgb = np.random.default_rng(1).integers(0, 256, (4, 20, 30, 3), dtype=np.uint8)
    save_all(tmp_path / "colour", rgb)
    new = load_new(tmp_path / "colour", data.preparation, shape=data.shape, real=False)
    assert new.x.shape == (4, 1, 9, 8)
    assert "colour images were converted to greyscale, like those of the model" in new.notes


# What is refused


def test_folders_without_classes(tmp_path: Path) -> None:
    refused(
        "has no images or recordings|expected one sub-directory of images or recordings|cat/1.png",
        load,
        tmp_path,
    )
    Image.fromarray(X[0]).save(tmp_path / "a.png")
    refused("1 loose images without class directories|cat/1.png", load, tmp_path)
    one = save_all(tmp_path / "one", X[:1])
    refused("belongs to the class|'cat'", load, one)
    refused("class 'dog' has only one example", load, save_all(tmp_path / "three", X[:3]))


BAD = {
    "truncated": lambda good: good[: len(good) // 2],
    "text": lambda good: b"this is no image",
    "empty": lambda good: b"",
    "header only": lambda good: good[:20],
}


@pytest.mark.parametrize("how", BAD)
def test_a_corrupt_image_is_named_or_skipped(how: str, tmp_path: Path) -> None:
    save_all(tmp_path, np.random.default_rng(3).integers(0, 256, (10, 40, 40), dtype=np.uint8))
    path = tmp_path / "cat" / "04.png"
    path.write_bytes(BAD[how](path.read_bytes()))
    refused("cannot read the image cat/04.png|remove it|--skip-bad", load, tmp_path)
    data = load(tmp_path, skip_bad=True)
    assert data.y.tolist() == [0] * 4 + [1] * 5
    assert data.total == 9
    assert data.notes == ("1 image could not be read and was left out: cat/04.png",)
    for i in range(10):
        path = tmp_path / ("cat", "dog")[i % 2] / f"{i:02}.png"
        path.write_bytes(b"this is no image")
    refused("none of the 10 images", load, tmp_path, skip_bad=True)


def test_a_class_may_not_be_skipped_away(tmp_path: Path) -> None:
    save_all(tmp_path)
    for i in (1, 3, 5, 7):
        (tmp_path / "dog" / f"{i:02}.png").write_bytes(b"this is no image")
    refused("class 'dog' has only one example", load, tmp_path, skip_bad=True)
    (tmp_path / "dog" / "09.png").write_bytes(b"this is no image")
    refused("belongs to the class 'cat'", load, tmp_path, skip_bad=True)


@pytest.mark.parametrize(("width", "height"), [(50_000, 50_000), (9_000, 8_000), (8_001, 8_000)])
def test_a_huge_image_is_refused_from_its_header(width: int, height: int, tmp_path: Path) -> None:
    save_all(tmp_path)
    (tmp_path / "cat" / "04.png").write_bytes(huge_png(width, height))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        words = f"cat/04.png|{width:,} × {height:,} pixels|limit of 64 megapixels"
        refused(words, load, tmp_path)
        assert len(load(tmp_path, skip_bad=True, size=8)) == 9


def test_the_limit_itself_is_allowed(tmp_path: Path) -> None:
    save_all(tmp_path)
    (tmp_path / "cat" / "04.png").write_bytes(huge_png(8_000, 8_000))
    refused("cat/04.png|truncated", load, tmp_path)  # its header is read, its pixels are missing


def test_more_images_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_all(tmp_path)
    monkeypatch.setattr(limits, "MOST_BYTES", 700)
    refused("the images of|above the limit|--size", load, tmp_path)


def test_a_name_with_a_line_break_stays_on_one_line(tmp_path: Path) -> None:
    save_all(tmp_path)
    (tmp_path / "cat" / "a\nb\x1b[31m.png").write_bytes(b"this is no image")
    refused("cat/a\\nb\\x1b[31m.png", load, tmp_path)


def numbered(root: Path, names: tuple[str, ...]) -> Path:
    for k, pixels in enumerate(X[:9]):
        path = root / names[k % len(names)] / f"{k}.png"
        path.parent.mkdir(exist_ok=True, parents=True)
        Image.fromarray(pixels).save(path)
    return root


def test_a_regression_takes_the_numbers_that_folders_are_named(tmp_path: Path) -> None:
    """Not their places in the order of the names, in which 10 comes before 5."""
    data = load(numbered(tmp_path / "n", ("5", "10", "200")), task="regression")
    assert data.classes is None
    given = (data.y + data.preparation.centre).tolist()
    assert sorted(given) == pytest.approx([5.0] * 3 + [10.0] * 3 + [200.0] * 3)
    words = numbered(tmp_path / "w", ("5", "ten", "200"))
    refused(
        "a regression needs numbers as labels, not words such as 'ten'",
        load,
        words,
        task="regression",
    )
    labelled = load_new(tmp_path / "n", data.preparation, shape=data.shape, real=True)
    assert sorted(labelled.y) == sorted(given)
    refused(
        "the model predicts numbers, but the labels are words|leave them out",
        load_new, words, data.preparation, shape=data.shape, real=True,
    )  # fmt: skip
