"""Trials give the same ranking and the same policy to the last bit on a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

import augury
from augury import AuguryError, TrainingPlan
from augury.cluster import Journal, Workers
from augury.forecasting.training import runners
from augury.forecasting.trial import Trial, run_folds

CANDIDATES = ["rotation(10)", "vertical_flip"]


@pytest.fixture(scope="module")
def data():
    digits: Any = load_digits()
    return digits.images[:240], digits.target[:240]


def numbers(ranking):
    return [(r.augmentation, r.score, r.gain, r.low, r.high, r.verdict) for r in ranking.rows]


def test_a_trial_is_bit_equal_on_a_cluster_and_goes_on_from_its_journal(
    data, client, tmp_path, monkeypatch
):
    x, y = data
    options: dict[str, Any] = {"plan": TrainingPlan(epochs=2), "effort": 0, "device": "cpu"}
    here = augury.rank(x, y, CANDIDATES, **options)
    journal = tmp_path / "journal"
    there = augury.rank(x, y, CANDIDATES, cluster=client, journal=journal, **options)
    assert numbers(there) == numbers(here)
    monkeypatch.setattr(runners, "train_alone", lambda runner, job: pytest.fail("done again"))
    again = augury.rank(x, y, CANDIDATES, journal=journal, **options)
    assert numbers(again) == numbers(here)
    options["plan"] = TrainingPlan(epochs=3)
    with pytest.raises(AuguryError, match="its plan differs"):
        augury.rank(x, y, CANDIDATES, journal=journal, **options)


def test_trials_of_other_splits_share_no_job_of_a_journal(tmp_path):
    """With few examples, levels of work train on as many but split them differently."""
    digits: Any = load_digits()
    x, y = digits.images[:120], digits.target[:120]
    options: dict[str, Any] = {"plan": TrainingPlan(epochs=2), "device": "cpu"}
    alone = augury.rank(x, y, CANDIDATES, effort=7, **options)
    augury.rank(x, y, CANDIDATES, effort=3, journal=tmp_path / "j", **options)
    after = augury.rank(x, y, CANDIDATES, effort=7, journal=tmp_path / "j", **options)
    assert numbers(after) == numbers(alone)


def same(a, b):
    pairs = zip(a, b, strict=True)
    return all(
        torch.equal(getattr(f, n), getattr(g, n))
        for f, g in pairs
        for n in ("index", "losses", "right", "replicas", "half")
    )


@pytest.mark.parametrize("own", [False, True])
def test_folds_are_the_same_in_threads_with_a_journal(data, tmp_path, own):
    found = augury.as_dataset(*data)
    trial = Trial(epochs=1, examples=60, folds=2, replicas=2, held=60)
    candidates = [augury.parse(spec) for spec in CANDIDATES]
    network = None
    if own:
        from augury.forecasting.training.own import OwnNetwork

        torch.manual_seed(0)
        network = OwnNetwork(nn.Sequential(nn.Flatten(), nn.Linear(64, 10)))
    options = {"seed": 0, "device": torch.device("cpu"), "own": network}
    plain = run_folds(found, candidates, trial, [0, 1], **options)
    journal = Journal.open(tmp_path / "j", {})
    kept = run_folds(
        found, candidates, trial, [0, 1], workers=Workers(3), journal=journal, **options
    )
    again = run_folds(found, candidates, trial, [0, 1], journal=journal, **options)
    assert same(plain, kept)
    assert same(plain, again)


def test_folds_that_share_a_gpu_are_groups_of_their_own(data, tmp_path):
    """Grouped networks run on a CPU too, so that the cut into folds can be tested without a GPU."""
    found = augury.as_dataset(*data)
    trial = Trial(epochs=1, examples=60, folds=2, replicas=2, held=60)
    folds = [runners.Fold(torch.arange(60), torch.arange(60, 120), 0, k) for k in range(2)]
    clean = [runners.replace(f, number=f.number + 100 * (r + 1)) for f in folds for r in range(2)]
    schedule = runners.Schedule(1, 64, 1e-3)
    candidates = [augury.parse(spec) for spec in CANDIDATES]
    device, ticks = torch.device("cpu"), []
    options = (trial.network, found, schedule, device, ticks.append)
    whole = runners.Together(*options).run(candidates, folds, clean)
    journal = Journal.open(tmp_path / "j", {})
    for _ in range(2):
        parts = runners.Together(*options, Workers(1), journal).run(candidates, folds, clean)
        for a, b in zip((*whole[0], *whole[1]), (*parts[0], *parts[1]), strict=True):
            np.testing.assert_allclose(a, b, atol=2e-3)
    halves = runners.Together(*options, Workers(1), journal).run([], [], clean)
    assert len(halves[1]) == 4
    assert halves[0] == []


def test_a_search_whose_scheduler_dies_goes_on_within_its_round(
    data, client, tmp_path, monkeypatch
):
    x, y = data[0][:120], data[1][:120]
    journal, written = tmp_path / "rounds.npz", []
    options: dict[str, Any] = {"epochs": 1, "device": "cpu"}
    whole = augury.search_policy(x, y, **options)
    options |= {"cluster": client, "journal": journal}
    real = Journal.write

    def stop(self, job, result):
        real(self, job, result)
        written.append(job)
        if len(written) == 5:
            raise AuguryError("the scheduler is gone")

    monkeypatch.setattr(Journal, "write", stop)
    with pytest.raises(AuguryError, match="the scheduler is gone"):
        augury.search_policy(x, y, **options)
    assert len(list((tmp_path / "rounds.npz.jobs").glob("*.safetensors"))) == 5
    with pytest.raises(AuguryError, match=r"rounds\.npz\.jobs is for other data or settings"):
        augury.search_policy(x, y, **{**options, "seed": 3})
    again = augury.search_policy(x, y, **options)
    assert (again.spec, again.rows) == (whole.spec, whole.rows)
    assert len(written) == len(set(written))  # no job was done twice
    assert [path.name for path in tmp_path.iterdir()] == ["rounds.npz"]
