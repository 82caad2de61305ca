"""The search for a policy, round by round, with made-up trials."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from made_search import CPU, RATE, WORK, fold, forecast, images, searching
from torch import nn

import augury
from augury.augmentations import Chain, Then, parse
from augury.forecasting import trial
from augury.forecasting.forecast import PLANNED
from augury.forecasting.policy import effort, rounds, search, search_policy, space
from augury.forecasting.policy.parts import pool
from augury.forecasting.policy.trust import trust

ENOUGH = "at least 0.2 points better than training without augmentation"
TRIVIAL = "trivial_augment(1)"
GAINS = {"rotation(15)": 0.16, "flips": 0.1, "noise(0.05)": -0.1, TRIVIAL: 0.02}


class Low(dict):
    """Gains of which those that are not named are low."""

    def get(self, key, default=None):
        return super().get(key, -0.1)

    def __or__(self, other):
        return Low({**self, **other})


@pytest.fixture
def made(monkeypatch):
    """A search of three families and two recipes, whose trials are made up: what was asked."""
    asked = []

    def run_folds(data, fitted, trial, numbers, **options):
        specs = [repr(policy) for policy in fitted]
        asked.append({"specs": specs, "trial": trial, "numbers": list(numbers), **options})
        for spec in specs:
            options["tick"](spec)
        half = (0.4,) if options["curve"] else ()
        return [fold([GAINS.get(spec, 0.0) for spec in specs], half) for _ in numbers]

    monkeypatch.setattr(rounds, "run_folds", run_folds)
    families = [parse(spec) for spec in ("rotation(15)", "flips", "noise(0.05)")]
    monkeypatch.setattr(space, "default_augmentations", lambda kind, shape: list(families))
    monkeypatch.setattr(space, "RIVALS", ("trivial_augment", "invert"))
    monkeypatch.setattr(search, "learned_chain", lambda data, parts, seed: None)
    monkeypatch.setattr(search, "make_gallery", lambda *_: None)
    monkeypatch.setitem(effort.EFFORTS, "cpu", WORK)
    return asked


def test_rounds(made):
    seen = []
    found = search_policy(
        images(), epochs=7, seed=5, device="cpu", progress=lambda *now: seen.append(now)
    )
    singles, policies, leaders, contenders, strengths, shorter = made
    assert singles["specs"] == ["rotation(15)", "flips", "noise(0.05)"]
    helping = [parse("rotation(15)"), parse("flips")]
    assert policies["specs"] == [*map(repr, space.build(helping, helping)), TRIVIAL, "invert"]
    milder, stronger = (repr(space.with_strength(parse("rotation(15)"), s)) for s in (-1, 1))
    assert leaders["specs"] == ["rotation(15)", "flips", milder, stronger, TRIVIAL, "invert"]
    assert contenders["specs"] == ["rotation(15)", "flips", TRIVIAL]  # and the best recipe
    assert strengths["specs"] == ["rotation(15)", milder, stronger]
    assert shorter["specs"] == ["rotation(15)"]
    assert [one["trial"].examples for one in made] == [20, 30, 40, 50, 40, 40]
    assert [one["numbers"] for one in made] == [[0], [2], [3], [4, 8], [4, 5], [4, 5]]
    assert [one["curve"] for one in made] == [False, True, False, False, False, False]
    assert [one["trial"].epochs for one in made] == [7, 7, 7, 7, 7, 3]
    assert {one["trial"].folds for one in made} == {8}
    assert {one["trial"].network for one in made} == {"small"}
    assert {one["trial"].side for one in made} == {32}
    assert {one["seed"] for one in made} == {5}
    assert {one["device"] for one in made} == {CPU}
    assert {one["own"] for one in made} == {None}
    total = sum(WORK.work(images()))
    assert seen[0] == (20, total, "single families: rotation(15)")
    assert [done for done, *_ in seen[:4]] == [20, 40, 60, 20 * 6 + 30]  # three replicas besides
    ahead = 20 * 6 + 30 * (len(policies["specs"]) + 6) + 40 * 9
    assert (ahead + 3 * 50, total, f"contenders: {TRIVIAL}") in seen
    assert [step["round"] for step in found.path] == [
        "single families", "policies", "leaders and recipes", "contenders",
        "parts and strengths", "half of the epochs",
    ]  # fmt: skip
    assert [step["folds"] for step in found.path] == [1, 1, 1, 2, 2, 2]
    assert [step["policies"] for step in found.path] == [3, len(policies["specs"]), 6, 3, 3, 1]
    assert [step["examples"] for step in found.path] == [20, 30, 40, 50, 40, 40]
    assert [step["epochs"] for step in found.path] == [7, 7, 7, 7, 7, 3]
    assert {step["network"] for step in found.path} == {"small"}
    assert all(0 <= step["seconds"] < 60 for step in found.path)
    assert (found.seed, found.plan["epochs"]) == (5, 7)
    assert 0 < found.seconds < 600
    assert found.trust == trust(small=True, own=False)


def test_what_is_expected_follows_from_leaders_and_contenders(made):
    found = search_policy(images(), device="cpu")
    gains = {spec: GAINS.get(spec, 0.0) for spec in made[2]["specs"]}
    kept = made[3]["specs"]
    once = forecast([fold(gains.values())], 40, RATE)
    again = forecast([fold([gains[spec] for spec in kept])] * 3, 50, RATE)
    order = list(gains)
    moved = [again.shift(k)[0] - once.shift(order.index(spec))[0] for k, spec in enumerate(kept)]
    offset = sum(moved) / len(moved)
    judged = {spec: once.judge(k, again, offset) for k, spec in enumerate(gains)}
    judged |= {spec: again.judge(k) for k, spec in enumerate(kept)}
    assert found.spec == "rotation(15)"
    assert found.baseline == pytest.approx(100 * again.baseline.expected)
    rows = [row for row in found.rows if row.role in ("chosen", "rival", "tried")]
    assert {row.spec for row in rows} == set(gains)
    for row in rows:
        one = judged[row.spec]
        assert (row.gain, row.low, row.high) == pytest.approx((one.gain, one.low, one.high))
        assert row.probability == pytest.approx(one.probability)
        assert row.rounds == 1 + (row.spec in made[1]["specs"]) + (row.spec in kept)
    roles = {row.spec: row.role for row in rows}
    assert roles["rotation(15)"] == "chosen"
    assert roles["flips"] == "tried"
    assert roles[TRIVIAL] == roles["invert"] == "rival"
    assert [row.gain for row in found.rows] == sorted((r.gain for r in found.rows), reverse=True)
    best, recipe = judged["rotation(15)"].gain, judged[TRIVIAL].gain
    assert found.reason == (
        f"It is expected to gain {best:.1f} points over no augmentation, and {best - recipe:.1f} "
        "more than the best of the common recipes."
    )
    assert found.per_class == dict(zip("0123456789", judged["rotation(15)"].per_class, strict=True))
    assert found.contributions == {}  # one part is the whole


def test_what_leads_within_the_noise_is_said(made, monkeypatch):
    monkeypatch.setitem(GAINS, TRIVIAL, 0.145)
    found = search_policy(images(), device="cpu")
    assert found.spec == "rotation(15)"
    assert found.reason.endswith("recipes, which is within the noise of the trial.")


def test_parts_and_strengths_are_tried_beside_the_whole(made, monkeypatch):
    both = "rotation(15) >> flips"
    monkeypatch.setitem(GAINS, both, 0.3)
    milder, stronger = (repr(space.with_strength(parse(both), step)) for step in (-1, 1))
    monkeypatch.setitem(GAINS, milder, 0.05)
    found = search_policy(images(), device="cpu", epochs=8)
    assert found.spec == both
    *_, parts, shorter = made
    assert parts["specs"] == [both, "flips", "rotation(15)", milder, stronger]
    assert parts["numbers"] == shorter["numbers"] == [4, 5]
    assert parts["trial"].examples == 40
    alone = forecast([fold([0.3, 0.1, 0.16, 0.05, 0.0])] * 2, 40, RATE)
    whole = alone.judge(0).gain
    lost = [whole - alone.judge(k).gain for k in (1, 2)]
    error = alone.run_spread() * math.sqrt(2 / (1 + 1 / 2))
    added = pool(lost, [1, 1], found.chosen.gain, error)
    rows = {(row.role, row.part): row for row in found.rows}
    named = [("part", "rotation(15)"), ("part", "flips"), ("milder", ""), ("stronger", "")]
    for k, name in enumerate(named, start=1):
        row, one = rows[name], alone.judge(k)
        assert row.spec == parts["specs"][k]
        points = added[k - 1] if row.role == "part" else whole - one.gain
        assert row.gain == pytest.approx(found.chosen.gain - points)
        moved = row.gain - one.gain
        assert (row.low, row.high) == pytest.approx((one.low + moved, one.high + moved))
        assert row.rounds == 1
    for part in ("rotation(15)", "flips"):
        lost = found.chosen.gain - rows["part", part].gain
        assert found.contributions[part] == pytest.approx(lost)
    assert shorter["trial"].epochs == 4
    one = forecast([fold([0.3])] * 2, 40, RATE).judge(0)
    assert rows["shorter", "4"].gain == pytest.approx(one.gain)
    assert (rows["shorter", "4"].spec, rows["shorter", "4"].rounds) == (both, 1)
    once = search_policy(images(), device="cpu", epochs=1)
    assert made[-1]["trial"].epochs == 1
    assert once.spec == both


def test_at_most_eight_parts_are_left_out(made, monkeypatch):
    parts = [parse(f"noise({k / 100})") for k in range(1, 11)]
    one = searching()
    one.spread, one.learnt = 1.0, True
    rows = one._variations(Then.of(*parts), 1.0)
    assert sum(row.role == "part" for row in rows) == 8


def test_where_nothing_helps_nothing_is_chosen(made, monkeypatch):
    for spec in GAINS:
        monkeypatch.setitem(GAINS, spec, -0.1)
    found = search_policy(images(), device="cpu")
    assert found.spec == "identity"
    assert found.reason == f"None of the policies tried was {ENOUGH}."
    row = found.chosen
    assert (row.gain, row.low, row.high, row.probability, row.rounds) == (0, 0, 0, 0.5, 2)
    assert found.per_class == {}
    monkeypatch.setitem(globals(), "GAINS", Low(GAINS) | {"noise(0.05)": -0.04})
    fixed = search_policy(images(), device="cpu", always=["noise(0.05)"])
    assert fixed.spec == "noise(0.05)"
    assert fixed.reason == (
        f"No policy with the required parts was {ENOUGH}; this one came closest."
    )
    assert fixed.chosen.gain < -1  # what they cost is not hidden
    assert fixed.chosen.low < fixed.chosen.gain < fixed.chosen.high
    assert fixed.chosen.probability < 0.4
    assert fixed.per_class
    rows = [row for row in fixed.rows if row.role != "shorter"]
    assert [row.spec for row in rows].count("noise(0.05)") == 1
    tried = next(
        one["specs"] for one in made[::-1] if TRIVIAL in one["specs"] and one["numbers"] == [3]
    )
    assert tried.count("noise(0.05)") == 1  # what is fixed was tried by itself


def test_where_nothing_is_learnt_the_default_is_mild(made, monkeypatch):
    def nothing(data, fitted, trial, numbers, **options):
        gains = [GAINS.get(repr(policy), 0.0) for policy in fitted]
        return [fold(gains, base=0.1, loss=2.4) for _ in numbers]

    monkeypatch.setattr(rounds, "run_folds", nothing)
    found = search_policy(images(), device="cpu")
    assert found.spec == search.MILD
    assert "learnt nothing beyond the most frequent class" in found.reason
    row = found.chosen
    assert (row.gain, row.probability, row.rounds) == (0, 0.5, 0)
    assert (row.low, row.high) == (-found.baseline, 100 - found.baseline)
    assert "this is a mild default" in found.reason
    never = search_policy(images(), device="cpu", never=["flips", "geometry"])
    assert never.spec == "identity"
    assert "the mild default is excluded" in never.reason
    assert found.contributions == {}
    assert len(found.path) == 4
    fixed = search_policy(images(), device="cpu", never=["scaling"], always=["invert"])
    assert fixed.spec == "invert"


def test_a_recipe_wins_where_nothing_is_clearly_better(made, monkeypatch):
    monkeypatch.setitem(GAINS, TRIVIAL, 0.155)
    found = search_policy(images(), device="cpu")
    assert found.spec == TRIVIAL
    assert found.reason == ("No policy built for this data is clearly better than this recipe.")
    assert found.given is None
    monkeypatch.setitem(GAINS, "cutout(0.25)", 0.3)
    own = search_policy(images(), device="cpu", rivals=["cutout(0.25)"])
    assert own.spec == "cutout(0.25)"
    assert own.given is None  # its spec says it all


def test_a_recipe_that_is_not_allowed_may_not(made, monkeypatch):
    monkeypatch.setitem(GAINS, TRIVIAL, 0.3)
    found = search_policy(images(), device="cpu", never=["cutout"])
    assert found.spec == "rotation(15)"
    assert TRIVIAL in {row.spec for row in found.rivals}
    fixed = search_policy(images(), device="cpu", always=["flips"])
    assert fixed.spec.startswith("flips")


def test_a_chain_with_learned_rates_takes_part(made, monkeypatch):
    asked = []

    def learned(data, parts, seed):
        asked.append((list(map(repr, parts)), seed))
        return Chain(tuple(parts), (0.5, 0.25))

    monkeypatch.setattr(search, "learned_chain", learned)
    search_policy(images(), device="cpu", seed=4)
    assert asked == [(["rotation(15)", "flips"], 4)]
    assert "chain(rotation(15):0.5, flips:0.25)" in made[1]["specs"]
    monkeypatch.setitem(GAINS, "flips", -0.1)
    search_policy(images(), device="cpu")
    assert len(asked) == 1  # one that helps makes no chain


def test_a_chain_has_four_parts_at_most(made, monkeypatch):
    five = [parse(s) for s in ("rotation(15)", "flips", "noise(0.05)", "hue(0.1)", "invert")]
    monkeypatch.setattr(space, "default_augmentations", lambda kind, shape: list(five))
    asked = []
    monkeypatch.setattr(search, "learned_chain", lambda data, parts, seed: asked.append(parts))
    for gain, single in enumerate(five):
        monkeypatch.setitem(GAINS, repr(single), 0.3 - gain / 20)
    search_policy(images(), device="cpu")
    assert asked == [five[:4]]


def test_what_does_no_harm_is_drawn_from(made, monkeypatch):
    monkeypatch.setitem(GAINS, "noise(0.05)", 0.0)
    search_policy(images(), device="cpu")
    assert "rotation(15) | flips | noise(0.05)" in made[1]["specs"]
    assert "rotation(15) | noise(0.05)" not in made[1]["specs"]  # it does not help either


def test_the_clearly_worse_leave_the_race(made, monkeypatch):
    """Two meet again whatever they gained; a third only within two standard errors."""
    monkeypatch.setitem(effort.EFFORTS, "cpu", replace(WORK, finalists=4, contenders=4))
    both = "rotation(15) | flips"
    spread = forecast([fold([0.3, 0.0])], 40, RATE).run_spread()
    for behind, stays in ((1.5, True), (2.6, False)):
        made.clear()
        monkeypatch.setitem(GAINS, "rotation(15)", 0.3)
        monkeypatch.setitem(GAINS, "flips", 0.29)
        monkeypatch.setitem(GAINS, both, round(0.3 - 2 * behind * spread / 100, 3))
        search_policy(images(), device="cpu")
        assert both in made[2]["specs"]
        assert (both in made[3]["specs"]) is stays


def test_all_are_compared_with_the_same_training_without_augmentation(made, monkeypatch):
    """Where it was unlucky in the first fold, those that were tried there alone gain no more."""

    def run_folds(data, fitted, trial, numbers, **options):
        gains = [GAINS.get(repr(policy), 0.0) for policy in fitted]
        base = 0.3 if list(numbers) == [3] else 0.6  # the leaders, and everything else
        return [fold([g + 0.6 - base for g in gains], base=base) for _ in numbers]

    usual = search_policy(images(), device="cpu")
    monkeypatch.setattr(rounds, "run_folds", run_folds)
    found = search_policy(images(), device="cpu")
    gains = {row.spec: row.gain for row in found.rows if row.role in ("chosen", "rival", "tried")}
    assert max(gains, key=gains.get) == found.spec == usual.spec
    assert abs(gains["invert"]) < 6  # it changes nothing, where 30 points were lost by chance
    assert found.baseline == pytest.approx(60, abs=10)


def test_what_is_said_of_trust_depends_on_whose_network_it_is(made, monkeypatch):
    monkeypatch.setattr(effort, "OWN", WORK)
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    found = search_policy(images(), device="cpu", network=network)
    assert found.trust == trust(small=True, own=True)


def test_the_planned_network_is_trained_from_the_second_round_on(made, monkeypatch):
    monkeypatch.setitem(effort.EFFORTS, "cpu", replace(WORK, planned=True))
    found = search_policy(images(), device="cpu")
    assert [one["trial"].network for one in made] == ["small", *["cnn"] * 5]
    kept = [GAINS.get(spec, 0.0) for spec in made[3]["specs"]]
    again = forecast([fold(kept)] * 3, 50, RATE, PLANNED)
    assert found.chosen.gain == pytest.approx(again.judge(0).gain)
    assert found.chosen.high == pytest.approx(again.judge(0).high)


def test_a_journal_knows_the_rounds(made, tmp_path):
    journal = tmp_path / "rounds.npz"
    found = search_policy(images(), device="cpu", journal=journal)
    before = len(made)
    again = search_policy(images(), device="cpu", journal=journal)
    assert len(made) == before
    assert again.rows == found.rows


def test_what_is_excluded_is_said_to_be(made, monkeypatch):
    monkeypatch.setitem(GAINS, TRIVIAL, 0.3)
    found = search_policy(images(), device="cpu", never=["colour"])
    assert found.chosen.spec != TRIVIAL
    recipe = next(row for row in found.rows if row.spec == TRIVIAL)
    assert recipe.gain > found.chosen.gain
    assert not recipe.allowed
    assert found.chosen.allowed
    assert found.reason.endswith("over no augmentation; every common recipe is excluded.")
    for spec in ("rotation(15)", "flips"):
        monkeypatch.setitem(GAINS, spec, -0.1)
    found = search_policy(images(), device="cpu", never=["colour"])
    assert found.reason == f"None of the allowed policies was {ENOUGH}."
    again = augury.Policy.from_json(found.to_json())
    assert [row.allowed for row in again.rows] == [row.allowed for row in found.rows]


def test_where_required_parts_hurt_what_loses_least_is_chosen(made, monkeypatch):
    monkeypatch.setitem(globals(), "GAINS", Low({"flips >> invert": -0.04}))
    monkeypatch.setattr(space, "RIVALS", ("flips >> invert", "invert >> flips"))
    found = search_policy(images(), device="cpu", always=["flips"])
    assert found.spec == "flips >> invert"
    assert found.chosen.gain < 0
    assert found.reason.endswith("this one came closest.")


@pytest.mark.parametrize(("count", "few"), [(59, True), (60, False)])
def test_sixty_images_are_enough(made, count, few):
    data = images(count)
    if not few:
        with pytest.raises(IndexError):  # the made-up folds have 200 examples
            search_policy(data, device="cpu")
        assert made
        return
    found = search_policy(data, device="cpu")
    assert found.spec == search.MILD
    assert "59 images are too few" in found.reason
    row = found.chosen
    assert (row.gain, row.low, row.high, row.probability, row.rounds) == (0, -100, 100, 0.5, 0)
    assert found.baseline == 0
    other = search_policy(data, device="cpu", never=["scaling"], always=["invert"])
    assert other.spec == "invert"
    kept = search_policy(data, device="cpu", always=["invert"])
    assert kept.spec == f"invert >> {search.MILD}"


def test_images_are_shrunk_once_for_each_side(made, monkeypatch):
    monkeypatch.setitem(effort.EFFORTS, "cpu", replace(WORK, planned=True))
    sides = []

    def shrink(data, candidates, side):
        sides.append(side)
        return trial.shrink(data, candidates, side)

    monkeypatch.setattr(rounds, "shrink", shrink)
    monkeypatch.setitem(GAINS, "blur(0.5,1.5)", 0.2)  # of blur(1,3), on half of the pixels
    families = [parse(spec) for spec in ("blur(1,3)", "flips")]
    monkeypatch.setattr(space, "default_augmentations", lambda kind, shape: families)
    search_policy(images(side=64), epochs=2, device="cpu")
    assert sides == [32, 64]
    assert [asked["trial"].side for asked in made][:4] == [32, 32, 64, 64]
    assert "blur(0.5,1.5)" in made[0]["specs"]
    assert "blur(1,3)" in made[2]["specs"]
