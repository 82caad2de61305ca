"""Many small networks trained at once."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

from augury._base.errors import AuguryError
from augury._base.parallel import run_parallel
from augury.augmentations import flips, identity, rotation
from augury.data import as_dataset
from augury.forecasting.training import members, train_together
from augury.forecasting.training.convolution import by_patches
from augury.forecasting.training.grouped import ARCHITECTURES, Grouped, _Residual
from augury.forecasting.training.members import Fold, Schedule, _views, run_members, train_members
from augury.forecasting.training.recorded import Recorded

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


def count(net):
    return sum(p.numel() for p in net.parameters())


@pytest.mark.parametrize(
    ("architecture", "shape", "weights"),
    [
        # by hand: convolutions without bias (lenet's have one), two numbers of each batch norm
        ("small", (3, 8, 8), 9 * (3 * 16 + 16 * 32 + 32 * 64) + 2 * (16 + 32 + 64) + 65 * 5),
        ("small", (7,), 8 * 64 + 2 * 64 + 65 * 64 + 2 * 64 + 65 * 5),
        ("small", (2, 30), 9 * 2 * 16 + 5 * 16 * 32 + 3 * 32 * 64 + 2 * 112 + 65 * 5),
        ("slim", (3, 8, 8), 9 * (3 * 16 + 40 * 24 + 72 * 48) + 2 * 160 + 49 * 5),
        ("lenet", (3, 8, 12), 26 * 3 * 6 - 2 * 6 + 25 * 6 * 16 + 16 + 97 * 120 + 121 * 84 + 85 * 5),
        ("cnn", (3, 8, 8), 9 * (3 * 24 + 24 * 24 + 24 * 48 + 48 * 48 + 48 * 96) + 2 * 240 + 97 * 5),
        ("resnet", (3, 8, 8), 9 * (3 * 16 + 2 * 16 * 16 + 16 * 32 + 32 * 32 + 32 * 64 + 64 * 64)
         + 2 * (16 + 32 + 64 + 128) + 17 * 32 + 33 * 64 + 65 * 5),
        ("fcn", (2, 30), 9 * 2 * 64 + 5 * 64 * 128 + 3 * 128 * 64 + 2 * 256 + 65 * 5),
    ],
)  # fmt: skip
def test_an_architecture_has_the_weights_that_it_says(architecture, shape, weights):
    assert count(Grouped(architecture, 1, shape, 5, seed=0)) == weights
    assert count(Grouped(architecture, 3, shape, 5, seed=0)) == 3 * weights


def places(architecture, shape):
    """Return the size of what each convolution and pooling layer returns."""
    net, found = Grouped(architecture, 1, shape, 5, seed=0).eval(), []
    for layer in net.modules():
        if isinstance(layer, torch.nn.Conv2d | torch.nn.MaxPool2d):
            layer.register_forward_hook(lambda m, i, out: found.append(tuple(out.shape[-2:])))
    net(torch.randn(2, 1, *shape))
    return found


def test_images_shrink_from_layer_to_layer():
    assert places("small", (1, 9, 9)) == [(9, 9), (5, 5), (5, 5), (3, 3), (3, 3)]
    assert places("slim", (1, 9, 9)) == [(9, 9), (5, 5), (5, 5), (5, 5), (3, 3), (3, 3), (3, 3)]
    assert places("lenet", (1, 8, 12)) == [(8, 12), (4, 6), (4, 6), (2, 3)]
    assert places("cnn", (1, 40, 8))[2:] == [(20, 4), (20, 4), (20, 4), (10, 2), (10, 2)]
    assert places("cnn", (1, 41, 8))[2:] == [(10, 2), (10, 2), (10, 2), (5, 1), (5, 1)]
    assert places("resnet", (1, 8, 8)) == [(8, 8)] * 3 + [(4, 4)] * 3 + [(2, 2)] * 3
    assert places("small", (1, 10)) == [(1, 10), (1, 5), (1, 5), (1, 3), (1, 3)]
    assert places("fcn", (1, 10)) == [(1, 10)] * 3


def test_a_seed_decides_the_weights_and_touches_nothing_else():
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    one, same = (Grouped("small", 1, (1, 8, 8), 3, seed=4) for _ in range(2))
    other = Grouped("small", 1, (1, 8, 8), 3, seed=5)
    assert torch.equal(torch.random.get_rng_state(), before)
    first = [next(net.parameters()) for net in (one, same, other)]
    assert torch.equal(first[0], first[1])
    assert not torch.equal(first[0], first[2])


def test_dense_layers_start_within_their_bound():
    from augury.forecasting.training.layers import GroupedLinear

    layer = GroupedLinear(2, 16, 400)
    for values in (layer.weight.detach(), layer.bias.detach()):
        assert 0.2 < float(values.abs().max()) <= 0.25
        assert float(values.min()) < -0.2
    x = torch.randn(3, 2, 16)
    torch.testing.assert_close(layer(x)[:, 1], x[:, 1] @ layer.weight[1] + layer.bias[1])


def test_rates_and_schedules():
    from augury.forecasting.training.grouped import RATES

    assert RATES == {
        "small": 0.01, "slim": 0.005, "lenet": 0.002, "cnn": 0.003, "resnet": 0.003, "fcn": 0.003
    }  # fmt: skip
    assert (Schedule(3).batch, Schedule(3).rate, Schedule(3).decay) == (64, 0.01, 0.005)
    assert Fold(torch.arange(2), torch.arange(2), 3, 7).start == 3007


def test_member_losses_are_each_members_own():
    from augury.forecasting.training.members import member_loss

    out = torch.randn(4, 3, 5, generator=torch.Generator().manual_seed(0))
    y = torch.randint(5, (4, 3), generator=torch.Generator().manual_seed(1))
    found = member_loss(out, y, True)
    assert found.shape == (4, 3)
    assert float(found[2, 1]) == pytest.approx(float(-out[2, 1].log_softmax(0)[y[2, 1]]))
    real = member_loss(out[..., :1], y.float(), False)
    assert float(real[2, 1]) == pytest.approx(float((out[2, 1, 0] - y[2, 1]) ** 2), rel=1e-5)


def test_training_is_adamw_with_one_cycle():
    """The same steps by hand: the order of a fold's generator, a batch of five, a cycle."""
    x = np.random.default_rng(0).normal(size=(30, 4))
    data = as_dataset(x, np.arange(30) % 3)
    fold = Fold(torch.arange(12), torch.arange(12, 30), 2, 1)
    schedule = Schedule(3, batch=5, rate=0.02, decay=0.1)
    start = Grouped("small", 1, data.shape, 3, fold.start)
    net, twin = Grouped.joined([start]), Grouped.joined([start])
    ticks = []
    train_members(net, data, schedule, [], [], [fold], lambda: ticks.append(1))
    assert not net.training
    assert len(ticks) == 6
    optimizer = torch.optim.AdamW(twin.parameters(), 0.02, weight_decay=0.1)
    cycle = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.02, total_steps=6)
    generator = torch.Generator().manual_seed(2001)
    twin.train()
    for _ in range(3):
        order = torch.randperm(12, generator=generator)[:10]
        for rows in order.split(5):
            batch = data.x[rows].float().unsqueeze(1)
            loss = F.cross_entropy(twin(batch)[:, 0], data.y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            cycle.step()
    # biases before a batch norm have no gradient but rounding, which Adam makes large
    weights = [[p for name, p in own.named_parameters() if "weight" in name] for own in (net, twin)]
    for ours, theirs in zip(*weights, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-3)


def test_fewer_examples_than_a_batch_are_one_step():
    x = np.random.default_rng(0).normal(size=(20, 4))
    data = as_dataset(x, np.arange(20) % 2)
    fold = Fold(torch.arange(6), torch.arange(6, 20), 0)
    ticks = []
    net = Grouped("small", 1, data.shape, 2, 0)
    train_members(net, data, Schedule(4), [], [], [fold], lambda: ticks.append(1))
    assert len(ticks) == 4


def test_each_epoch_sees_its_own_views(monkeypatch, data):
    """Views are made for several epochs at a time; every example meets its own, with its label."""
    from augury.forecasting.training import members

    fold = Fold(torch.arange(6), torch.arange(6, 9), 0, 2)
    for at_once in (1, 2, 5):
        monkeypatch.setattr(members, "_VIEWS", 6 * at_once)
        calls = []
        real = members._views

        def watched(*args, calls=calls, real=real):
            calls.append(args[3:5])
            return real(*args)

        monkeypatch.setattr(members, "_views", watched)
        generator = torch.Generator().manual_seed(fold.start)
        seen = []
        for x, y in members.make_batches(
            data, Schedule(4, batch=3), [rotation(40)], [fold], [], CPU
        ):
            assert x.shape == (3, 1, *data.shape)
            assert y.shape == (3, 1)
            seen.append((x, y))
        monkeypatch.setattr(members, "_views", real)
        assert len(seen) == 8
        step = min(at_once, 4)
        assert calls == [(epoch, step) for epoch in range(0, 4, step)]
        for epoch in range(4):
            order = torch.randperm(6, generator=generator)
            views = real(data, [rotation(40)], [fold], epoch - epoch % step, step, CPU)
            for part, (x, y) in zip(order.split(3), seen[2 * epoch : 2 * epoch + 2], strict=True):
                wanted = views[epoch % step, 0, part, 0].float()
                wanted = wanted / 255 if views.dtype == torch.uint8 else wanted
                torch.testing.assert_close(x[:, 0], wanted)
                assert torch.equal(y[:, 0], data.y[part])


def test_views_of_many_examples_are_made_in_parts(monkeypatch, data):
    from augury.forecasting.training import members

    fold = Fold(torch.arange(20), torch.arange(20, 30), 0, 1)
    whole = _views(data, [rotation(30), flips()], [fold], 2, 3, CPU)
    assert whole.shape == (3, 1, 20, 2, *data.shape)
    monkeypatch.setattr(members, "_VALUES", 3 * data.x[0].numel() * 7)
    assert torch.equal(_views(data, [rotation(30), flips()], [fold], 2, 3, CPU), whole)


def test_running_members_gives_each_its_own_examples(data, exact):
    net = Grouped("small", 3, data.shape, 10, seed=1).eval()
    rows = [torch.arange(40), torch.arange(40, 80)]
    first, second = run_members(net, data, rows, [2, 1])
    assert first.shape == (40, 2, 10)
    assert second.shape == (40, 1, 10)
    x = [data.batch(r, CPU, torch.float32) for r in rows]
    with torch.no_grad():
        out = net(torch.stack([x[0], x[0], x[1]], 1))
    torch.testing.assert_close(torch.cat([first, second], 1), out, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("inputs", [8, 3])
def test_half_precision_moves_whole_words(inputs):
    groups, outputs = 2, 4
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 5, 6, groups * inputs, generator=generator)
    weight = torch.randn(groups, 3, 3, inputs, outputs, generator=generator)
    found = by_patches(x.bfloat16(), weight.bfloat16())
    exact = by_patches(x.bfloat16().double(), weight.bfloat16().double())
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.double(), exact, atol=0.1, rtol=0.05)


