from __future__ import annotations

import contextlib
from dataclasses import fields
from unittest import mock

import numpy as np
import pytest
import reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import augury
from augury._base.errors import AuguryError
from augury._base.rng import Rng
from augury.augmentations import (
    FAMILIES,
    Table,
    blur,
    brightness,
    contrast,
    cutout,
    default_augmentations,
    elastic,
    feature_dropout,
    flips,
    horizontal_flip,
    identity,
    invert,
    jitter,
    noise,
    parse,
    posterize,
    quarter_turns,
    resized_crop,
    rotation,
    scaling,
    shear,
    shift,
    solarize,
    strength_ladder,
    translation,
    vertical_flip,
)

SHAPES = {"image": (3, 9, 9), "series": (2, 12), "vector": (7,)}
COMPOSITES = [
    rotation(20) >> blur(0.5, 1.5),
    flips() | rotation(10),
    0.3 * quarter_turns() | 0.7 * (translation(0.1) >> shear(5)),
    rotation(5) ** 3,
    noise(0.1) | identity(),
    0.5 * noise(0.1) | 0.5 * identity(),
    brightness(0.3, clip=False) >> contrast(0.2, clip=False),
]
TABLE = Table(
    torch.rand(20, 7, generator=torch.Generator().manual_seed(1), dtype=torch.float64),
    torch.arange(20) % 2,
    torch.tensor([0, 1, 2, 2, 3, 4, 5]),
    torch.tensor([False, False, True, True, False, False, False]),
    {5: torch.tensor([0.0, 0.5, 1.0])},
    torch.full((7,), 0.3),  # what is absent is not 0, so that emptying a column is not linear
    torch.zeros(7, dtype=torch.bool),
)
ALL = [family().bound(TABLE) for family in FAMILIES.values()] + COMPOSITES


def inputs(augmentation, examples=5, dtype=torch.float64):
    kind = next(k for k in ("image", "series", "vector") if _fits(augmentation, SHAPES[k]))
    generator = torch.Generator().manual_seed(0)
    return torch.rand(examples, *SHAPES[kind], generator=generator, dtype=dtype)


def _fits(augmentation, shape):
    try:
        augmentation.check(shape)
    except AuguryError:
        return False
    return True


@pytest.mark.parametrize("augmentation", ALL, ids=repr)
def test_views_do_not_depend_on_batching(augmentation):
    x = inputs(augmentation, 6)
    whole = augmentation.views(x, 3, Rng(7, torch.arange(6)))
    assert whole.shape == (3, *x.shape)
    for size in (1, 4):
        parts = [augmentation.views(x[i], 3, Rng(7, i)) for i in torch.arange(6).split(size)]
        torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=1e-12, rtol=0)


@pytest.mark.parametrize("augmentation", ALL, ids=repr)
def test_repr_is_the_spec(augmentation):
    assert parse(repr(augmentation)) == augmentation
    assert repr(parse(repr(augmentation))) == repr(augmentation)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.__name__)
def test_a_spec_names_no_positional_parameter(family):
    """A dataclass whose repr is not left to `Family` would write ``rotation(degrees=15)``."""
    names = [field.name for field in fields(family) if not field.kw_only]
    assert not [name for name in names if f"{name}=" in repr(family())]


