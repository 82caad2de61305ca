"""Transforms of the real libraries as augmentations: seeded, named, checked."""

from __future__ import annotations

import random

import albumentations as A
import audiomentations as am
import kornia.augmentation as K
import numpy as np
import pytest
import torch
import torchvision.transforms as v1
from albumentations.pytorch import ToTensorV2
from sklearn.datasets import load_digits
from timm.data.auto_augment import rand_augment_transform
from torchvision.transforms import v2

import augury
from augury.adapters import from_foreign, take_apart
from augury.augmentations import Chain, parse

IMAGES = torch.rand(3, 3, 16, 16, generator=torch.Generator().manual_seed(0))
MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.3, 0.25)


def views(augmentation, x, n=4, seed=0):
    return augmentation.views(x, n, augury.Rng(seed, torch.arange(len(x))))


RANDOM = {
    "torchvision v1": v1.RandomRotation(30),
    "torchvision v2": v2.RandomRotation(30),
    "kornia": K.RandomAffine(30.0, p=1.0),
    "albumentations": A.Affine(rotate=(-30, 30), p=1.0),
    "timm": rand_augment_transform("rand-m9-n2-mstd0.5", {}),
    "torchvision pipeline": v1.Compose(
        [v1.RandomRotation(30), v1.RandomHorizontalFlip(), v1.ToTensor(), v1.Normalize(MEAN, STD)]
    ),
    "v2 pipeline": v2.Compose(
        [v2.ToImage(), v2.RandomRotation(30), v2.ToDtype(torch.float32, scale=True)]
    ),
    "kornia pipeline": K.AugmentationSequential(K.RandomRotation(30.0, p=1.0)),
    "albumentations pipeline": A.Compose(
        [A.HorizontalFlip(p=0.5), A.Rotate((-30, 30), p=1.0), A.Normalize(MEAN, STD), ToTensorV2()]
    ),
}


@pytest.mark.parametrize("name", RANDOM)
def test_views_depend_on_the_seed_and_the_example_alone(name):
    augmentation = from_foreign(RANDOM[name])
    whole = views(augmentation, IMAGES)
    assert whole.shape == (4, 3, 3, 16, 16)
    parts = [
        augmentation.views(IMAGES[k : k + 1], 4, augury.Rng(0, torch.tensor([k]))) for k in range(3)
    ]
    assert torch.equal(whole, torch.cat(parts, dim=1))
    assert not torch.equal(whole, views(augmentation, IMAGES, seed=1))
    assert not torch.equal(whole[0], whole[1])


@pytest.mark.parametrize("name", RANDOM)
def test_generators_are_put_back(name):
    transform = RANDOM[name]
    states = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state()  # noqa: NPY002  # what a transform may use
    own = getattr(transform, "random_generator", None)
    views(from_foreign(transform), IMAGES)
    assert random.getstate() == states[0]
    assert np.random.get_state()[1].tolist() == states[1]  # noqa: NPY002  # as it was
    assert torch.equal(torch.get_rng_state(), states[2])
    assert getattr(transform, "random_generator", None) is own


@pytest.mark.parametrize(
    "transform",
    [
        v1.Compose([v1.ToTensor(), v1.Normalize(MEAN, STD)]),
        v2.Compose([v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]),
        v2.Normalize(MEAN, STD),
        K.AugmentationSequential(K.Normalize(torch.tensor(MEAN), torch.tensor(STD))),
        A.Compose([A.Normalize(MEAN, STD), ToTensorV2()]),
        A.Normalize(MEAN, STD),
    ],
)
def test_normalisation_and_conversion_are_undone(transform):
    same = views(from_foreign(transform), IMAGES, n=1)[0]
    assert float((same - IMAGES).abs().max()) < 3e-3  # 8-bit levels in between


def test_steps_of_albumentations_draw_independently():
    flips = from_foreign(A.Compose([A.HorizontalFlip(p=0.5), A.VerticalFlip(p=0.5)]))
    outs = views(flips, IMAGES[:1], n=300)[:, 0]
    maps = [IMAGES[0].flip(dims) for dims in ((), (-1,), (-2,), (-1, -2))]
    counts = [sum(bool((out - m).abs().max() < 3e-3) for out in outs) for m in maps]
    assert sum(counts) == 300
    assert min(counts) > 45


