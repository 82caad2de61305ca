"""How the networks of folds are trained, with training that is made up."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from augury.augmentations import flips, identity, rotation
from augury.cluster import Journal, Workers
from augury.data import as_dataset
from augury.forecasting.training import runners as module
from augury.forecasting.training.grouped import Grouped
from augury.forecasting.training.members import Fold, Schedule, run_members, train_members
from augury.forecasting.training.own import OwnNetwork
from augury.forecasting.training.runners import OneByOne, OwnRunner, Together, train_group

CPU = torch.device("cpu")
CANDIDATES = [flips(), rotation(9)]


def fold(number, start=0):
    return Fold(torch.arange(8) + start, torch.arange(8, 13) + start, 5, number)


@pytest.fixture
def data():
    x = np.random.default_rng(0).integers(0, 256, (20, 8, 8), np.uint8)
    return as_dataset(x, np.arange(20) % 3)


def make(kind, data, network="small", **options):
    """Return a runner and the list of what it reports."""
    seen = []
    return kind(network, data, Schedule(2, 4), CPU, seen.append, **options), seen


def alone(data, candidate, one):
    """Train one network as one job, by itself."""
    net = Grouped("small", 1, data.shape, 3, one.start)
    chosen = ([], [], [one]) if candidate is None else ([candidate], [one], [])
    train_members(net, data, Schedule(2, 4), *chosen)
    return run_members(net, data, [one.held], [1])[0]


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("kind", [Together, OneByOne])
def test_candidates_by_fold_then_plain_ones(kind, kept, data, exact, tmp_path):
    """Every network ends where it would by itself, whoever trains it."""
    options = {"journal": Journal(tmp_path)} if kept else {}
    runner, seen = make(kind, data, **options)
    assert runner.apart is kept
    folds, clean = [fold(0), fold(1, 3)], [fold(k, start) for k, start in
                                           ((10, 0), (11, 0), (12, 3), (13, 3))]  # fmt: skip
    tried, plain = runner.run(CANDIDATES, folds, clean)
    assert [out.shape for out in tried] == [(5, 2, 3)] * 2
    assert [out.shape for out in plain] == [(5, 1, 3)] * 4
    for out, one in zip(tried, folds, strict=True):
        for k, candidate in enumerate(CANDIDATES):
            assert near(out[:, k : k + 1], alone(data, candidate, one))
    for out, one in zip(plain, clean, strict=True):
        assert near(out, alone(data, None, one))
    if kind is OneByOne:
        names = [repr(c) for c in CANDIDATES]
        assert sorted(seen) == sorted([*names * 2, *["no augmentation"] * 4])
    elif not kept:
        assert seen == ["all candidates"]
    else:
        assert [name.rsplit(" (", 1)[0] for name in seen] == [
            f"small, 2 epochs of 8 examples of (1, 8, 8), fold {k}" for k in range(2)
        ]
        assert all(": 2 without and ['flips', 'rotation(9)']" in name for name in seen)


def near(a, b):
    return torch.allclose(a.softmax(-1), b.softmax(-1), atol=0.02)


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("kind", [Together, OneByOne])
def test_without_candidates_there_are_plain_networks_alone(kind, kept, data, exact, tmp_path):
    options = {"journal": Journal(tmp_path)} if kept else {}
    runner, _ = make(kind, data, **options)
    assert len(runner.run([], [], [fold(3)])[1]) == 1
    clean = [fold(3), fold(4, 2)]
    for folds in ([], [fold(0), fold(1)]):
        if kind is Together and folds and not kept:
            continue  # members of no candidate
        tried, plain = runner.run([], folds, clean)
        assert tried == []
        for out, one in zip(plain, clean, strict=True):
            assert near(out, alone(data, None, one))
    if kind is OneByOne or not kept:
        tried, plain = runner.run([flips()], [fold(0)], [])
        assert plain == []
        assert near(tried[0], alone(data, flips(), fold(0)))


def test_what_is_in_a_journal_is_not_trained_again(data, tmp_path, monkeypatch):
    for kind, work in ((OneByOne, "train_alone"), (Together, "train_group")):
        (tmp_path / work).mkdir()
        journal = Journal(tmp_path / work)
        first = make(kind, data, journal=journal)[0].run(CANDIDATES, [fold(0)], [fold(0)])
        assert [len(part) for part in first] == [1, 1]
        with monkeypatch.context() as patched:
            patched.setattr(module, work, lambda runner, job: pytest.fail("done again"))
            again = make(kind, data, journal=journal)[0].run(CANDIDATES, [fold(0)], [fold(0)])
        for one, other in zip((*first[0], *first[1]), (*again[0], *again[1]), strict=True):
            assert torch.equal(one, other)


def test_jobs_are_told_apart_by_all_that_they_depend_on(data):
    runner, _ = make(OneByOne, data)
    name = runner.named(fold(0), "flips")
    assert name.startswith("small, 2 epochs of 8 examples of (1, 8, 8), fold 0 (")
    assert name.endswith("): flips")
    assert len(name.split("(")[-1].split(")")[0]) == 16
    others = [runner.named(fold(1), "flips"), runner.named(fold(0, 1), "flips"),
              runner.named(fold(0), "identity"),
              runner.named(Fold(torch.arange(8), torch.arange(9, 14), 5, 0), "flips")]  # fmt: skip
    assert len({name, *others}) == 5
    own, _ = make(OwnRunner, data, OwnNetwork(nn.Linear(2, 2)))
    assert own.named(fold(0), "flips").startswith("own network, 2 epochs")


class Remote(Workers):
    """Workers that are elsewhere, and note what is shared with them."""

    remote = True

    def map(self, work, shared, jobs, **options):
        self.shared, self.jobs = shared, jobs
        return super().map(work, shared, jobs, **options)


@pytest.mark.parametrize("kind", [Together, OneByOne])
def test_workers_are_sent_a_runner_that_sends_nothing_on(kind, data):
    workers = Remote(1)
    runner, seen = make(kind, data, workers=workers)
    assert runner.apart is True
    runner.run([identity()], [fold(0)], [fold(1), fold(2)])
    assert not workers.shared.apart
    assert workers.shared.workers.slots == 1
    workers.shared.tick("not heard")
    assert "not heard" not in seen
    assert len(workers.jobs) == len(seen) == (1 if kind is Together else 3)


def test_own_networks_are_trained_one_at_a_time_here(data, tmp_path, monkeypatch):
    """With the threads that there are: they draw from one generator."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    network = OwnNetwork(nn.Sequential(nn.Flatten(), nn.Linear(64, 3)))
    here, _ = make(OwnRunner, data, network, journal=Journal(tmp_path))
    found = here._workers()
    assert (found.slots, found.threads) == (1, 7)
    workers = Remote(3)
    assert make(OwnRunner, data, network, workers=workers)[0]._workers() is workers
    plain = Workers(3)
    assert make(OneByOne, data, workers=plain)[0]._workers() is plain


def test_copies_of_an_own_network(data, tmp_path):
    network = OwnNetwork(nn.Sequential(nn.Flatten(), nn.Linear(64, 3)))
    here, seen = make(OwnRunner, data, network)
    tried, plain = here.run(CANDIDATES, [fold(0)], [fold(0)])
    assert seen == ["flips", "rotation(9)", "no augmentation"]
    assert (tried[0].shape, plain[0].shape) == ((5, 2, 3), (5, 1, 3))
    kept, seen = make(OwnRunner, data, network, journal=Journal(tmp_path))
    again = kept.run(CANDIDATES, [fold(0)], [fold(0)])
    assert seen == ["flips", "rotation(9)", "no augmentation"]
    torch.testing.assert_close(tried[0], again[0][0])
    torch.testing.assert_close(plain[0], again[1][0])


def test_a_group_is_candidates_then_plain_ones():
    runner = SimpleNamespace(run=lambda *job: ([job[0]], [job[1], job[2]]))
    assert train_group(runner, (1, 2, 3)) == (1, 2, 3)
