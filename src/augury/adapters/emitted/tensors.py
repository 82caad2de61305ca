"""What torchvision, kornia and timm lack, in torch: copied into exported code.

Functions take images ``(..., channels, height, width)`` in [0, 1]; each has its draw.
"""

from functools import partial  # noqa: F401  # binds the options of a function in exported code
from io import BytesIO

import augury  # noqa: F401  # the import that exported code uses
import kornia.augmentation as K  # noqa: F401  # the import that exported code uses
import torch
import torch.nn.functional as F
from PIL import Image
from timm.data.auto_augment import AugmentOp
from torch import nn
from torchvision.transforms import v2


def quarter_turns(images):
    """Rotate by 0, 90, 180 or 270 degrees, evenly."""
    turns = torch.randint(4, (*images.shape[:-3], 1, 1, 1), device=images.device)
    out = images
    for k in (1, 2, 3):
        out = torch.where(turns == k, images.rot90(k, (-2, -1)), out)
    return out


def pixel_shifts(images):
    """Shift by one pixel left, right, up, down or not at all; the image wraps round."""
    shifts = torch.randint(5, (*images.shape[:-3], 1, 1, 1), device=images.device)
    out = images
    for k, (step, axis) in enumerate([(1, -1), (-1, -1), (1, -2), (-1, -2)]):
        out = torch.where(shifts == k, images.roll(step, axis), out)
    return out


def cutout(images, fraction):
    """Set a square with this fraction of the side to zero, centred anywhere."""
    *batch, _, height, width = images.shape
    y, x = torch.rand(2, *batch, 1, device=images.device)
    rows = (torch.arange(height, device=images.device) + 0.5) / height
    columns = (torch.arange(width, device=images.device) + 0.5) / width
    inside_y = (rows - y).abs() < fraction / 2
    inside_x = (columns - x).abs() < fraction / 2
    hole = inside_y[..., None, :, None] & inside_x[..., None, None, :]
    return images.masked_fill(hole, 0.0)


def elastic(images, strength):
    """Move pixels by a smooth field: normal, on a grid of a quarter of the side."""
    flat = images.reshape(-1, *images.shape[-3:])
    n, _, height, width = flat.shape
    coarse = max(2, height // 4), max(2, width // 4)
    field = strength * torch.randn(n, 2, *coarse, device=images.device)
    field = F.interpolate(field, (height, width), mode="bicubic", align_corners=False)
    still = torch.eye(2, 3, device=images.device).expand(n, 2, 3)
    grid = F.affine_grid(still, [n, 1, height, width], align_corners=False)
    moved = F.grid_sample(flat, grid + field.movedim(1, -1), align_corners=False)
    return moved.reshape(images.shape)


def noise(images, sd):
    """Add normal noise to each pixel and clip."""
    return (images + sd * torch.randn_like(images)).clamp(0, 1)


def jitter(images, sd):
    """Add normal noise to each value."""
    return images + sd * torch.randn_like(images)


def solarize(images, threshold):
    """Invert the values over a threshold drawn from this one to 1."""
    drawn = torch.rand(*images.shape[:-3], 1, 1, 1, device=images.device)
    over = images > threshold + (1 - threshold) * drawn
    return torch.where(over, 1 - images, images)


def posterize(images, bits):
    """Round values down to a number of bits drawn evenly from this one to 8."""
    drawn = torch.randint(bits, 9, (*images.shape[:-3], 1, 1, 1), device=images.device)
    step = 2.0 ** (8 - drawn)
    return (images * 255 / step).floor() * step / 255


def brightness(images, strength):
    """Multiply by a factor in 1 ± strength, and clip."""
    drawn = torch.rand(*images.shape[:-3], 1, 1, 1, device=images.device)
    return (images * (1 + strength * (2 * drawn - 1))).clamp(0, 1)


def contrast(images, strength):
    """Scale the distance from the mean by a factor in 1 ± strength, and clip."""
    drawn = torch.rand(*images.shape[:-3], 1, 1, 1, device=images.device)
    mean = images.mean((-3, -2, -1), keepdim=True)
    return torch.lerp(mean, images, 1 + strength * (2 * drawn - 1)).clamp(0, 1)


def autocontrast(images):
    """Stretch each channel to the full range; one of a single value stays."""
    low = images.amin((-2, -1), keepdim=True)
    wide = images.amax((-2, -1), keepdim=True) - low
    return torch.where(wide == 0, images, (images - low) / wide.where(wide != 0, 1))


def sharpness(images, strength):
    """Scale the distance from a smoothed copy by a factor in 1 ± strength, and clip."""
    kernel = torch.full((1, 1, 3, 3), 1 / 13, device=images.device)
    kernel[..., 1, 1] = 5 / 13
    flat = images.reshape(-1, 1, *images.shape[-2:])
    smooth = flat.clone()
    smooth[..., 1:-1, 1:-1] = F.conv2d(flat, kernel)
    drawn = torch.rand(*images.shape[:-3], 1, 1, 1, device=images.device)
    factor = 1 + strength * (2 * drawn - 1)
    return torch.lerp(smooth.reshape(images.shape), images, factor).clamp(0, 1)


def gamma(images, strength):
    """Raise pixels to a power drawn from 1 ± strength."""
    drawn = torch.rand(*images.shape[:-3], 1, 1, 1, device=images.device)
    return images.clamp_min(0) ** (1 + strength * (2 * drawn - 1))


def erasing(images, fraction):
    """Fill a rectangle with noise, its area drawn up to this fraction of the image."""
    *batch, _, height, width = images.shape
    area, shape, y, x = torch.rand(4, *batch, 1, 1, 1, device=images.device)
    area, ratio = area * fraction * height * width, 0.3 * 11**shape
    high = (area * ratio).sqrt().round().clamp(0, height)
    wide = (area / ratio).sqrt().round().clamp(0, width)
    top = (y * (height - high + 1)).floor()
    left = (x * (width - wide + 1)).floor()
    row = torch.arange(height, device=images.device)[:, None]
    column = torch.arange(width, device=images.device)
    inside = (
        (row >= top) & (row < top + high) & (column >= left) & (column < left + wide)
    )
    levels = torch.randint(256, images.shape, device=images.device) / 255
    return torch.where(inside, levels, images)


def jpeg(images, quality):
    """Save as JPEG with a quality drawn evenly from this one to 100, and read again.

    Images that have not three channels are saved channel by channel.
    """
    out, together = [], 3 if images.shape[-3] == 3 else 1
    for image in images.reshape(-1, *images.shape[-3:]).cpu():
        drawn = int(torch.randint(quality, 101, ()))
        for part in image.split(together):
            file = BytesIO()
            v2.functional.to_pil_image(part).save(file, "JPEG", quality=drawn)
            out.append(v2.functional.pil_to_tensor(Image.open(file)) / 255)
    return torch.cat(out).reshape(images.shape).to(images)


def resized_crop(images, area):
    """Enlarge a crop of the image's own shape with an area drawn from this one to 1."""
    flat = images.reshape(-1, *images.shape[-3:])
    n, _, height, width = flat.shape
    drawn, x, y = torch.rand(3, n, device=images.device)
    side = (area + (1 - area) * drawn).sqrt()
    zero = torch.zeros_like(side)
    rows = [
        [side, zero, (1 - side) * (2 * x - 1)],
        [zero, side, (1 - side) * (2 * y - 1)],
    ]
    theta = torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)
    grid = F.affine_grid(theta, [n, 1, height, width], align_corners=False)
    return F.grid_sample(flat, grid, align_corners=False).reshape(images.shape)