@pytest.mark.parametrize("augmentation", [a for a in ALL if a.linear], ids=repr)
def test_adjoint_identity(augmentation):
    x = inputs(augmentation, 1)
    w = torch.randn(3, *x.shape[1:], dtype=x.dtype, generator=torch.Generator().manual_seed(1))
    params = augmentation.draw(4, Rng(2, torch.tensor([11])))
    forward = augmentation.apply(x.unsqueeze(0), params)[:, 0].flatten(1)  # (n, pixels)
    backward = augmentation.adjoint(w, params).flatten(2)  # (n, m, pixels)
    left = forward @ w.flatten(1).T
    right = backward @ x.flatten()
    torch.testing.assert_close(left, right, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("augmentation", ALL, ids=repr)
def test_linear_is_said_of_what_is_linear(augmentation):
    x = inputs(augmentation, 2)
    params = augmentation.draw(12, Rng(2, torch.tensor([4])))
    both = augmentation.apply((2 * x[:1] - 3 * x[1:]).unsqueeze(0), params)
    each = [augmentation.apply(v.unsqueeze(0), params) for v in x.split(1)]
    same = torch.allclose(both, 2 * each[0] - 3 * each[1], atol=1e-9)
    assert same == augmentation.linear


@pytest.mark.parametrize("augmentation", ALL, ids=repr)
@pytest.mark.parametrize("n", [1, 2, 7, 16])
def test_weights_of_nodes_sum_to_one(augmentation, n):
    rule = augmentation.nodes(n)
    if rule is None:
        assert augmentation.size is None or augmentation.size > n // 2
    else:
        assert len(rule.weights) <= n
        assert float(rule.weights.sum()) == pytest.approx(1, abs=1e-12)
        x = inputs(augmentation)
        assert augmentation.apply(x.unsqueeze(0), rule.params).shape[0] == len(rule.weights)


FINITE = [
    identity(), horizontal_flip(), vertical_flip(), flips(), quarter_turns(), invert(),
    posterize(5), horizontal_flip() >> vertical_flip(), flips() ** 2,
    0.25 * invert() | 0.75 * quarter_turns(),
]  # fmt: skip


@pytest.mark.parametrize("augmentation", FINITE, ids=repr)
def test_exact_nodes_of_finite_families(augmentation):
    """The rule's mean of any function is the law's: compare with many draws, by convergence."""
    x = inputs(augmentation, 1)
    rule = augmentation.nodes(16)
    assert len(rule.weights) == augmentation.size
    exact = (
        rule.weights @ augmentation.apply(x.unsqueeze(0), rule.params).square().flatten(1)
    ).flatten()
    draws = augmentation.views(x, 20000, Rng(0, torch.tensor([0]))).square().flatten(1)
    error = (draws.mean(0) - exact).abs()
    assert bool((error <= 5 * draws.std(0) / 20000**0.5 + 1e-12).all())


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.sampled_from([4, 6, 8, 12]))
def test_quadrature_beats_sampling_for_rotation(seed, n):
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(3, 1, 12, 12, generator=generator, dtype=torch.float64)
    x = blur(1.0, 1.01).views(x, 1, Rng(0, torch.arange(3)))[0]  # as smooth as pictures are
    family = rotation(15)
    feature = torch.randn(144, 5, generator=generator, dtype=torch.float64) / 12

    def psi(params, weights):
        values = (family.apply(x.unsqueeze(0), params).flatten(2) @ feature).cos()
        return torch.einsum("n,nbd->bd", weights, values)

    truth = psi(*family.nodes(200))
    quadrature = (psi(*family.nodes(n)) - truth).norm()
    even = torch.full((n,), 1 / n, dtype=torch.float64)
    errors = [
        (psi(family.draw(n, Rng(seed, torch.arange(3) + 3 * k)).double(), even) - truth).norm()
        for k in range(20)
    ]
    assert quadrature < torch.stack(errors).median()


@pytest.mark.parametrize(
    "group", [horizontal_flip(), vertical_flip(), flips(), quarter_turns()], ids=repr
)
def test_average_over_a_group_is_invariant(group):
    x = inputs(group)
    w = torch.randn(x[0].numel(), 6, dtype=x.dtype, generator=torch.Generator().manual_seed(3))

    def psi(images):
        views, weights = group.weighted_views(images, 8, Rng(0, torch.arange(len(images))))
        return torch.einsum("n,nbd->bd", weights, (views.flatten(2) @ w).cos())

    for moved in group.apply(x.unsqueeze(0), group.nodes(8).params):
        torch.testing.assert_close(psi(moved), psi(x), atol=1e-12, rtol=0)


