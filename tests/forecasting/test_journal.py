"""Finished rounds of a search, in memory and in a file."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch import nn

import augury
from augury._base.errors import AuguryError
from augury.augmentations import parse
from augury.forecasting.policy import search
from augury.forecasting.policy.journal import RoundJournal
from augury.forecasting.policy.space import Space
from augury.forecasting.training.own import OwnNetwork
from augury.forecasting.trial import HeldOut


def fold(start):
    numbers = torch.arange(start, start + 6, dtype=torch.float64)
    return HeldOut(
        torch.arange(3), numbers.view(3, 2), -numbers.view(3, 2), numbers[:2], numbers[:0]
    )


def same(found, expected):
    names = ("index", "losses", "right", "replicas", "half")
    return all(torch.equal(getattr(found, name), getattr(expected, name)) for name in names)


@pytest.mark.parametrize("kept", [False, True])
def test_a_round_is_read_as_it_was_written(kept, tmp_path):
    path = tmp_path / "rounds.npz" if kept else None
    journal = RoundJournal.open(path, {"seed": 3})
    assert journal.read("first", ["flips"]) is None
    journal.write("first", ["flips"], [fold(0), fold(10)])
    journal.write("second", ["hue(0.1)", "flips"], [fold(20)])
    if kept:
        journal = RoundJournal.open(str(path), {"seed": 3})
    found = journal.read("first", ("flips",))
    assert len(found) == 2
    assert same(found[0], fold(0))
    assert same(found[1], fold(10))
    (other,) = journal.read("second", ["hue(0.1)", "flips"])
    assert same(other, fold(20))
    assert journal.read("second", ["flips", "hue(0.1)"]) is None  # of other candidates
    assert journal.read("third", ["flips"]) is None
    assert list(tmp_path.iterdir()) == ([path] if kept else [])


def test_a_journal_of_another_search_is_refused(tmp_path):
    path = tmp_path / "rounds.npz"
    RoundJournal.open(path, {"effort": (1, 2)}).write("first", [], [])
    assert RoundJournal.open(path, {"effort": (1, 2)}).read("first", []) == []
    with pytest.raises(AuguryError, match="of a search with other data or settings"):
        RoundJournal.open(path, {"effort": (1, 3)})


@pytest.mark.parametrize("text", [b"", b"nonsense", json.dumps({"rounds": {}}).encode()])
def test_other_files_are_refused(text, tmp_path):
    path = tmp_path / "rounds.npz"
    path.write_bytes(text)
    with pytest.raises(AuguryError, match="is not the journal of a search"):
        RoundJournal.open(path, {})


def test_nothing_is_executed_when_it_is_read(tmp_path):
    path = tmp_path / "rounds.npz"
    np.savez(path, about=np.array([object()], dtype=object))
    with pytest.raises(AuguryError, match="is not the journal of a search"):
        RoundJournal.open(path, {})


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 255, (200, 8, 8), np.uint8)


def key_of(x, y, own=None):
    data = augury.as_dataset(x, y)
    plan, chosen = augury.TrainingPlan(epochs=3), Space.of(["flips"], ["hue", "blur"])
    cpu = torch.device("cpu")
    return search._key(data, plan, own, chosen, [parse("invert")], 3, cpu, 9.0)


def test_searches_that_share_a_journal_agree_in_all_of_this(images):
    key = key_of(images, np.arange(200) % 10)
    assert key.pop("plan")["epochs"] == 3
    assert isinstance(key.pop("data"), str)
    assert key == {
        "version": augury.__version__,
        "network": None,
        "always": ["flips"],
        "never": ["blur", "hue"],
        "rivals": ["invert"],
        "seed": 3,
        "budget": 9.0,
        "device": "cpu",
    }


def test_searches_of_other_images_labels_or_weights_share_no_journal(images):
    y = np.arange(200) % 10
    other = images.copy()
    other[1, 0, 0] ^= 1
    keys = [key_of(images, y), key_of(images, y[::-1].copy()), key_of(other, y)]
    for seed in (0, 1):
        torch.manual_seed(seed)
        network = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
        keys.append(key_of(images, y, OwnNetwork(network)))
    assert key_of(images, y) == keys[0]
    assert all(a != b for k, a in enumerate(keys) for b in keys[:k])


def test_jobs_are_removed_by_a_search_that_is_finished_without_workers_too(tmp_path):
    path = tmp_path / "rounds.npz"
    RoundJournal.open(path, {"seed": 3}).jobs().write("a job", (torch.zeros(1),))
    again = RoundJournal.open(path, {"seed": 3})
    again.write("first", [], [])
    assert (tmp_path / "rounds.npz.jobs").is_dir()  # the next round may need the same job
    assert again.jobs().read("a job") is not None
    again.finish()
    assert list(tmp_path.iterdir()) == [path]
    RoundJournal().finish()


class Evil:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return (open, ("ran.txt", "w"))


def test_a_journal_runs_no_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("rounds.npz", about=np.array([Evil()], dtype=object))
    with pytest.raises(AuguryError, match="is not the journal of a search"):
        RoundJournal.open("rounds.npz", {"seed": 3})
    assert not (tmp_path / "ran.txt").exists()
