"""Steps that a GPU records once and repeats, with a GPU that is made up."""

from __future__ import annotations

import contextlib

import pytest
import torch

from augury.data import as_dataset
from augury.forecasting.training.members import Fold, Schedule
from augury.forecasting.training.own import OwnNetwork, OwnTrainer
from augury.forecasting.training.recorded import Recorded

CUDA = torch.device("cuda")


class Gpu:
    """Notes what it is told. A recording repeats the steps that were computed while it ran."""

    def __init__(self, monkeypatch, fails=False):
        self.told, self.stream, self.recording, self.fails = [], "main", None, fails
        gpu = self

        class Stream:
            def __init__(self, name="aside"):
                self.name = name

            def wait_stream(self, other):
                gpu.told.append(f"{self.name} waits for {other.name}")

        class Graph:
            def __init__(self):
                self.steps = []

            def replay(self):
                gpu.told.append("repeat")
                for step in self.steps:
                    step()

        @contextlib.contextmanager
        def on(stream):
            gpu.stream = stream.name
            yield
            gpu.stream = "main"

        @contextlib.contextmanager
        def record(graph):
            gpu.recording = graph
            gpu.told.append("record")
            yield
            gpu.recording = None
            if gpu.fails:
                raise RuntimeError("not to be recorded")

        for name, fake in {
            "Stream": Stream,
            "CUDAGraph": Graph,
            "current_stream": lambda: Stream("main"),
            "stream": on,
            "graph": record,
            "synchronize": lambda: gpu.told.append("wait"),
        }.items():
            monkeypatch.setattr(torch.cuda, name, fake)

    def compute(self, step):
        """Do a step, or keep it for the recording that is made."""
        if self.recording is not None:
            self.recording.steps.append(step)
        else:
            self.told.append(self.stream)
            step()

    def taken(self):
        """Return what it was told since the last time."""
        told, self.told = self.told, []
        return told


def batch(k):
    return torch.full((2,), float(k)), torch.full((3,), k)


ASIDE = ["aside waits for main", "aside", "main waits for aside"]


def recorded(gpu, wanted=True):
    """Return steps that note the batches that they were computed from."""
    seen = []

    def compute(x, y):
        gpu.compute(lambda: seen.append((x.tolist(), y.tolist())))

    return Recorded(compute, wanted), seen


def test_the_fourth_step_is_recorded_and_then_repeated_with_new_batches(monkeypatch):
    gpu = Gpu(monkeypatch)
    step, seen = recorded(gpu)
    for k in range(3):
        step(*batch(k))
        assert gpu.taken() == ASIDE
        assert step.repeats is False
    step(*batch(3))
    assert gpu.taken() == ["record", "repeat"]
    assert step.repeats is True
    given = batch(4)
    step(*given)
    assert gpu.taken() == ["repeat"]
    assert seen == [([float(k)] * 2, [k] * 3) for k in range(5)]
    assert given[0].tolist() == [4.0, 4.0]


def test_what_cannot_be_recorded_goes_on_as_it_is(monkeypatch):
    gpu = Gpu(monkeypatch, fails=True)
    step, seen = recorded(gpu)
    for k in range(6):
        step(*batch(k))
    assert gpu.taken() == [*ASIDE * 3, "record", "wait", "main", "main", "main"]
    assert step.repeats is False
    assert [x[0] for x, _ in seen] == [0, 1, 2, 3, 4, 5]


def test_steps_that_are_not_to_be_recorded_are_computed(monkeypatch):
    gpu = Gpu(monkeypatch)
    step, seen = recorded(gpu, wanted=False)
    for k in range(5):
        step(*batch(k))
    assert gpu.taken() == ["main"] * 5
    assert len(seen) == 5
    assert step.repeats is False


@pytest.fixture
def own(monkeypatch):
    """Return a trainer of an own network that takes its device for a GPU."""
    x = torch.rand(20, 3).numpy()
    network = OwnNetwork(torch.nn.Sequential(torch.nn.Linear(3, 2)))
    trainer = OwnTrainer(
        network, as_dataset(x, torch.arange(20).numpy() % 2), Schedule(2, 5), torch.device("cpu")
    )
    trainer.device = CUDA
    return trainer


