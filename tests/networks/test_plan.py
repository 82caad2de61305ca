"""Where to average: what is measured, what is recommended, and that nothing is left behind."""

from __future__ import annotations

import copy
import importlib
import json

import pytest
import torch
from reference_networks import ResNet, averaged, lenet, lenet_halves
from refusal import refused

from augury import plan_averaging
from augury.augmentations import parse
from augury.networks.averaging import Averaging
from augury.networks.planning.timing import seconds
from augury.objectives import multinomial

T = parse("rotation(20)")


def sample(b=6):
    x = torch.rand(b, 1, 12, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return x, torch.arange(b) % 3


def trained():
    """A network that has learnt something, so that its loss has an error to speak of."""
    torch.manual_seed(0)
    model, (x, y) = lenet().double(), sample()
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(60):
        optimizer.zero_grad()
        multinomial(model(x), y).mean().backward()
        optimizer.step()
    return model


def test_errors_are_those_of_the_loss():
    model, (x, y) = trained(), sample()
    found = plan_averaging(
        model, x, T, y, n_views=4, groups=(1, 2), repeats=1, layers=["pool1", "fc2"]
    )
    rule = T.nodes(4)
    versions, weights = T.apply(x.unsqueeze(0), rule.params), rule.weights
    with torch.no_grad():
        each = [multinomial(model(v), y) for v in versions]
        exact = weights @ torch.stack(each)
        none = (exact - multinomial(model(x), y)).abs().mean()
        lower, upper = lenet_halves(model)["pool1"]
        first = multinomial(averaged(lower, upper, versions, weights), y)
        two = T.nodes(2)
        half = two.weights @ torch.stack(
            [multinomial(model(v), y) for v in T.apply(x.unsqueeze(0), two.params)]
        )
    error = float((exact - first).abs().mean() / none)
    by = {(c.layer, c.order, c.groups): c for c in found.choices}
    assert by["pool1", 1, 1].error == pytest.approx(error)
    assert by["fc2", 2, 1].error < by["fc2", 1, 1].error
    assert by["pool1", 1, 2].error < by["pool1", 1, 1].error
    fewer = {c.groups: c.error for c in found.fewer}
    assert fewer[2] == pytest.approx(float((exact - half).abs().mean() / none))
    assert set(fewer) == {1, 2}


def test_work_before_and_after_is_that_of_the_network():
    model, (x, _) = lenet().double(), sample()
    found = plan_averaging(model, x, T, n_views=2, repeats=1)
    assert [p.layer for p in found.places][:3] == ["input", "conv1", "act1"]
    total = {p.flops_before + p.flops_after for p in found.places}
    # two operations a product: 144 places × 27 weights, 16 × 27 × 4, 16 × 8, 8 × 3
    assert total == {2 * (144 * 27 + 16 * 27 * 4 + 16 * 8 + 8 * 3)}
    assert found.places[0].flops_before == 0
    assert found.places[-1].flops_after == 0
    assert all(p.seconds_before >= 0 and p.seconds_after > 0 for p in found.places)


def test_the_network_is_left_as_it_was():
    torch.manual_seed(0)
    model, (x, y) = ResNet(dropout=0.5).double(), sample()
    model.layer1.eval()
    state = copy.deepcopy(model.state_dict())
    modes = [m.training for m in model.modules()]
    random = torch.get_rng_state()
    found = plan_averaging(
        model, x, "noise(0.1)", y, n_views=2, repeats=1, layers=["layer1.0", "pool"]
    )
    assert found.layer in ("layer1.0", "pool")
    assert [m.training for m in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(v, state[k]) for k, v in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


def with_times(monkeypatch, times):
    """Replace the clock: layers take the times that are given."""

    def fake(runs, device, repeats):
        return {key: times.get(key, 1.0) for key in runs}

    monkeypatch.setattr(
        importlib.import_module("augury.networks.planning.planner"), "seconds", fake
    )


def test_the_least_error_within_the_budget_is_recommended(monkeypatch):
    model, (x, y) = trained(), sample()
    times = {4: 8.0, ("input", 1, 1): 1.0, ("pool1", 1, 1): 4.0, ("pool2", 1, 1): 6.0}
    times |= {(name, 2, 1): 7.0 for name in ("input", "pool1", "pool2")}
    with_times(monkeypatch, times)
    layers = ["input", "pool1", "pool2"]
    found = plan_averaging(
        model, x, T, y, n_views=4, groups=(1,), layers=layers, saving=0.5, repeats=1
    )
    fits = [c for c in found.choices if c.share <= 0.5]
    assert {c.layer for c in fits} == {"input", "pool1"}
    assert found.best == min(fits, key=lambda c: (round(c.error, 4), c.step))
    assert found.within(4) in fits
    assert found.within(0.5) is None
    assert found.enough
    assert "a step takes" in found.sentence()
    assert "versions without averaging would take" in found.sentence()
    tight = plan_averaging(
        model, x, T, y, n_views=4, groups=(1,), layers=layers, saving=0.95, repeats=1
    )
    assert tight.layer == "input"
    assert not tight.enough
    assert "nothing measured saves the 95%" in tight.sentence()


def test_steps_are_timed_by_a_clock_and_take_turns(monkeypatch):
    order = []
    ticks = iter(range(10**6))
    monkeypatch.setattr("time.perf_counter", lambda: next(ticks))
    runs = {k: (lambda k=k: order.append(k)) for k in "ab"}
    took = seconds(runs, torch.device("cpu"), 3)
    assert "".join(order) == "abababab"
    assert took == {"a": 1, "b": 1}


def test_a_plan_becomes_a_table_json_and_a_figure():
    model, (x, _) = trained(), sample()
    found = plan_averaging(model, x, T, n_views=4, repeats=1, layers=["input", "pool1"])
    assert found.to_frame().loc[("pool1", 2, 1), "error"] >= 0
    assert json.loads(found.to_json())["best"]["layer"] == found.layer
    text = str(found)
    assert text.splitlines()[0].split()[:3] == ["layer", "order", "groups"]
    assert f"{found.layer} *" in text
    assert "2 versions, no averaging" in text
    assert found.plot().axes[0].get_xlabel().startswith("step time")


def test_a_recommended_layer_can_be_used_as_it_stands():
    model, (x, y) = trained(), sample()
    best = plan_averaging(model, x, T, y, n_views=4, repeats=1).best
    how = Averaging(T, best.layer, 4, order=best.order, groups=best.groups)
    assert torch.isfinite(how.loss(model, x, y))


def test_a_finite_family_is_planned_with_the_versions_it_has():
    model, (x, y) = trained(), sample()
    found = plan_averaging(model, x, "horizontal_flip", y, n_views=16, repeats=1, layers=["pool1"])
    assert {c.groups for c in found.choices} == {1}


def test_bad_input_is_refused():
    model, (x, y) = lenet().double(), sample()
    refused("saving|between 0 and 1", plan_averaging, model, x, T, saving=1.5)
    refused("no layer 'pool9'|near names", plan_averaging, model, x, T, layers=["pool9"])
    refused("does not cut", plan_averaging, ResNet().double(), x, T, layers=["layer1.0.conv1"])
    refused("give y", plan_averaging, model, x, T, loss=lambda o, t: o.sum(1))
    refused("2 views or more", plan_averaging, model, x, T, y, n_views=1, groups=(1,))