def test_the_truth_is_accuracy_and_cross_entropy_on_clean_examples(data):
    train, test = data.subsample(64, 0), data.subsample(50, 1)
    seen = []
    found = train_together(
        train, test, [identity(), flips()], architecture="lenet", seeds=3, epochs=2, batch=32,
        device=CPU, progress=lambda *now: seen.append(now),
    )  # fmt: skip
    assert found.accuracy.shape == found.cross_entropy.shape == (2, 3)
    assert seen == [(k, 4) for k in range(1, 5)]
    whole = torch.arange(64)
    fold = Fold(whole, whole[:0], 0, 1)
    net = Grouped("lenet", 1, train.shape, 10, fold.start)
    train_members(net, train, Schedule(2, 32, 0.002, 0.005), [flips()], [fold])
    (out,) = run_members(net, test, [torch.arange(50)], [1])
    right = (out[:, 0].argmax(1) == test.y).float().mean()
    assert float(found.accuracy[1, 1]) == pytest.approx(float(right), abs=0.021)
    entropy = float(F.cross_entropy(out[:, 0], test.y))
    assert float(found.cross_entropy[1, 1]) == pytest.approx(entropy, abs=0.02)


def test_images_are_trained_in_bfloat16_where_that_is_faster(data, monkeypatch):
    monkeypatch.setattr(members, "has_bfloat16", lambda device: True)
    seen = []
    fold = Fold(torch.arange(20), torch.arange(20, 30), 0)
    net = Grouped("small", 1, data.shape, 10, 0)
    net.network[1].register_forward_pre_hook(lambda module, args: seen.append(args[0].dtype))
    train_members(net, data, Schedule(1), [], [], [fold])
    assert set(seen) == {torch.bfloat16}
    assert all(p.dtype == torch.float32 for p in net.parameters())


