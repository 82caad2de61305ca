from __future__ import annotations

import json

import numpy as np
import pytest
import reference
import torch
from refusal import refused
from sklearn.datasets import load_digits

import augury
from augury._base.devices import resolve_device
from augury._base.errors import AuguryError
from augury.augmentations import identity, rotation
from augury.forecasting.gallery import make_gallery
from augury.forecasting.scores import AlignmentScore, Setting
from augury.forecasting.verdicts import verdict
from augury.results.ranking import Ranking

SPECS = ["rotation(10)", "vertical_flip", "noise(0.1)"]


@pytest.fixture(scope="module")
def digits():
    return load_digits()


@pytest.fixture(scope="module")
def ranking(digits):
    return augury.rank(digits.images, digits.target, SPECS, score="alignment", max_examples=600)


def test_rows_are_sorted_and_consistent(ranking):
    gains = [row.gain for row in ranking.rows]
    assert gains == sorted(gains, reverse=True)
    assert {row.augmentation for row in ranking.rows} == set(SPECS)
    for row in ranking.rows:
        assert row.gain == pytest.approx(row.score - ranking.baseline.score)
        assert row.low < row.gain < row.high
        assert row.verdict == verdict(row.gain, row.probability, 0.01 * ranking.baseline.score)
        assert list(row.per_class) == [str(c) for c in range(10)]
    assert ranking["rotation(10)"].gain > ranking["vertical_flip"].gain


def test_the_interval_is_the_paired_jackknife(digits):
    data = augury.as_dataset(digits.images, digits.target, max_examples=300)
    found = augury.rank(data, augmentations=["rotation(10)"], score="alignment")
    phi = augury.FourierFeatures(1024, seed=0)
    sample = torch.randperm(300, generator=torch.Generator().manual_seed(0))
    phi.fit(data.batch(sample, torch.device("cpu"), torch.float32), data.targets()[sample].float())
    scorer = AlignmentScore(Setting(data, phi, 8, 0, torch.device("cpu")))
    base, moved = scorer.evaluate(identity()), scorer.evaluate(rotation(10))
    differences = (moved.replicates - base.replicates).tolist()
    half = 2.093024 * reference.leave_group_out_error(differences)
    row = found.rows[0]
    assert (row.high - row.low) / 2 == pytest.approx(half, rel=1e-4)


def test_pairing_makes_the_interval_narrower_than_two_separate_ones(ranking):
    alone = ranking.baseline.high - ranking.baseline.low
    assert all(row.high - row.low < alone for row in ranking.rows)


def test_the_same_seed_gives_the_same_ranking_and_batches_do_not_matter(digits, ranking):
    again = augury.rank(
        digits.images, digits.target, SPECS, score="alignment", max_examples=600, batch_size=37
    )
    for row in ranking.rows:
        assert again[row.augmentation].gain == pytest.approx(row.gain, abs=1e-6)


def test_json_round_trip_and_schema(ranking):
    data = json.loads(ranking.to_json())
    assert data["schema"] == 1
    assert set(data) >= {
        "dataset", "score", "features", "seed", "n_views", "seconds", "baseline", "rows"
    }  # fmt: skip
    assert set(data["baseline"]) == {"score", "low", "high", "faultless"}
    wanted = {"augmentation", "score", "gain", "low", "high", "verdict", "per_class"}
    assert set(data["rows"][0]) >= wanted
    assert data["dataset"]["notes"][-1].startswith("600 of 1,797 examples were used")
    assert Ranking.from_json(ranking.to_json()) == ranking


def test_table_figure_page_and_best(ranking):
    frame = ranking.to_frame()
    assert list(frame.index) == [row.augmentation for row in ranking.rows]
    assert len(ranking.plot().axes) >= 1
    assert ranking.to_html().startswith("<!doctype html>")
    assert "rotation(10)" in ranking._repr_html_()
    assert "| rotation(10)" in ranking.to_markdown() or "`rotation(10)`" in ranking.to_markdown()
    leading = ranking.rows[0]
    assert ranking.best() == (leading if leading.verdict == "helps" else None)