class TestAgainstPixelLoops:
    """Each warp beside its slow twin, on one image that is not square."""

    image = np.random.default_rng(0).random((7, 10))

    def apply(self, family, *params):
        x = torch.from_numpy(self.image)[None, None, None]
        return family.apply(x, torch.tensor([[params if len(params) > 1 else params[0]]]).double())[
            0, 0, 0
        ]

    def check(self, got, expected):
        np.testing.assert_allclose(got.numpy(), expected, atol=1e-6)

    @pytest.mark.parametrize("angle", [-40.0, 0.0, 15.0, 90.0])
    def test_rotation(self, angle):
        self.check(self.apply(rotation(180), angle), reference.rotate(self.image, angle))

    def test_translation(self):
        expected = reference.warp(self.image, np.eye(2), (0.2 * 10, -0.15 * 7))
        self.check(self.apply(translation(0.5), 0.2, -0.15), expected)

    def test_scaling_above_one_magnifies(self):
        self.check(
            self.apply(scaling(0.5, 2), 1.3), reference.warp(self.image, np.eye(2) / 1.3, (0, 0))
        )

    def test_shear(self):
        matrix = np.array([[1, np.tan(np.radians(20))], [0, 1]])
        self.check(self.apply(shear(25), 20.0), reference.warp(self.image, matrix, (0, 0)))

    def test_resized_crop(self):
        side = np.sqrt(0.25 + 0.75 * 0.4)
        offset = ((0.1 - 0.5) * (1 - side) * 10, (0.9 - 0.5) * (1 - side) * 7)
        self.check(
            self.apply(resized_crop(0.25), 0.4, 0.1, 0.9),
            reference.warp(self.image, np.eye(2) * side, offset),
        )

    @pytest.mark.parametrize("sigma", [0.05, 0.7, 2.0])
    def test_blur(self, sigma):
        self.check(self.apply(blur(0.01, 3), sigma), reference.gaussian_blur(self.image, sigma))


def test_a_crop_stays_inside_the_image():
    x = torch.ones(40, 1, 16, 16, dtype=torch.float64)
    crops = resized_crop(0.25).views(x, 20, Rng(0, torch.arange(40)))
    assert float(crops[..., 1:-1, 1:-1].min()) == pytest.approx(1)


def test_shared_maps_equal_single_ones():
    x = inputs(rotation(10))
    rule = rotation(10).nodes(3)
    shared = rotation(10).apply(x.unsqueeze(0), rule.params)
    single = rotation(10).apply(x.unsqueeze(0), rule.params.expand(3, len(x)).contiguous())
    torch.testing.assert_close(shared, single, atol=1e-12, rtol=0)


def test_pixel_families_do_what_they_say():
    x = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64).reshape(1, 1, 1, 1, 3)

    def at(value):
        return torch.tensor([[value]])

    assert brightness(1).apply(x, at(1.5)).flatten().tolist() == pytest.approx([0.15, 0.75, 1])
    assert contrast(1).apply(x, at(0.5)).flatten().tolist() == pytest.approx([0.3, 0.5, 0.7])
    assert solarize(0).apply(x, at(0.45)).flatten().tolist() == pytest.approx([0.1, 0.5, 0.1])
    assert invert().apply(x, at(1)).flatten().tolist() == pytest.approx([0.9, 0.5, 0.1])
    assert posterize(1).apply(x, at(1)).flatten().tolist() == pytest.approx([0, 0, 128 / 255])
    assert cutout(0.5).apply(x, torch.tensor([[[0.5, 0.2]]])).flatten().tolist() == [0, 0.5, 0.9]


def test_noise_and_jitter_have_their_spread():
    x = torch.full((200, 1, 10, 10), 0.5, dtype=torch.float64)
    assert float(noise(0.05).views(x, 4, Rng(0, torch.arange(200))).std()) == pytest.approx(
        0.05, rel=0.02
    )
    v = torch.zeros(2000, 10, dtype=torch.float64)
    assert float(jitter(0.3).views(v, 4, Rng(0, torch.arange(2000))).std()) == pytest.approx(
        0.3, rel=0.02
    )
    kept = feature_dropout(0.25).views(v + 1, 4, Rng(0, torch.arange(2000)))
    assert float(kept.mean()) == pytest.approx(0.75, abs=0.01)


def test_elastic_moves_pixels_by_its_strength():
    ramp = torch.linspace(-1, 1, 33, dtype=torch.float64).expand(1, 33, 33)  # value = position
    x = ramp.unsqueeze(0).expand(50, 1, 33, 33)
    moved = elastic(0.05).views(x, 2, Rng(0, torch.arange(50))) - x
    assert 0.02 < float(moved[..., 8:-8, 8:-8].std()) < 0.06


