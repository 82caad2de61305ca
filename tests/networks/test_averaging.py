"""Averaging at a layer against networks split by hand, and what it must refuse."""

from __future__ import annotations

import copy
import gc
import weakref
from unittest import mock

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_networks import (
    NETWORKS,
    Block,
    averaged,
    batch,
    lenet,
    lenet_halves,
    make,
    second_order_term,
)
from torch import nn

from augury._base.rng import Rng
from augury.augmentations import parse
from augury.features.orbit import Orbit
from augury.networks.averaging import Averaged, Averaging, average, views
from augury.networks.averaging.sketch import Sketch
from augury.networks.layers import cut_at, cuts
from augury.networks.tangent import TangentPropagation
from augury.objectives import any_loss, multinomial, quadratic

T = parse("rotation(15)")


def ruled(x, n):
    rule = T.nodes(n)
    return T.apply(x.unsqueeze(0), rule.params), rule.weights


@pytest.mark.parametrize("name", NETWORKS)
def test_averaging_is_an_explicit_split_at_every_layer(name):
    x, y = batch()
    views, weights = ruled(x, 4)
    layers = make(name)[1]
    for layer in layers:
        model, _ = make(name)
        twin, halves = make(name)
        value = Averaging(T, layer, 4).losses(model, x, y)
        expected = F.cross_entropy(averaged(*halves[layer], views, weights), y, reduction="none")
        torch.testing.assert_close(value, expected, rtol=0, atol=1e-10)
        value.mean().backward()
        expected.mean().backward()
        for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(ours.grad, theirs.grad, rtol=0, atol=1e-10)
        # Batch norm's running statistics have seen what the split network's have.
        for ours, theirs in zip(model.buffers(), twin.buffers(), strict=True):
            torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("name", NETWORKS)
def test_all_layers_that_cut_are_found_and_no_others(name):
    model, halves = make(name)
    assert set(cuts(model, batch()[0])) - {"input", "drop"} == set(halves)


class Shortcut(nn.Module):
    """A residual block whose shortcut is empty, as in many CIFAR networks."""

    def __init__(self):
        super().__init__()
        self.conv, self.shortcut = nn.Conv2d(2, 2, 3, padding=1), nn.Sequential()

    def forward(self, x):
        return F.relu(self.conv(x) + self.shortcut(x))


class Trunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.block = nn.Conv2d(1, 2, 3), Shortcut()
        self.same, self.fc = nn.Identity(), nn.Linear(200, 3)

    def forward(self, x):
        return self.fc(self.same(F.relu(self.block(F.relu(self.stem(x))))).flatten(1))


def test_every_cut_that_is_listed_is_accepted():
    x = torch.rand(2, 1, 12, 12)
    found = cuts(Trunk(), x)
    assert found == ["input", "stem", "block", "same", "fc"]  # not the shortcut beside a branch
    for network in (Trunk(), *(make(name)[0].float() for name in NETWORKS)):
        for layer in cuts(network, x):
            cut_at(network, layer, x)


def test_layer_input_averages_the_images():
    model, x, y = make("lenet")[0], *batch()
    views, weights = ruled(x, 4)
    expected = F.cross_entropy(model(torch.einsum("n,nb...->b...", weights, views)), y)
    torch.testing.assert_close(Averaging(T, "input", 4).loss(model, x, y), expected)