def test_same_as_calling_the_library():
    flipped = views(from_foreign(v2.RandomHorizontalFlip(p=1.0)), IMAGES, n=1)[0]
    assert torch.equal(flipped, IMAGES.flip(-1))
    grey = torch.rand(2, 1, 16, 16)
    for transform in (
        v1.RandomVerticalFlip(1.0),
        A.VerticalFlip(p=1.0),
        K.RandomVerticalFlip(p=1.0),
    ):
        assert (
            float((views(from_foreign(transform), grey, n=1)[0] - grey.flip(-2)).abs().max()) < 3e-3
        )


def test_strong_noise_is_no_normalisation():
    noisy = from_foreign(lambda image: image + 0.3 * torch.randn_like(image))
    assert views(noisy, IMAGES).shape == (4, 3, 3, 16, 16)


def test_series_of_audiomentations():
    series = torch.rand(2, 1, 400) - 0.5
    augmentation = from_foreign(am.Compose([am.Shift(p=1.0), am.Gain(p=1.0)]))
    assert torch.equal(views(augmentation, series), views(augmentation, series))
    assert views(augmentation, torch.rand(2, 3, 400)).shape == (4, 2, 3, 400)
    with pytest.raises(augury.AuguryError, match="works on series or sound data"):
        views(augmentation, IMAGES)


@pytest.fixture
def listening():
    """A transform that notes the rate and the level that it is told, and what it noted."""
    seen = []

    class Listens(am.Gain):
        def apply(self, samples, sample_rate):
            seen.append((sample_rate, float(np.abs(samples).max())))
            return super().apply(samples, sample_rate)

    return Listens(min_gain_db=-1, max_gain_db=1, p=1.0), seen


def test_audiomentations_hears_recordings_at_their_rate_and_level(listening):
    listens, seen = listening
    time = np.arange(800) / 8000  # whole periods: their mean is 0
    x = np.stack([0.5 * np.sin(2 * np.pi * f * time) for f in (300, 310, 900, 910) * 30])
    data = augury.as_dataset(
        x[:, None], ["low", "low", "high", "high"] * 30, kind="sound", rate=8000
    )
    augury.rank(data, None, [listens], score="ridge", feature_map="flatten", n_views=1)
    assert {rate for rate, _ in seen} == {8000}
    assert max(level for _, level in seen) == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize(
    "among",
    [
        lambda listens: listens >> parse("sign_flip"),
        lambda listens: parse("identity") | listens,
        lambda listens: (parse("sign_flip") >> listens**2) | parse("identity"),
        lambda listens: Chain((listens, parse("sign_flip")), (2.0, 1.0)),
    ],
    ids=["then", "mixture", "nested", "chain"],
)
def test_what_it_is_among_does_not_matter(among, listening):
    listens, seen = listening
    augmentation = among(from_foreign(listens)).at_rate(8000, 0.25)
    views(augmentation, torch.ones(3, 1, 400))
    assert {rate for rate, _ in seen} == {8000}
    assert min(level for _, level in seen) < 0.3  # one in the data is a quarter in recordings
    assert repr(augmentation) == repr(among(from_foreign(listens)))


NAMES = [
    (v2.RandomRotation(15), "RandomRotation(degrees=[-15.0, 15.0])"),
    (
        v2.RandomAffine(5, interpolation=v2.InterpolationMode.BILINEAR),
        "RandomAffine(degrees=[-5.0, 5.0], interpolation=bilinear)",
    ),
    (A.HorizontalFlip(p=1.0), "HorizontalFlip(p=1.0)"),
    (am.Shift(max_shift=0.1), "Shift(max_shift=0.1)"),
    (
        v2.Compose([v2.RandomRotation(5), v2.RandomErasing()]),
        "Compose(RandomRotation, RandomErasing)",
    ),
]


@pytest.mark.parametrize(("transform", "name"), NAMES)
def test_names_are_short_and_say_the_settings(transform, name):
    assert repr(from_foreign(transform)) == name


def test_long_names_are_cut():
    name = repr(from_foreign(K.RandomAffine(15.0, translate=(0.1, 0.1), shear=10.0, p=0.5)))
    assert name.startswith("RandomAffine(degrees=15.0, translate=(0.1, 0.1)")
    assert len(name) <= 60


def test_all_libraries_in_one_ranking():
    digits = load_digits()
    found = augury.rank(
        digits.images[:300] / 16,
        digits.target[:300],
        [
            v2.RandomRotation(15),
            K.RandomAffine(15.0, p=1.0),
            A.VerticalFlip(p=0.5),
            "noise(0.1)",
            lambda image: image.flip(-1),
        ],
        score="ridge",
        feature_map="flatten",
    )
    shown = {row.augmentation.partition("(")[0] for row in found.rows}
    assert {"RandomRotation", "RandomAffine", "VerticalFlip", "noise"} < shown


