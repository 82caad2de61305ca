"""What `rank` chooses where the caller leaves something open."""

from __future__ import annotations

import inspect
import sys

import numpy as np
import pytest
import torch
from refusal import refused
from torch import nn

import augury
from augury.augmentations import default_augmentations, flips, parse, snr_noise
from augury.data import as_dataset
from augury.forecasting import gallery as pictures
from augury.forecasting.forecast import Judgement
from augury.forecasting.gallery import make_gallery
from augury.forecasting.plan import TrainingPlan
from augury.forecasting.scores import SCORES, Score, Setting
from augury.forecasting.scores.base import Judged

module = sys.modules["augury.forecasting.rank"]  # the package has a function of this name
CPU, GPU = torch.device("cpu"), torch.device("cuda")


def images(count=20):
    x = np.random.default_rng(0).integers(0, 255, (count, 8, 8), np.uint8)
    return as_dataset(x, np.arange(count) % 2)


def recordings(samples=4000, rate=8000, classes=2):
    x = np.random.default_rng(0).normal(size=(6, 1, samples))
    return as_dataset(x, np.arange(6) % classes, kind="sound", rate=rate)


def test_defaults_are_those_of_the_docs():
    given = {k: p.default for k, p in inspect.signature(augury.rank).parameters.items()}
    assert (given["n_views"], given["max_examples"], given["seed"]) == (8, 20_000, 0)
    assert (given["pretrained"], given["tune"], given["device"]) == (False, "all", "auto")
    shown = inspect.signature(make_gallery).parameters
    assert [shown[k].default for k in ("originals", "n_views", "side")] == [4, 6, 64]


@pytest.mark.parametrize(
    ("trends", "device", "budget", "effort", "followed"),
    [
        (None, GPU, None, None, True),
        (None, CPU, None, None, False),
        (None, GPU, 9.0, None, False),
        (None, GPU, None, 3, False),
        (True, CPU, 9.0, 3, True),
        (False, GPU, None, None, False),
    ],
)
def test_leaders_are_followed_on_a_gpu_or_where_asked(trends, device, budget, effort, followed):
    assert module._follows(trends, device, budget, effort) is followed


class Noted(Score):
    """Notes which score was chosen, with what features."""

    seen: list

    def judge_all(self, candidates):
        Noted.seen.append((type(self).name, self.setting, candidates))
        zero = Judgement(50.0, 0.0, 0.0, 0.0, 0.5)
        return Judged(zero, [zero] * len(candidates), 0.2)


@pytest.fixture
def noted(monkeypatch):
    Noted.seen = []
    for name, known in list(SCORES.items()):
        made = type("Made", (Noted,), {"name": name, "default_features": known.default_features})
        monkeypatch.setitem(SCORES, name, made)
    monkeypatch.setattr(module, "make_gallery", lambda *_, **__: None)
    return Noted.seen


