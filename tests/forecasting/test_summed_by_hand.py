"""How closed forms divide the examples among jobs, and what jobs sum."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from augury._base.rng import Rng
from augury.augmentations import flips, identity, rotation
from augury.cluster import Journal, Workers
from augury.data import as_dataset
from augury.features import Flatten
from augury.features.orbit import Orbit
from augury.forecasting.forecast import Judgement
from augury.forecasting.scores import (
    AlignmentScore,
    KernelRidgeScore,
    RidgeScore,
    Setting,
    kernel_ridge,
    summed,
)
from augury.forecasting.scores.base import Judged
from augury.forecasting.scores.kernel_ridge import by_features, by_kernel
from augury.forecasting.scores.summed import Pass, average_shard
from augury.statistics.base import group_of
from augury.statistics.heldout import HeldOutRisk

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def images(count=30, side=6):
    x = np.random.default_rng(0).integers(0, 255, (count, side, side), np.uint8)
    return as_dataset(x, np.arange(count) % 3)


def setting(data=None, **options):
    return Setting(data or images(), Flatten(), options.pop("n_views", 4), 1, CPU, **options)


def sweep(device=CPU, **options):
    stream = AlignmentScore(setting(images(**options))).stream
    return Pass(stream, Flatten(), 4, 1, device, torch.float32, 9, 20, None)


def test_on_a_cpu_so_many_values_of_views_are_made_at_once():
    """2¹⁸ values: 1,820 images of 6 × 6 in four views; on a GPU the whole batch."""
    assert sweep(side=6)._together() == 2**18 // 144 == 1820
    assert sweep(count=6, side=300)._together() == 1
    assert sweep(CUDA)._together() == 9


def test_a_shard_is_streamed_group_by_group_in_batches(monkeypatch):
    """However few examples are augmented at once, views are those of the examples' numbers."""
    whole = list(sweep().orbits(rotation(40), 0))
    monkeypatch.setattr(summed, "_VALUES", 2 * 4 * 36)  # two examples at a time
    found = list(sweep().orbits(rotation(40), 0))
    assert [len(index) for _, index in found] == [9, 9, 9, 3]
    order = group_of(torch.arange(30), 20).argsort(stable=True)
    assert torch.cat([index for _, index in found]).tolist() == order.tolist()
    data = images()
    for (orbit, index), (other, _) in zip(found, whole, strict=True):
        x = data.batch(index, CPU, torch.float32)
        right = Orbit.of(Flatten(), rotation(40), x, 4, Rng(1, index))
        torch.testing.assert_close(orbit.features, right.features)
        torch.testing.assert_close(orbit.features, other.features)


def test_averaged_features_are_in_the_order_of_the_examples():
    (found,) = average_shard(sweep(), (identity(), 0))
    torch.testing.assert_close(
        found, images().batch(torch.arange(30), CPU, torch.float32).flatten(1)
    )


class Watched(Workers):
    """Notes what jobs are given."""

    def map(self, work, shared, jobs, **options):
        self.shared, self.jobs, self.options = shared, jobs, options
        return super().map(work, shared, jobs, **options)


def test_a_candidate_on_a_shard_is_a_job(monkeypatch):
    monkeypatch.setattr(summed, "_ROWS", 12)
    workers, journal = Watched(1), Journal()
    score = AlignmentScore(setting(workers=workers, journal=journal, batch_size=7))
    assert list(score.stream.shards) == [0, 1, 2]
    found = score.evaluate_all([flips(), rotation(9)])
    assert list(workers.jobs) == [
        f"alignment sums of {name}, shard {k}"
        for name in ("flips", "rotation(9)")
        for k in range(3)
    ]
    assert workers.options["journal"] is journal
    assert workers.options["each"] == 8 * 20 * 36**2  # sums of 20 groups, of 36 features
    assert (workers.shared.groups, workers.shared.batch, workers.shared.n_views) == (20, 7, 4)
    monkeypatch.setattr(summed, "_ROWS", 100)
    for one, candidate in zip(found, (flips(), rotation(9)), strict=True):
        whole = AlignmentScore(setting()).evaluate(candidate)
        assert one.value == pytest.approx(whole.value, rel=1e-5)
        torch.testing.assert_close(one.replicates, whole.replicates, rtol=1e-4, atol=1e-6)
    assert found[0].value != pytest.approx(found[1].value, rel=1e-6)
    ridge = RidgeScore(setting(workers=workers))
    ridge.evaluate(flips())
    assert workers.options["each"] == 8 * 5 * 36**2
    assert ridge.sections == 5