def test_shift_moves_a_series_and_holds_its_ends():
    x = torch.arange(5, dtype=torch.float64).reshape(1, 1, 1, 5)
    got = shift(1).apply(x, torch.tensor([[0.3], [-0.4]]))
    assert got[0].flatten().tolist() == pytest.approx([0, 0, 0.5, 1.5, 2.5])
    assert got[1].flatten().tolist() == pytest.approx([2, 3, 4, 4, 4])


def test_mixture_draws_its_parts_by_weight():
    x = torch.zeros(3000, 1, 2, 2)
    mixed = (0.2 * identity() | 0.8 * invert()).views(x, 2, Rng(0, torch.arange(3000)))
    assert float(mixed.mean()) == pytest.approx(0.4, abs=0.02)


@pytest.mark.parametrize("spec", ["0.3*rotation(15) | 0.7*identity", "identity | noise(0.1)"])
def test_a_part_works_on_the_rows_that_drew_it_alone(spec):
    mixture = parse(spec)
    assert repr(mixture) == spec
    x = torch.rand(500, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    rng = Rng(0, torch.arange(500))
    drawn = [int((mixture.draw(2, rng)[0] == k).sum()) for k in range(2)]
    seen = {"identity": 0}

    def counted(family):
        whole = family.apply

        def apply(self, x, params):
            seen[family.__name__] = seen.get(family.__name__, 0) + x.shape[0] * x.shape[1]
            return whole(self, x, params)

        return mock.patch.object(family, "apply", apply)

    with contextlib.ExitStack() as stack:
        for part in mixture.parts:
            stack.enter_context(counted(type(part)))
        views = mixture.views(x, 2, rng)
    assert seen.pop("identity") == 0
    still = [isinstance(part, identity) for part in mixture.parts].index(True)
    assert list(seen.values()) == [drawn[1 - still]]
    kept = (mixture.draw(2, rng)[0] == still).nonzero(as_tuple=True)
    assert torch.equal(views[kept], x.expand(2, *x.shape)[kept])


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("rotaton(3)", r"did you mean rotation\(degrees=15.0\)\? The families: .*scaling"),
        ("rotation ** 65", "a power, times those inside it, may be at most 64"),
        ("(rotation ** 9 >> flips) ** 8", "a power, times those inside it, may be at most 64"),
        ("rotation ** 1e999", "the power must be 1, 2, 3"),
        ("(" * 65 + "flips" + ")" * 65, "nested more than 64 deep"),
        ("flips >> " * 1000 + "flips", "it has 9,005 characters; at most 4,096 are allowed"),
        ("noise(1" + "0" * 400 + ")", "expected a standard deviation over 0"),
        ("rotation(degrees=3,degrees=4)", "rotation is given degrees twice"),
        ("1.5*flips", r"1.5\*flips: a single weight is a probability"),
        ("x" * 3000, "no family is called"),
        ("saturation(2)", r"a strength in \(0, 1\]"),
        ("hue(0.6)", r"a fraction in \(0, 0.5\]"),
        ("grayscale(0)", r"a probability in \(0, 1\]"),
        ("gamma(1)", r"a strength in \(0, 1\)"),
        ("perspective(0.9)", r"a distortion in \(0, 0.6\]"),
        ("erasing(0)", r"a fraction in \(0, 1\]"),
        ("jpeg(0.5)", "a whole quality from 1 to 100"),
        ("trivial_augment(0)", "a whole number of operations from 1 to 16"),
        ("trivial_augment(1,pixels=0)", "pixels over 0"),
        ("rand_augment(2,31)", "a whole level from 0 to 30"),
        ("wobble", "no family is called 'wobble'. The families"),
        ("rotation(3,4)", r"expected rotation\(degrees=15.0\)"),
        ("elastic(0.1,8)", r"; write cell=4.0 with its name"),
        ("rotation(", "it ends where more should follow"),
        ("rotation(15", r"it ends where \) should follow"),
        ("rotation(-3)", r"rotation\(-3\): expected degrees in \(0, 180\]"),
        ("blur(2,1)", "expected 0 < low < high"),
        ("0.3*flips >> invert", r"brackets around a weighted sequence"),
        ("flips flips", "unexpected 'flips' after flips"),
        ("", "it ends where a family's name should follow"),
        ("scaling(a,b)", "expected a number, got 'a'"),
        ("rotation(15) ** 0", "the power must be 1, 2, 3"),
        ("0*flips | invert", "the weight of flips must be a positive number"),
        ("rotation(15); import os", "unexpected '; import o'"),
        ("posterize(2.5)", "a whole number of bits"),
        ("noise(1e999)", "expected a standard deviation over 0"),
    ],
)
def test_a_wrong_spec_names_the_mistake(spec, says):
    with pytest.raises(AuguryError, match=says) as caught:
        parse(spec)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 900


