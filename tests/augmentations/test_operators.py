"""Operators of Python mean what they mean in a spec, and refuse what cannot be joined."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusal import refused

from augury import AuguryError, Rng, parse
from augury.augmentations import Chain, Power, Then, blur, flips, identity, invert, rotation

FAMILIES = st.sampled_from([rotation(15), flips(), invert(), blur(0.5, 2.0), identity()])
PROBABILITIES = st.floats(0.01, 1).map(lambda p: round(p, 3))


def joined(parts):
    """What operators make of parts, weighted ones among them."""
    return st.one_of(
        st.tuples(parts, parts).map(lambda two: two[0] >> two[1]),
        st.tuples(parts, parts).map(lambda two: two[0] | two[1]),
        st.tuples(parts, st.integers(1, 2)).map(lambda two: two[0] ** two[1]),
        st.tuples(PROBABILITIES, parts).map(lambda two: two[0] * two[1]),
    )


EXPRESSIONS = st.recursive(FAMILIES, joined, max_leaves=5)


@settings(deadline=None, max_examples=150)
@given(EXPRESSIONS)
def test_what_operators_make_is_read_back(a):
    assert parse(repr(a)) == a
    assert a == parse(repr(a))
    assert hash(parse(repr(a))) == hash(a)
    assert pickle.loads(pickle.dumps(a)) == a == copy.deepcopy(a)


@settings(deadline=None, max_examples=30)
@given(EXPRESSIONS)
def test_what_operators_make_draws_what_its_spec_draws(a):
    x, rng = torch.rand(2, 1, 6, 6), Rng(3, torch.arange(2))
    assert torch.equal(a.views(x, 3, rng), parse(repr(a)).views(x, 3, rng))


@settings(deadline=None, max_examples=50)
@given(PROBABILITIES, FAMILIES, FAMILIES)
def test_a_weight_means_what_it_means_in_a_spec(p, a, b):
    assert p * a == parse(f"{p}*{a}")
    assert p * a >> b == parse(f"({p}*{a}) >> {b}")
    assert b >> p * a == parse(f"{b} >> ({p}*{a})")
    assert (p * a) ** 2 == parse(f"({p}*{a}) ** 2")
    assert p * a | b == parse(f"{p}*{a} | {b}")
    assert p * a | 3 * b == parse(f"{p}*{a} | 3*{b}")
    assert np.float64(p) * a == p * a
    assert Then((p * a, b)) == p * a >> b
    assert Power(p * a, 2) == (p * a) ** 2
    assert Chain((p * a,), (1,)) == parse(f"chain({p}*{a}:1)")


def test_a_weighted_part_is_an_augmentation():
    image = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    both = 0.5 * invert(), parse("0.5*invert")
    seen = [[a.transform(seed=0)(image, index=k) for k in range(20)] for a in both]
    assert np.array_equal(*seen)
    assert (0.5 * invert())(image).shape == image.shape
    assert (0.5 * invert()).to("augury") == both[1].to("augury")


def test_the_other_side_may_be_a_spec_or_a_function():
    assert rotation(15) >> "flips" == parse("rotation(15) >> flips")
    assert "flips" >> rotation(15) == parse("flips >> rotation(15)")
    assert rotation(15) | "flips" == parse("rotation(15) | flips")
    assert "flips" | rotation(15) == parse("flips | rotation(15)")
    assert rotation(15) >> joined == rotation(15) >> parse(joined)


def test_a_mixture_within_a_mixture_keeps_its_weight():
    a = parse("1*(flips | invert) | identity")
    assert repr(a) == "1*(flips | invert) | identity"
    assert parse(repr(a)) == a
    assert a != parse("flips | invert | identity")


@pytest.mark.parametrize("weight", [-1, 0, True, float("nan"), float("inf"), 10**400, "a", [1]])
def test_a_weight_is_refused_when_it_is_written(weight):
    with pytest.raises(AuguryError, match="the weight of flips must be a positive number"):
        weight * flips()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda a: a >> 3, "expected an augmentation, a spec"),
        (lambda a: None >> a, "expected an augmentation, a spec"),
        (lambda a: a | 3, "expected an augmentation, a spec"),
        (lambda a: a >> "flops", "no family is called 'flops'"),
        (lambda a: a * 0.5, "a weight comes first"),
        (lambda a: a**1.5, "the power must be 1, 2, 3"),
        (lambda a: a ** "2", "the power must be 1, 2, 3"),
        (lambda a: (2 * a)(torch.rand(1, 4, 4)), r"2\*flips: a single weight is a probability"),
        (lambda a: 2 * a >> a, r"2\*flips: a single weight is a probability"),
    ],
)
def test_what_cannot_be_joined_is_refused_in_one_line(wrong, words):
    with pytest.raises(AuguryError, match=words) as caught:
        wrong(flips())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "maps"),
    [
        ("0.5*flips", 5),  # four, and one that changes nothing
        ("horizontal_flip | identity", 3),
        ("flips | horizontal_flip | vertical_flip | identity", 9),
        ("identity >> (0.5*flips)", 5),
        ("(flips | identity) ** 1", 5),
        ("horizontal_flip >> (flips | identity | identity | identity)", 14),
    ],
)
def test_a_finite_mixture_has_an_exact_rule_of_all_its_maps(spec, maps):
    """Equal shares would leave the larger parts without one."""
    found = parse(spec)
    assert found.size == maps
    assert found.nodes(maps - 1) is None
    x = torch.rand(3, 1, 6, 6, dtype=torch.float64)
    mean = found.views(x, 4000, Rng(0, torch.arange(3))).mean(0)
    for n in (maps, maps + 1, 3 * maps):
        rule = found.nodes(n)
        assert len(rule.weights) == maps
        views = found.apply(x.unsqueeze(0), rule.params)
        exact = torch.einsum("n,nbchw->bchw", rule.weights, views)
        assert (exact - mean).abs().max() < 0.05


def test_parts_without_end_share_what_finite_ones_leave():
    found = parse("rotation(15) | flips")
    assert found.nodes(6) is None  # two nodes of a rotation are fewer than its equal share
    assert len(found.nodes(14).weights) == 14
    assert len(found.nodes(8).weights) == 8


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.bool])
def test_views_are_made_of_floats(dtype):
    x = torch.zeros(1, 1, 4, 4, dtype=dtype)
    refused(
        f"floating-point examples, got {dtype}",
        parse("invert").views,
        x,
        1,
        Rng(0, torch.arange(1)),
    )
