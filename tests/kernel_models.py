"""Models that the tests of estimators share."""

from __future__ import annotations

from augury.kernel import AugmentedKernelClassifier

IMAGE = (1, 8, 8)


def fitted(digits, augmentation="rotation(25)", **options):
    """Fit a classifier of rotated digits."""
    options = {"input_shape": IMAGE, "n_components": 512, "device": "cpu"} | options
    return AugmentedKernelClassifier(augmentation, **options).fit(*digits[:2])