def test_a_weight_on_its_own_is_a_probability():
    assert repr(parse("0.7*flips")) == "0.7*flips | 0.3*identity"
    assert repr(parse("5.0*identity | flips")) == "5*identity | flips"
    assert repr(parse("2*invert | (flips >> invert)")) == "2*invert | (flips >> invert)"
    assert parse(0.7 * flips()) == parse("0.7*flips")
    assert parse("1*flips") == flips()
    assert repr(parse("(0.2*flips) >> invert")) == "(0.2*flips | 0.8*identity) >> invert"
    with pytest.raises(AuguryError, match="a standard deviation over 0"):
        noise(10**400)


def test_augmentations_refuse_what_they_cannot_do():
    with pytest.raises(AuguryError, match="works on image data, but this is vector data"):
        rotation(5).views(torch.zeros(1, 4), 1, Rng(0, torch.arange(1)))
    with pytest.raises(AuguryError, match="square images, but these are 4 by 6"):
        (flips() >> quarter_turns()).views(torch.zeros(1, 1, 4, 6), 1, Rng(0, torch.arange(1)))
    with pytest.raises(AuguryError, match="has no adjoint"):
        invert().adjoint(torch.zeros(1, 1, 2, 2), invert().nodes(2).params)


@pytest.mark.parametrize("kind", SHAPES)
def test_default_candidates_suit_the_data(kind):
    candidates = default_augmentations(kind, SHAPES[kind])
    assert len(candidates) >= {"image": 20, "series": 8, "vector": 8}[kind]
    assert len({repr(a) for a in candidates}) == len(candidates)
    for candidate in candidates:
        candidate.check(SHAPES[kind])
    if kind == "image":
        for candidate in default_augmentations(kind, (3, 8, 10)):
            candidate.check((3, 8, 10))


COLOURS = {"saturation", "hue", "grayscale"}


def test_candidates_for_grey_images_have_no_colours():
    colour, grey = (default_augmentations("image", (c, 8, 8)) for c in (3, 1))
    assert {type(a).__name__ for a in colour} - {type(a).__name__ for a in grey} == COLOURS
    assert [repr(a) for a in colour[:33]] == [repr(a) for a in grey[:33]]
    assert [repr(a) for a in colour[-2:]] == ["trivial_augment(1)", "rand_augment(2,9)"]
    for shape, expected in (((3, 8, 8), COLOURS), ((1, 8, 8), set()), (None, COLOURS)):
        names = {type(a).__name__ for a in strength_ladder("image", shape=shape)}
        assert names & COLOURS == expected


def test_gradients_flow_through_apply():
    x = inputs(rotation(10)).requires_grad_()
    (rotation(10) >> blur(0.5, 1)).views(x, 2, Rng(0, torch.arange(5))).sum().backward()
    assert float(x.grad.abs().sum()) > 0


def test_examples_that_ride_on_fewer_channels_are_warped_alike():
    """What a GPU does, where it is asked whether it is one."""
    x = torch.rand(1, 12, 3, 9, 9, generator=torch.Generator().manual_seed(0)).double()
    rotation = augury.parse("rotation(15)")
    maps = rotation.nodes(4).params
    usual = rotation.apply(x, maps)
    with mock.patch.object(torch.Tensor, "is_cuda", True):
        torch.testing.assert_close(rotation.apply(x, maps), usual)


@pytest.mark.parametrize(
    "spec", ["trivial_augment(pixels=1e300)", "noise(1e39)", "rotation(-1e300)"]
)
def test_numbers_that_a_float32_cannot_hold_are_refused(spec: str) -> None:
    with pytest.raises(AuguryError, match="expected"):
        parse(spec)
