"""Augmentations as transforms: on every type that people hold images in, in every loader."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from PIL import Image
from refusal import refused
from torch.utils.data import DataLoader, Dataset
from torchvision import tv_tensors
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

from augury import TransformedDataset, parse
from augury._base.errors import AuguryError
from augury.augmentations import identity, invert, jitter, noise, rotation, shift

RGB = np.random.default_rng(0).integers(0, 256, (12, 10, 3), dtype=np.uint8)
TENSOR = torch.from_numpy(RGB).movedim(-1, 0).contiguous()

IMAGES = {
    "pil": Image.fromarray(RGB),
    "pil grey": Image.fromarray(RGB[..., 0]),
    "hwc": RGB,
    "hw": RGB[..., 0],
    "hw1": RGB[..., :1],
    "bhwc": np.stack([RGB, RGB]),
    "hwc float": RGB / np.float32(255),
    "hwc double": RGB / 255.0,
    "bhwc float": np.stack([RGB, RGB]) / np.float32(255),
    "chw": TENSOR,
    "chw float": TENSOR / 255,
    "chw half": (TENSOR / 255).half(),
    "chw double": TENSOR.double() / 255,
    "hw tensor": TENSOR[0],
    "bchw": torch.stack([TENSOR, TENSOR]),
    "bchw float": torch.stack([TENSOR, TENSOR]) / 255,
}


def values(image):
    """All levels as float64 in [0, 1], channels last."""
    if isinstance(image, torch.Tensor):
        image = image.movedim(-3, -1).numpy() if image.dim() > 2 else image.numpy()
    image = np.asarray(image)
    return image.astype(np.float64) / (255 if image.dtype == np.uint8 else 1)


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("spec", ["identity", "rotation(30) >> noise(0.1)", "trivial_augment"])
def test_a_view_has_the_type_of_the_image(name, spec):
    image = IMAGES[name]
    before = copy.deepcopy(image)
    for view in (parse(spec)(image), parse(spec).transform(seed=3)(image)):
        assert type(view) is type(image)
        if isinstance(image, Image.Image):
            assert (view.size, view.mode) == (image.size, image.mode)
        else:
            assert (view.shape, view.dtype) == (image.shape, image.dtype)
        if spec == "identity":
            np.testing.assert_allclose(values(view), values(image), atol=1e-7)
    np.testing.assert_array_equal(values(image), values(before))  # not written into


@pytest.mark.parametrize("name", [n for n in IMAGES if "grey" not in n and "hw1" not in n])
def test_all_types_get_the_same_view(name):
    """One index, one draw: what differs is the rounding of 8-bit levels and of half floats."""
    transform = rotation(40).transform(seed=5)
    image = IMAGES[name]
    batched = name.startswith("b")
    view = values(transform(image, index=[4, 4] if batched else 4))
    expected = values(transform(TENSOR / 255, index=4))
    expected = expected[..., 0] if name in ("hw", "hw tensor") else expected
    for one in view if batched else [view]:
        np.testing.assert_allclose(one, expected, atol=3e-3)


def test_a_subclass_of_tensors_stays_one():
    image = tv_tensors.Image(TENSOR)
    assert type(rotation(10)(image)) is tv_tensors.Image


def test_lists_of_images_of_any_size():
    pair = [Image.fromarray(RGB), Image.fromarray(RGB[:8])]
    views = rotation(20).transform(1)(pair, index=[3, 8])
    assert [v.size for v in views] == [p.size for p in pair]
    again = rotation(20).transform(1)(pair[1], index=8)
    np.testing.assert_array_equal(np.asarray(views[1]), np.asarray(again))
    assert len(rotation(20)(pair)) == 2


def test_a_draw_depends_on_seed_epoch_and_index():
    image = TENSOR / 255
    transform = noise(0.1).transform(seed=1)
    first = transform(image, index=3)
    assert torch.equal(noise(0.1).transform(seed=1)(image, index=3), first)
    assert torch.equal(pickle.loads(pickle.dumps(transform))(image, index=3), first)
    assert not torch.equal(transform(image, index=4), first)
    assert not torch.equal(noise(0.1).transform(seed=2)(image, index=3), first)
    transform.set_epoch(1)
    assert not torch.equal(transform(image, index=3), first)
    transform.set_epoch(0)
    assert torch.equal(transform(image, index=3), first)


def test_without_an_index_calls_are_counted():
    image, transform = TENSOR / 255, noise(0.1).transform(seed=1)
    views = [transform(image) for _ in range(3)]
    assert not torch.equal(views[0], views[1])
    transform.set_epoch(0)
    batch = transform(torch.stack([image] * 3))
    torch.testing.assert_close(batch, torch.stack(views))


def test_a_plain_call_follows_torchs_generator():
    image = TENSOR / 255
    with torch.random.fork_rng():
        torch.manual_seed(0)
        first, second = noise(0.1)(image), noise(0.1)(image)
        torch.manual_seed(0)
        assert torch.equal(noise(0.1)(image), first)
    assert not torch.equal(first, second)
    state = torch.random.get_rng_state()
    noise(0.1).transform(0)(image)
    assert torch.equal(torch.random.get_rng_state(), state)  # a transform leaves it alone


class Photos(Dataset):
    """Labelled images that are never decoded twice alike."""

    def __init__(self, augmentation=None, form=tuple):
        self.augmentation, self.form = augmentation, form

    def __len__(self):
        return 12

    def __getitem__(self, index):
        image = np.roll(RGB, index, axis=1)
        if self.augmentation is not None:
            image = self.augmentation(image)
        if self.form is dict:
            return {"image": image, "label": index}
        return image if self.form is None else (image, index)


def epoch(loader):
    return torch.cat([images for images, _ in loader])


def test_any_number_of_workers_gives_the_same_views():
    data = TransformedDataset(Photos(), "rotation(30) >> noise(0.1)", seed=4)
    expected = torch.stack([torch.from_numpy(data[i][0]) for i in range(12)])
    for workers, size in ((0, 5), (1, 4), (2, 3)):
        assert torch.equal(epoch(DataLoader(data, batch_size=size, num_workers=workers)), expected)


def test_workers_that_stay_see_the_next_epoch():
    data = TransformedDataset(Photos(), "noise(0.1)", seed=4)
    loader = DataLoader(data, batch_size=4, num_workers=2, persistent_workers=True)
    first = epoch(loader)
    data.set_epoch(1)
    second = epoch(loader)
    data.set_epoch(0)
    assert not torch.equal(first, second)
    assert torch.equal(epoch(loader), first)


def test_workers_without_indices_do_not_draw_alike():
    same = [RGB] * 8
    for augmentation in (noise(0.2), noise(0.2).transform(seed=0)):
        data = Mapped(same, augmentation)
        views = torch.cat(list(DataLoader(data, batch_size=2, num_workers=2)))
        assert len({view.numpy().tobytes() for view in views}) == 8


class Mapped(Dataset):
    def __init__(self, images, transform):
        self.images, self.transform = images, transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.transform(self.images[index])


def test_forms_of_samples():
    for form in (tuple, dict, None):
        data = TransformedDataset(Photos(form=form), invert(), seed=0)
        sample = data[3]
        image = sample["image"] if form is dict else sample if form is None else sample[0]
        assert image.shape == RGB.shape
        assert image.dtype == np.uint8
        if form is not None:
            assert (sample["label"] if form is dict else sample[1]) == 3
    last = TransformedDataset(Photos(), noise(0.1))
    np.testing.assert_array_equal(last[-1][0], last[11][0])


def test_in_a_dataset_of_torchvision(tmp_path):
    (tmp_path / "cats").mkdir()
    Image.fromarray(RGB).save(tmp_path / "cats" / "one.png")
    pipeline = v2.Compose([parse("trivial_augment"), v2.ToImage(), v2.ToDtype(torch.float32)])
    image, _ = ImageFolder(tmp_path, transform=pipeline)[0]
    assert image.shape == (3, 12, 10)


def test_series_and_vectors():
    series = np.arange(20.0, dtype=np.float32).reshape(2, 10)
    assert shift(0.2)(series).shape == (2, 10)
    assert shift(0.2)(torch.zeros(5, 2, 10)).shape == (5, 2, 10)
    assert jitter(0.1).transform(0, kind="vector")(np.zeros((4, 7))).dtype == np.float64
    assert (rotation(5) | identity()).kinds == {"image"}


@pytest.mark.parametrize(
    ("image", "says"),
    [
        ("cat.png", "expected a PIL image, a NumPy array of numbers or a tensor, got a string"),
        (Image.fromarray(RGB).convert("RGBA"), "mode L or RGB, got mode RGBA; convert it first"),
        (Image.new("I;16", (9, 9)), "got mode I;16; scale it to 8 bits, or pass an array"),
        (Image.new("F", (9, 9)), "got mode F; scale it to 8 bits"),
        (np.zeros((4, 4), dtype=np.int32), "expected 8-bit integers or floats, got int32"),
        (np.zeros((4, 4), dtype=bool), "expected 8-bit integers or floats, got bool"),
        (torch.randn(3, 8, 8) * 9, "augment before normalising"),
        (torch.full((3, 8, 8), 200.0), "divide 8-bit levels by 255"),
        (torch.zeros(5), r"expected one image or a batch of them, got an array of shape \(5,\)"),
        (torch.zeros(1, 1, 3, 8, 8), "expected one image or a batch of them"),
    ],
    ids=lambda v: v if isinstance(v, str) else type(v).__name__,
)
def test_what_is_no_image_is_refused_in_one_line(image, says):
    with pytest.raises(AuguryError, match=says) as caught:
        rotation(5)(image)
    assert "\n" not in str(caught.value)


def test_wrong_settings_are_refused():
    with pytest.raises(AuguryError, match="works on image data, not on 'series'"):
        rotation(5).transform(0, kind="series")
    with pytest.raises(
        AuguryError, match=r"no kind of data suits .*: its parts are for different kinds"
    ):
        (rotation(5) >> shift(0.1))(RGB)
    with pytest.raises(AuguryError, match="expected 2 indices for 2 images, got 1"):
        rotation(5).transform(0)(np.stack([RGB, RGB]), index=3)
    with pytest.raises(AuguryError, match="expected 1 indices, got 2"):
        rotation(5).transform(0)([RGB], index=[1, 2])
    with pytest.raises(AuguryError, match="under 'pixels', but the sample has 'image', 'label'"):
        TransformedDataset(Photos(form=dict), "flips", key="pixels")[0]


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint64])
def test_numpy_integers_are_seeds_like_any_other(kind):
    seen = [noise(0.1).transform(seed=seed)(RGB, index=1) for seed in (3, kind(3))]
    assert np.array_equal(*seen)


@pytest.mark.parametrize("seed", [None, "a", 1.5, torch.tensor(3)])
def test_a_wrong_seed_is_refused_at_once(seed):
    with pytest.raises(AuguryError, match="seed must be a whole number"):
        noise(0.1).transform(seed=seed)


def test_a_wrong_index_is_refused_in_one_line():
    with pytest.raises(AuguryError, match="index must be a tensor of whole numbers"):
        noise(0.1).transform(seed=0)(RGB, index=1.5)
    with pytest.raises(AuguryError, match="index must be a whole number"):
        TransformedDataset([RGB] * 4, "flips")[2:4]
    for bad in ("a", 2**70, float("nan"), True, 1j, [1, "a"], [[1], [2, 3]], object()):
        refused("index must be ", noise(0.1).transform(seed=0), RGB, index=bad)
        refused("index must be ", noise(0.1).transform(seed=0), [RGB], index=[bad])
    one = noise(0.1).transform(seed=0)
    for index in (7, np.uint8(7), [7], np.array([7]), torch.tensor([7])):
        assert np.array_equal(one(RGB, index), one(RGB, 7))


@pytest.mark.parametrize("bad", ["a", None, float("nan"), 2**70, 1.5, -1])
def test_a_wrong_epoch_is_refused_in_one_line(bad):
    transform = noise(0.1).transform(seed=0)
    refused("epoch must be a whole number from 0 to", transform.set_epoch, bad)
    assert transform.epoch == 0
    transform.set_epoch(2**63 - 1)
    assert transform(RGB).shape == RGB.shape


def test_arrays_of_any_byte_order_and_none_that_torch_lacks():
    turn = parse("rotation(20)").transform(3)
    image = np.random.default_rng(0).random((8, 8, 3)).astype(np.float32)
    assert np.array_equal(turn(image.astype(">f4"), index=5), turn(image, index=5))
    refused("64 bits at most, got", turn, image.astype(np.longdouble), index=5)
    refused("without masked values", turn, np.ma.masked_array(image, image > 0.5), index=5)


def test_a_tensor_that_wants_a_gradient_is_no_reason_to_warn():
    x = torch.rand(1, 8, 8, requires_grad=True)
    parse("brightness(0.3)").transform(3)(x, index=0).sum().backward()
    assert x.grad is not None