def test_the_score_follows_from_the_data_and_the_network(noted):
    table = as_dataset(np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
    augury.rank(images(), augmentations=["flips"])
    augury.rank(table, augmentations=["column_noise(0.1)"])
    augury.rank(table, augmentations=["jitter(0.1)"], network="cnn")
    augury.rank(images(), augmentations=["flips"], network=net)
    augury.rank(images(), augmentations=["flips"], network=net, layer="0")
    names = [name for name, *_ in noted]
    assert names == ["trial", "boosting", "trial", "trial", "kernel-ridge"]
    settings = [setting for _, setting, _ in noted]
    assert [setting.phi is None for setting in settings] == [True, True, True, True, False]
    assert settings[3].own.network is net
    assert settings[4].own is None
    assert noted[1][2][0].table is not None  # candidates know the rows


def test_series_have_a_plan_of_their_own(noted):
    data = as_dataset(np.random.default_rng(0).normal(size=(20, 1, 9)), [0, 1] * 10, kind="series")
    augury.rank(data, augmentations=["jitter(0.1)"])
    augury.rank(data, augmentations=["jitter(0.1)"], epochs=7)
    augury.rank(data, augmentations=["jitter(0.1)"], plan=TrainingPlan(epochs=8))
    plans = [setting.plan for _, setting, _ in noted]
    assert [(plan.network, plan.epochs) for plan in plans] == [("fcn", 100), ("fcn", 7), ("fcn", 8)]


def test_what_contradicts_itself_is_refused(noted):
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
    flip = {"augmentations": ["flips"]}
    refused("either epochs or a plan", augury.rank, images(), epochs=1, plan=TrainingPlan())
    refused(
        "budget and effort are only for", augury.rank, images(), **flip, score="ridge", effort=1
    )
    refused(
        "budget and effort are only for", augury.rank, images(), **flip, score="ridge", budget=9
    )
    refused("layer '0' needs a network", augury.rank, images(), **flip, layer="0")
    refused("remove feature_map", augury.rank, images(), **flip, network=net, layer="0",
            feature_map="flatten")  # fmt: skip
    refused("uses no feature map", augury.rank, images(), **flip, network=net, layer="0",
            score="trial")  # fmt: skip
    refused("score must be one of", augury.rank, images(), **flip, score="best")
    refused("the list of augmentations is empty", augury.rank, images(), augmentations=[])
    refused("for your own network", augury.rank, images(), **flip, pretrained=True)
    refused("for your own network", augury.rank, images(), **flip, tune="head")
    assert noted == []


def test_candidates(noted):
    assert module._candidates(None, images()) == default_augmentations("image", (1, 8, 8))
    assert module._candidates("flips", images()) == [flips()]
    assert module._candidates(flips(), images()) == [flips()]
    assert module._candidates(["flips", "flips", "invert"], images()) == [flips(), parse("invert")]


def test_a_journal_depends_on_all_of_this():
    class Stream:
        def digest(self):
            return "d"

    phi = augury.FourierFeatures(8, seed=0).fit(torch.rand(9, 1, 8, 8))
    setting = Setting(images(), phi, 3, 5, CPU, plan=TrainingPlan(epochs=7))
    key = module._key(Stream(), setting, "ridge")
    assert key["version"] == augury.__version__
    assert (key["data"], key["score"], key["n_views"], key["seed"]) == ("d", "ridge", 3, 5)
    assert key["features"][0] == phi.describe()
    assert (key["plan"]["epochs"], key["device"]) == (7, "cpu")
    other = augury.FourierFeatures(8, seed=1).fit(torch.rand(9, 1, 8, 8))
    changed = module._key(Stream(), Setting(images(), other, 3, 5, CPU), "ridge")
    assert changed["features"] != key["features"]
    without = module._key(Stream(), Setting(images(), None, 3, 5, CPU), "trial")
    assert without["features"] is None


def test_recordings_are_short_enough_for_a_page(monkeypatch):
    """Two recordings and three views of each candidate share what a page holds."""
    assert pictures._SAMPLES == 4_000_000
    gallery = make_gallery(recordings(), [snr_noise(5, 20)], 0)
    assert gallery is not None
    assert gallery.originals.shape == (2, 1, 1, 4000)
    assert gallery.views["snr_noise(5,20)"].shape == (2, 3, 1, 4000)
    assert gallery.rate == 8000
    monkeypatch.setattr(pictures, "_SAMPLES", 2 * 4 * 1 * 1000)
    cut = make_gallery(recordings(), [snr_noise(5, 20)], 0)
    assert cut is not None
    assert cut.originals.shape == (2, 1, 1, 1000)
    high = make_gallery(recordings(rate=16_000), [snr_noise(5, 20)], 0)
    assert high is not None
    assert (high.rate, high.originals.shape[-1]) == (8000, 1000)
    many = make_gallery(recordings(classes=3), [snr_noise(5, 20)], 0)
    assert many is not None
    assert len(many.originals) == len(many.views["snr_noise(5,20)"]) == 2
    alone = make_gallery(recordings(), [], 0)
    assert alone is not None
    assert alone.views == {}


def test_a_thin_picture_keeps_a_pixel():
    x = torch.zeros(1, 1, 3, 200, 1)
    assert pictures._picture(x, 64).shape == (1, 1, 64, 1, 3)
    bands = torch.zeros(1, 1, 40, 8, 4)  # more of them than pixels
    assert pictures._picture(bands, 4).shape == (1, 1, 4, 2, 3)
    assert pictures._picture(bands, 8).shape == (1, 1, 8, 4, 3)
    assert pictures._picture(bands, 16).shape == (1, 1, 8, 4, 3)  # is not enlarged
    colours = torch.arange(4.0).view(1, 1, 4, 1, 1).expand(1, 1, 4, 8, 8) / 255
    assert pictures._picture(colours[:, :, :3], 64)[0, 0, 0, 0].tolist() == [0, 1, 2]
    assert pictures._picture(colours, 64)[0, 0, 0, 0].tolist() == [0, 0, 0]  # no four channels
    grey_and_alpha = torch.zeros(2, 1, 2, 8, 8)
    assert pictures._picture(grey_and_alpha, 64).shape == (1, 2, 8, 8, 3)
