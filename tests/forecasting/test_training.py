"""Many small networks trained at once."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

from augury._base.errors import AuguryError
from augury._base.parallel import run_parallel
from augury.augmentations import flips, identity, rotation
from augury.data import as_dataset
from augury.forecasting.training import train_together
from augury.forecasting.training.convolution import by_patches
from augury.forecasting.training.grouped import ARCHITECTURES, Grouped
from augury.forecasting.training.members import Fold, Schedule, _views, run_members, train_members

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def data():
    digits = load_digits()
    return as_dataset(digits.images, digits.target)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_members_of_a_group_share_nothing(architecture):
    """A member's output is that of the same network alone, and its gradient stays its own."""
    shape = (2, 40) if architecture == "fcn" else (2, 16, 16)
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


def test_plain_members_train_as_members_without_augmentation_do():
    """Members of `clean` end where members with the identity end."""
    digits = load_digits()
    data = as_dataset((15 * digits.images).astype(np.uint8), digits.target)  # bytes stay exact
    fold = Fold(torch.arange(128), torch.arange(128, 400), 3, 1)
    start = Grouped("small", 1, data.shape, 10, fold.start)
    ends = []
    for candidates, folds, clean in (([identity()], [fold], []), ([], [], [fold])):
        net = Grouped.joined([start])
        train_members(net, data, Schedule(3), candidates, folds, clean)
        ends.append(run_members(net, data, [fold.held], [1])[0])
    torch.testing.assert_close(ends[0], ends[1])


def test_views_differ_between_epochs_folds_and_seeds(data):
    def views(seed=0, number=0, epoch=0):
        fold = Fold(torch.arange(8), torch.arange(8, 16), seed, number)
        return _views(data, [rotation(30)], [fold], epoch, 1, CPU)

    first = views()
    assert torch.equal(first, views())
    for other in (views(seed=1), views(number=1), views(epoch=1)):
        assert not torch.equal(first, other)


def test_steps_follow_from_epochs_and_examples():
    assert Schedule(10).steps(640) == 100
    assert Schedule(10).steps(700) == 100  # a last small batch is left out
    assert Schedule(10).steps(20) == 10


def test_training_candidates_together_for_the_truth(data):
    train, test = data.subsample(300, 0), data.subsample(200, 1)
    found = train_together(
        train, test, [identity(), flips()], architecture="lenet", seeds=2, epochs=8, device=CPU
    )
    assert found.accuracy.shape == (2, 2)
    assert float(found.accuracy[0].mean()) > 0.3


@pytest.mark.parametrize(("inputs", "size"), [(1, (3, 3)), (3, (3, 3)), (4, (5, 5)), (2, (1, 7))])
def test_a_convolution_by_patches_equals_torch(inputs, size):
    groups, outputs = 3, 5
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 6, 7, groups * inputs, generator=generator, dtype=torch.float64)
    weight = torch.randn(groups, *size, inputs, outputs, generator=generator).double()
    x.requires_grad_()
    weight.requires_grad_()
    ours = by_patches(x, weight)
    kernel = weight.permute(0, 4, 3, 1, 2).flatten(0, 1)
    padding = (size[0] // 2, size[1] // 2)
    theirs = F.conv2d(x.permute(0, 3, 1, 2), kernel, padding=padding, groups=groups)
    torch.testing.assert_close(ours, theirs.permute(0, 2, 3, 1))
    grad = torch.randn(ours.shape, generator=generator, dtype=torch.float64)
    for a, b in zip(
        torch.autograd.grad(ours, (x, weight), grad),
        torch.autograd.grad(theirs.permute(0, 2, 3, 1), (x, weight), grad),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("size", [(3, 3), (1, 7)])
@pytest.mark.parametrize("inputs", [1, 8, 16])
def test_patches_in_half_precision(inputs, size):
    """Words of eight channels move at once; what they hold is what single values would."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, size[0], 9, 3 * inputs, generator=generator).bfloat16().requires_grad_()
    weight = torch.randn(3, *size, inputs, 8, generator=generator).bfloat16().requires_grad_()
    out = by_patches(x, weight)
    exact = by_patches(x.detach().double(), weight.detach().double())
    torch.testing.assert_close(out.double(), exact, atol=0.1, rtol=0.02)
    out.sum().backward()
    assert x.grad is not None
    assert bool(x.grad.isfinite().all())


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
            for _ in range(200_000):
                tick("")
            done.append(job)

        with pytest.raises(AuguryError, match="no"):
            run_parallel(work, list(range(8)), lambda now: None)
        assert len(done) < 7