def stepped(trainer, gpu, monkeypatch):
    """Do seven steps of an own network; return the batches that they were computed from."""
    seen = []

    def compute(x, y, zero=True):
        gpu.told.append(zero)
        if gpu.recording is not None:  # gradients are made anew, where the graph keeps them
            gpu.told.append([p.grad for p in trainer.parameters])
            for p in trainer.parameters:
                p.grad = torch.ones_like(p)
        gpu.compute(lambda: seen.append((x.tolist(), y.tolist())))

    monkeypatch.setattr(trainer, "_compute", compute)
    for k in range(7):
        trainer._step(*batch(k), k)
    return seen


def test_a_step_of_an_own_network_is_captured_once(own, monkeypatch):
    gpu = Gpu(monkeypatch)
    for p in own.parameters:
        p.grad = torch.ones_like(p)
    seen = stepped(own, gpu, monkeypatch)
    assert seen == [([float(k)] * 2, [k] * 3) for k in range(7)]
    warm = ["aside waits for main", True, "aside", "main waits for aside"]
    # gradients stay where they are in a graph: they are not dropped
    assert gpu.taken() == [*warm * 3, "record", False, [None, None], *["repeat"] * 4]
    own._step(*batch(0), 0)
    assert gpu.taken() == ["repeat"]  # of the next network too


def test_an_own_network_that_cannot_be_captured_is_stepped_as_it_is(own, monkeypatch):
    gpu = Gpu(monkeypatch, fails=True)
    seen = stepped(own, gpu, monkeypatch)
    assert [x[0] for x, _ in seen] == list(range(7))
    assert gpu.taken()[12:] == ["record", False, [None, None], "wait", *[True, "main"] * 4]
    assert own._graph is False
    assert all(p.grad is None for p in own.parameters)


def test_on_a_gpu_the_rate_is_kept_there(own):
    """A graph reads the rate from the device; elsewhere it is a number of the optimizer."""
    own._set_rate(0.25)
    assert float(own._rate) == 0.25
    assert own._optimizer.param_groups[0]["lr"] == own.schedule.rate
    own.device = torch.device("cpu")
    own._set_rate(0.125)
    assert own._optimizer.param_groups[0]["lr"] == 0.125
    assert float(own._rate) == 0.25


@pytest.mark.parametrize("type", ["cpu", "cuda"])
def test_the_optimizer_of_an_own_network(own, type, monkeypatch):
    given = {}
    monkeypatch.setattr(
        torch.optim, "AdamW", lambda *args, **options: given.update(options, args=args)
    )
    own.device = torch.device(type)
    own._new_optimizer()
    parameters, rate = given["args"]
    assert parameters is own.parameters
    assert (rate is own._rate) is (type == "cuda")
    assert float(rate) == pytest.approx(own.schedule.rate)
    assert given["capturable"] is (type == "cuda")
    assert given["fused"] is True
    assert given["weight_decay"] == own.schedule.decay


def test_an_own_network_takes_each_fold_for_itself(own):
    """Outputs have a member's shape, from at most four batches of examples at a time."""
    own.device = torch.device("cpu")
    sizes = []
    own.net.register_forward_hook(lambda module, args, out: sizes.append(len(args[0])))
    rows = torch.arange(20).repeat(2)[:33]
    out = own._outputs(rows)
    assert sizes == [20, 13]
    x = own.data.batch(rows, own.device, torch.float32)
    torch.testing.assert_close(out, own.net(x).detach().unsqueeze(1))
    first = own.run(None, Fold(torch.arange(10), torch.arange(10, 20), 3, 1))
    again = own.run(None, Fold(torch.arange(10), torch.arange(10, 20), 3, 1))
    other = own.run(None, Fold(torch.arange(10), torch.arange(10, 20), 3, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