@pytest.mark.parametrize("spec", ["rotation(15)", "blur(0.5,2.0)", "flips | shear(10)"])
def test_the_mean_of_small_images_is_one_product(spec, monkeypatch):
    model = nn.Sequential(nn.Flatten(), nn.Linear(2 * 6 * 5, 3)).double()
    x = torch.rand(4, 2, 6, 5, dtype=torch.float64)
    y = torch.tensor([0, 1, 2, 0])
    averaging = Averaging(spec, "input", 6)
    drawn = mock.Mock(wraps=views.views_of)
    monkeypatch.setattr(views, "views_of", drawn)
    monkeypatch.setattr(average, "views_of", drawn)
    with torch.inference_mode():
        averaging.losses(model, x, y, seed=0)
    drawn.reset_mock()
    by_product = averaging.losses(model, x.requires_grad_(), y, seed=0)
    (gradient,) = torch.autograd.grad(by_product.sum(), x)
    assert not drawn.called or parse(spec).nodes(6) is None
    monkeypatch.setattr(views, "_SMALL", 0)
    by_views = averaging.losses(model, x, y, seed=0)
    torch.testing.assert_close(by_product, by_views, rtol=0, atol=1e-12)
    (other,) = torch.autograd.grad(by_views.sum(), x)
    torch.testing.assert_close(gradient, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("activation", [nn.ReLU, nn.Tanh])
@pytest.mark.parametrize("curvature", ["gauss-newton", "hessian"])
@pytest.mark.parametrize("layer", ["pool1", "act2", "fc1", "fc2"])
def test_second_order_is_the_slow_reference(activation, curvature, layer):
    torch.manual_seed(1)
    model, (x, y) = lenet(activation).double(), batch(3)
    lower, upper = lenet_halves(model)[layer]
    views, weights = ruled(x, 3)
    features = lower(views.flatten(0, 1)).unflatten(0, views.shape[:2])
    first = Averaging(T, layer, 3).losses(model, x, y)
    second = Averaging(T, layer, 3, order=2, curvature=curvature).losses(model, x, y)
    term = second_order_term(upper, features, weights, y, multinomial, curvature)
    torch.testing.assert_close(second - first, term, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("layer", ["pool1", "fc1"])
def test_gauss_newton_is_the_hessian_for_relu_and_not_for_tanh(layer):
    for activation, same in ((nn.ReLU, True), (nn.Tanh, False)):
        torch.manual_seed(1)
        model, (x, y) = lenet(activation).double(), batch(3)
        a, b = (
            Averaging(T, layer, 3, order=2, curvature=c).losses(model, x, y)
            for c in ("gauss-newton", "hessian")
        )
        assert torch.allclose(a, b, rtol=1e-9) == same


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 6), b=st.integers(1, 4))
def test_second_order_is_exact_for_a_quadratic_loss_and_a_linear_head(seed, n, b):
    torch.manual_seed(seed)
    model, (x, _) = lenet().double(), batch(b, seed)
    y = torch.randn(b, 3, dtype=torch.float64)
    views, weights = ruled(x, n)
    each = quadratic(model(views.flatten(0, 1)), y.repeat(n, 1)).view(n, b)
    value = Averaging(T, "act3", n, order=2).losses(model, x, y, quadratic)
    torch.testing.assert_close(value, weights @ each)


def test_second_order_trains_as_its_reference_does():
    torch.manual_seed(0)
    model, (x, y) = lenet(nn.Tanh).double(), batch(3)
    twin = copy.deepcopy(model)
    Averaging(T, "pool1", 3, order=2, curvature="hessian").loss(model, x, y).backward()
    lower, upper = lenet_halves(twin)["pool1"]
    views, weights = ruled(x, 3)
    features = lower(views.flatten(0, 1)).unflatten(0, views.shape[:2])
    psi = torch.einsum("n,nb...->b...", weights, features)
    value = multinomial(upper(psi), y)
    for w, f in zip(weights, features, strict=True):
        delta = f - psi

        def along(e, delta=delta):
            return multinomial(upper(psi + e * delta), y)

        zero = torch.zeros((), dtype=torch.float64, requires_grad=True)
        slope = [
            torch.autograd.grad(part, zero, create_graph=True)[0] for part in along(zero).unbind()
        ]
        bend = [torch.autograd.grad(part, zero, create_graph=True)[0] for part in slope]
        value = value + 0.5 * w * torch.stack(bend)
    value.mean().backward()
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-7, atol=1e-10)


