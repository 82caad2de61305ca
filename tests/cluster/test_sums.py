"""Statistics are the same to the last bit with and without a cluster."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import augury
from augury import as_dataset, parse
from augury._base.errors import AuguryError
from augury.cluster import Workers
from augury.data import InMemory, open_shards
from augury.features.simple import Flatten
from augury.forecasting.scores import summed
from augury.statistics.alignment import Alignment

N = 300
CANDIDATES = ["horizontal_flip", "rotation(20)", "noise(0.2)"]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, N)
    x = rng.integers(0, 128, (N, 1, 10, 10), dtype=np.uint8)
    x[np.arange(N), 0, 2 + 2 * y] += 100
    return x, y


@pytest.fixture
def folder(data, tmp_path):
    x, y = data
    for k in range(3):
        np.save(tmp_path / f"x_{k}.npy", x[100 * k : 100 * k + 100])
        np.save(tmp_path / f"y_{k}.npy", y[100 * k : 100 * k + 100])
    return tmp_path


def numbers(ranking):
    return [(r.augmentation, r.score, r.gain, r.low, r.high, r.verdict) for r in ranking.rows]


@pytest.mark.parametrize("score", ["alignment", "ridge"])
def test_a_ranking_is_bit_equal_on_a_cluster(data, client, score, monkeypatch):
    monkeypatch.setattr(summed, "_ROWS", 70)
    options = {"score": score, "n_views": 3, "seed": 1, "feature_map": "flatten"}
    here = augury.rank(*data, augmentations=CANDIDATES, **options)
    one = augury.rank(*data, augmentations=CANDIDATES, cluster=Workers(1), **options)
    assert numbers(one) == numbers(here)
    assert numbers(
        augury.rank(*data, augmentations=CANDIDATES, cluster=client, **options)
    ) == numbers(here)


def test_shards_are_ranked_where_they_lie(data, folder, client, monkeypatch):
    monkeypatch.setattr(summed, "_ROWS", 100)
    options = {"score": "alignment", "n_views": 3, "max_examples": None, "feature_map": "flatten"}
    shards = open_shards(folder)
    here = augury.rank(shards, None, CANDIDATES, **options)
    there = augury.rank(shards, None, CANDIDATES, cluster=client, **options)
    held = augury.rank(*data, augmentations=CANDIDATES, **options)
    assert numbers(there) == numbers(here) == numbers(held)
    assert there.dataset["examples"] == N
    assert sum(there.dataset["counts"]) == N


def test_a_shard_that_a_worker_cannot_read_is_named(folder, client):
    shards = open_shards(folder)
    (folder / "x_2.npy").unlink()
    with pytest.raises(AuguryError, match=r"the shard \S+x_2\.npy cannot be read"):
        augury.rank(shards, None, CANDIDATES, score="alignment", max_examples=None, cluster=client)


def test_a_ranking_goes_on_from_its_journal_and_refuses_another(data, tmp_path, monkeypatch):
    options = {"score": "alignment", "n_views": 2, "feature_map": "flatten"}
    options["journal"] = tmp_path / "journal"
    here = augury.rank(*data, augmentations=CANDIDATES[:2], **options)
    done = []
    real = summed.sum_shard
    monkeypatch.setattr(summed, "sum_shard", lambda s, job: done.append(job[0]) or real(s, job))
    again = augury.rank(*data, augmentations=CANDIDATES, **options)
    assert [repr(a) for a in done] == ["noise(0.2)"]
    assert set(numbers(here)) <= set(numbers(again))
    with pytest.raises(AuguryError, match="its data differs"):
        augury.rank(255 - data[0], data[1], CANDIDATES, **options)
    with pytest.raises(AuguryError, match="its n_views differs"):
        augury.rank(*data, augmentations=CANDIDATES, **{**options, "n_views": 3})


def test_views_are_made_few_at_a_time_and_summed_as_if_together(data, monkeypatch):
    """Large temporaries are memory that the system must clear, for each of them again."""
    seen = []

    class Watched(Flatten):
        def forward(self, x):
            seen.append(x.numel())
            return super().forward(x)

    def sums():
        stream, cpu = InMemory(as_dataset(*data), N), torch.device("cpu")
        options = 3, 0, cpu, torch.float64, 128, 20, Alignment()
        return summed.sum_shard(summed.Pass(stream, Watched(), *options), (parse("noise(0.2)"), 0))

    whole = sums()
    assert max(seen) == 3 * 128 * 100
    seen.clear()
    monkeypatch.setattr(summed, "_VALUES", 7000)
    parts = sums()
    assert max(seen) == 3 * 23 * 100
    for one, other in zip(whole, parts, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_few_results_are_held_where_they_are_large(monkeypatch):
    monkeypatch.setattr("augury.cluster.workers.available_bytes", lambda device: 8 * 100)
    begun = []

    def work(shared, job):
        begun.append(job)
        return (torch.zeros(1),)

    results = Workers(4).map(work, None, {str(k): k for k in range(9)}, each=200)
    next(results)
    assert len(begun) <= 3
    assert len(list(results)) == 8
