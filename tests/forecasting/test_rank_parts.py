"""The parts of `rank`: what it checks, keeps, fits and counts, one by one."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from refusal import refused
from torch import nn

import augury
from augury._base.errors import AuguryError
from augury.augmentations import parse, snr_noise
from augury.cluster import Journal
from augury.data import as_dataset
from augury.data.stream import Shards
from augury.features import GradientFeatures
from augury.forecasting.forecast import Judgement
from augury.forecasting.rank import as_budget
from augury.forecasting.scores import SCORES, Score
from augury.forecasting.scores.base import Judged
from augury.forecasting.training.spectrogram import front_end
from augury.forecasting.unchanged import changes_nothing
from augury.networks.digest import digest_network
from augury.networks.layers import Layer

module = sys.modules["augury.forecasting.rank"]  # the package has a function of this name
CPU = torch.device("cpu")


def images(count=20):
    x = np.random.default_rng(0).integers(0, 255, (count, 8, 8), np.uint8)
    return as_dataset(x, np.arange(count) % 2)


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 2))


class Noted(Score):
    """Notes its setting, and finds nothing."""

    name, default_features = "trial", None
    seen: list

    def judge_all(self, candidates):
        Noted.seen.append(self.setting)
        zero = Judgement(50.0, 0.0, 0.0, 0.0, 0.5, ((1.0, 0.0, 2.0), (3.0, 2.0, 4.0)))
        return Judged(zero, [zero] * len(candidates), 0.2)


@pytest.fixture
def noted(monkeypatch):
    Noted.seen = []
    monkeypatch.setitem(SCORES, "trial", Noted)
    return Noted.seen


@pytest.mark.parametrize("given", [0.5, 1, 3.0, np.float32(0.25), np.int64(7)])
def test_a_budget_is_any_positive_number(given):
    assert as_budget(given) == float(given)
    assert type(as_budget(given)) is float


@pytest.mark.parametrize(
    "given", [0, 0.0, -1, True, np.True_, "3", float("inf"), float("nan"), 1j, [3]]
)
def test_what_is_no_budget(given):
    with pytest.raises(AuguryError, match="budget must be a positive number of seconds, got"):
        as_budget(given)


def test_no_budget_is_none():
    assert as_budget(None) is None


def test_the_least_numbers_are_accepted(noted):
    data = images()
    augury.rank(data, augmentations=["flips"], effort=0, batch_size=1, n_views=1, max_examples=None)
    assert (noted[0].effort, noted[0].batch_size, noted[0].n_views) == (0, 1, 1)
    refused("batch_size must be a whole number of 1", augury.rank, data, batch_size=0)
    refused("n_views must be a whole number from 1", augury.rank, data, n_views=0)
    refused("effort must be a whole number from 0 to 10", augury.rank, data, effort=-1)


def test_seconds_are_counted_from_the_start(noted, monkeypatch):
    monkeypatch.setattr(time, "perf_counter", lambda: 101.23456)
    assert augury.rank(images(), augmentations=["flips"], started=100.0).seconds == 1.235
    assert augury.rank(images(), augmentations=["flips"]).seconds == 0
    assert [setting.started for setting in noted] == [100.0, 101.23456]


def test_a_ranking_keeps_its_jobs_in_the_journal_that_is_named(noted, tmp_path):
    data, where = images(), tmp_path / "jobs"
    augury.rank(data, augmentations=["flips"])
    assert not where.exists()
    assert noted[0].journal.path is None
    augury.rank(data, augmentations=["flips"], journal=where)
    assert noted[1].journal.path == where
    assert Journal.open(where, module._key(augury.data.InMemory(data, 20), noted[1], "trial"))
    augury.rank(data, augmentations=["invert"], journal=where)  # other candidates are other jobs
    refused("its seed differs", augury.rank, data, augmentations=["flips"], journal=where, seed=1)
    refused("its data differs", augury.rank, images(18), augmentations=["flips"], journal=where)


def test_a_journal_depends_on_the_weights_of_the_network():
    stream = SimpleNamespace(digest=lambda: "d")
    keys = []
    for seed in (0, 0, 1):
        own = SimpleNamespace(network=network(seed))
        setting = module.Setting(images(), None, 3, 5, CPU, own=own)
        keys.append(module._key(stream, setting, "trial"))
    assert keys[0] == keys[1]
    assert keys[0]["network"] == digest_network(network())
    assert keys[2]["network"] == digest_network(network(1)) != keys[0]["network"]
    assert module._key(stream, replace(setting, own=None), "trial")["network"] is None


def shards(count=12, classes=("a", "b")):
    found = object.__new__(Shards)  # without files
    found.y, found.about = torch.arange(count) % 3 % 2, SimpleNamespace(classes=classes)
    found.bounds = (0, count)
    return found


@pytest.mark.parametrize("score", ["alignment", "centred-alignment"])
def test_alignments_go_through_shards_unless_a_sample_is_asked_for(score):
    stream = shards()
    assert module._stream(stream, None, score) is stream
    assert module._stream(stream, 12, score) is stream
    assert module._stream(stream, 13, score) is stream
    assert module._stream(stream, 11, score) is None
    assert module._stream(stream, None, "ridge") is None
    assert module._stream(stream, None, None) is None
    assert module._stream(images(), None, score) is None


def test_all_examples_of_a_stream_are_counted():
    assert module._counts(shards()) == {"examples": 12, "counts": [8, 4]}
    assert module._counts(shards(classes=None)) == {"examples": 12, "counts": None}


class Moved:
    """Adds a constant, and notes what it was asked."""

    def __init__(self, by):
        self.by, self.asked = by, []

    def views(self, x, n, rng):
        self.asked.append((len(x), n))
        return (x + self.by).expand(n, *x.shape)


@pytest.mark.parametrize(
    ("count", "asked"),
    [
        (9, [(9, 7), (9, 227)]),
        (40, [(16, 4), (40, 51)]),
        (2100, [(16, 4), *[(64, 1)] * 32]),
    ],
)
def test_many_views_show_that_nothing_changes_and_few_that_something_does(count, asked):
    one, other = Moved(0.0), Moved(1.0)
    assert changes_nothing(one, images(count), 0)
    assert one.asked == asked
    assert not changes_nothing(other, images(count), 0)
    assert other.asked == asked[:1]


def test_a_change_of_the_last_class_alone_is_a_change():
    """Images as a directory gives them, class by class: only the last has colours."""
    x = np.random.default_rng(0).random((60, 3, 8, 8)).astype(np.float32)
    x[:40] = x[:40].mean(1, keepdims=True)
    data = as_dataset(x.transpose(0, 2, 3, 1), np.repeat([0, 1, 2], 20))
    assert not changes_nothing(augury.parse("grayscale(1)"), data, 0)
    assert changes_nothing(augury.parse("identity"), data, 0)


@pytest.mark.parametrize("seed", range(8))
def test_a_rare_change_is_a_change(seed):
    data = images(200)
    assert not changes_nothing(augury.parse("0.02*invert | 0.98*identity"), data, seed)


def test_what_is_not_heard_is_no_change():
    """A spectrogram of one level is the same for a waveform turned over, or made louder."""
    rng = np.random.default_rng(0)
    data = as_dataset(rng.normal(size=(20, 1, 800)), np.arange(20) % 2, rate=2000)
    front = front_end(data)
    for spec, same in (("sign_flip", True), ("gain(3)", True), ("time_flip", False)):
        one = augury.parse(spec)
        assert changes_nothing(one, data, 0, front) is same
        assert not changes_nothing(one, data, 0)
    found = augury.rank(data, None, ["sign_flip", "time_flip"], epochs=2, effort=0)
    gains = {row.augmentation: row.gain for row in found.rows}
    assert gains["sign_flip"] == 0
    assert gains["time_flip"] != 0


@pytest.mark.parametrize(("by", "nothing"), [(0.001957, True), (0.00197, False), (-0.00197, False)])
def test_half_of_the_last_bit_of_a_pixel_is_no_change(by, nothing):
    assert changes_nothing(Moved(by), images(), 0) is nothing


def test_rounding_to_the_levels_of_an_image_file_is_no_change():
    """128/255 is what becomes of 1/2, half a level away and a little for single precision."""
    data = as_dataset(np.full((9, 8, 8), 0.5, np.float32), np.arange(9) % 2)
    assert changes_nothing(augury.Sampled(lambda image: image, "pil"), data, 0)


@pytest.mark.parametrize(("by", "nothing"), [(8e-7, True), (1.3e-6, False)])
def test_a_millionth_of_a_deviation_is_no_change(by, nothing):
    table = as_dataset(np.random.default_rng(0).normal(size=(9, 3)), np.arange(9) / 7)
    assert changes_nothing(Moved(by), table, 0) is nothing


def test_feature_maps_by_name():
    made = {name: make(3) for name, make in module.FEATURES.items()}
    assert (made["fourier"].d, made["fourier"].seed) == (1024, 3)
    assert made["patches"].second is None
    assert made["patches2"].second is not None
    assert made["patches"].seed == made["patches2"].seed == 3
    assert module._FIT_SAMPLE == 1000


def test_the_feature_map_of_a_network(monkeypatch):
    monkeypatch.setattr(module, "_fit", lambda features, data, device, seed: features)
    net, ridge, trial = network(), SCORES["ridge"], SCORES["trial"]
    given = (images(), CPU, 5)
    whole = module._feature_map(None, net, None, ridge, *given)
    assert isinstance(whole, GradientFeatures)
    assert isinstance(module._feature_map(None, net, "0", ridge, *given), Layer)
    assert module._feature_map(None, None, None, ridge, *given) == ridge.default_features
    assert module._feature_map("flatten", None, None, ridge, *given) == "flatten"
    assert module._feature_map("flatten", None, None, trial, *given) == "flatten"
    assert module._feature_map(None, None, None, trial, *given) is None
    refused("uses no feature map", module._feature_map, None, net, None, trial, *given)
    refused("remove feature_map", module._feature_map, "flatten", net, None, ridge, *given)
    refused("layer '0' needs a network", module._feature_map, None, None, "0", ridge, *given)


def test_candidates_for_sound_know_its_rate_and_level(monkeypatch):
    asked = []
    monkeypatch.setattr(snr_noise, "at_rate", lambda self, *given: asked.append(given) or self)
    x = 3 * np.random.default_rng(0).normal(size=(6, 1, 400))
    data = as_dataset(x, [0, 1] * 3, kind="sound", rate=8000)
    assert module._candidates(["snr_noise(5,20)"], data) == [snr_noise(5, 20)]
    assert asked == [(8000, data.preparation.deviation[0])]
    assert data.preparation.deviation[0] == pytest.approx(3, abs=0.2)
    silent = replace(data, preparation=replace(data.preparation, deviation=(0.0,)))
    module._candidates(["snr_noise(5,20)"], silent)
    assert asked[1] == (8000, 1.0)
    module._candidates(["flips"], images())
    assert len(asked) == 2


def test_rows_of_families_and_of_other_augmentations(noted):
    specs = ["rotation(180)", "rotation(10)", "rotation(10) >> invert", "invert"]
    found = {row.augmentation: row for row in augury.rank(images(), augmentations=specs).rows}
    known = {spec: (row.family, row.magnitude) for spec, row in found.items()}
    assert known == {
        "rotation(180)": ("rotation", 180), "rotation(10)": ("rotation", 10),
        "rotation(10) >> invert": ("", None), "invert": ("", None),
    }  # fmt: skip
    assert [found[spec].strongest for spec in specs[:3]] == [True, False, False]
    assert found["invert"].per_class == {"0": (1.0, 0.0, 2.0), "1": (3.0, 2.0, 4.0)}
    assert found["invert"].probability == 0.5
    real = as_dataset(images().x.numpy()[:, 0], np.arange(20) / 7)
    (row,) = augury.rank(real, augmentations=["invert"]).rows
    assert row.per_class == {}


def test_networks_by_name_and_by_object():
    plan = augury.TrainingPlan()
    for name in ("cnn", "resnet", "lenet"):
        assert module.planned_network(plan, name, False, "all") == (
            replace(plan, network=name),
            None,
        )
    for pretrained, tune in ((True, "all"), (False, "head"), (True, "head")):
        refused("only for your own network", module.planned_network, plan, None, pretrained, tune)
        found, own = module.planned_network(plan, net := network(), pretrained, tune)
        assert (found.pretrained, found.tune, found.network, own) == (
            pretrained, tune, "Sequential", net,
        )  # fmt: skip


def test_a_verdict_that_is_not_sure_is_probable_and_no_other_changes():
    data, flips = images(), parse("flips")
    base = Judgement(50.0, 0.0, 0.0, 0.0, 0.5)
    for gain, probability, sure, clear, said in (
        (3.0, 0.95, True, True, "helps"),
        (3.0, 0.95, False, True, "probably helps"),
        (3.0, 0.95, True, False, "probably helps"),
        (-3.0, 0.05, True, True, "hurts"),
        (-3.0, 0.05, False, False, "probably hurts"),
        (3.0, 0.8, False, False, "probably helps"),
        (3.0, 0.5, False, False, "can't tell"),
    ):
        found = Judgement(50 + gain, gain, gain - 1, gain + 1, probability, clear=clear)
        judged = Judged(base, [found], 0.2, sure=sure)
        assert module._row(flips, found, judged, data).verdict == said
        unknown = module._row(flips, found, replace(judged, decides=False), data)
        assert (unknown.verdict, unknown.probability) == ("can't tell", None)
