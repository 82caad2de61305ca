"""What `rank` does round a score, with a score that is made up."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from refusal import refused
from torch import nn

import augury
from augury.augmentations import default_augmentations, flips, parse
from augury.data import as_dataset
from augury.forecasting import gallery as pictures
from augury.forecasting.forecast import Judgement
from augury.forecasting.gallery import make_gallery
from augury.forecasting.plan import TrainingPlan
from augury.forecasting.scores import SCORES, Score
from augury.forecasting.scores.base import Judged
from augury.forecasting.unchanged import changes_nothing

module = sys.modules["augury.forecasting.rank"]  # the package has a function of this name


def images(count=20, side=8, classes=2):
    x = np.random.default_rng(0).integers(0, 255, (count, side, side), np.uint8)
    return as_dataset(x, np.arange(count) % classes)


class Made(Score):
    """Gains 1, 2, 3, … for its candidates."""

    name, default_features = "made", None
    decides, sure, clear, heard = True, True, True, True
    seen: ClassVar[list] = []

    def judge_all(self, candidates):
        Made.seen.append((self.setting, list(candidates)))
        self.expect(len(candidates))
        found = []
        for k, candidate in enumerate(candidates, start=1):
            self.tick(repr(candidate))
            classes = ((float(k), -1.0, 9.0), (0.5 * k, -2.0, 8.0))
            sign = -1 if k % 2 == 0 else 1
            found.append(Judgement(50.0 + k, sign * k, k - 2.0, k + 2.0, 0.95 if sign > 0 else 0.05,
                                   classes, clear=self.clear, faint=not self.heard))  # fmt: skip
        baseline = Judgement(50.0, 0.0, 45.0, 55.0, 0.5)
        return Judged(baseline, found, 0.2, ("be warned",), self.decides, self.sure)

    def trust(self):
        return "a little"

    def effort(self):
        return {"level": 3}

    def describe(self):
        return "made up"


@pytest.fixture
def made(monkeypatch):
    monkeypatch.setitem(SCORES, "made", Made)
    Made.seen = []
    for name in ("decides", "sure", "clear", "heard"):
        monkeypatch.setattr(Made, name, True)
    return Made


def test_rows_are_what_the_score_found_best_first(made):
    ticks = []
    found = augury.rank(
        images(), augmentations=["rotation(10)", "flips", "rotation(180)", "identity"],
        score="made", seed=5, n_views=3, epochs=7, command="augury rank",
        progress=lambda *now: ticks.append(now),
    )  # fmt: skip
    assert [(row.augmentation, row.gain, row.verdict) for row in found.rows] == [
        ("rotation(180)", 3, "helps"),
        ("rotation(10)", 1, "helps"),
        ("identity", 0, "can't tell"),
        ("flips", -2, "hurts"),
    ]
    first, _, same, _ = found.rows
    assert (first.score, first.low, first.high, first.probability) == (53, 1, 5, 0.95)
    assert first.per_class == {"0": (3.0, -1.0, 9.0), "1": (1.5, -2.0, 8.0)}
    assert (first.family, first.magnitude, first.strongest) == ("rotation", 180, True)
    assert (found.rows[1].magnitude, found.rows[1].strongest) == (10, False)
    assert (same.score, same.low, same.high, same.probability) == (50, 0, 0, 0.5)
    assert (found.baseline.score, found.baseline.low, found.baseline.high) == (50, 45, 55)
    assert (found.seed, found.n_views, found.command) == (5, 3, "augury rank")
    assert found.trust.startswith(
        "a little The verdicts “helps” and “hurts”"
    )  # one interval has 0 in it
    assert (found.features, found.effort) == ("made up", {"level": 3})
    assert found.warnings == ("be warned",)
    assert found.plan["epochs"] == 7
    assert 0 <= found.seconds < 60
    assert [now[:2] for now in ticks] == [(1, 3), (2, 3), (3, 3)]
    ((setting, candidates),) = made.seen
    assert len(candidates) == 3  # what changes nothing is not tried
    assert (setting.seed, setting.n_views, setting.plan.epochs) == (5, 3, 7)
    assert setting.device == torch.device("cpu")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("decides", "can't tell"),
        ("heard", "can't tell"),
        ("sure", "probably helps"),
        ("clear", "probably helps"),
    ],
)
def test_a_score_may_hold_verdicts_back(made, monkeypatch, name, said):
    monkeypatch.setattr(Made, name, False)
    found = augury.rank(images(), augmentations=["rotation(10)"], score="made")
    assert found.rows[0].verdict == said
    assert (found.rows[0].probability is None) == (name == "decides")
    assert ("have no verdict although" in found.trust) == (name == "heard")


def test_what_is_given_twice_is_ranked_once_and_nothing_is_refused(made):
    found = augury.rank(images(), augmentations=["flips", flips(), "flips"], score="made")
    assert len(found.rows) == 1
    assert len(augury.rank(images(), augmentations="flips", score="made").rows) == 1
    assert len(augury.rank(images(), augmentations=flips(), score="made").rows) == 1
    refused(
        "the list of augmentations is empty", augury.rank, images(), augmentations=[], score="made"
    )
    wide = as_dataset(np.random.default_rng(0).integers(0, 9, (6, 8, 12), np.uint8), [0, 1] * 3)
    refused("quarter_turns", augury.rank, wide, augmentations=["quarter_turns"], score="made")
    default = augury.rank(images(), score="made")
    assert len(default.rows) == len(default_augmentations("image", (1, 8, 8)))


def test_numbers_are_checked(made):
    for options, said in (
        ({"budget": True}, "budget must be a positive number of seconds, got True"),
        ({"budget": float("inf")}, "positive number of seconds, got inf"),
        ({"budget": -1}, "positive number of seconds, got -1"),
        ({"n_views": 0}, "n_views must be a whole number from 1 to 4,096, got 0"),
        ({"n_views": 1.5}, "n_views must be a whole number from 1 to 4,096, got 1.5"),
        ({"effort": "3"}, "effort must be a whole number from 0 to 10, got '3'"),
        ({"effort": 2.5}, "effort must be a whole number from 0 to 10, got 2.5"),
        ({"seed": "a"}, "seed must be a whole number from 0 to 9,223,372,036,854,775,807, got 'a'"),
        ({"seed": 1.5}, "from 0 to 9,223,372,036,854,775,807, got 1.5"),
        ({"max_examples": "all"}, "max_examples must be a whole number, got 'all'"),
        ({"score": ["trial"]}, "score must be one of trial"),
        ({"score": "alignment", "feature_map": 3}, "expected the name of a feature map"),
        ({"score": "magic"}, "score must be one of trial"),
        ({"score": "made", "budget": 3}, "budget and effort are only for trial"),
        ({"score": "made", "effort": 3}, "budget and effort are only for trial"),
        ({"pretrained": True}, "pass it as network"),
        ({"tune": "head"}, "pass it as network"),
        ({"network": "vgg"}, "network must be cnn, resnet"),
        ({"score": "alignment", "feature_map": "magic"}, "unknown feature map 'magic'"),
    ):
        refused(said, augury.rank, images(), augmentations=["flips"], **options)
    augury.rank(images(), augmentations=["flips"], score="made", n_views=1)


def test_plans_name_their_network(made):
    plain = TrainingPlan()
    assert module.planned_network(plain, None, False, "all") == (plain, None)
    assert module.planned_network(plain, "resnet", False, "all")[0].network == "resnet"
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
    plan, own = module.planned_network(plain, net, True, "head")
    assert (plan.network, plan.pretrained, plan.tune, own) == ("Sequential", True, "head", net)
    named = module.planned_network(TrainingPlan(network="mine"), net, False, "all")[0]
    assert named.network == "mine"


def test_a_plan_says_how_ones_own_network_is_trained():
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
    tuned = TrainingPlan(pretrained=True, tune="head")
    plan, _ = module.planned_network(tuned, net, False, "all")
    assert (plan.pretrained, plan.tune) == (True, "head")
    assert module.planned_network(tuned, net, False, "block")[0].tune == "block"
    refused("only for your own network", module.planned_network, tuned, None, False, "all")


@pytest.mark.parametrize("name", ["small", "slim", "fcn", "resnet18"])
def test_only_networks_for_images_can_be_planned_by_name(name):
    said = f"network must be cnn, resnet, lenet or a torch.nn.Module, got '{name}'"
    refused(said, module.planned_network, TrainingPlan(), name, False, "all")
    refused(said, module.planned_network, TrainingPlan(network=name), None, False, "all")


def test_what_changes_nothing_is_seen_in_the_pixels():
    data = images(40)
    assert changes_nothing(parse("identity"), data, 0)
    assert changes_nothing(augury.Sampled(lambda x: x + 0.0019), data, 0)
    assert not changes_nothing(augury.Sampled(lambda x: x + 0.0021), data, 0)
    assert not changes_nothing(augury.Sampled(lambda x: x - 0.0021), data, 0)
    table = as_dataset(np.random.default_rng(0).normal(size=(9, 3)), np.arange(9) / 7)
    assert changes_nothing(augury.Sampled(lambda x: x + 5e-7), table, 0)
    assert not changes_nothing(augury.Sampled(lambda x: x + 2e-6), table, 0)


def test_a_candidate_that_seldom_acts_is_no_idle_one():
    rare = parse("0.9*identity | 0.1*invert")
    assert not changes_nothing(rare, images(16), 0)


def test_pictures_show_different_classes():
    data = images(30, classes=6)
    assert pictures._varied(data, 3).tolist() == [0, 2, 4]  # the first of each class
    other = replace(data, y=data.y.flip(0))
    assert pictures._varied(other, 3).tolist() == [5, 3, 1]
    assert data.y[pictures._varied(data, 4)].tolist() == [0, 1, 2, 3]
    assert data.y[pictures._varied(data, 9)].tolist() == [0, 1, 2, 3, 4, 5]
    real = as_dataset(
        np.random.default_rng(0).integers(0, 9, (5, 4, 4), np.uint8), np.arange(5) / 7
    )
    assert pictures._varied(real, 3).tolist() == [0, 1, 2]
    assert pictures._varied(real, 9).tolist() == [0, 1, 2, 3, 4]


def test_a_gallery_by_hand():
    data = images(30, side=8, classes=6)
    gallery = make_gallery(data, [parse("invert")], 0)
    assert gallery is not None
    assert gallery.originals.shape == (4, 1, 8, 8, 3)
    assert gallery.views["invert"].shape == (4, 6, 8, 8, 3)
    index = pictures._varied(data, 4)
    first = data.x[index[1], 0].numpy()
    for channel in range(3):
        assert np.array_equal(gallery.originals[1, 0, :, :, channel], first)
    views = gallery.views["invert"][1]
    assert all(np.array_equal(v[..., 0], first) or np.array_equal(v[..., 0], 255 - first)
               for v in views)  # fmt: skip


def test_large_pictures_are_shrunk():
    x = np.full((4, 100, 50, 3), 40, np.uint8)
    x[0, 0, 0] = 41
    data = as_dataset(x, [0, 0, 1, 1])
    gallery = make_gallery(data, [parse("flips")], 0)
    assert gallery is not None
    assert gallery.originals.shape == (2, 1, 64, 32, 3)
    assert make_gallery(as_dataset(x[:, :64, :50], [0, 0, 1, 1]), [], 0).originals.shape[2] == 64
    table = as_dataset(np.random.default_rng(0).normal(size=(9, 3)), np.arange(9) / 7)
    assert make_gallery(table, [], 0) is None
    series = as_dataset(np.random.default_rng(0).normal(size=(6, 2, 9)), [0, 1] * 3, kind="series")
    shown = make_gallery(series, [], 0)
    assert shown is not None
    assert shown.originals.shape == (2, 1, 2, 9)


def test_the_feature_map_is_fitted_to_a_seeded_sample(monkeypatch):
    monkeypatch.setattr(module, "_FIT_SAMPLE", 7)
    seen = []

    class Watched(augury.FourierFeatures):
        def fit(self, x, y=None):
            seen.append(x.clone())
            return super().fit(x, y)

    data = images(20)
    for seed in (0, 0, 1):
        augury.rank(data, augmentations=["flips"], score="alignment", seed=seed,
                    feature_map=Watched(16, seed=0))  # fmt: skip
    assert seen[0].shape == (7, 1, 8, 8)
    assert torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[0], seen[2])
    assert set(module.FEATURES) == {"fourier", "flatten", "patches", "patches2", "gradient"}


def test_classes_that_the_trial_hardly_sees_are_warned_of(made, monkeypatch):
    data = images()
    for examples, codes in ((3, ["many-classes"]), (4, [])):
        monkeypatch.setattr(made, "effort", lambda self, k=examples: {"examples": k})
        found = augury.rank(data, augmentations=["flips"], score="made")
        said = [code for code, _ in found.dataset["warnings"] if code == "many-classes"]
        assert said == codes