def test_random_directions_have_the_mean_of_all_of_them():
    torch.manual_seed(0)
    model, (x, y) = lenet(nn.Tanh).double(), batch(4)
    first = Averaging(T, "act3", 6).losses(model, x, y)
    whole = Averaging(T, "act3", 6, order=2).losses(model, x, y) - first
    errors = []
    for count in (4, 256):
        how = Averaging(T, "act3", 6, order=2, directions=count)
        seen = torch.stack([how.losses(model, x, y, seed=s) - first for s in range(2)])
        errors.append(((seen - whole).abs() / whole.abs()).mean().item())
    assert errors[1] < 0.5 * errors[0]
    assert errors[1] < 0.1


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 4), groups=st.integers(1, 3))
def test_signed_combinations_carry_the_covariance(seed, n, groups):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(n, 2 * groups, 3, generator=generator, dtype=torch.float64)
    weights = torch.rand(n, generator=generator, dtype=torch.float64)
    orbit = Orbit(features, weights / weights.sum())
    sketch = Sketch.combined(orbit, 4000, Rng(seed, torch.arange(2)))
    covariance = torch.einsum("n,nbi,nbj->bij", orbit.weights, orbit.deviations, orbit.deviations)
    found = torch.einsum("n,nbi,nbj->bij", sketch.weights, sketch.deviations, sketch.deviations)
    size = orbit.deviations.square().sum((0, 2)).view(-1, 1, 1)
    assert ((found - covariance).abs() < 0.15 * size + 1e-12).all()
    torch.testing.assert_close(sketch.mean, orbit.mean)


@pytest.mark.parametrize("order", [1, 2])
def test_groups_are_averages_of_neighbours(order):
    model, (x, y) = make("lenet")[0], batch(3)
    views, weights = ruled(x, 6)
    value = Averaging(T, "pool1", 6, order=order, groups=2).losses(model, x, y)
    how = Averaging(T, "pool1", 3, order=order)
    expected = 0
    for k in (0, 1):
        part, share = views[3 * k : 3 * k + 3], weights[3 * k : 3 * k + 3]
        each = how.losses_of(model, part, y, weights=share / share.sum())
        expected = expected + share.sum() * each
    torch.testing.assert_close(value, expected)


def test_as_many_groups_as_versions_is_full_augmentation():
    model, (x, y) = make("lenet")[0], batch(3)
    views, weights = ruled(x, 4)
    each = multinomial(model(views.flatten(0, 1)), y.repeat(4)).view(4, 3)
    value = Averaging(T, "pool1", 4, groups=4).losses(model, x, y)
    torch.testing.assert_close(value, weights @ each)


def test_batch_norm_stands_still_under_the_second_order():
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(4)
    model = nn.Sequential(nn.Flatten(), nn.Linear(144, 4), norm, nn.Linear(4, 3)).double()
    x, y = batch(6)
    views, weights = ruled(x, 3)
    features = model[:2](views.flatten(0, 1)).unflatten(0, (3, 6))
    psi = torch.einsum("n,nbd->bd", weights, features)
    mean, var = psi.mean(0), psi.var(0, correction=0)

    def fixed(f):
        scaled = (f - mean) / (var + norm.eps).sqrt()
        return model[3](scaled * norm.weight + norm.bias)

    term = second_order_term(fixed, features, weights, y, multinomial, "gauss-newton")
    expected = multinomial(fixed(psi), y) + term
    value = Averaging(T, "1", 3, order=2).losses(model, x, y)
    torch.testing.assert_close(value, expected)
    # One batch was counted, and it was that of the averaged features.
    assert norm.num_batches_tracked == 1
    torch.testing.assert_close(norm.running_mean, 0.1 * mean.detach())