def test_a_ranking_does_not_import_torchs_compiler():
    """It takes seconds, and torch's own optimizers import it with their first step."""
    code = (
        "import sys, numpy as np, augury; x = np.random.default_rng(0).random((40, 8, 8));"
        "augury.rank(x, np.arange(40) % 2, ['rotation(10)'], epochs=1, effort=0);"
        "print([m for m in ('torch._dynamo', 'sympy', 'sklearn', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_defaults_of_training_for_the_truth():
    given = {k: p.default for k, p in inspect.signature(train_together).parameters.items()}
    assert (given["seeds"], given["epochs"], given["batch"], given["seed"]) == (2, 40, 64, 0)
    assert (given["architecture"], given["decay"]) == ("cnn", 0.005)


def test_views_of_images_are_bytes_and_others_are_not(data):
    index = torch.arange(8)
    fold = Fold(index, index[:0], seed=0)
    cpu = torch.device("cpu")
    assert _views(data, [identity()], [fold], 0, 1, cpu).dtype == torch.uint8
    x = np.random.default_rng(0).normal(size=(8, 3))
    table = as_dataset(x, np.arange(8) % 2)
    found = _views(table, [identity()], [fold], 0, 1, cpu)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found[0, 0, :, 0], table.x.float())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="records steps on a GPU alone")
