"""Slow, obvious twins of the formulas, written from the paper; nothing is imported from augury."""

from __future__ import annotations

import math

import numpy as np


def averaged_kernel(features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """K̄(x, x') = Σ_u Σ_u' T(x,u) T(x',u') K(u,u'), term by term; features (n, N, d)."""
    views, examples, _ = features.shape
    kernel = np.zeros((examples, examples))
    for i in range(examples):
        for j in range(examples):
            for u in range(views):
                for v in range(views):
                    inner = float(features[u, i] @ features[v, j])
                    kernel[i, j] += weights[u] * weights[v] * inner
    return kernel


def alignment(kernel: np.ndarray, target: np.ndarray) -> float:
    """⟨K, K_Y⟩ / √(⟨K, K⟩⟨K_Y, K_Y⟩), by a double loop."""
    shared = own = other = 0.0
    for i in range(len(kernel)):
        for j in range(len(kernel)):
            shared += kernel[i, j] * target[i, j]
            own += kernel[i, j] ** 2
            other += target[i, j] ** 2
    return shared / math.sqrt(own * other)


def centre(kernel: np.ndarray) -> np.ndarray:
    """HKH with H = I − 11ᵀ/N."""
    size = len(kernel)
    h = np.eye(size) - np.ones((size, size)) / size
    return h @ kernel @ h


def label_kernel(labels: np.ndarray) -> np.ndarray:
    """K_Y(y, y') = 1 if y = y', else 0."""
    return (labels[:, None] == labels[None, :]).astype(float)


def rotate(image: np.ndarray, degrees: float) -> np.ndarray:
    """Rotate one H × W image about its centre, bilinear with zero outside, pixel by pixel."""
    return warp(image, rotation_matrix(degrees), (0.0, 0.0))


def rotation_matrix(degrees: float) -> np.ndarray:
    angle = math.radians(degrees)
    return np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])


def warp(image: np.ndarray, matrix: np.ndarray, offset: tuple[float, float]) -> np.ndarray:
    """Read the image at matrix·(x, y) + offset, in pixels from the centre."""
    height, width = image.shape
    out = np.zeros_like(image)
    for row in range(height):
        for column in range(width):
            x, y = column - (width - 1) / 2, row - (height - 1) / 2
            at = matrix @ np.array([x, y]) + np.array(offset)
            out[row, column] = bilinear(image, at[0] + (width - 1) / 2, at[1] + (height - 1) / 2)
    return out


def bilinear(image: np.ndarray, x: float, y: float) -> float:
    height, width = image.shape
    left, top = math.floor(x), math.floor(y)
    total = 0.0
    for column in (left, left + 1):
        for row in (top, top + 1):
            weight = (1 - abs(x - column)) * (1 - abs(y - row))
            if 0 <= column < width and 0 <= row < height:
                total += weight * image[row, column]
    return total


def gaussian_blur(image: np.ndarray, sigma: float) -> np.ndarray:
    """A weighted mean of all pixels, weights Gaussian in the distance, pixel by pixel."""
    height, width = image.shape
    out = np.zeros_like(image)
    for i in range(height):
        for j in range(width):
            total = weights = 0.0
            for k in range(height):
                for m in range(width):
                    w = math.exp(-((i - k) ** 2 + (j - m) ** 2) / (2 * sigma**2))
                    total += w * image[k, m]
                    weights += w
            out[i, j] = total / weights
    return out


def leave_group_out_error(values: list[float]) -> float:
    """The jackknife's standard error from leave-one-group-out values."""
    mean = sum(values) / len(values)
    return math.sqrt((len(values) - 1) / len(values) * sum((v - mean) ** 2 for v in values))