def test_progress_is_told_by_candidate():
    seen = []
    score = AlignmentScore(setting(), lambda done, total, now: seen.append(now))
    score.tick_job("alignment sums of best of 3, shard 1, shard 2")
    assert seen == ["best of 3, shard 1"]


def test_examples_in_memory_are_shards_of_16384():
    x = np.zeros((16_390, 1))
    data = as_dataset(x, np.arange(16_390) % 2)
    assert AlignmentScore(setting(data)).stream.bounds == (0, 16_384, 16_390)
    assert AlignmentScore(setting(data)).ticks(3) == 6


def test_kernel_ridge_ticks_for_each_batch_and_for_the_solution():
    assert KernelRidgeScore(setting(batch_size=10)).ticks(4) == (3 + 1) * 4
    assert KernelRidgeScore(setting(batch_size=7)).ticks(1) == 5 + 1


@pytest.mark.parametrize(("features", "solved"), [(35, "features"), (36, "kernel")])
def test_the_smaller_problem_is_solved(features, solved, monkeypatch):
    def noted(name, solve):
        def watched(held_out, *rest):
            tried.append((name, held_out.classes, held_out.groups, *rest))
            return solve(held_out, *rest)

        return watched

    tried = []
    for name in ("features", "kernel"):
        solve = getattr(kernel_ridge, f"by_{name}")
        monkeypatch.setattr(kernel_ridge, f"by_{name}", noted(name, solve))
    x = np.random.default_rng(0).normal(size=(36, features))
    for y, classes in ((np.arange(36) % 2, True), (x[:, 0], False)):
        KernelRidgeScore(setting(as_dataset(x, y))).evaluate(identity())
        assert tried.pop() == (solved, classes, 20, 5, (1e-3, 1e-2, 0.1, 1.0))


@pytest.mark.parametrize("size", [0.0, 1e-3, 0.5])
def test_small_features_have_a_penalty_of_their_own_size(size):
    """Kernel and features say the same; features that are zero leave the mean of the others."""
    generator = torch.Generator().manual_seed(0)
    psi = size * torch.randn(24, 5, generator=generator, dtype=torch.float64)
    y = torch.randn(24, 1, generator=generator, dtype=torch.float64)
    held_out = HeldOutRisk(psi, y, False)
    found = by_kernel(held_out, 3, (0.1,))
    if size:
        assert found.value == pytest.approx(by_features(held_out, 3, (0.1,)).value, rel=1e-9)
        return
    fold, best = group_of(torch.arange(24), 3), math.inf
    for ratio in (0.1, 0.1 / math.sqrt(10), 0.1 * math.sqrt(10)):
        out = torch.empty_like(y)
        for f in range(3):
            others = y[fold != f]  # the constant 1 is the kernel: (11ᵀ + λI) α = y
            out[fold == f] = others.sum() / (len(others) + ratio * 2 * len(others) / 24)
        best = min(best, float((out - y).square().mean() / y.var(correction=0)))
    assert found.value == pytest.approx(-best)


def test_kernel_ridge_takes_5000_examples_at_most():
    data = as_dataset(np.zeros((5001, 1)), np.arange(5001) % 2)
    assert len(KernelRidgeScore(setting(data)).setting.data) == 5000
    fewer = as_dataset(np.zeros((5000, 1)), np.arange(5000) % 2)
    assert KernelRidgeScore(setting(fewer)).setting.data is fewer


def test_defaults_of_what_is_judged():
    judged = Judged(Judgement(0.5, 0.0, 0.4, 0.6, 0.5), [], 0.01)
    assert (judged.decides, judged.sure, judged.faultless) == (True, True, False)
    assert (judged.warnings, judged.trends) == ((), ())
    chosen = setting()
    assert chosen.dtype == torch.float32
    assert chosen.trends is False
    assert (chosen.budget, chosen.effort, chosen.own, chosen.stream) == (None,) * 4
    assert chosen.journal.path is None
