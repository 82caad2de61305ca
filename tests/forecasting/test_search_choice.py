"""Which of the contenders a search chooses, and what its rows say."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from made_search import WORK, fold, images, searching

from augury.augmentations import parse
from augury.forecasting.forecast import Judgement
from augury.forecasting.policy import search
from augury.forecasting.policy.space import Space

TRIVIAL = "trivial_augment(1)"


def test_how_far_is_clearly_follows_from_the_noise_of_runs():
    """With a noise of 3 points, those who are up to 6 points behind stay."""
    gains = {"flips": 10.0, "invert": 9.0, "hue(0.1)": 4.5, "noise(0.05)": 3.5}
    final, asked = [parse(spec) for spec in gains], []

    class Made:
        data, effort = images(), replace(WORK, finalists=4, contenders=4)

        def run(self, title, policies, *_, **__):
            asked.append(list(map(repr, policies)))
            return [fold([0.0] * len(policies))]

        def forecast(self, folds, size):
            by_place = list(gains.values())
            return SimpleNamespace(
                judge=lambda k, *_: judgement(by_place[k]), run_spread=lambda: 3.0,
                shift=lambda k: (by_place[k], 0.1),
                baseline=SimpleNamespace(expected=0.5, learnt=True, unstable=False),
            )  # fmt: skip

    search._Search(Made(), Space(), [])._race(final)
    assert asked == [list(gains), ["flips", "invert", "hue(0.1)"]]


def test_what_must_be_there_must_come_first_as_a_part():
    one = searching(always=["flips"])
    for spec, able in (
        ("flips", True),
        ("flips >> noise(0.1)", True),
        ("noise(0.1) >> flips", False),
        ("flips | noise(0.1)", False),
        ("flips ** 2", False),
    ):
        assert one._eligible(parse(spec)) is able


def judgement(gain):
    return Judgement(50 + gain, gain, gain - 1, gain + 1, 0.9)


def test_among_those_within_the_noise_recipes_come_first_then_the_simplest():
    one = searching()
    one.spread, one.learnt = 1.0, True
    specs = ("flips >> noise(0.1)", "flips", "invert", "identity | hue", TRIVIAL, "rotation(5)")
    final = [parse(spec) for spec in specs]
    judged = [judgement(gain) for gain in (3.0, 2.0, 2.1, 1.9, 2.0, 2.0)]
    assert one._choose(final, judged, [0, 1, 2, 3, 4]) == 4  # a recipe
    assert one._choose(final, judged, [0, 1, 2]) == 2  # as simple as flips, and better
    assert one._choose(final, judged, [0, 1]) == 1  # exactly the noise behind
    assert one._choose(final, judged, [0, 3]) == 0
    assert one._choose(final, judged, []) is None
    assert one._choose(final[:1], [judgement(0.2)], [0]) == 0  # the least that matters
    assert one._choose(final[:1], [judgement(0.19)], [0]) is None
    low = [judgement(0.21), judgement(0.19)]
    assert one._choose([final[0], final[4]], low, [0, 1]) == 0  # a recipe that gains too little
    strong = [parse("rotation(45)"), parse("rotation(5)")]
    assert one._choose(strong, [judgement(3.0), judgement(2.9)], [0, 1]) == 1  # the milder
    one.learnt = False
    assert one._choose(final, judged, [0, 1, 2]) is None


def test_what_may_be_chosen():
    flips, then = parse("flips"), parse("flips >> invert")
    assert searching()._eligible(parse("trivial_augment"))
    fixed = searching(always=["flips"])
    assert fixed._eligible(then)
    assert not fixed._eligible(parse("invert"))
    forbidden = searching(never=["invert"])
    assert forbidden._eligible(flips)
    assert not forbidden._eligible(then)
