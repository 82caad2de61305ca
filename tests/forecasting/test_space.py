"""What a policy can be, spec by spec."""

from __future__ import annotations

import pytest
import torch

from augury import AuguryError, search_policy
from augury.augmentations import Mixture, identity, parse
from augury.forecasting.policy import space
from augury.forecasting.policy.space import (
    Space,
    applications,
    best_of_families,
    build,
    complexity,
    families_of,
    parts_of,
    strength,
    with_strength,
    without,
)

TWO = ["rotation(15)", "flips"]
NINE = [*TWO, "noise(0.1)", "invert", "shear(10)", "cutout(0.25)", "translation(0.1)",
        "brightness(0.25)", "contrast(0.35)"]  # fmt: skip


def specs(policies):
    return [repr(policy) for policy in policies]


def shares(policy):
    """Return the probabilities of the mixture that comes second."""
    second = policy.parts[1]
    return second.probabilities.tolist() if isinstance(second, Mixture) else None


def test_two_that_help_make_all_of_these():
    assert specs(build([parse(s) for s in TWO])) == [
        "rotation(15)",
        "flips",
        "rotation(15) | flips",
        "(rotation(15) | flips) ** 2",
        "(identity | rotation(15)) >> (identity | flips)",
        "rotation(15) >> (identity | flips)",
        "rotation(15) >> flips",
        "rotation(15) >> trivial_augment(1)",
        "rotation(15) >> (identity | trivial_augment(1))",
    ]


def test_one_that_helps_is_tried_alone_and_before_trivial_augment():
    assert specs(build([parse("flips")])) == [
        "flips",
        "flips >> trivial_augment(1)",
        "flips >> (identity | trivial_augment(1))",
    ]


def test_more_make_larger_mixtures():
    helping = [parse(s) for s in NINE]
    built = build(helping)
    sizes = sorted({len(p.parts) for p in built if isinstance(p, Mixture)})
    assert sizes == [2, 3, 4, 6, 8, 9]
    assert specs([p for p in built if isinstance(p, Mixture)])[-1] == " | ".join(NINE)
    assert len([p for p in build(helping[:8]) if isinstance(p, Mixture)]) == 5
    assert "chain(rotation(15):0.6, flips:0.4, noise(0.1):0.4)" in specs(built)
    assert not [p for p in specs(build(helping[:2])) if p.startswith("chain")]
    assert specs(built)[:3] == NINE[:3]
    halves = "(identity | rotation(15)) >> (identity | flips) >> (identity | noise(0.1))"
    assert f"{halves} >> (identity | invert)" in specs(built)
    assert not [p for p in specs(built) if p.startswith(f"{halves} >> (identity | invert) >>")]
    some = "rotation(15) >> (0.5*identity | 0.25*flips | 0.25*noise(0.1))"
    assert shares(parse(some)) in [
        shares(p) for p in built if repr(p).startswith("rotation(15) >> (")
    ]
    assert "rotation(15) >> (identity | flips | noise(0.1))" in specs(built)
    assert "rotation(15) >> flips" in specs(built)  # the best two always


def test_the_best_of_a_family_must_gain_more_than_the_least():
    singles = [parse(s) for s in ("rotation(5)", "rotation(30)", "flips", "noise(0.1) >> flips")]
    assert best_of_families(singles, [2.0, 2.0, 0.2, 3.0], 0.2) == [singles[3], singles[0]]
    assert best_of_families(singles, [-1.0, -2.0, 0.3, 0.1], 0.2) == [singles[2]]
    with pytest.raises(ValueError, match="zip"):
        best_of_families(singles, [1.0], 0.0)


def test_parts_of_powers_and_chains():
    assert specs(parts_of(parse("(flips | invert) ** 2"))) == ["flips", "invert"]
    assert specs(parts_of(parse("chain(flips:0.6, invert:0.4)"))) == ["flips", "invert"]
    assert parts_of(identity()) == ()
    nested = parse("(rotation(15) >> flips) | (identity | invert)")
    assert specs(parts_of(nested)) == ["rotation(15)", "flips", "invert"]