def test_all_passes_of_the_second_order_see_the_same_dropout():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(144, 8), nn.Dropout(0.5), nn.Linear(8, 2)
    ).double()
    x, y = batch(4)[0], torch.randn(4, 2, dtype=torch.float64)
    views, weights = ruled(x, 3)
    features = model[:2](views.flatten(0, 1)).unflatten(0, (3, 4))
    torch.manual_seed(7)
    mask = model[2](torch.ones_like(features[0]))
    after = torch.rand(())
    outputs = model[3](features * mask)
    expected = weights @ torch.stack([quadratic(o, y) for o in outputs])
    torch.manual_seed(7)
    value = Averaging(T, "1", 3, order=2).losses(model, x, y, quadratic)
    torch.testing.assert_close(value, expected)
    assert torch.rand(()) == after  # and the generator has moved on by one pass


def test_versions_are_drawn_by_seed_and_example():
    model, (x, y) = make("lenet")[0], batch(4)
    how = Averaging("noise(0.1)", "pool1", 3)
    index = torch.tensor([3, 9, 4, 1])
    value = how.losses(model, x, y, seed=5, index=index)
    order = torch.tensor([2, 0, 3, 1])
    again = how.losses(model, x[order], y[order], seed=5, index=index[order])
    torch.testing.assert_close(again, value[order])
    assert not torch.equal(how.losses(model, x, y, seed=6, index=index), value)
    drawn = Averaging(T, "pool1", 3, rule=False)
    assert not torch.equal(drawn.losses(model, x, y, seed=0), drawn.losses(model, x, y, seed=1))


def test_first_use_leaves_the_network_as_it_was():
    model, (x, y) = make("resnet")[0], batch()
    state = copy.deepcopy(model.state_dict())
    random = torch.get_rng_state()
    cut_at(model, "layer1.0", x)
    cuts(model, x)
    assert torch.equal(torch.get_rng_state(), random)
    for name, value in model.state_dict().items():
        assert torch.equal(value, state[name]), name
    for module in model.modules():
        assert "forward" not in vars(module)
        assert not module._forward_hooks
        assert not module._forward_pre_hooks
    # Buffers were swapped, not written to: a graph that waits can still be run backwards.
    waiting = F.cross_entropy(model(x), y)
    cut_at(model, "layer2.0", x)
    waiting.backward()


def test_a_kept_cut_keeps_no_network_alive():
    model, (x, y) = make("resnet")[0], batch()
    Averaging(T, "layer1.0", 2).loss(model, x, y)
    watch = weakref.ref(model)
    del model
    gc.collect()
    assert watch() is None


def test_a_layer_that_was_replaced_is_found_anew():
    model, (x, y) = make("lenet")[0], batch()
    Averaging(T, "fc1", 2).loss(model, x, y)
    model.fc1 = nn.Linear(16, 8).double()
    lower, upper = lenet_halves(model)["fc1"]
    expected = F.cross_entropy(averaged(lower, upper, *ruled(x, 2)), y)
    torch.testing.assert_close(Averaging(T, "fc1", 2).loss(model, x, y), expected)


def test_mixed_precision_is_near():
    model, (x, y) = make("resnet")[0].float(), batch()
    x = x.float()
    for how in (Averaging(T, "layer1.0", 4), Averaging(T, "layer1.0", 4, order=2)):
        plain = how.loss(copy.deepcopy(model), x, y)
        with torch.autocast("cpu", torch.bfloat16):
            mixed = how.loss(copy.deepcopy(model), x, y)
        assert mixed.dtype == torch.float32
        assert abs(mixed - plain) < 0.05 * abs(plain)
        mixed.backward()


def test_a_network_in_half_precision_can_be_averaged():
    model, (x, y) = make("lenet")[0].bfloat16(), batch()
    for order in (1, 2):
        value = Averaging(T, "pool1", 4, order=order).loss(model, x.bfloat16(), y)
        value.backward()
        assert torch.isfinite(value)