def test_vectors_series_and_real_targets():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    quick = {"score": "alignment", "feature_map": "flatten"}
    vectors = augury.rank(rng.normal(size=(60, 5)) + y[:, None], y, **quick)
    assert vectors.dataset["kind"] == "vector"
    assert vectors.gallery is None
    series = rng.normal(size=(60, 1, 20)) + y[:, None, None]
    found = augury.rank(series, y, kind="series", **quick)
    assert found.dataset["kind"] == "series"
    assert found.gallery.originals.shape[-2:] == (1, 20)
    x, targets = rng.normal(size=(60, 5)), rng.normal(size=60)
    real = augury.rank(x, targets, ["jitter(0.1)"], score="alignment")
    assert real.dataset["classes"] is None
    assert real.rows[0].per_class == {}


def test_gallery_shows_each_candidate(digits):
    data = augury.as_dataset(digits.images, digits.target)
    gallery = make_gallery(data, [rotation(30)], 0, originals=3, n_views=5)
    assert gallery.originals.shape == (3, 1, 8, 8, 3)
    assert gallery.views["rotation(30)"].shape == (3, 5, 8, 8, 3)
    assert gallery.views["rotation(30)"].dtype == np.uint8
    wide = augury.as_dataset(np.zeros((4, 100, 200, 3), np.uint8), [0, 0, 1, 1])
    assert make_gallery(wide, [rotation(5)], 0).originals.shape[2:] == (32, 64, 3)


def test_progress_counts_to_the_end(digits):
    calls = []
    augury.rank(
        digits.images, digits.target, SPECS, score="alignment", max_examples=300,
        progress=lambda done, total, now: calls.append((done, total, now)),
    )  # fmt: skip
    assert calls[-1][0] == calls[-1][1]
    assert [c[0] for c in calls] == sorted(c[0] for c in calls)
    assert "rotation(10)" in {c[2] for c in calls}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"score": "luck"}, "score must be one of trial, .*, got 'luck'"),
        (
            {"score": "ridge", "feature_map": "magic"},
            "unknown feature map 'magic'; known feature maps: ",
        ),
        ({"n_views": 0}, "n_views must be a whole number from 1 to 4,096"),
        ({"augmentations": []}, "the list of augmentations is empty"),
        ({"augmentations": ["jitter(0.1)", "feature_dropout(0.1)"]}, "works on series or vector"),
        ({"device": "tpu"}, "use auto, cpu or cuda"),
    ],
)
def test_bad_options_are_said(digits, options, says):
    with pytest.raises(AuguryError, match=says):
        augury.rank(digits.images, digits.target, max_examples=100, **options)


def test_what_is_no_augmentation_is_said(digits):
    refused("got a number", augury.rank, digits.images, digits.target, ["rotation(15)", 3])


def test_cuda_without_cuda_is_said(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(AuguryError, match="torch finds no CUDA device"):
        resolve_device("cuda")
    assert resolve_device("auto").type == "cpu"


class TestOwnNetwork:
    def network(self):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            conv = torch.nn.Conv2d(1, 6, 3)
            return torch.nn.Sequential(
                conv, torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(216, 10)
            )

    @pytest.mark.parametrize("layer", [None, "1"])
    def test_its_gradient_or_a_layer_is_the_feature_map(self, layer):
        digits = load_digits()
        x, y = digits.images[:300], digits.target[:300]
        found = augury.rank(
            x, y, ["translation(0.1)", "flips"], network=self.network(), layer=layer,
            score="kernel-ridge",
        )  # fmt: skip
        assert found.score == "kernel-ridge"
        assert "Sequential" in found.features
        assert found["flips"].gain < found["translation(0.1)"].gain

    def test_what_does_not_fit_is_said(self):
        x, y = np.random.default_rng(1).random((20, 1, 8, 8)), np.arange(20) % 2
        net = self.network()
        given = {"network": net, "layer": "1"}
        refused("uses no feature map|ridge", augury.rank, x, y, **given, score="trial")
        refused("remove feature_map", augury.rank, x, y, **given, feature_map="patches")
        refused("'1' needs a network", augury.rank, x, y, layer="1")
        colour = np.random.default_rng(0).random((20, 3, 8, 8))
        refused(
            "(20, 3, 8, 8)|that accepts this data", augury.rank, colour, y, network=net, layer="1"
        )
