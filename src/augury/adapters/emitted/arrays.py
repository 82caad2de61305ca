"""What Albumentations lacks, in NumPy and OpenCV: copied from here into exported code.

Functions take an image ``(height, width, channels)`` in [0, 1] and a generator.
"""

from functools import partial  # noqa: F401  # binds the options of a function in exported code
from io import BytesIO

import albumentations as A
import augury
import cv2
import numpy as np
import torch
from PIL import Image, ImageOps


class Draw(A.ImageOnlyTransform):
    """Apply a function of an image in [0, 1] and the pipeline's random generator."""

    def __init__(self, function, p):
        super().__init__(p=p)
        self.function = function

    def apply(self, img, **params):
        whole = img.dtype == np.uint8
        pixels = img / np.float32(255) if whole else img
        out = self.function(pixels, self.random_generator)
        if not whole:
            return out.astype(np.float32)
        return np.rint(out * 255).clip(0, 255).astype(np.uint8)


class Chain(A.BaseCompose):
    """Apply steps drawn by their rates until a restart, whose rate is 1."""

    def __init__(self, transforms, rates, p):
        super().__init__(transforms, p=p)
        self.weights = np.array([*rates, 1.0]) / (sum(rates) + 1)

    def __call__(self, *args, force_apply=False, **data):
        if not force_apply and self.py_random.random() >= self.p:
            return data
        stop = len(self.transforms)
        while (k := self.random_generator.choice(stop + 1, p=self.weights)) < stop:
            data = self.transforms[k](**data)
        return data


def pixel_shifts(image, rng):
    """Shift by one pixel left, right, up, down or not at all; the image wraps round."""
    step, axis = [(0, 0), (1, 1), (-1, 1), (1, 0), (-1, 0)][rng.integers(5)]
    return np.roll(image, step, axis)


def cutout(image, rng, fraction):
    """Set a square with this fraction of the side to zero, centred anywhere."""
    height, width = image.shape[:2]
    y, x = rng.random(2)
    rows = np.abs((np.arange(height) + 0.5) / height - y) < fraction / 2
    columns = np.abs((np.arange(width) + 0.5) / width - x) < fraction / 2
    out = image.copy()
    out[np.ix_(rows, columns)] = 0
    return out


def elastic(image, rng, strength):
    """Move pixels by a smooth field: normal, on a grid of a quarter of the side."""
    height, width = image.shape[:2]
    coarse = max(2, height // 4), max(2, width // 4), 2
    field = rng.normal(scale=strength, size=coarse).astype(np.float32)
    field = cv2.resize(field, (width, height), interpolation=cv2.INTER_CUBIC)
    y, x = np.indices((height, width), dtype=np.float32)
    x, y = x + field[..., 0] * width / 2, y + field[..., 1] * height / 2
    moved = cv2.remap(image, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT)
    return moved.reshape(image.shape)


def resized_crop(image, rng, area):
    """Enlarge a crop of the image's own shape with an area drawn from this one to 1."""
    height, width = image.shape[:2]
    side = np.sqrt(rng.uniform(area, 1))
    x0, y0 = rng.uniform(-0.5, 0.5, size=2) * (1 - side) * (width, height)
    x0, y0 = x0 + (1 - side) * (width - 1) / 2, y0 + (1 - side) * (height - 1) / 2
    matrix = np.array([[side, 0, x0], [0, side, y0]])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return cv2.warpAffine(image, matrix, (width, height), flags=flags).reshape(
        image.shape
    )


def perspective(image, rng, distortion):
    """Move each corner inwards by up to this many half-sides."""
    height, width = image.shape[:2]
    signs = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    moved = signs * (1 - rng.uniform(0, distortion, size=(4, 2)))
    half = np.array([width / 2, height / 2])
    before = (signs * half + half - 0.5).astype(np.float32)
    after = (moved * half + half - 0.5).astype(np.float32)
    matrix = cv2.getPerspectiveTransform(before, after)
    return cv2.warpPerspective(image, matrix, (width, height)).reshape(image.shape)


def brightness(image, rng, strength):
    """Multiply by a factor in 1 ± strength, and clip."""
    factor = np.float32(rng.uniform(1 - strength, 1 + strength))
    return (image * factor).clip(0, 1)


def contrast(image, rng, strength):
    """Scale the distance from the mean by a factor in 1 ± strength, and clip."""
    mean, factor = image.mean(), np.float32(rng.uniform(1 - strength, 1 + strength))
    return (mean + factor * (image - mean)).clip(0, 1)


def equalize(image, rng):
    """Even out the histogram of each channel, as Pillow does."""
    levels = (image * 255.999).clip(0, 255).astype(np.uint8)
    channels = np.moveaxis(levels, -1, 0)
    even = [np.asarray(ImageOps.equalize(Image.fromarray(c))) for c in channels]
    return np.stack(even, axis=-1) / np.float32(255)


def jpeg(image, rng, quality):
    """Compress each channel with a quality drawn evenly from this one to 100."""
    how = [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(quality, 101))]
    levels = np.moveaxis(np.rint(image * 255).clip(0, 255).astype(np.uint8), -1, 0)
    files = [cv2.imencode(".jpg", np.ascontiguousarray(c), how)[1] for c in levels]
    back = [np.asarray(Image.open(BytesIO(file.tobytes()))) for file in files]
    return np.stack(back, axis=-1) / np.float32(255)


def sharpness(image, rng, strength):
    """Scale the distance from a smoothed copy by a factor in 1 ± strength, and clip."""
    kernel = np.full((3, 3), 1 / 13, dtype=np.float32)
    kernel[1, 1] = 5 / 13
    smooth, inner = image.copy(), (slice(1, -1), slice(1, -1))
    smooth[inner] = cv2.filter2D(image, -1, kernel).reshape(image.shape)[inner]
    factor = np.float32(rng.uniform(1 - strength, 1 + strength))
    return (smooth + factor * (image - smooth)).clip(0, 1)


def erasing(image, rng, fraction):
    """Fill a rectangle with noise, its area drawn up to this fraction of the image."""
    height, width = image.shape[:2]
    area, ratio, y, x = rng.random(4)
    area, ratio = area * fraction * height * width, 0.3 * 11**ratio
    high = min(height, int(np.rint(np.sqrt(area * ratio))))
    wide = min(width, int(np.rint(np.sqrt(area / ratio))))
    top, left = int(y * (height - high + 1)), int(x * (width - wide + 1))
    out = image.copy()
    hole = out[top : top + high, left : left + wide]
    hole[:] = rng.integers(256, size=hole.shape) / 255
    return out


def posterize(image, rng, bits):
    """Round values down to a number of bits drawn evenly from this one to 8."""
    step = 2.0 ** (8 - rng.integers(bits, 9))
    return np.floor(image * np.float32(255 / step)) * np.float32(step / 255)


def jitter(image, rng, sd):
    """Add normal noise to each value."""
    return image + sd * rng.standard_normal(image.shape, dtype=np.float32)


def augury_view(image, rng, spec):
    """Apply an augmentation of augury, drawn from the pipeline's generator."""
    pixels = torch.from_numpy(np.array(image).reshape(*image.shape[:2], -1))
    draws = augury.Rng(int(rng.integers(2**62)), torch.arange(1))
    view = augury.parse(spec).views(pixels.movedim(-1, 0)[None], 1, draws)[0, 0]
    return view.movedim(0, -1).reshape(image.shape).numpy()