def test_one_part_is_left_out_everywhere():
    flips = parse("flips")
    assert repr(without(parse("(flips | invert) ** 2"), flips)) == "(identity | invert) ** 2"
    assert repr(without(parse("flips >> invert"), flips)) == "invert"
    assert repr(without(parse("flips >> flips"), flips)) == "identity"
    assert repr(without(parse("flips >> invert >> noise(0.1)"), flips)) == "invert >> noise(0.1)"
    chain = without(parse("chain(flips:0.6, invert:0.4)"), flips)
    assert repr(chain) == "chain(identity:0.6, invert:0.4)"
    weighted = parse("0.7*flips | 0.3*invert")
    assert repr(without(weighted, flips)) == "0.7*identity | 0.3*invert"
    assert without(parse("invert"), flips) == parse("invert")


def test_families_of():
    assert families_of(parse("flips >> (identity | noise(0.1))")) == {"flips", "noise"}
    assert families_of(parse("noise(0.1)")) == {"noise"}
    assert families_of(identity()) == {"identity"}


@pytest.mark.parametrize(
    ("spec", "operations", "parts"),
    [
        ("identity", 0, 0),
        ("flips", 1, 1),
        ("flips >> noise(0.1)", 2, 2),
        ("flips | noise(0.1)", 1, 2),
        ("0.75*identity | 0.25*flips", 0.25, 1),
        ("(flips >> noise(0.1)) ** 3", 6, 2),
        ("chain(flips:0.6, noise(0.1):0.4)", 1.0, 2),
        ("trivial_augment(2)", 2, 1),
        ("rand_augment(2,9)", 2, 1),
    ],
)
def test_complexity_is_operations_and_a_tenth_for_each_part(spec, operations, parts):
    assert complexity(parse(spec)) == pytest.approx(operations + 0.1 * parts)


def test_a_space_with_nothing_fixed_changes_nothing():
    free = Space.of([], [])
    assert free == Space()
    assert free.complete(identity()) == identity()
    assert free.complete(parse("flips")) == parse("flips")
    assert free.allows(parse("trivial_augment"))
    assert free.allows(parse("flips"))
    names = {type(a).__name__ for a in free.singles("image", (3, 32, 32))}
    assert not names & {"trivial_augment", "rand_augment"}
    assert specs(free.rivals()) == [repr(parse(s)) for s in space.RIVALS]


def test_a_forbidden_family_takes_the_recipes_with_it():
    chosen = Space.of(["flips", "noise(0.1)"], ["rotation"])
    assert chosen.never == frozenset({"rotation"})
    assert repr(chosen.complete(parse("invert"))) == "flips >> noise(0.1) >> invert"
    assert chosen.allows(parse("rand_augment(2,9)")) is False  # a word of the JSON of a policy
    assert not chosen.allows(parse("flips >> rotation(15)"))
    assert chosen.allows(parse("flips"))
    assert Space.of([], ["flips"]).never == {"horizontal_flip", "vertical_flip", "flips"}


@pytest.mark.parametrize(
    ("spec", "milder", "stronger"),
    [
        ("rotation(15)", "rotation(10)", "rotation(22)"),
        ("cutout(0.3333)", "cutout(0.292)", "cutout(0.367)"),  # to three digits
        ("cutout(0.25) >> flips", "cutout(0.175) >> flips", "cutout(0.325) >> flips"),
        ("identity | resized_crop(0.64)", "identity | resized_crop(0.695)",
         "identity | resized_crop(0.57)"),
        ("chain(scaling(0.9,1.1):0.6, flips:0.4)", "chain(scaling(0.925,1.075):0.6, flips:0.4)",
         "chain(scaling(0.85,1.15):0.6, flips:0.4)"),
        ("rand_augment(2,9)", "rand_augment(2,7)", "rand_augment(2,12)"),
        ("trivial_augment(2)", "trivial_augment(2)", "trivial_augment(2)"),
        ("rotation(180)", "rotation(135)", "rotation(180)"),
        ("flips", "flips", "flips"),
    ],
)  # fmt: skip
def test_strengths_lie_between_those_of_the_ladder(spec, milder, stronger):
    assert repr(with_strength(parse(spec), -1)) == milder
    assert repr(with_strength(parse(spec), 1)) == stronger


