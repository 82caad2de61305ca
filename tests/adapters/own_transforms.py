"""Transforms that a user might have in a module, for sampled(own_transforms:name)."""

import torch
from torchvision.transforms import v2

flip = v2.RandomHorizontalFlip(p=1.0)
pipeline = v2.Compose([v2.RandomRotation(15), v2.RandomHorizontalFlip(p=0.5)])
number = 3


def brighter(image: torch.Tensor) -> torch.Tensor:
    return (image * 1.5).clamp(0, 1)
