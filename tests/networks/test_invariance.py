"""Layerwise invariance against pairs of examples counted one by one."""

from __future__ import annotations

import copy
import gc
import json
import math
import sys
import warnings
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_networks import ResNet, lenet, lenet_halves
from refusal import refused
from report_rankings import EVIL
from torch import nn

from augury.augmentations import parse
from augury.data import Dataset, as_dataset
from augury.features.orbit import Orbit
from augury.networks.invariance import Invariance, measure_invariance
from augury.networks.load import load_network
from augury.results.invariance import InvarianceProfile
from augury.statistics import group_of

T = parse("rotation(15)")


def images(count=7, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(count, 1, 12, 12, generator=generator, dtype=torch.float64)


def small(seed=0):
    torch.manual_seed(seed)
    return lenet().double().eval()


def slow(features, views, weights):
    """Δ and D, example by example and pair by pair."""
    count, size = len(features), features[0].size
    distance = 0.0
    for i in range(count):
        for w, view in zip(weights, views, strict=True):
            distance += w * float(((features[i] - view[i]) ** 2).sum()) / size / count
    pairs = [
        float(((features[i] - features[j]) ** 2).sum()) / size
        for i in range(count)
        for j in range(count)
        if i != j
    ]
    return distance, sum(pairs) / len(pairs)


def test_distances_are_those_of_the_slow_count():
    model, x = small(), images()
    found = measure_invariance(model, x, T, n_views=4, batch_size=3)
    rule = T.nodes(4)
    halves = lenet_halves(model)
    assert found.layers == ("input", *halves)
    for layer, (lower, _) in halves.items():
        with torch.no_grad():
            plain = lower(x).numpy()
            moved = [lower(v).numpy() for v in T.apply(x.unsqueeze(0), rule.params)]
        distance, between = slow(plain, moved, rule.weights.tolist())
        cell = found[layer, "rotation(15)"]
        assert cell.distance == pytest.approx(distance, rel=1e-9)
        assert cell.between == pytest.approx(between, rel=1e-9)
        assert cell.relative == pytest.approx(distance / between, rel=1e-9)
        assert cell.size == plain[0].size


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(2, 9),
    n=st.integers(1, 4),
    d=st.integers(1, 5),
    split=st.integers(1, 8),
)
def test_any_split_gives_the_same_statistic(seed, count, n, d, split):
    rng = np.random.default_rng(seed)
    origin, features = rng.normal(size=(count, d)), rng.normal(size=(n, count, d))
    weights = rng.random(n) + 0.1
    weights /= weights.sum()

    def of(index):
        statistic = Invariance(groups=4)
        orbit = Orbit(*(torch.tensor(a) for a in (features[:, index], weights, origin[index])))
        statistic.update(orbit, None, torch.tensor(index))
        return statistic

    whole = of(np.arange(count))
    order = rng.permutation(count)
    cut = min(split, count - 1)
    joined = of(order[:cut]) + of(order[cut:])
    distance, between = slow(origin, features, weights)
    for statistic in (whole, joined):
        assert statistic.distance().value == pytest.approx(distance)
        assert statistic.between() == pytest.approx(between)
        assert statistic.result().value == pytest.approx(distance / between)
    torch.testing.assert_close(joined.result().replicates, whole.result().replicates)


def test_intervals_are_those_of_leaving_groups_out():
    rng = np.random.default_rng(0)
    count, groups = 40, 5
    origin, features = rng.normal(size=(count, 3)), rng.normal(size=(1, count, 3))
    statistic = Invariance(groups=groups)
    one = torch.ones(1, dtype=torch.float64)
    orbit = Orbit(torch.tensor(features), one, torch.tensor(origin))
    statistic.update(orbit, None, torch.arange(count))
    group = group_of(torch.arange(count), groups).numpy()
    each = ((features[0] - origin) ** 2).mean(1)
    expected = [each[group != g].mean() for g in range(groups)]
    np.testing.assert_allclose(statistic.distance().replicates.numpy(), expected)


def test_nothing_is_nan_at_two_examples():
    for size in (1, 2):
        found = measure_invariance(
            ResNet().double().eval(), images(2), T, n_views=3, batch_size=size
        )
        for cell in found.rows:
            assert math.isfinite(cell.relative)
            assert math.isfinite(cell.distance)
            assert cell.low is None or math.isfinite(cell.low)