@pytest.mark.parametrize("how", [{"groups": 2}, {"directions": 2}])
def test_what_comes_next_may_work_in_place(how):
    model, (x, y) = make("lenet")[0], batch()
    averaging = Averaging(T, "conv2", 4, order=2, **how)
    plain = Averaging(T, "conv2", 4, groups=how.get("groups", 1))
    terms = []
    for act in (nn.ELU(), nn.ELU(inplace=True)):  # doing it twice is not doing it once
        model.act2 = act
        terms.append(averaging.losses(model, x, y, seed=0) - plain.losses(model, x, y))
    torch.testing.assert_close(*terms, rtol=1e-6, atol=0)


def test_versions_that_are_the_same_have_no_spread_in_half_precision():
    model, (x, y) = make("lenet")[0].bfloat16(), batch()
    views, weights = x.bfloat16().expand(5, *x.shape), T.nodes(5).weights
    once = multinomial(model(x.bfloat16()).float(), y)
    value = Averaging(T, "pool1", 5, order=2).losses_of(model, views, y, weights=weights)
    torch.testing.assert_close(value, once, rtol=1e-5, atol=0)


@pytest.mark.parametrize("order", [1, 2])
def test_channels_last_stays_channels_last(order):
    model, (x, y) = make("resnet")[0], batch()
    how = Averaging(T, "layer1.0", 4, order=order)
    expected = how.loss(copy.deepcopy(model), x, y)
    model = model.to(memory_format=torch.channels_last)
    seen = []
    model.layer1[1].register_forward_pre_hook(
        lambda m, args: seen.append(args[0].is_contiguous(memory_format=torch.channels_last))
    )
    value = how.loss(model, x.contiguous(memory_format=torch.channels_last), y)
    torch.testing.assert_close(value, expected)
    assert seen[-1]


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # dynamo looks, and means to hide it
@pytest.mark.parametrize("order", [1, 2])
def test_a_compiled_network_runs_compiled_and_the_same(order):
    model, (x, y) = make("resnet")[0], batch()
    how = Averaging(T, "layer1.0", 4, order=order)
    expected = how.loss(copy.deepcopy(model), x, y)
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(model, backend=backend)
    torch.testing.assert_close(how.loss(compiled, x, y), expected)
    made = len(graphs)
    assert made >= (2 if order == 1 else 1)
    how.loss(compiled, x, y).backward()
    assert len(graphs) == made  # later steps compile nothing new
    assert model.conv1.weight.grad is not None
    torch._dynamo.reset()


def test_averaged_is_a_module_with_the_loss_as_output():
    model, (x, y) = make("lenet")[0], batch()
    how = Averaging("noise(0.1)", "pool1", 4)
    wrapped = Averaged(model, how)
    torch.testing.assert_close(wrapped(x, y, seed=3), how.loss(model, x, y, seed=3))
    assert wrapped.network is model
    assert Averaged(model, TangentPropagation(T))(x, y).dim() == 0


def test_any_loss_of_the_users_will_do():
    model, (x, _) = make("lenet")[0], batch()
    y = torch.randn(5, 3, dtype=torch.float64)

    def log_cosh(output, target):
        return (output - target).cosh().log().sum(1)

    value = Averaging(T, "pool1", 4, order=2).losses(model, x, y, log_cosh)
    lower, upper = lenet_halves(model)["pool1"]
    views, weights = ruled(x, 4)
    features = lower(views.flatten(0, 1)).unflatten(0, (4, 5))
    psi = torch.einsum("n,nb...->b...", weights, features)
    term = second_order_term(upper, features, weights, y, any_loss(log_cosh), "gauss-newton")
    torch.testing.assert_close(value, log_cosh(upper(psi), y) + term)


def test_residual_blocks_are_cut_whole():
    assert isinstance(make("resnet")[0].layer1[0], Block)
    cut = cut_at(make("resnet")[0], "layer1.1", batch()[0])
    assert [call.name for call, _ in cut.before] == ["conv1", "bn1", "layer1.0"]