@pytest.mark.parametrize("architecture", ["small", "slim", "cnn", "resnet", "lenet"])
def test_recorded_steps_end_where_steps_end(architecture, monkeypatch):
    x = np.random.default_rng(0).integers(0, 255, (400, 32, 32, 3), np.uint8)
    x[::2, 8:24, 8:24] //= 2
    data = as_dataset(x, np.arange(400) % 2)
    fold = Fold(torch.arange(256), torch.arange(256, 400), 0)
    found, recorded = [], []
    kept = Recorded._record
    monkeypatch.setattr(Recorded, "_record", lambda *a: (recorded.append(1), kept(*a))[1])
    for long in (10**9, 50):
        monkeypatch.setattr(members, "_LONG", long)
        net = Grouped(architecture, 3, data.shape, 2, 0).to("cuda")
        train_members(net, data, Schedule(15), [flips(), rotation(9)], [fold], [fold])
        found.append(run_members(net, data, [fold.held, fold.held], [2, 1]))
    assert len(recorded) == 1
    for ours, theirs in zip(*found, strict=True):
        assert (ours.softmax(-1) - theirs.softmax(-1)).abs().mean() < 0.02


def test_a_residual_block_adds_what_it_skips():
    block = _Residual(torch.nn.Identity(), torch.nn.Identity())
    x = torch.tensor([-1.0, 0.5, 2.0])
    assert block(x).tolist() == [0.0, 1.0, 4.0]
