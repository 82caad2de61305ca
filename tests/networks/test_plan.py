"""Where to average: what is measured, what is recommended, and that nothing is left behind."""

from __future__ import annotations

import copy
import importlib
from collections import OrderedDict

import pytest
import torch
import torch.nn.functional as F
from reference_networks import ResNet, averaged, lenet, lenet_halves
from refusal import refused
from report_rankings import EVIL

import augury
from augury import Averaging, AveragingPlan, plan_averaging
from augury.augmentations import parse
from augury.networks.planning.timing import seconds
from augury.objectives import multinomial
from augury.results.averaging_plan import AveragingChoice, LayerCost, recommend

T = parse("rotation(20)")


def sample(b=6):
    x = torch.rand(b, 1, 12, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return x, torch.arange(b) % 3


def trained():
    """A network that has learnt something, so that augmentation changes its gradient."""
    torch.manual_seed(0)
    model, (x, y) = lenet().double(), sample()
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(60):
        optimizer.zero_grad()
        multinomial(model(x), y).mean().backward()
        optimizer.step()
    return model


def by_way(found):
    return {(c.layer, c.order, c.groups, c.random): c for c in found.choices}


def slow_gradient(model, loss):
    parameters = list(model.parameters())
    found = torch.autograd.grad(loss, parameters, allow_unused=True)
    return torch.cat(
        [
            (torch.zeros_like(p) if g is None else g).flatten()
            for p, g in zip(parameters, found, strict=True)
        ]
    )


def test_errors_are_those_of_the_gradient():
    model, (x, y) = trained(), sample()
    options = {"n_views": 4, "groups": (1, 2), "repeats": 1, "layers": ["pool1", "fc2"]}
    found = plan_averaging(model, x, T, y, **options)
    rule = T.nodes(4)
    views, weights = T.apply(x.unsqueeze(0), rule.params), rule.weights

    def plain(n):
        nodes = T.nodes(n)
        each = [multinomial(model(v), y) for v in T.apply(x.unsqueeze(0), nodes.params)]
        return slow_gradient(model, (nodes.weights @ torch.stack(each)).mean())

    full, none = plain(4), slow_gradient(model, multinomial(model(x), y).mean())
    scale = (none - full).norm()
    lower, upper = lenet_halves(model)["pool1"]
    first = slow_gradient(model, multinomial(averaged(lower, upper, views, weights), y).mean())
    ways = by_way(found)
    assert ways["pool1", 1, 1, False].error == pytest.approx(float((first - full).norm() / scale))
    assert ways[None, 0, 2, False].error == pytest.approx(float((plain(2) - full).norm() / scale))
    assert ways[None, 0, 4, False].error == 0
    assert ways[None, 0, 0, False].error == pytest.approx(1)
    assert ways["pool1", 1, 2, False].error < ways["pool1", 1, 1, False].error
    assert ways["fc2", 2, 1, False].error != ways["fc2", 1, 1, False].error


def test_every_table_has_the_usual_practice_and_all_orders():
    model, (x, y) = trained(), sample()
    found = plan_averaging(model, x, T, y, n_views=4, repeats=1, layers=["input", "pool1"])
    assert found.usual.name == "1 random view"
    assert found.usual.random
    names = {c.name for c in found.choices}
    assert {"no augmentation", "1 random view", "2 views", "4 views"} <= names
    assert {f"1 average of 4 views at {k}, second order" for k in ("input", "pool1")} <= names
    for text in (str(found), found.to_markdown(), found.to_html()):
        assert "1 random view" in text
        assert "second order" in text
    # random views are unbiased: over many steps their error falls, as one view's does not
    many = plan_averaging(model, x, T, y, n_views=64, groups=(1,), repeats=1, layers=["input"])
    assert many.usual.error < found.usual.error


def test_work_before_and_after_is_that_of_the_network():
    model, (x, _) = lenet().double(), sample()
    found = plan_averaging(model, x, T, n_views=2, repeats=1, layers=["input", "conv1", "fc2"])
    assert [cost.layer for cost in found.layers] == ["input", "conv1", "fc2"]
    # two operations a product: 144 places × 27 weights, 16 × 27 × 4, 16 × 8, 8 × 3
    total = 2 * (144 * 27 + 16 * 27 * 4 + 16 * 8 + 8 * 3)
    assert {cost.flops_before + cost.flops_after for cost in found.layers} == {total}
    assert [cost.flops_before for cost in found.layers] == [0, 2 * 144 * 27, total]


def test_a_layer_may_have_two_names():
    model, (x, _) = lenet().double(), sample()
    model.alias = torch.nn.Sequential(OrderedDict(inside=model.conv2))
    model.forward = lambda v: model[:10](v)
    found = plan_averaging(model, x, T, n_views=2, repeats=1, layers=["alias.inside"])
    assert found.layers[0].flops_before == 2 * (144 * 27 + 16 * 27 * 4)


def test_default_layers_are_few_and_spread_over_the_work():
    model, (x, _) = ResNet().double(), sample()
    found = plan_averaging(model, x, T, n_views=2, repeats=1, max_layers=3)
    layers = [cost.layer for cost in found.layers]
    assert layers[0] == "input"
    assert len(layers) == 3
    work = [cost.flops_before for cost in found.layers]
    assert work == sorted(set(work))
    assert found.layers[-1].flops_after > 0


def test_the_network_is_left_as_it_was():
    torch.manual_seed(0)
    model, (x, y) = ResNet(dropout=0.5).double(), sample()
    model.layer1.eval()
    state = copy.deepcopy(model.state_dict())
    modes = [m.training for m in model.modules()]
    random = torch.get_rng_state()
    plan_averaging(model, x, "noise(0.1)", y, n_views=2, repeats=1, layers=["layer1.0", "pool"])
    assert [m.training for m in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(v, state[k]) for k, v in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


def choice(step, error, layer=None, order=0, groups=4, n_views=4, random=False):
    return AveragingChoice(layer, order, groups, n_views, random, step, step / 10, error)


def plan_of(*choices, best=None, saving=0.5):
    cost = LayerCost("input", 0, 100, 0.5)
    best = best or choices[0]
    return AveragingPlan(choices, best, (cost,), saving, "rotation(15)", 16, 8, "cpu")


def test_recommendations_lie_on_the_front():
    grouped = choice(2.1, 0.079, "input", 1, 4, 16)
    few = choice(2.2, 0.019)
    assert recommend([grouped, few]) == few  # a quarter of the error at about the same time
    slow = choice(4.0, 0.010)
    assert recommend([grouped, few, slow]) == few  # about the same error in half the time
    near = choice(2.1, 0.05, "input", 1, 4, 16)
    assert recommend([near, few]) == few  # about equal in time: the smaller error
    half = choice(1.0, 0.06)
    assert recommend([near, few, half]) == half  # about equal in error: half of the time
    every = plan_of(
        grouped, few, slow, choice(0.5, 0.3, random=True, groups=1, n_views=1),
        choice(9, 0.2, "fc", 2, 1, 16),
    )  # fmt: skip
    assert few in every.front
    assert choice(9, 0.2, "fc", 2, 1, 16) not in every.front
    assert every.within(4.3) == grouped
    assert every.within(4.5) == few
    assert every.within(0.1) is None


def test_what_does_harm_is_named_and_never_recommended(monkeypatch):
    one = choice(1, 0.3, "pool2", 1, 1, 16)
    assert one.harmful  # by the benchmarks, however small the error
    assert choice(1, 1.1, "input", 1, 4, 16).harmful
    assert not choice(1, 1.1, "input", 2, 1, 16).harmful  # no rule was found
    assert not choice(1, 1.4, random=True, groups=1, n_views=1).harmful
    model, (x, y) = trained(), sample()
    module = importlib.import_module("augury.networks.planning.planner")
    clock = {}

    def fake(runs, device, repeats):
        for c in runs:
            quick = c.layer == "input" and c.groups == 1 and c.order == 1
            clock[c] = 0.01 if quick else 10.0 if c.n_views == 4 and c.layer is None else 6.0
        return clock

    monkeypatch.setattr(module, "seconds", fake)
    options = {"n_views": 4, "groups": (1, 2), "layers": ["input"], "repeats": 1}
    found = plan_averaging(model, x, T, y, saving=0.9, **options)
    assert by_way(found)["input", 1, 1, False].share < 0.1  # fast enough, and harmful
    assert not found.best.harmful
    assert not found.enough
    text = str(found)
    assert "No harmless choice saves the requested 90\u00a0%" in text
    assert "expected to do harm" in text.split(" 1 average of 4 views at input (")[-2]
    assert "recommended" in text


def test_steps_are_timed_by_a_clock_and_take_turns(monkeypatch):
    order = []
    ticks = iter(k / 10 for k in range(10**6))
    monkeypatch.setattr("time.perf_counter", lambda: next(ticks))
    runs = {k: (lambda k=k: order.append(k)) for k in "ab"}
    took = seconds(runs, torch.device("cpu"), 3)
    assert "".join(order) == "abababab"
    assert took == {"a": pytest.approx(0.1), "b": pytest.approx(0.1)}
    order.clear()
    ticks = iter(2 * k for k in range(10**6))  # steps of two seconds are not repeated
    assert seconds(runs, torch.device("cpu"), 3) == {"a": 2, "b": 2}
    assert "".join(order) == "ab"


def test_a_plan_becomes_a_table_json_a_figure_and_pages():
    model, (x, _) = trained(), sample()
    found = plan_averaging(model, x, T, n_views=4, repeats=1, layers=["input", "pool1"])
    frame = found.to_frame()
    assert frame.loc["1 average of 4 views at pool1, second order", "error"] >= 0
    assert frame.loc["1 average of 4 views at pool1", "harmful"]
    assert AveragingPlan.from_json(found.to_json()) == found
    assert str(found).splitlines()[0].split()[:4] == ["loss", "step", "time", "of"]
    assert found.plot().axes[0].get_xlabel().startswith("step time")
    assert found._repr_html_().startswith("<")
    assert found.best.name in found.to_markdown()
    few = choice(1, 0.1, random=True, groups=1, n_views=1)
    layered = choice(2, 0.1, "input", 1)
    columns = [plan_of(*some).to_frame().columns.tolist() for some in ([few, layered], [layered])]
    assert columns[0] == columns[1]  # whichever choice is the fastest
    page = plan_of(choice(1, 0.1, random=True, groups=1, n_views=1), choice(1, 0.1, EVIL, 2, 1))
    assert EVIL not in page.to_html()
    assert EVIL not in page.to_markdown()


def test_the_code_of_a_choice_runs():
    model, (x, y) = trained(), sample()
    found = plan_averaging(model, x, T, y, n_views=4, groups=(1, 2), repeats=1, layers=["pool1"])
    names = {"augury": augury, "torch": torch, "F": F, "network": model, "x": x, "y": y, "step": 0}
    for c in found.choices:
        exec(c.code(found.augmentation), names)
        assert torch.isfinite(names["loss"]), c.name
    exec(by_way(found)[None, 0, 4, False].code("rotation(20)"), names)
    every = Averaging(T, "input", 4, groups=4).loss(model, x, y)
    torch.testing.assert_close(names["loss"], every)


def test_a_finite_family_is_planned_with_the_views_it_has():
    model, (x, y) = trained(), sample()
    found = plan_averaging(model, x, "horizontal_flip", y, n_views=16, repeats=1, layers=["pool1"])
    assert {c.groups for c in found.choices if c.layer} == {1}
    assert {c.n_views for c in found.choices} == {0, 1, 2}


@pytest.mark.parametrize(
    "spec",
    ["flips", "quarter_turns", "0.5*flips", "rotation(20) | flips", "0.5*rotation(20)", "noise"],
)
def test_the_code_of_every_choice_runs_and_is_what_was_timed(spec, monkeypatch):
    model, (x, y) = trained(), sample()
    planner = importlib.import_module("augury.networks.planning.planner")
    timed = {}

    def fake(runs, device, repeats):
        given = planner._Sample(x, y, parse(spec), 8, multinomial, 3)
        timed.update({c.name: given.loss_of(model, c).detach() for c in runs})
        return {c: c.n_views + 10.0 * c.order + 1 for c in runs}

    monkeypatch.setattr(planner, "seconds", fake)
    options = {"n_views": 8, "groups": (1, 2), "repeats": 1, "layers": ["pool1"], "seed": 3}
    found = plan_averaging(model, x, spec, y, **options)
    names = {"augury": augury, "torch": torch, "F": F, "network": model, "x": x, "y": y, "step": 3}
    for c in found.choices:
        exec(c.code(found.augmentation), names)
        torch.testing.assert_close(names["loss"].detach(), timed[c.name], msg=c.name)


def test_fewer_views_than_a_finite_family_has_are_drawn():
    model, (x, y) = trained(), sample()
    options = {"n_views": 16, "repeats": 1, "layers": ["pool1"]}
    plans = [plan_averaging(model, x, "flips", y, seed=seed, **options) for seed in (0, 1)]
    kinds = {c.name: c.random for c in plans[0].choices if c.layer is None}
    assert kinds == {
        "no augmentation": False,
        "1 random view": True,
        "2 random views": True,
        "4 views": False,
    }
    errors = [by_way(plan)[None, 0, 2, True].error for plan in plans]
    assert errors[0] != errors[1]


def test_the_mean_of_random_views_is_over_as_many_steps_as_views():
    """Two views a step, over as many steps, are twice as many draws."""
    model, (x, y) = trained(), sample()
    found = plan_averaging(model, x, "quarter_turns", y, n_views=4, repeats=1, layers=["pool1"])
    turns = parse("quarter_turns")

    def mean(views):
        each = torch.stack([multinomial(model(v), y) for v in views])
        return slow_gradient(model, each.mean())

    full = mean(turns.apply(x.unsqueeze(0), turns.nodes(4).params))
    scale = (slow_gradient(model, multinomial(model(x), y).mean()) - full).norm()
    for n in (1, 2):
        draws = [turns.views(x, n, augury.Rng(1 + step, torch.arange(6))) for step in range(4)]
        expected = (mean(torch.cat(draws)) - full).norm() / scale
        assert by_way(found)[None, 0, n, True].error == pytest.approx(float(expected))


def test_an_augmentation_that_changes_nothing_has_no_error():
    model, (x, y) = trained(), sample()
    found = plan_averaging(model, x, "identity", y, n_views=4, repeats=1, layers=["pool1"])
    assert {c.error for c in found.choices} == {0}


def test_targets_that_do_not_fit_are_refused():
    model, (x, y) = lenet().double(), sample()
    refused("classes from 0 to 2|got 7", plan_averaging, model, x, T, torch.full((6,), 7))
    refused(
        "one target for each of the 6 examples|got shape (2,)", plan_averaging, model, x, T, y[:2]
    )
    refused("y must be a tensor, got", plan_averaging, model, x, T, y.tolist())


def test_bad_input_is_refused():
    model, (x, y) = lenet().double(), sample()
    refused("saving|between 0 and 1", plan_averaging, model, x, T, saving=1.5)
    refused("no layer 'pool9'|similar names", plan_averaging, model, x, T, layers=["pool9"])
    refused("does not cut", plan_averaging, ResNet().double(), x, T, layers=["layer1.0.conv1"])
    refused("y is required", plan_averaging, model, x, T, loss=lambda o, t: o.sum(1))
    refused(
        "n_views must be a whole number from 2 to 4,096",
        plan_averaging,
        model,
        x,
        T,
        y,
        n_views=1,
        groups=(1,),
    )
    refused("max_layers must be a whole number of 1", plan_averaging, model, x, T, y, max_layers=0)
    refused("floating-point", plan_averaging, model, (x * 255).byte(), T, y)
