"""Closed forms: what is streamed, counted and judged, with numbers computed by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import t

import augury
from augury.augmentations import flips, identity, rotation
from augury.data import as_dataset
from augury.features import Flatten
from augury.forecasting.scores import (
    SCORES,
    AlignmentScore,
    CentredAlignmentScore,
    KernelRidgeScore,
    RidgeScore,
    Setting,
)
from augury.forecasting.scores import base as module
from augury.forecasting.scores.base import ClosedForm
from augury.forecasting.scores.kernel_ridge import by_features, by_kernel
from augury.statistics.base import Estimate, group_of
from augury.statistics.heldout import HeldOutRisk

CPU = torch.device("cpu")
REPLICATES = torch.tensor([0.3, 0.5, 0.4, 0.6], dtype=torch.float64)


def images(count=30):
    x = np.random.default_rng(0).integers(0, 255, (count, 6, 6), np.uint8)
    return as_dataset(x, np.arange(count) % 3)


def setting(data=None, **options):
    data = data or images()
    return Setting(data, Flatten(), options.pop("n_views", 4), 1, CPU, **options)


CLASS_MOVES = torch.tensor([[0.01, 0.1], [-0.01, 0.2], [0.02, 0.0], [0.0, -0.1]])


class Made(ClosedForm):
    """A score with made-up estimates."""

    name = "made"
    found: dict

    def evaluate(self, augmentation):
        self.tick(repr(augmentation))
        return self.found[augmentation]


def judged(value, replicates, base=0.5, base_replicates=REPLICATES, chance=-math.inf):
    none = torch.tensor([0.4, 0.3])
    moved = none + torch.tensor([0.1, -0.2])
    score = Made(setting())
    score.found = {
        identity(): Estimate(base, base_replicates, none, chance, none.expand(4, 2)),
        flips(): Estimate(value, replicates, moved, chance, moved + CLASS_MOVES),
    }
    return score.judge_all([flips()])


def test_gain_interval_and_probability_by_hand():
    moves = torch.tensor([0.1, 0.14, 0.12, 0.08], dtype=torch.float64)
    found = judged(0.6, REPLICATES + moves)
    (row,) = found.candidates
    error = math.sqrt(3 / 4 * float((moves - moves.mean()).square().sum()))
    assert row.score == 0.6
    assert row.gain == pytest.approx(0.1)
    assert row.high - row.gain == pytest.approx(t(3).ppf(0.975) * error)
    assert row.gain - row.low == pytest.approx(t(3).ppf(0.975) * error)
    assert row.probability == pytest.approx(t(3).cdf(0.1 / error))
    assert [gain for gain, *_ in row.per_class] == pytest.approx([0.1, -0.2])
    for (gain, low, high), moved in zip(row.per_class, CLASS_MOVES.T, strict=True):
        error = math.sqrt(3 / 4 * float((moved - moved.mean()).square().sum()))
        assert high - gain == pytest.approx(t(3).ppf(0.975) * error, rel=1e-5)
        assert gain - low == pytest.approx(t(3).ppf(0.975) * error, rel=1e-5)
    assert found.matters == pytest.approx(0.01 * 0.5)
    own = math.sqrt(3 / 4 * float((REPLICATES - REPLICATES.mean()).square().sum()))
    assert found.baseline.high - 0.5 == pytest.approx(t(3).ppf(0.975) * own)
    assert (found.baseline.score, found.baseline.gain, found.baseline.probability) == (0.5, 0, 0.5)


def test_few_members_of_a_class_show_little():
    """Two members have one degree of freedom, and one has no interval."""
    y = np.array([0] * 12 + [1, 1, 2, 2])
    data = augury.as_dataset(np.random.default_rng(0).normal(size=(16, 3)), y, kind="vector")
    data = replace(data, x=data.x[:-1], y=data.y[:-1])  # one is left of the last class
    score = Made(Setting(data, Flatten(), 4, 1, CPU))
    moves = torch.tensor([[0.0, 0.0, 0.0], [0.1, 0.1, 0.1], [0.2, 0.2, 0.2], [0.3, 0.3, 0.3]])
    before = 7 * moves.flip(0) ** 2
    base = Estimate(0.5, REPLICATES, torch.zeros(3), class_replicates=before)
    found = Estimate(0.6, REPLICATES, torch.ones(3), class_replicates=before + moves)
    many, two, one = score._by_class(found, base)
    error = math.sqrt(3 / 4 * float((moves[:, 0] - 0.15).square().sum()))
    assert many[2] - 1 == pytest.approx(t(3).ppf(0.975) * error, rel=1e-5)
    assert two[2] - 1 == pytest.approx(t(1).ppf(0.975) * error, rel=1e-5)
    assert one == (1.0, -math.inf, math.inf)
    broken = Estimate(0.6, REPLICATES, torch.ones(3), class_replicates=moves / 0)
    assert score._by_class(broken, base)[0] == (1.0, -math.inf, math.inf)


def test_an_interval_with_zero_is_not_clear():
    close = torch.tensor([0.1, 0.11, 0.1, 0.09], dtype=torch.float64)
    wide = torch.tensor([0.5, -0.3, 0.4, -0.2], dtype=torch.float64)
    assert judged(0.6, REPLICATES + close).candidates[0].clear
    assert judged(0.4, REPLICATES - close).candidates[0].clear
    assert not judged(0.6, REPLICATES + wide).candidates[0].clear


def test_an_interval_is_clear_by_zero_alone():
    """One that ends at zero is not; whether it holds another number does not count."""
    assert not judged(0.5, REPLICATES).candidates[0].clear
    near = torch.tensor([0.05, -0.05, 0.04, -0.04], dtype=torch.float64)
    row = judged(0.51, REPLICATES + near).candidates[0]
    assert row.low < 0 < row.high < 1
    assert not row.clear


def test_two_replicates_have_one_degree_of_freedom():
    both = torch.tensor([0.4, 0.6], dtype=torch.float64)
    moves = torch.tensor([0.1, 0.16], dtype=torch.float64)
    score = Made(setting())
    none = torch.zeros(3)
    base = Estimate(0.5, both, none, class_replicates=none.expand(2, 3))
    found = Estimate(0.6, both + moves, none, class_replicates=none.expand(2, 3))
    error = math.sqrt(1 / 2 * 2 * 0.03**2)
    assert score._judge(found, base).probability == pytest.approx(t(1).cdf(0.1 / error))


def test_numbers_and_several_labels_have_no_classes():
    x = np.random.default_rng(0).normal(size=(16, 3))
    found = Estimate(0.6, REPLICATES, torch.ones(3), class_replicates=torch.zeros(4, 3))
    for y in (np.linspace(0, 1, 16), np.eye(4, 3, dtype=int).repeat(4, 0)):
        score = Made(Setting(as_dataset(x, y, kind="vector"), Flatten(), 4, 1, CPU))
        assert score._by_class(found, found) == ()


def test_equal_replicates_are_certain():
    (row,) = judged(0.6, REPLICATES + 0.1).candidates
    assert row.probability == pytest.approx(1)


def test_a_baseline_must_beat_chance_by_three_errors():
    own = math.sqrt(3 / 4 * float((REPLICATES - REPLICATES.mean()).square().sum()))
    for factor, decides in ((3.01, True), (2.99, False)):
        found = judged(0.6, REPLICATES, chance=0.5 - factor * own)
        assert found.decides is decides
        assert found.sure
        assert len(found.warnings) == (not decides)


def test_a_baseline_that_is_just_as_good_as_chance_decides_nothing():
    same = torch.full((4,), 0.5, dtype=torch.float64)
    found = judged(0.6, same, base_replicates=same, chance=0.5)
    assert found.decides is False
    assert "predict the labels no better than chance" in found.warnings[0]


def test_what_matters_is_a_share_of_a_negative_score_too():
    assert judged(-1.9, REPLICATES, base=-2.0).matters == pytest.approx(0.02)


def test_progress_is_counted():
    seen = []
    score = Made(setting(batch_size=10), lambda *now: seen.append(now))
    score.found = dict.fromkeys((identity(), flips()), Estimate(1.0, REPLICATES, torch.zeros(0)))
    score.judge_all([flips()])
    assert seen == [(1, 6, "identity"), (2, 6, "flips")]  # 3 batches of 2 augmentations
    score.expect(1)
    for _ in range(6):
        score.tick("more")
    assert [now[:2] for now in seen[2:]] == [(3, 7), (4, 7), (5, 7), (6, 7), (7, 7), (8, 8)]


def test_batches_hold_so_many_views():
    assert setting(images(30), batch_size=8).batches == 4
    assert setting(images(30), batch_size=10).batches == 3
    assert setting(images(30), n_views=8).batch == 4096 // 8
    assert setting(images(30), n_views=1000).batch == 16
    assert module._ROWS == {"cpu": 4096, "cuda": 32768}


def test_orbits_stream_every_example_once_group_by_group():
    chosen = setting(images(30), batch_size=7)
    parts = list(chosen.orbits(flips(), 4))
    index = torch.cat([part for _, part in parts])
    assert sorted(index.tolist()) == list(range(30))
    groups = group_of(index, 4)
    assert groups.tolist() == sorted(groups.tolist())
    assert [len(part) for _, part in parts] == [7, 7, 7, 7, 2]
    orbit, part = parts[0]
    x = chosen.data.batch(part, CPU, torch.float32)
    torch.testing.assert_close(orbit.features[0], x.flatten(1))


def test_a_seed_decides_the_views_and_the_batch_size_does_not():
    def means(seed, batch):
        chosen = Setting(images(30), Flatten(), 3, seed, CPU, batch_size=batch)
        parts = list(chosen.orbits(rotation(40) >> rotation(3), 4))
        order = torch.cat([part for _, part in parts]).argsort()
        return torch.cat([orbit.mean for orbit, _ in parts])[order]

    torch.testing.assert_close(means(0, 7), means(0, 30))
    assert not torch.allclose(means(0, 30), means(1, 30))


@pytest.mark.parametrize("score", [AlignmentScore, CentredAlignmentScore, RidgeScore,
                                   KernelRidgeScore])  # fmt: skip
def test_ticks_are_as_announced(score):
    seen = []
    found = score(setting(batch_size=10), lambda *now: seen.append(now)).judge_all([flips()])
    assert seen[-1][:2] == (seen[-1][1], seen[-1][1])
    assert len(seen) == seen[-1][1]
    assert len(found.candidates) == 1
    assert {now[2] for now in seen} == {"identity", "flips"}


def test_names_groups_and_defaults():
    assert {"trial", "alignment", "centred-alignment", "ridge", "kernel-ridge"} <= set(SCORES)
    assert (AlignmentScore.centred, CentredAlignmentScore.centred) == (False, True)
    assert AlignmentScore.groups == RidgeScore.groups == KernelRidgeScore.groups == 20
    assert RidgeScore.folds == KernelRidgeScore.folds == 5
    assert KernelRidgeScore.ratios == (1e-3, 1e-2, 0.1, 1.0)
    assert "does not forecast" in AlignmentScore(setting()).trust()
    said = {score.name: score(setting()).trust() for score in (RidgeScore, KernelRidgeScore)}
    assert "was 0.50 with" in said["ridge"]
    assert "was 0.55 with" in said["kernel-ridge"]
    assert RidgeScore(setting()).effort() == {}
    assert RidgeScore(setting()).describe() == Flatten().describe()
    assert RidgeScore(replace(setting(), phi=None)).describe() == ""
    assert RidgeScore(setting()).plan({"epochs": 3}) == {}


def test_kernel_ridge_says_how_many_examples_it_took(monkeypatch):
    monkeypatch.setattr("augury.forecasting.scores.kernel_ridge._MOST", 12)
    score = KernelRidgeScore(setting(images(30)))
    assert len(score.setting.data) == 12
    assert score.describe().endswith("; 12 of 30 examples")
    assert KernelRidgeScore(setting(images(12))).describe() == Flatten().describe()


@pytest.mark.parametrize("ratio", [0.01, 1.0])
def test_kernel_and_features_predict_the_same_and_as_by_hand(ratio):
    """For one fold by hand: (K + mλI) α = Y with a constant as large as ψ in K."""
    generator = torch.Generator().manual_seed(0)
    psi = torch.randn(24, 5, generator=generator, dtype=torch.float64)
    y = torch.randn(24, 1, generator=generator, dtype=torch.float64)
    held_out = HeldOutRisk(psi, y, False)
    found = [solve(held_out, 3, (ratio,)) for solve in (by_kernel, by_features)]
    assert found[0].value == pytest.approx(found[1].value, rel=1e-9)
    torch.testing.assert_close(found[0].replicates, found[1].replicates)
    size = float(psi.square().sum(1).mean())
    kernel = psi @ psi.T + size
    fold = group_of(torch.arange(24), 3)
    best = math.inf
    for tried in (ratio, ratio / math.sqrt(10), ratio * math.sqrt(10)):
        out = torch.empty_like(y)
        for f in range(3):
            inside, outside = fold != f, fold == f
            m = int(inside.sum())
            penalty = tried * 2 * size * m / 24 * torch.eye(m, dtype=torch.float64)
            alpha = torch.linalg.solve(kernel[inside][:, inside] + penalty, y[inside])
            out[outside] = kernel[outside][:, inside] @ alpha
        best = min(best, float((out - y).square().mean() / y.var(correction=0)))
    assert found[0].value == pytest.approx(-best)


def test_kernel_ridge_averages_and_ridge_does_not():
    chosen = setting(images(60), batch_size=25)
    scores = (RidgeScore, KernelRidgeScore)
    values = {score: score(chosen).evaluate(rotation(90)).value for score in scores}
    assert values[RidgeScore] != pytest.approx(values[KernelRidgeScore], rel=1e-6)
    again = Setting(chosen.data, Flatten(), 4, 1, CPU, batch_size=7)
    for score, value in values.items():
        assert score(again).evaluate(rotation(90)).value == pytest.approx(value, rel=1e-5)


def test_ridge_ticks_once_more_for_the_clean_features():
    chosen = setting(images(30), batch_size=10)
    assert RidgeScore(chosen).ticks(4) == AlignmentScore(chosen).ticks(4) + 1


def test_ridge_is_judged_by_log_loss_for_classes_and_squared_errors_for_numbers():
    x = np.random.default_rng(0).integers(0, 255, (30, 6, 6), np.uint8)
    for y, classes in ((np.arange(30) % 3, True), (np.linspace(0, 1, 30), False)):
        score = RidgeScore(setting(as_dataset(x, y)))
        assert score._clean.classes is classes
        assert score._clean.features.shape == (30, 36)
