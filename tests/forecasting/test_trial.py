from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

import augury
from augury._base.errors import AuguryError
from augury._base.parallel import run_parallel
from augury.augmentations import flips, identity, rotation, translation
from augury.data import as_dataset
from augury.forecasting.scores import Setting, TrialScore
from augury.forecasting.scores.trial import Curve, Plan, _afford
from augury.forecasting.training.convolution import by_patches
from augury.forecasting.training.grouped import ARCHITECTURES, Grouped
from augury.forecasting.training.members import Fold, Protocol, run_members, train_members
from augury.forecasting.training.train import train_together

CPU = torch.device("cpu")
SHORT = Protocol(steps=40, batch=32, examples=200, held=400, folds=1)


@pytest.fixture(autouse=True)
def exact(monkeypatch):
    """Train in float32: in bfloat16 the order of sums, and so the threads, decide too much."""
    monkeypatch.setattr("augury.forecasting.training.members.has_bfloat16", lambda device: False)


@pytest.fixture(scope="module")
def data():
    digits = load_digits()
    return as_dataset(digits.images, digits.target)


class Brief(TrialScore):
    protocol = SHORT


def setting(data, **options):
    return Setting(data, None, 1, 0, CPU, **options)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_members_of_a_group_share_nothing(architecture):
    """A member's output is that of the same network alone, and its gradient stays its own."""
    shape = (2, 16, 16)
    pair = Grouped(architecture, 2, shape, 3, seed=1).eval()
    x = torch.randn(4, 2, *shape, generator=torch.Generator().manual_seed(0))
    out = pair(x)
    assert out.shape == (4, 2, 3)
    changed = x.clone()
    changed[:, 1] += 1
    torch.testing.assert_close(pair(changed)[:, 0], out[:, 0])
    assert not torch.allclose(pair(changed)[:, 1], out[:, 1])
    one = Grouped(architecture, 1, shape, 3, seed=2).eval()
    copies = Grouped.joined([one] * 3).eval()
    same = x[:, :1].expand(-1, 3, *shape)
    torch.testing.assert_close(copies(same), one(x[:, :1]).expand(-1, 3, -1), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("shape", [(6,), (2, 30), (1, 9, 11)])
def test_the_small_network_takes_every_kind(shape):
    net = Grouped("small", 2, shape, 4, seed=0)
    assert net(torch.randn(5, 2, *shape)).shape == (5, 2, 4)


def test_training_together_equals_training_alone(data):
    """Grouping is for speed: each candidate ends where it would by itself."""
    folds = [Fold.of(data, SHORT, 0, k) for k in range(2)]
    starts = [Grouped("small", 1, data.shape, 10, fold.start) for fold in folds]
    candidates = [identity(), rotation(20), flips()]

    def trained(starts, candidates, folds):
        net = Grouped.joined([start for start in starts for _ in candidates])
        train_members(net, data, SHORT, candidates, folds)
        return run_members(net, data, [fold.held for fold in folds])

    together = trained(starts, candidates, folds)
    for f in range(2):
        for k, candidate in enumerate(candidates):
            alone = trained(starts[f : f + 1], [candidate], folds[f : f + 1])[0, :, 0]
            agree = (together[f, :, k].argmax(-1) == alone.argmax(-1)).float().mean()
            assert float(agree) > 0.95


def test_folds_train_on_other_examples_than_they_are_judged_by(data):
    folds = [Fold.of(data, SHORT, 3, k) for k in range(3)]
    for fold in folds:
        assert not set(fold.train.tolist()) & set(fold.held.tolist())
        assert len(fold.train) == 200
    assert not set(folds[0].train.tolist()) & set(folds[1].train.tolist())


def test_the_trial_finds_what_helps_and_what_hurts(data):
    found = list(
        Brief(setting(data)).evaluate_all([identity(), translation(0.1), flips() >> rotation(180)])
    )
    assert found[0].value == pytest.approx(100 - 100 * _error(data), abs=1e-6)
    assert found[2].value < found[0].value
    assert found[2].value < found[1].value
    assert found[1].per_class.shape == (10,)
    assert found[0].doubt == 0  # it is what the others are measured against
    assert all(e.doubt > 0 for e in found[1:])


def _error(data):
    fold = Fold.of(data, SHORT, 0, 0)
    one = Grouped("small", 1, data.shape, 10, fold.start)
    out = run_members(train_members(one, data, SHORT, [identity()], [fold]), data, [fold.held])
    return float((out[0, :, 0].argmax(-1) != data.y[fold.held]).float().mean())


def test_the_same_seed_gives_the_same_trial(data):
    first, again = (Brief(setting(data)).evaluate(rotation(10)) for _ in range(2))
    assert first.value == again.value
    torch.testing.assert_close(first.replicates, again.replicates)


def test_gains_of_classes_add_up_to_the_whole(data):
    base, found = Brief(setting(data)).evaluate_all([identity(), rotation(30)])
    fold = Fold.of(data, SHORT, 0, 0)
    share = torch.bincount(data.y[fold.held], minlength=10).double() / len(fold.held)
    assert float(found.per_class @ share) == pytest.approx(found.value - base.value, abs=1e-9)


def test_real_targets_series_and_vectors():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    for x, target, kind in (
        (rng.normal(size=(120, 4)) + y[:, None], y, "vector"),
        (rng.normal(size=(120, 4)), rng.normal(size=120), "vector"),
        (rng.normal(size=(120, 2, 15)) + y[:, None, None], y, "series"),
    ):
        scored = Brief(setting(as_dataset(x, target, kind=kind))).evaluate(
            augury.parse("jitter(0.3)")
        )
        assert np.isfinite(scored.value)


def test_large_pictures_are_seen_small():
    assert Protocol().seen((3, 64, 128)) == (3, 16, 32)
    assert Protocol().seen((3, 28, 28)) == (3, 28, 28)
    assert Protocol().seen((7,)) == (7,)


class TestBudget:
    def test_whole_trials_where_they_fit_and_leaders_again(self):
        assert _afford(1e6, 10, Protocol(), 0.001) == Plan(Protocol(), 6)
        exactly = 10 * 2 * 600 * 0.001
        assert _afford(exactly, 10, Protocol(), 0.001) == Plan(Protocol(), 0)

    @pytest.mark.parametrize("budget", [5, 20, 60, 200])
    def test_a_shorter_plan_stays_within_its_budget(self, budget):
        step, candidates = 0.01, 34
        plan = _afford(budget, candidates, Protocol(), step)
        p = plan.protocol
        spent = step * p.steps * (candidates * p.folds + plan.again * 9)
        assert spent <= max(budget, step * 40 * candidates) * 1.01
        assert p.steps * p.batch / p.examples >= 15  # it must pass over its examples often enough

    def test_it_runs_and_says_what_it_did(self, data):
        specs = ["rotation(10)", "flips", "noise(0.2)", "invert", "translation(0.1)"]
        ranking = augury.rank(data, augmentations=specs, budget=3.0, max_examples=None)
        assert "tried for" in ranking.features
        assert len(ranking.rows) == 5

    def test_bad_budgets_are_said(self, data):
        with pytest.raises(AuguryError, match="seconds above 0"):
            augury.rank(data, budget=0)
        with pytest.raises(AuguryError, match="got '60s'"):
            augury.rank(data, budget="60s")
        with pytest.raises(AuguryError, match="a budget is for the trial score"):
            augury.rank(data, score="alignment", budget=5)


def test_too_few_examples_are_said():
    tiny = as_dataset(np.zeros((2, 3)), [0.0, 1.5])
    with pytest.raises(AuguryError, match="at least 4 examples"):
        Brief(setting(tiny)).evaluate(augury.parse("jitter(0.3)"))


class TestParallel:
    def test_results_keep_their_order_and_threads_are_put_back(self):
        before = torch.get_num_threads()
        ticks = []

        def work(job, tick):
            tick(str(job))
            return job * job

        assert run_parallel(work, list(range(20)), ticks.append) == [k * k for k in range(20)]
        assert sorted(ticks, key=int) == [str(k) for k in range(20)]
        assert torch.get_num_threads() == before

    def test_a_failure_stops_the_rest(self):
        done = []

        def work(job, tick):
            if job == 0:
                raise AuguryError("no")
            for _ in range(1000):
                tick("")
                threading_sleep()
            done.append(job)

        with pytest.raises(AuguryError, match="no"):
            run_parallel(work, list(range(8)), lambda now: None)
        assert len(done) < 7


def threading_sleep():
    import time

    time.sleep(0.001)


def test_training_candidates_together_for_the_truth(data):
    train, test = data.subsample(300, 0), data.subsample(200, 1)
    curve = train_together(
        train, test, [identity(), flips()], architecture="lenet", seeds=2, steps=30, device=CPU
    )
    assert curve.accuracy.shape == (2, 2)
    assert float(curve.accuracy[0].mean()) > 0.3


@pytest.mark.parametrize(("inputs", "size"), [(1, 3), (3, 3), (4, 5)])
def test_a_convolution_by_patches_equals_torch(inputs, size):
    groups, outputs = 3, 5
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 6, 7, groups * inputs, generator=generator, dtype=torch.float64)
    weight = torch.randn(groups, size**2, inputs, outputs, generator=generator).double()
    x.requires_grad_()
    weight.requires_grad_()
    ours = by_patches(x, weight)
    kernel = weight.unflatten(1, (size, size)).permute(0, 4, 3, 1, 2).flatten(0, 1)
    theirs = F.conv2d(x.permute(0, 3, 1, 2), kernel, padding=size // 2, groups=groups)
    torch.testing.assert_close(ours, theirs.permute(0, 2, 3, 1))
    grad = torch.randn(ours.shape, generator=generator, dtype=torch.float64)
    for a, b in zip(
        torch.autograd.grad(ours, (x, weight), grad),
        torch.autograd.grad(theirs.permute(0, 2, 3, 1), (x, weight), grad),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


class TestAccuracyFromLoss:
    def test_it_goes_through_what_the_network_showed(self):
        y = torch.arange(1000) % 10
        losses = torch.full((1000,), 1.5, dtype=torch.float64)
        wrong = (torch.arange(1000) < 520).double()
        curve = Curve.through(losses, wrong, y, classes=True)
        assert float(curve.accuracy(torch.tensor(1.5))) == pytest.approx(48)
        assert float(curve.accuracy(torch.tensor(np.log(10.0)))) == pytest.approx(10, abs=1)
        assert float(curve.accuracy(torch.tensor(0.0))) == pytest.approx(100)

    def test_two_classes_near_chance_are_quadratic(self):
        """With probabilities ½ ± ε that are right, the loss is ln 2 − 2ε² and accuracy ½ + ε."""
        y = torch.arange(1000) % 2
        eps = 0.1
        losses = torch.full((1000,), np.log(2) - 2 * eps**2, dtype=torch.float64)
        curve = Curve.through(losses, (torch.arange(1000) < 400).double(), y, classes=True)
        assert curve.power == pytest.approx(0.5, abs=0.1)
        more = torch.tensor(np.log(2) - 2 * 0.14**2)
        assert float(curve.accuracy(more)) == pytest.approx(64, abs=1)

    def test_a_network_no_better_than_chance_gives_a_number(self):
        losses = torch.full((100,), 3.0, dtype=torch.float64)
        curve = Curve.through(losses, torch.ones(100).double(), torch.arange(100) % 4, True)
        assert np.isfinite(float(curve.accuracy(torch.tensor(2.0))))


def test_no_augmentation_gains_nothing_wherever_it_stands(data):
    found = list(Brief(setting(data)).evaluate_all([identity(), rotation(10), identity()]))
    assert found[2].value == found[0].value
    assert found[2].doubt == 0