def test_a_dead_layer_is_invariant_and_not_nan():
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU()).double().eval()
    nn.init.zeros_(model[0].weight)
    found = measure_invariance(
        model, torch.rand(5, 4, dtype=torch.float64), "jitter(0.1)", n_views=2
    )
    assert found["0", "jitter(0.1)"].relative == 0
    # and one that only views move is as far from invariant as can be, and still valid JSON
    same = torch.rand(1, 4, dtype=torch.float64).repeat(3, 1)
    moved = measure_invariance(
        nn.Identity().eval(), same, "jitter(0.1)", layers=["input"], n_views=2
    )
    assert moved.rows[0].relative == math.inf
    assert json.loads(moved.to_json())["rows"][0]["relative"] == "inf"
    assert InvarianceProfile.from_json(moved.to_json()) == moved
    assert "–" in moved.to_markdown()
    assert moved.plot()


def test_state_does_not_grow_with_the_data():
    sizes = []
    for count in (4, 64):
        statistic = Invariance()
        for start in range(0, count, 4):
            x = torch.rand(4, 10)
            orbit = Orbit(torch.rand(2, 4, 10), torch.tensor([0.5, 0.5]), x)
            statistic.update(orbit, None, torch.arange(start, start + 4))
        sizes.append(sum(part.numel() for part in statistic.sums))
    assert sizes == [10 + 1 + 2 * 20] * 2


def test_hooks_are_taken_off_and_no_layer_is_kept(monkeypatch):
    model = ResNet().double().eval()
    alive = []
    update = Invariance.update

    def watched(self, orbit, y, index):
        update(self, orbit, y, index)
        alive.append(weakref.ref(orbit.features))

    monkeypatch.setattr(Invariance, "update", watched)
    measure_invariance(model, images(), T, n_views=2)
    gc.collect()
    assert not any(ref() is not None for ref in alive)
    assert all(not m._forward_hooks for m in model.modules())


def test_layers_in_place_are_seen_before_the_next_one_changes_them():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(inplace=True)).double().eval()
    x = images()
    found = measure_invariance(model, x, T, n_views=2)
    plain = nn.Sequential(model[0], nn.ReLU()).eval()
    assert found.rows == measure_invariance(plain, x, T, n_views=2).rows


def test_layers_by_name_pattern_and_again():
    model, x = ResNet().double().eval(), images()
    found = measure_invariance(model, x, T, layers=["layer1.*.bn?", "layer1.0.relu"], n_views=2)
    norms = [f"layer1.{block}.bn{k}" for block in (0, 1) for k in (1, 2)]
    assert found.layers == (*norms, "layer1.0.relu")
    assert measure_invariance(model, x, T, layers=["layer1.0"], n_views=2).layers == ("layer1.0",)


def test_several_augmentations_and_a_dataset():
    data = as_dataset(np.asarray(images().float()), np.arange(7) % 2, name="seven")
    model = small().float()
    found = measure_invariance(
        model, data, ["rotation(15)", "blur(0.5,2.0)", "rotation(15)"], n_views=2
    )
    assert found.augmentations == ("rotation(15)", "blur(0.5,2.0)")
    assert found.dataset["name"] == "seven"
    assert found.dataset["examples"] == 7
    assert len(found.rows) == 2 * len(found.layers)
    frame = found.to_frame()
    assert frame.loc[("conv1", "blur(0.5,2.0)"), "size"] == 432


def test_the_ratio_is_that_of_two_networks():
    x = images()
    a, b = (measure_invariance(small(s), x, T, n_views=2, name=f"net{s}") for s in (0, 1))
    ratio = a.compare(b)
    cell, base = a["fc2", "rotation(15)"], b["fc2", "rotation(15)"]
    assert ratio["fc2", "rotation(15)"].ratio == pytest.approx(cell.distance / base.distance)
    assert ratio["fc2", "rotation(15)"].relative_ratio == pytest.approx(
        cell.relative / base.relative
    )
    assert ratio["input", "rotation(15)"].ratio == 1
    assert ratio.against == "net1"
    assert InvarianceProfile.from_json(ratio.to_json()) == ratio
    other = measure_invariance(ResNet().double().eval(), x, T, n_views=2)
    refused("at layer 'act1'|same architecture", a.compare, other)
    refused("other must be an InvarianceProfile, got a number", a.compare, 3)


