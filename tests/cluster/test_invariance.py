"""Invariances are the same to the last bit with and without a cluster."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from augury import AuguryError, measure_invariance, open_shards
from augury.cluster import Workers
from augury.networks.invariance import measure


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    layers = nn.Conv2d(1, 8, 3), nn.ReLU(), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(288, 5)
    return nn.Sequential(*layers).eval()


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for k in range(3):
        np.save(tmp_path / f"x_{k}.npy", rng.integers(0, 256, (40, 8, 8), dtype=np.uint8))
        np.save(tmp_path / f"y_{k}.npy", rng.integers(0, 2, 40))
    return tmp_path


CANDIDATES = ["rotation(20)", "noise(0.1)"]


def test_a_profile_is_bit_equal_on_a_cluster(network, folder, client, monkeypatch):
    monkeypatch.setattr(measure, "_SHARD", 40)
    shards = open_shards(folder)
    options: dict[str, Any] = {"n_views": 4, "seed": 3, "batch_size": 16}
    expected = measure_invariance(network, shards.draw(120, 0), CANDIDATES, **options).rows
    for data in (shards.draw(120, 0), shards):
        for cluster in (Workers(1), Workers(3), client):
            found = measure_invariance(network, data, CANDIDATES, cluster=cluster, **options)
            assert found.rows == expected


def test_finished_shards_are_not_measured_again(network, folder, tmp_path, monkeypatch):
    shards, journal = open_shards(folder), tmp_path / "journal"
    before = measure_invariance(network, shards, CANDIDATES[:1], n_views=2, journal=journal)
    done = []
    real = measure.sum_shard
    monkeypatch.setattr(measure, "sum_shard", lambda t, job: done.append(job) or real(t, job))
    after = measure_invariance(network, shards, CANDIDATES, n_views=2, journal=journal)
    assert len(done) == 3
    assert after.rows[: len(before.rows)] == before.rows
    other = nn.Sequential(*network, nn.ReLU()).eval()
    with torch.no_grad():
        next(other.parameters())[0] += 1
    with pytest.raises(AuguryError, match="its network differs"):
        measure_invariance(other, shards, CANDIDATES, n_views=2, journal=journal)


def test_a_network_that_cannot_be_sent_is_refused(folder, client):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript's own deprecation
        script = torch.jit.script(nn.Sequential(nn.Flatten(), nn.Linear(64, 2))).eval()
    with pytest.raises(AuguryError, match="cannot be sent to the workers"):
        measure_invariance(script, open_shards(folder), CANDIDATES, n_views=1, cluster=client)