@pytest.mark.parametrize(
    ("spec", "stronger"),
    [
        ("brightness(0.25,clip=False)", "brightness(0.375,clip=false)"),
        ("elastic(0.05,cell=8)", "elastic(0.075,cell=8.0)"),
    ],
)
def test_other_settings_stay_as_they_are(spec, stronger):
    assert with_strength(parse(spec), 1) == parse(stronger)


def test_what_is_required_keeps_its_strength():
    required = Space.of(["translation(0.06)", "rotation(10) >> noise(0.1)"], []).required
    policy = parse("translation(0.06) >> rotation(10) >> noise(0.1) >> cutout(0.25)")
    found = [repr(with_strength(policy, step, required)) for step in (-1, 1)]
    kept = "translation(0.06) >> rotation(10) >> noise(0.1) >> "
    assert found == [f"{kept}cutout(0.175)", f"{kept}cutout(0.325)"]


def test_a_milder_policy_has_less_strength():
    policy = parse("rotation(15) >> (identity | cutout(0.25))")
    assert strength(with_strength(policy, -1)) < strength(policy)
    assert strength(policy) < strength(with_strength(policy, 1))
    assert strength(parse("rotation(180)")) == 1
    assert strength(parse("flips")) == strength(identity()) == 0


def test_draws_from_all_that_is_harmless():
    helping, harmless = [parse("flips")], [parse(s) for s in ("flips", "invert", "noise(0.05)")]
    found = specs(build(helping, harmless))
    for spec in ("flips | invert | noise(0.05)", "(flips | invert | noise(0.05)) ** 4"):
        assert spec in found
    assert specs(build(helping, helping)) == specs(build(helping))


def test_families_at_their_middle_strength():
    every, few = (Space().singles("image", (3, 32, 32), strengths) for strengths in (True, False))
    assert {type(a) for a in every} == {type(a) for a in few}
    assert len(few) == len({type(a) for a in few}) < len(every)
    assert {"rotation(30)", "translation(0.1)", "cutout(0.25)", "invert"} < set(specs(few))


def test_each_family_by_itself_at_its_middle_strength(monkeypatch):
    """Of two settings the milder is taken, of three the middle one."""
    given = ["blur(0.5,1.0)", "rotation(5)", "rotation(15)", "rotation(30)", "noise(0.05)",
             "noise(0.1)", "trivial_augment", "invert"]  # fmt: skip
    monkeypatch.setattr(space, "default_augmentations", lambda *_: [parse(s) for s in given])
    every = Space.of([], ["invert"])
    assert specs(every.singles("image", (3, 32, 32))) == given[:6]
    middle = every.singles("image", (3, 32, 32), strengths=False)
    assert specs(middle) == ["blur(0.5,1.0)", "rotation(15)", "noise(0.05)"]


@pytest.mark.parametrize(
    ("policy", "often"),
    [
        ("flips", 1),
        ("invert", 0),
        ("invert >> flips", 1),
        ("invert >> (3*identity | flips)", 0.25),
        ("(invert | flips) ** 3", 1.5),
        ("chain(invert:0.5, flips:2)", 2),
    ],
)
def test_how_often_a_part_is_applied(policy, often):
    assert applications(parse(policy), parse("flips")) == pytest.approx(often)


def test_one_part_may_be_given_as_a_string():
    images, labels = torch.rand(10, 1, 8, 8), torch.arange(10) % 2
    for name in ("always", "rivals", "never"):
        with pytest.raises(AuguryError, match="'foo'"):
            search_policy(images, labels, **{name: "foo"})
