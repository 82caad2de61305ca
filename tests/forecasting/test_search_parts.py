"""What a search checks and prepares before its rounds, and what it makes of what they found."""

from __future__ import annotations

import inspect
import math
import time
from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from made_search import CPU, RATE, WORK, fold, forecast, images
from refusal import refused
from torch import nn

import augury
from augury.augmentations import parse
from augury.forecasting.forecast import Judgement
from augury.forecasting.policy import rounds, search, search_policy, space
from augury.forecasting.policy.parts import pool
from augury.forecasting.policy.rounds import Rounds
from augury.forecasting.policy.space import Space


@pytest.fixture
def begun(monkeypatch):
    """Searches that end where their rounds would begin: what these would be given."""
    seen = []

    class Begun:
        def __init__(self, rounds, space, rivals):
            self.given = {"rounds": rounds, "space": space, "rivals": rivals}

        def run(self, started, command, *_):
            seen.append({**self.given, "started": started, "command": command})
            return "found"

    monkeypatch.setattr(search, "_Search", Begun)
    monkeypatch.setattr(search, "choose_effort", lambda *given: WORK)
    return seen


def test_defaults_are_those_of_the_docs():
    given = {k: p.default for k, p in inspect.signature(search_policy).parameters.items()}
    assert (given["max_examples"], given["seed"], given["device"]) == (20_000, 0, "auto")
    assert (given["pretrained"], given["tune"], given["always"]) == (False, "all", ())
    assert (search._FEW, search._CLEARLY, search._TIED) == (60, 2.0, 1.0)


def test_what_rounds_are_given(begun):
    data = images()
    found = search_policy(
        data, epochs=3, seed=4, device="cpu", started=5.0, command="augury search",
        always=["flips"], rivals=["invert"], max_examples=None,
    )  # fmt: skip
    assert found == "found"
    (one,) = begun
    assert (one["started"], one["command"]) == (5.0, "augury search")
    assert (one["space"].always, one["rivals"]) == ((parse("flips"),), [parse("invert")])
    made = one["rounds"]
    assert (made.plan.epochs, made.seed, made.device, made.own) == (3, 4, CPU, None)
    assert made.effort == WORK
    assert made.total == sum(WORK.work(data))
    assert len(made.data) == len(data)
    before = time.perf_counter()
    search_policy(data, device="cpu", max_examples=100)
    assert begun[1]["started"] >= before
    assert len(begun[1]["rounds"].data) == 100


def test_the_work_of_a_journal_is_kept(begun, tmp_path, monkeypatch):
    journal = tmp_path / "rounds.npz"
    search_policy(images(), device="cpu", journal=journal)
    kept = begun[0]["rounds"].journal
    assert kept.effort == asdict(WORK)
    kept.write("first", [], [])
    monkeypatch.setattr(search, "choose_effort", None)  # the clock is not asked again
    search_policy(images(), device="cpu", journal=journal)
    assert begun[1]["rounds"].effort == WORK


def test_a_network_of_ones_own_is_checked_and_may_have_any_name(begun):
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    plan = augury.TrainingPlan(network="mine")
    search_policy(images(), device="cpu", network=net, plan=plan, pretrained=True, tune="head")
    own = begun[0]["rounds"].own
    assert (own.network, own.pretrained, own.tune) == (net, True, "head")
    assert begun[0]["rounds"].plan.network == "mine"
    few = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
    refused("give its last layer 10 outputs", search_policy, images(), device="cpu", network=few)
    refused("must be cnn, resnet, lenet or", search_policy, images(), device="cpu", plan=plan)
    for name in ("cnn", "resnet", "lenet"):
        search_policy(images(), device="cpu", plan=augury.TrainingPlan(network=name))
    assert len(begun) == 4


def test_images_with_one_label_each_are_needed(begun):
    x = images().x.numpy()[:, 0]
    rng = np.random.default_rng(0)
    needs = "a policy search needs images with one label each, but"
    others = f"{needs} these images have several labels or a numeric target; use rank"
    refused(others, search_policy, x, rng.random(200))
    tags = rng.integers(0, 2, (200, 3))
    refused(others, search_policy, x, tags)
    series = rng.normal(size=(200, 1, 9))
    data = augury.as_dataset(series, np.arange(200) % 2, kind="series")
    refused(f"{needs} this is series data; use rank", search_policy, data)
    refused("max_examples must be a whole number", search_policy, x, max_examples="all")
    pixels = rng.integers(0, 255, (70, 8, 12), np.uint8)
    wide = augury.as_dataset(pixels, np.arange(70) % 2)
    for where in ("always", "rivals"):
        refused("quarter_turns", search_policy, wide, **{where: ["quarter_turns"]})
    assert begun == []


