"""Slow twins of the closed-form scores and their features; nothing is imported from augury."""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.optimize import minimize_scalar


def explicit_ridge(features, weights, targets, clean, fold, ratio):
    """Predict each clean example by least squares on all views of the other folds' examples.

    Features (n, N, d), weights (n,), targets (N, C), clean (N, d), fold (N,). The penalty is
    written as d + 1 more rows, and the rows are solved by a singular value decomposition.
    """
    views, examples, d = features.shape
    size = mean_size(features, weights)
    penalty = ratio * 2 * size / (d + 1)  # the mean diagonal of E[φφᵀ], the constant among it
    predictions = np.zeros(targets.shape)
    for f in np.unique(fold):
        inside = [i for i in range(examples) if fold[i] != f]
        rows, wanted = [], []
        for i in inside:
            for u in range(views):
                share = math.sqrt(weights[u] / len(inside))
                rows.append(share * np.append(features[u, i], math.sqrt(size)))
                wanted.append(share * targets[i])
        rows += list(math.sqrt(penalty) * np.eye(d + 1))
        wanted += [np.zeros(targets.shape[1])] * (d + 1)
        solution = np.linalg.lstsq(np.array(rows), np.array(wanted), rcond=None)[0]
        for i in range(examples):
            if fold[i] == f:
                predictions[i] = np.append(clean[i], math.sqrt(size)) @ solution
    return predictions


def mean_size(features, weights):
    """E‖φ‖² over views and examples."""
    total = 0.0
    for u, weight in enumerate(weights):
        for phi in features[u]:
            total += weight * float(phi @ phi)
    return total / features.shape[1]


def explicit_kernel_ridge(kernel, targets, fold, ratio):
    """Predict by Σ_j K(i, j) α_j with (K + mλI) α = Y on the m examples of the other folds."""
    examples = len(kernel)
    size = np.trace(kernel) / examples
    kernel = kernel + size
    penalty = ratio * 2 * size / examples
    predictions = np.zeros(targets.shape)
    for f in np.unique(fold):
        inside = np.flatnonzero(fold != f)
        within = kernel[np.ix_(inside, inside)] + len(inside) * penalty * np.eye(len(inside))
        alpha = np.linalg.solve(within, targets[inside])
        for i in np.flatnonzero(fold == f):
            predictions[i] = sum(kernel[i, j] * a for j, a in zip(inside, alpha, strict=True))
    return predictions


def log_losses(predictions, labels, scale):
    """−log softmax(scale · ŷ)_y, one example at a time."""
    losses = []
    for row, label in zip(predictions, labels, strict=True):
        logits = [scale * float(v) for v in row]
        top = max(logits)
        total = math.log(sum(math.exp(v - top) for v in logits)) + top
        losses.append(total - logits[label])
    return np.array(losses)


def calibrated_log_losses(predictions, labels):
    """The same at the scale with the least mean, found by Brent's method."""

    def mean(log_scale):
        return log_losses(predictions, labels, math.exp(log_scale)).mean()

    found = minimize_scalar(mean, bounds=(math.log(1e-3), math.log(1e4)), method="bounded",
                            options={"xatol": 1e-9})  # fmt: skip
    return log_losses(predictions, labels, math.exp(found.x))


def zca(patches, smooth=0.1):
    """μ and (Cov + ε I)^(−1/2) with ε a share of the mean variance, by singular values."""
    mean = patches.mean(0)
    left, values, _ = np.linalg.svd(np.cov(patches.T, bias=True))
    epsilon = smooth * values.mean()
    return mean, left @ np.diag(1 / np.sqrt(values + epsilon)) @ left.T


def patch_maps(image, filters, mean, whiten, epsilon, threshold, window):
    """Rectified responses of one image (C, h, w) to unit filters (K, D), place by place."""
    height, width = image.shape[1] - window[0] + 1, image.shape[2] - window[1] + 1
    out = np.zeros((2 * len(filters), height, width))
    for row in range(height):
        for column in range(width):
            patch = image[:, row : row + window[0], column : column + window[1]].reshape(-1)
            patch = (patch - patch.mean()) / math.sqrt(patch.var() + epsilon)
            patch = whiten @ (patch - mean)
            for k, f in enumerate(filters):
                out[k, row, column] = max(0.0, float(f @ patch) - threshold)
                out[len(filters) + k, row, column] = max(0.0, -float(f @ patch) - threshold)
    return out


def pooled(maps, cells):
    """Means over a grid of cells; cell i of n spans floor(i·s/n) to ceil((i + 1)·s/n)."""
    out = []
    for one in maps:
        for i in range(cells[0]):
            for j in range(cells[1]):
                rows = slice(i * one.shape[0] // cells[0], -(-(i + 1) * one.shape[0] // cells[0]))
                cols = slice(j * one.shape[1] // cells[1], -(-(j + 1) * one.shape[1] // cells[1]))
                out.append(one[rows, cols].mean())
    return np.array(out)


def gradients(network, x, direction):
    """∇_θ of directionᵀf(x) for each example, by one backward pass each: (b, P)."""
    rows = []
    for example in x:
        network.zero_grad()
        with torch.enable_grad():
            (network(example[None]).flatten() @ direction).backward()
        wanted = [p for p in network.parameters() if p.requires_grad]
        rows.append(np.concatenate([p.grad.numpy().reshape(-1) for p in wanted]))
    return np.array(rows)


def count_sketch(rows, order, signs, d):
    """Add parameter order[k], with sign k, to feature k mod d."""
    out = np.zeros((len(rows), d))
    for k, parameter in enumerate(order):
        out[:, k % d] += signs[k] * rows[:, parameter]
    return out