def test_a_network_of_smaller_features_is_not_more_invariant():
    x, scaled = images(), small()
    with torch.no_grad():
        for p in scaled.parameters():
            p.mul_(0.5)
            if p.ndim == 1:
                p.zero_()
    plain = small()
    with torch.no_grad():
        for p in plain.parameters():
            if p.ndim == 1:
                p.zero_()
    a, b = (measure_invariance(net, x, T, n_views=2) for net in (scaled, plain))
    compared = a.compare(replace(b, network="plain"))
    assert all((c.ratio or 0) < 0.3 for c in compared.rows if c.layer != "input")
    assert "No difference: " in compared.to_markdown()
    assert "more invariant than" not in compared.to_html()


def test_pages_hold_the_numbers_and_escape_the_rest():
    x = images()
    found = measure_invariance(small(), x, T, n_views=2, name=EVIL, command=f"augury {EVIL}")
    for page in (found.to_html(), found.compare(found).to_html()):
        assert EVIL not in page
        assert page.startswith("<!doctype html>")
        assert "pool2" in page
    text = found.to_markdown()
    assert EVIL not in text.replace(f"augury {EVIL}", "")
    assert "| `pool2` | `rotation(15)` | 16 |" in text
    figure = found.compare(found).plot()
    assert len(figure.axes) == 2


def test_saved_programs_have_the_same_layers_and_numbers(tmp_path):
    model = ResNet().eval()
    x = images().float()
    eager = measure_invariance(model, x, T, n_views=2)
    batch = torch.export.Dim("batch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript's own deprecation, and export's
        torch.jit.save(torch.jit.trace(model, x), tmp_path / "traced.pt")
        program = torch.export.export(model, (x,), dynamic_shapes=({0: batch},))
        torch.export.save(program, tmp_path / "program.pt2")
        torch.export.save(torch.export.export(model, (x,)), tmp_path / "fixed.pt2")
    for file in ("traced.pt", "program.pt2"):
        found = measure_invariance(load_network(str(tmp_path / file), (1, 12, 12)), x, T, n_views=2)
        for layer in ("input", "conv1", "layer1.0", "layer2.1", "fc"):
            cell = found[layer, "rotation(15)"]
            assert cell.relative == pytest.approx(eager[layer, "rotation(15)"].relative, rel=1e-4)
    traced = load_network(str(tmp_path / "traced.pt"), (1, 12, 12))
    refused(
        "(2, 3, 12, 12)|to have 1 channels", measure_invariance, traced, x.expand(-1, 3, -1, -1), T
    )
    fixed = str(tmp_path / "fixed.pt2")
    refused("accepts only batches of 7|dynamic_shapes", load_network, fixed, (1, 12, 12))


def test_timm_models_come_by_name(monkeypatch):
    class Timm:
        @staticmethod
        def is_model(name):
            return name == "resnet_small"

        @staticmethod
        def list_models():
            return ["resnet_small", "vit_small"]

        @staticmethod
        def create_model(name, pretrained, in_chans):
            model = nn.Sequential(nn.Conv2d(in_chans, 2, 3), nn.ReLU())
            model.pretrained_cfg = {"mean": (0.5,) * 3, "std": (0.25,) * 3}
            return model

    monkeypatch.setitem(sys.modules, "timm", Timm)
    model = load_network("resnet_small", (3, 8, 8))
    assert not model.training
    x = torch.rand(4, 3, 8, 8)
    torch.testing.assert_close(
        load_network("resnet_small", (1, 8, 8))(x[:, :1]).shape, (4, 2, 6, 6)
    )
    trained = load_network("resnet_small", (3, 8, 8), pretrained=True)
    torch.testing.assert_close(trained(x), trained[1](trained[0]((x - 0.5) / 0.25)))
    refused("pretrained|sys:path is not the name", load_network, "sys:path", (3,), pretrained=True)
    words = "timm has no model 'resnet_smal'|did you mean resnet_small?"
    refused(words, load_network, "resnet_smal", (3, 8, 8))


def test_a_download_that_fails_is_one_line(monkeypatch):
    class Timm:
        @staticmethod
        def is_model(name):
            return True

        @staticmethod
        def create_model(name, pretrained, in_chans):
            warnings.warn("retrying", stacklevel=1)  # an error here, unless silenced
            raise OSError("We couldn't connect to the hub.\nCheck your connection.")

    monkeypatch.setitem(sys.modules, "timm", Timm)
    words = "cannot download the trained weights of resnet18 (We couldn't connect to the hub.)"
    refused(f"{words}|--weights", load_network, "resnet18", (3, 8, 8), pretrained=True)
    refused("timm cannot build resnet18", load_network, "resnet18", (3, 8, 8))


def test_without_timm_one_line_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    refused("timm|pip install timm|module:function", load_network, "resnet18", (3, 8, 8))


def test_networks_that_cannot_be_had_are_refused(tmp_path):
    refused("there is no file|nowhere.pt", load_network, "nowhere.pt", (1, 2, 2))
    refused("cannot load json:nothing", load_network, "json:nothing", (1, 2, 2))
    refused(
        "must be or return a torch.nn.Module, not a dictionary",
        load_network,
        "builtins:dict",
        (1, 2, 2),
    )
    bad = tmp_path / "bad.pt"
    bad.write_bytes(b"no network")
    refused("cannot read|as a network", load_network, str(bad), (1, 2, 2))
    torch.save(lenet().state_dict(), tmp_path / "state.pt")
    refused("cannot read|--weights", load_network, str(tmp_path / "state.pt"), (1, 2, 2))
    spec = "reference_networks:lenet"
    filled = load_network(spec, (1, 12, 12), weights=tmp_path / "state.pt")
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    assert all(torch.equal(v, state[k]) for k, v in filled.state_dict().items())
    torch.save({"x": torch.zeros(1)}, tmp_path / "other.pt")
    refused("do not fit the network", load_network, spec, (1, 2, 2), weights=tmp_path / "other.pt")
    refused("cannot read the weights", load_network, spec, (1, 2, 2), weights=bad)
    torch.save(lenet(), tmp_path / "whole.pt")
    words = "whole.pt: it does not hold plain tensors alone|.safetensors|state_dict()"
    refused(words, load_network, spec, (1, 2, 2), weights=tmp_path / "whole.pt")
    refused("must be or return a torch.nn.Module, not a list", load_network, "sys:path", (1, 2, 2))


class Pair(nn.Module):
    def forward(self, x):
        return x, x.flatten(1)


class Second(nn.Module):
    def __init__(self):
        super().__init__()
        self.pair, self.end = Pair(), nn.Linear(4, 2)

    def forward(self, x):
        return self.end(self.pair(x)[1])


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e39])
def test_examples_that_are_not_finite_for_the_network_are_refused(bad):
    model, x = small().float(), images(300)
    x[258, 0, 3, 3] = bad
    for data in (x, Dataset(x, torch.zeros(300), None)):
        refused(
            "example 258 of x holds values that are NaN or infinite|torch.float32",
            measure_invariance, model, data, ["flips"], n_views=2, layers=["conv1"],
        )  # fmt: skip