def test_seconds_have_three_digits(monkeypatch):
    monkeypatch.setattr(time, "perf_counter", lambda: 101.23456)
    found = search_policy(images(59), device="cpu", started=100.0, seed=3, command="augury search")
    assert (found.seconds, found.seed, found.command) == (1.235, 3, "augury search")
    monkeypatch.setattr(search, "_Search", Ended)
    monkeypatch.setattr(search, "choose_effort", lambda *given: WORK)
    found = search_policy(images(), device="cpu", started=100.0)
    assert found.seconds == 1.235


class Ended(search._Search):
    """A search whose rounds are over: nothing was learnt, and one rival is the mild default."""

    learnt, baseline, spread = False, 40.0, 1.0

    def _singles(self):
        return [], []

    def _leaders(self, tried):
        return [parse("flips"), parse(search.MILD), parse("invert")]

    def _race(self, final):
        return [Judgement(50 + k, k, k - 1, k + 1, 0.9) for k in range(3)], [0, 2]


def test_where_nothing_is_learnt_the_default_has_one_row(monkeypatch):
    monkeypatch.setattr(space, "RIVALS", ("invert",))
    monkeypatch.setattr(search, "_Search", Ended)
    monkeypatch.setattr(search, "choose_effort", lambda *given: WORK)
    found = search_policy(images(), device="cpu", seed=3)
    rows = [(row.spec, row.role, row.gain, row.rounds) for row in found.rows]
    assert rows == [
        ("invert", "rival", 2, 3), ("flips", "tried", 0, 2), (search.MILD, "chosen", 0.0, 0),
    ]  # fmt: skip
    assert (found.spec, found.baseline, found.per_class) == (search.MILD, 40.0, {})
    assert found.given is None


def searching(**given):
    made = Rounds(images(), augury.TrainingPlan(), CPU, 3, given.pop("effort", WORK), rate=RATE)
    one = search._Search(made, Space.of(given.get("always", []), given.get("never", [])), [])
    one.spread, one.learnt = 1.0, True
    return one


def judgement(gain):
    return Judgement(50 + gain, gain, gain - 1, gain + 1, 0.9)


@pytest.mark.parametrize(("folds", "replicas"), [(1, 2), (2, 2), (2, 3)])
def test_of_the_differences_between_parts_what_exceeds_noise_is_kept(monkeypatch, folds, replicas):
    """The whole and each part are trained once in a fold; no augmentation, several times."""
    gains = {"invert >> hue(0.1)": 0.0, "flips >> hue(0.1)": 0.14, "flips >> invert": 0.05}

    def made(gains):
        one = fold(gains)
        return replace(one, replicas=torch.full((replicas,), 0.5, dtype=torch.float64))

    def run_folds(data, fitted, trial, numbers, **options):
        assert list(numbers) == list(range(4, 4 + folds))
        return [made([gains.get(repr(one), 0.15) for one in fitted])] * len(numbers)

    monkeypatch.setattr(rounds, "run_folds", run_folds)
    one = searching(effort=replace(WORK, part_folds=folds))
    chosen = parse("flips >> invert >> hue(0.1)")
    tried = {row.part: row for row in one._variations(chosen, 5.0) if row.role == "part"}
    others = list(gains.values())
    stronger = [space.with_strength(chosen, step) for step in (-1, 1)]
    seen = [0.15, *others, *(0.15 for other in stronger if other != chosen)]
    found = forecast([made(seen)] * folds, WORK.final, RATE)
    lost = [found.judge(0).gain - found.judge(k).gain for k in (1, 2, 3)]
    error = found.run_spread() * math.sqrt(2 / (1 + 1 / replicas))
    added = pool(lost, [1, 1, 1], 5.0, error)
    mean = sum(lost) / 3
    assert max(abs(a - mean) for a in added) > 0.3  # not all of it is noise
    assert max(abs(a - b) for a, b in zip(added, lost, strict=True)) > 0.05  # some of it is
    for part, points in zip(("flips", "invert", "hue(0.1)"), added, strict=True):
        assert tried[part].gain == pytest.approx(5.0 - points)


