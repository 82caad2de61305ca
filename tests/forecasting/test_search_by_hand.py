"""The search for a policy, round by round, with made-up trials."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import augury
from augury._base.errors import AuguryError
from augury.augmentations import identity, parse
from augury.forecasting.forecast import PLANNED, SMALL, Forecast, Judgement
from augury.forecasting.policy import search, search_policy, space
from augury.forecasting.policy.space import Space
from augury.forecasting.trial import HeldOut

CPU = torch.device("cpu")
SIZE = 200
GAINS = {"rotation(15)": 0.08, "flips": 0.05, "noise(0.05)": -0.1, "trivial_augment(1)": 0.02}


def images(count=SIZE):
    x = np.random.default_rng(0).integers(0, 255, (count, 8, 8), np.uint8)
    return augury.as_dataset(x, np.arange(count) % 10, max_examples=None)


def fold(gains, half):
    """A fold in which half of the examples are right without augmentation."""
    index = torch.arange(SIZE)
    right = torch.stack([(index < round((0.5 + g) * SIZE)).double() for g in (0.0, *gains)], 1)
    losses = torch.full(right.shape, 1.2, dtype=torch.float64)
    reals = [torch.tensor(v, dtype=torch.float64) for v in ((0.5, 0.5), half)]
    return HeldOut(index, losses, right, *reals)


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

    monkeypatch.setattr(search, "run_folds", run_folds)
    families = [parse(spec) for spec in ("rotation(15)", "flips", "noise(0.05)")]
    monkeypatch.setattr(space, "default_augmentations", lambda kind, shape: list(families))
    monkeypatch.setattr(space, "RIVALS", ("trivial_augment", "invert"))
    effort = search.Effort(20, 30, 40, finalists=2, folds=2)
    monkeypatch.setitem(search.EFFORTS, "cpu", effort)
    return asked


def forecast(folds, trained, planned=SIZE, rate=None, calibration=SMALL):
    y = images().y
    return Forecast(
        folds, y, 10, trained=trained, planned=planned, rate=rate, calibration=calibration
    )


def test_rounds(made):
    seen = []
    found = search_policy(
        images(), epochs=7, seed=5, device="cpu", progress=lambda *now: seen.append(now)
    )
    first, second, third = made
    assert first["specs"] == ["rotation(15)", "flips", "noise(0.05)"]
    assert second["specs"] == [
        *(repr(policy) for policy in space.build([parse("rotation(15)"), parse("flips")])),
        "trivial_augment(1)",
        "invert",
    ]
    assert third["specs"] == ["rotation(15)", "flips", "trivial_augment(1)", "invert"]
    assert [one["trial"].examples for one in made] == [20, 30, 40]
    assert [one["numbers"] for one in made] == [[0], [1], [2, 3]]
    assert [one["curve"] for one in made] == [True, True, False]
    assert {one["trial"].epochs for one in made} == {7}
    assert {one["trial"].folds for one in made} == {4}
    assert {one["trial"].network for one in made} == {"small"}
    assert {one["seed"] for one in made} == {5}
    assert {one["device"] for one in made} == {CPU}
    assert seen[0] == (1, 3 + 6, "single families: rotation(15)")
    assert seen[2][:2] == (3, 9)
    assert seen[-1] == (4, 2 * (4 + 6), "leaders and recipes: invert")
    assert [(step["policies"], step["folds"]) for step in found.path] == [(3, 1), (10, 1), (4, 2)]
    assert [step["examples"] for step in found.path] == [20, 30, 40]
    assert all(step["seconds"] >= 0 for step in found.path)
    assert found.seed == 5
    assert found.plan["epochs"] == 7


def test_what_is_expected_follows_from_the_last_two_rounds(made):
    found = search_policy(images(), device="cpu")
    first, second = ([fold([], (0.4,))], [fold([], (0.4,))])
    rate = forecast(second, 30).rate
    assert forecast(first, 20).rate == rate
    gains = [0.08, 0.05, 0.02, 0.0]
    both = forecast([fold(gains, (0.4,)), fold(gains, ()), fold(gains, ())], 40, rate=rate)
    judged = {spec: both.judge(k) for k, spec in enumerate(made[2]["specs"])}
    assert found.spec == "rotation(15)"
    assert found.baseline == pytest.approx(100 * both.baseline.expected)
    for row in found.rows:
        one = judged[row.spec]
        assert (row.gain, row.low, row.high) == pytest.approx((one.gain, one.low, one.high))
        assert row.probability == pytest.approx(one.probability)
        assert row.rounds == 3
    roles = {row.spec: row.role for row in found.rows}
    assert roles == {
        "rotation(15)": "chosen",
        "flips": "tried",
        "trivial_augment(1)": "rival",
        "invert": "rival",
    }
    assert [row.gain for row in found.rows] == sorted((r.gain for r in found.rows), reverse=True)
    best, recipe = judged["rotation(15)"].gain, judged["trivial_augment(1)"].gain
    assert f"gain {best:.1f} points over no augmentation" in found.reason
    assert f"{best - recipe:+.1f} over the best of the usual recipes" in found.reason
    assert found.per_class == dict(zip("0123456789", judged["rotation(15)"].per_class, strict=True))
    assert found.contributions == {}  # one part is the whole


def test_parts_are_tried_beside_the_whole(made, monkeypatch):
    both = "(identity | rotation(15)) >> (identity | flips)"
    monkeypatch.setitem(GAINS, both, 0.2)
    found = search_policy(images(), device="cpu")
    assert found.spec == both
    parts = made[3]
    assert parts["specs"] == [
        both,
        "(identity | identity) >> (identity | flips)",
        "(identity | rotation(15)) >> (identity | identity)",
    ]
    assert parts["numbers"] == [2, 3]
    assert parts["trial"].examples == 30
    assert not parts["curve"]
    rate = forecast([fold([], (0.4,))], 30).rate
    gains = [GAINS.get(spec, 0.0) for spec in parts["specs"]]
    alone = forecast([fold(gains, ())] * 2, 30, rate=rate)
    whole = alone.judge(0).gain
    rows = {row.part: row for row in found.rows if row.role == "part"}
    assert set(rows) == {"rotation(15)", "flips"}
    for k, row in enumerate(rows[part] for part in ("rotation(15)", "flips")):
        assert row.gain == pytest.approx(found.chosen.gain - (whole - alone.judge(k + 1).gain))
        assert row.rounds == 1
        assert found.contributions[row.part] == pytest.approx(found.chosen.gain - row.gain)


def test_where_nothing_helps_nothing_is_chosen(made, monkeypatch):
    for spec in GAINS:
        monkeypatch.setitem(GAINS, spec, -0.1)
    found = search_policy(images(), device="cpu")
    assert found.spec == "identity"
    assert found.reason == "Nothing that was tried beats training without augmentation."
    row = found.chosen
    assert (row.gain, row.low, row.high, row.probability, row.rounds) == (0, 0, 0, 0.5, 3)
    assert found.per_class == {}
    fixed = search_policy(images(), device="cpu", always=["noise(0.05)"])
    assert fixed.spec == "noise(0.05)"
    assert "noise(0.05)" in made[-1]["specs"]  # what is fixed was tried by itself


def test_a_recipe_may_win(made, monkeypatch):
    monkeypatch.setitem(GAINS, "trivial_augment(1)", 0.2)
    found = search_policy(images(), device="cpu")
    assert found.spec == "trivial_augment(1)"
    assert found.chosen.role == "chosen"
    assert found.reason == "A usual recipe was at least as good as anything built for this data."
    own = search_policy(images(), device="cpu", rivals=["cutout(0.25)"])
    assert "cutout(0.25)" in {row.spec for row in own.rivals}


def test_a_recipe_that_is_not_allowed_may_not(made, monkeypatch):
    monkeypatch.setitem(GAINS, "trivial_augment(1)", 0.2)
    found = search_policy(images(), device="cpu", never=["cutout"])
    assert found.spec == "rotation(15)"
    assert "trivial_augment(1)" in {row.spec for row in found.rivals}
    first = search_policy(images(), device="cpu", always=["flips"])
    assert first.spec.startswith("flips")


def test_the_planned_network_is_trained_from_the_second_round_on(made, monkeypatch):
    effort = search.Effort(20, 30, 40, finalists=2, folds=2, planned=True)
    monkeypatch.setitem(search.EFFORTS, "cpu", effort)
    found = search_policy(images(), device="cpu")
    assert [one["trial"].network for one in made] == ["small", "cnn", "cnn"]
    rate = forecast([fold([], (0.4,))], 30).rate
    gains = [0.08, 0.05, 0.02, 0.0]
    folds = [fold(gains, (0.4,)), fold(gains, ()), fold(gains, ())]
    both = forecast(folds, 40, rate=rate, calibration=PLANNED)
    assert found.chosen.gain == pytest.approx(both.judge(0).gain)
    assert found.chosen.high == pytest.approx(both.judge(0).high)


def test_a_round_has_two_thirds_of_the_examples_at_most(made, monkeypatch):
    effort = search.Effort(2000, 2000, 2000, finalists=2, folds=5)
    monkeypatch.setitem(search.EFFORTS, "cpu", effort)
    search_policy(images(), device="cpu")
    assert {one["trial"].examples for one in made} == {133}
    assert [one["trial"].folds for one in made] == [4, 4, 5]


def searching(**options):
    effort = search.Effort(20, 30, 40)
    return search._Search(images(), augury.TrainingPlan(), Space.of(
        options.pop("always", []), options.pop("never", [])), CPU, 3, effort)  # fmt: skip


def judgement(gain):
    return Judgement(50 + gain, gain, gain - 1, gain + 1, 0.9)


def test_the_simplest_of_those_within_a_quarter_of_the_noise_is_chosen():
    one = searching()
    one._spread = 2.0
    final = [parse(spec) for spec in ("flips >> noise(0.1)", "flips", "invert", "identity | hue")]
    gains = [3.0, 2.5, 2.6, 2.4]
    judged = [judgement(gain) for gain in gains]
    assert one._choose(final, judged, [0, 1, 2, 3]) == 2  # as simple as flips, and better
    assert one._choose(final, judged, [0, 1]) == 1  # exactly a quarter of the noise behind
    assert one._choose(final, judged, [0, 3]) == 0
    assert one._choose(final, judged, []) is None
    assert one._choose(final[:1], [judgement(0.2)], [0]) == 0  # the least that matters
    assert one._choose(final[:1], [judgement(0.19)], [0]) is None


def test_rivals_must_keep_to_what_is_fixed_and_forbidden():
    flips, then = parse("flips"), parse("flips >> invert")
    assert searching()._fits(parse("trivial_augment"), [])
    fixed = searching(always=["flips"])
    assert fixed._fits(then, [])
    assert not fixed._fits(parse("invert"), [])
    forbidden = searching(never=["invert"])
    assert forbidden._fits(flips, [])
    assert not forbidden._fits(then, [])


def test_a_journal_must_agree_in_all_of_this():
    one = searching(always=["flips"], never=["hue", "blur"])
    key = one.key()
    pixels = images().x
    assert key["data"] == [200, 1, 8, 8, 900, int(pixels[::3].double().sum())]
    assert key["always"] == ["flips"]
    assert key["never"] == ["blur", "hue"]
    assert (key["seed"], key["device"]) == (3, "cpu")
    assert key["effort"]["final"] == 40
    assert key["plan"]["epochs"] == augury.TrainingPlan().epochs


@pytest.mark.parametrize(("count", "few"), [(59, True), (60, False)])
def test_sixty_images_are_enough(made, count, few):
    monkeypatched = images(count)
    if few:
        found = search_policy(monkeypatched, device="cpu")
        assert found.spec == search.MILD
        assert "59 images are too few" in found.reason
        assert (found.chosen.low, found.chosen.high, found.chosen.rounds) == (-100, 100, 0)
        other = search_policy(monkeypatched, device="cpu", never=["flips"], always=["invert"])
        assert other.spec == "invert"
        kept = search_policy(monkeypatched, device="cpu", always=["invert"])
        assert kept.spec == f"invert >> {search.MILD}"
    else:
        with pytest.raises(IndexError):  # the made-up folds have 200 examples
            search_policy(monkeypatched, device="cpu")
        assert made


@pytest.mark.parametrize(
    ("budget", "examples"),
    [
        (62250 * 0.01 / 0.85 + 1, (250, 250, 500)),
        (62250 * 0.01 / 0.85 - 1, (125, 125, 250)),
        (31125 * 0.01 / 0.85 - 1, (64, 64, 128)),
    ],
)
def test_a_budget_halves_the_examples(monkeypatch, budget, examples):
    """55, 50 and (6 + 12) × 2 × 2 policies are tried in the rounds, here for one epoch."""
    monkeypatch.setattr("augury.forecasting.effort.measure_pace", lambda *_: 0.02)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    plan = augury.TrainingPlan(epochs=1)
    found = search._effort(images(), plan, CPU, budget)
    assert (found.singles, found.built, found.final) == examples
    assert (found.finalists, found.folds) == (6, 2)
    least = (55 * 64 + 50 * 64 + 18 * 4 * 128) * 0.01 / 0.85
    with pytest.raises(AuguryError, match=f"give at least {least:.0f} s"):
        search._effort(images(), plan, CPU, least - 0.1)
    assert search._effort(images(), plan, CPU, least + 0.1).final == 128


def test_efforts():
    cpu, gpu = search.EFFORTS["cpu"], search.EFFORTS["cuda"]
    assert (cpu.singles, cpu.built, cpu.final, cpu.finalists, cpu.folds) == (250, 250, 500, 6, 2)
    assert (gpu.singles, gpu.built, gpu.final, gpu.finalists, gpu.folds) == (1000, 750, 1250, 6, 2)
    assert gpu.planned
    assert not cpu.planned
    assert search.Effort(1, 1, 1).finalists == 8
    assert identity() == parse("identity")