def test_bad_input_is_refused():
    model, x = small(), images()
    refused("training mode|network.eval()", measure_invariance, copy.deepcopy(model).train(), x, T)
    refused(
        "no layer 'pool3'|similar names: pool", measure_invariance, model, x, T, layers=["pool3"]
    )
    refused("at least one augmentation", measure_invariance, model, x, [])
    refused("the network must be a torch.nn.Module, not None", measure_invariance, None, x, T)
    refused(
        "n_views must be a whole number from 1 to 4,096", measure_invariance, model, x, T, n_views=0
    )
    refused("at least two examples", measure_invariance, model, x[:1], T)
    refused("works on image data", measure_invariance, model, x.flatten(1), T)
    words = "Sequential cannot take a batch of shape (2, 1, 4, 4)|that accepts this data"
    refused(words, measure_invariance, model, x[..., :4, :4], T)
    refused("expected an augmentation|got a number", measure_invariance, model, x, [3])
    vectors = torch.rand(5, 4)
    options = {"layers": ["pair"]}
    refused(
        "'pair' returns a tuple",
        measure_invariance,
        Second().eval(),
        vectors,
        "jitter(0.1)",
        **options,
    )
    refused("origin", Invariance().update, Orbit(torch.zeros(1, 2, 3), torch.ones(1)), None, None)
    refused("no example was added", Invariance().result)
    refused("2 groups", Invariance, groups=1)