def test_from_a_module():
    flip = parse("sampled(own_transforms:flip)", imports=True)
    assert repr(flip) == "sampled(own_transforms:flip)"
    assert torch.equal(views(flip, IMAGES, n=1)[0], IMAGES.flip(-1))
    brighter = parse("sampled(own_transforms:brighter)", imports=True)
    assert torch.equal(views(brighter, IMAGES, n=1)[0], (IMAGES * 1.5).clamp(0, 1))
    assert parse(repr(brighter), imports=True).fn is brighter.fn


class Unknown:
    __module__ = "sklearn.somewhere"  # an installed library that has no augmentations

    def __call__(self, image):
        return image


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        (3, "expected an augmentation, a spec such as 'rotation(15)', a function or a transform"),
        (Unknown(), "an Unknown comes from 'sklearn', a library that augury does not know"),
        (
            A.Compose([A.HorizontalFlip(), A.Normalize(normalization="min_max")]),
            "normalization='min_max' cannot be undone",
        ),
    ],
)
def test_what_is_no_transform_is_said_in_one_line(transform, message):
    with pytest.raises(augury.AuguryError) as caught:
        from_foreign(transform)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        (v2.Resize(8), "changed an example's shape from (3, 16, 16) to (3, 8, 8)"),
        (A.RandomCrop(8, 8), "changed an example's shape from (3, 16, 16) to (3, 8, 8)"),
        (v1.Grayscale(), "changed an example's shape from (3, 16, 16) to (1, 16, 16)"),
        (v2.FiveCrop(8), "returned a tuple"),
        (lambda image: (image - 0.45) / 0.22, "for images in [0, 1]; remove the normalisation"),
        (lambda image: (image * 255).round(), "for images in [0, 1]; remove the normalisation"),
        (lambda image: image.numpy().tolist(), "returned a list; return a tensor"),
        (v2.LinearTransformation(torch.eye(2), torch.zeros(2)), "failed: ValueError"),
    ],
)
def test_what_changes_size_or_type_is_said_in_one_line(transform, message):
    with pytest.raises(augury.AuguryError) as caught:
        views(from_foreign(transform), IMAGES)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


PIPELINES = [
    v2.Compose(
        [v2.RandomHorizontalFlip(p=1.0), v2.RandomVerticalFlip(p=1.0), v2.Normalize(MEAN, STD)]
    ),
    v1.Compose([v1.RandomHorizontalFlip(1.0), v1.RandomVerticalFlip(1.0), v1.ToTensor()]),
    A.Compose([A.HorizontalFlip(p=1.0), A.VerticalFlip(p=1.0)]),
    K.AugmentationSequential(K.RandomHorizontalFlip(p=1.0), K.RandomVerticalFlip(p=1.0)),
]


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_pipeline_is_taken_apart(pipeline):
    parts = take_apart(pipeline)
    whole, vertical, horizontal = (views(part, IMAGES, n=1)[0] for part in parts.values())
    first, *others = parts
    assert first == "whole pipeline"
    assert ["HorizontalFlip" in name for name in others] == [True, False]
    assert all(name.startswith("without ") and repr(parts[name]) == name for name in others)
    for out, dims in ((whole, (-1, -2)), (vertical, (-2,)), (horizontal, (-1,))):
        assert float((out - IMAGES.flip(dims)).abs().max()) < 3e-3


def test_a_pipeline_of_sound_and_one_of_augury():
    parts = take_apart(am.Compose([am.Shift(p=1.0), am.Shift(p=1.0)]))
    assert len(parts) == 3
    parts = take_apart(parse("rotation(5) >> flips >> noise(0.1)"))
    assert [repr(part) for part in parts.values()] == [
        "rotation(5) >> flips >> noise(0.1)",
        "flips >> noise(0.1)",
        "rotation(5) >> noise(0.1)",
        "rotation(5) >> flips",
    ]


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (v2.RandomRotation(5), "expected a pipeline with steps"),
        (parse("rotation(5)"), "expected a pipeline of several steps"),
        (v1.Compose([v1.ToTensor()]), "no step that augments"),
    ],
)
def test_what_cannot_be_taken_apart(pipeline, message):
    with pytest.raises(augury.AuguryError, match=message):
        take_apart(pipeline)