class Chain:
    """Apply steps drawn by their rates until a restart, whose rate is 1."""

    def __init__(self, steps, rates):
        self.steps = steps
        self.weights = torch.tensor([*rates, 1.0])

    def __call__(self, image):
        while (k := int(torch.multinomial(self.weights, 1))) < len(self.steps):
            image = self.steps[k](image)
        return image


class OnTensor:
    """Apply a function of a float tensor to a PIL image."""

    def __init__(self, function):
        self.function = function

    def __call__(self, image):
        pixels = v2.functional.to_dtype(v2.functional.pil_to_tensor(image), scale=True)
        levels = self.function(pixels).clamp(0, 1) * 255
        return v2.functional.to_pil_image(levels.round().to(torch.uint8))


def operation(name, magnitude, p):
    """Return timm's operation with its magnitude drawn evenly from 0; black outside."""
    uniform = {"magnitude_std": float("inf"), "magnitude_max": magnitude}
    look = {"img_mean": 0, "interpolation": Image.Resampling.BILINEAR}
    return AugmentOp(name, prob=p, magnitude=magnitude, hparams={**uniform, **look})


class PerBatch(nn.Module):
    """Apply a function of a batch of images."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, images):
        return self.function(images)


class Choose(nn.Module):
    """Apply one of the steps to each image, drawn with these probabilities."""

    def __init__(self, steps, weights):
        super().__init__()
        self.steps = nn.ModuleList(steps)
        self.weights = torch.tensor(weights)

    def forward(self, images):
        out = images.clone()
        drawn = torch.multinomial(self.weights, len(images), replacement=True)
        for k, step in enumerate(self.steps):
            rows = (drawn == k).nonzero().squeeze(1).to(images.device)
            if len(rows):
                out[rows] = step(images[rows])
        return out


class ChainOfBatches(nn.Module):
    """Apply to each image steps drawn by rates until a restart, whose rate is 1."""

    def __init__(self, steps, rates):
        super().__init__()
        self.steps = nn.ModuleList(steps)
        self.weights = torch.tensor([*rates, 1.0])

    def forward(self, images):
        out, going = images.clone(), torch.arange(len(images))
        while len(going):
            drawn = torch.multinomial(self.weights, len(going), replacement=True)
            for k, step in enumerate(self.steps):
                rows = going[drawn == k].to(images.device)
                if len(rows):
                    out[rows] = step(out[rows])
            going = going[drawn < len(self.steps)]
        return out