def test_parts_that_are_the_same_are_left_out_once():
    one = searching()
    asked = []
    one.rounds = SimpleNamespace(
        run=lambda title, tried, *_, **__: asked.append(tried) or [fold([0.1] * len(tried))],
        forecast=lambda folds, size: forecast(folds, size, RATE), plan=augury.TrainingPlan(),
    )  # fmt: skip
    rows = one._variations(parse("flips >> invert >> flips"), 1.0)
    assert [row.part for row in rows if row.role == "part"] == ["flips", "invert"]
    assert [len(tried) for tried in asked] == [3, 1]
    assert one._variations(parse("identity"), 1.0) == []


def test_reasons():
    one = searching()
    one.rivals = [parse("trivial_augment"), parse("invert")]
    final = [parse("flips"), *one.rivals]

    def reason(best, *gains):
        return one._reason(best, final, [judgement(gain) for gain in gains])

    said = "It is expected to gain 5.0 points over no augmentation, and"
    assert reason(0, 5.0, 1.0, 2.5) == f"{said} 2.5 more than the best of the common recipes."
    noise = ", which is within the noise of the trial."
    assert reason(0, 5.0, 3.5, 2.5) == f"{said} 1.5 more than the best of the common recipes{noise}"
    one.spread = 0.5  # two standard errors are a point
    assert reason(0, 5.0, 3.5, 2.5) == f"{said} 1.5 more than the best of the common recipes."
    fewer = "It is expected to gain 3.0 points over no augmentation, but 0.5 fewer than the best"
    assert reason(0, 3.0, 3.5, 2.5) == f"{fewer} of the common recipes{noise}"
    one.space = Space.of([], ["hue"])
    assert (
        reason(0, 5.0, 9.0, 2.5)
        == f"{said} 2.5 more than the best of the recipes that are allowed."
    )
    one.space = Space.of([], ["hue", "invert"])
    assert reason(0, 5.0, 9.0, 9.0).endswith("; every common recipe is excluded.")
    assert reason(None, 0.0, 9.0, 9.0) == (
        "None of the allowed policies was at least 0.2 points better than training without "
        "augmentation."
    )
    one.space = Space.of(["flips"], [])
    assert reason(None, 0.0, 0.0, 0.0).startswith("No policy with the required parts was")
    assert reason(0, 5.0, 9.0, 9.0).endswith("; every common recipe is excluded.")
    assert reason(1, 5.0, 9.0, 9.0).startswith("No policy built for this data is clearly better")


def test_without_a_choice_required_parts_stay():
    final = [parse("flips >> invert"), parse("flips >> hue(0.1)"), parse("noise(0.1)")]
    judged = [judgement(gain) for gain in (-2.0, -1.0, 3.0)]
    assert repr(searching()._fallback(final, judged)) == "identity"
    fixed = searching(always=["flips"])
    assert fixed._fallback(final, judged) == final[1]  # it loses least
    assert repr(fixed._fallback(final[2:], judged[2:])) == "flips"
    fixed.learnt = False
    assert "learnt nothing" in fixed._reason(None, final, judged)
    fixed.unstable = True
    assert fixed._reason(None, final, judged).startswith("Runs without augmentation differ too")
    assert repr(fixed._fallback(final, judged)) == f"flips >> {search.MILD}"
    forbidden = searching(never=["scaling"])
    forbidden.learnt = False
    assert repr(forbidden._fallback(final, judged)) == "identity"


def test_single_families_are_tried_and_judged_with_a_small_network(monkeypatch):
    """Whatever network the later rounds train."""
    families = [parse("flips"), parse("invert"), parse("noise(0.05)")]
    monkeypatch.setattr(space, "default_augmentations", lambda kind, shape: families)
    one, asked = searching(effort=replace(WORK, planned=True, first_folds=2)), []

    def run(title, tried, size, numbers, planned=True):
        asked.append((title, size, list(numbers), planned))
        return [fold([0.1, 0.0, -0.1])]

    def judged(folds, size, planned=True):
        asked.append((size, planned))
        return forecast(folds, size, RATE)

    one.rounds = SimpleNamespace(run=run, forecast=judged)
    helping, harmless = one._singles()
    assert asked == [("single families", 20, [0, 1], False), (20, False)]
    assert (helping, harmless) == (families[:1], families[:2])
