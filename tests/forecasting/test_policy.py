"""Policies and the search for them."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import sys
import time
from typing import Any

import numpy as np
import pytest
import torch
from forked import run_forked
from refusal import refused
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

import augury
from augury._base.errors import AuguryError
from augury._base.rng import Rng
from augury.augmentations import identity, parse
from augury.augmentations.words import in_words
from augury.forecasting.policy import Policy, effort, rounds, search, search_policy, space
from augury.forecasting.policy.chains import learned_chain
from augury.forecasting.policy.space import (
    Space,
    best_of_families,
    build,
    complexity,
    parts_of,
    without,
)

SMALL = effort.Effort(64, 64, 64, 64, finalists=2, contenders=2)


@pytest.fixture
def few(monkeypatch):
    """A search that is over in seconds: few families, examples and recipes."""
    monkeypatch.setitem(effort.EFFORTS, "cpu", SMALL)
    monkeypatch.setattr(effort, "OWN", dataclasses.replace(SMALL, planned=True))
    families = [parse(s) for s in ("rotation(15)", "translation(0.1)", "flips", "noise(0.05)")]
    monkeypatch.setattr(space, "default_augmentations", lambda kind, shape: list(families))
    monkeypatch.setattr(space, "RIVALS", ("trivial_augment", "horizontal_flip"))


@pytest.fixture(scope="module")
def digits():
    found: Any = load_digits()
    return augury.as_dataset(found.images, found.target, max_examples=400)


def test_the_space_builds_stacks_and_mixtures():
    helping = [parse(s) for s in ("rotation(15)", "translation(0.1)", "blur(0.5,1.0)")]
    built = [repr(policy) for policy in build(helping)]
    for spec in (
        "rotation(15)",
        "rotation(15) | translation(0.1)",
        "(rotation(15) | translation(0.1)) ** 2",
        "(identity | rotation(15)) >> (identity | translation(0.1))",
        "rotation(15) >> (identity | translation(0.1))",
        "chain(rotation(15):0.6, translation(0.1):0.4, blur(0.5,1.0):0.4)",
    ):
        assert spec in built
    assert build([]) == []
    assert all(parse(spec) for spec in built)


def test_the_best_setting_of_each_family_is_taken():
    singles = [parse(s) for s in ("rotation(5)", "rotation(30)", "flips", "noise(0.1)")]
    assert best_of_families(singles, [1.0, 2.0, 0.5, -1.0], 0.2) == [singles[1], singles[2]]


def test_parts_can_be_left_out():
    policy = parse("rotation(15) >> (identity | flips | noise(0.1))")
    parts = parts_of(policy)
    assert [repr(p) for p in parts] == ["rotation(15)", "flips", "noise(0.1)"]
    assert repr(without(policy, parts[0])) == "identity | flips | noise(0.1)"
    assert repr(without(policy, parts[1])) == "rotation(15) >> (identity | identity | noise(0.1))"
    assert without(parse("flips"), parse("flips")) == identity()


def test_simpler_policies_are_told_from_others():
    specs = (
        "identity",
        "flips",
        "identity | flips",
        "flips >> noise(0.1)",
        "(flips | invert) ** 3",
    )
    found = {spec: complexity(parse(spec)) for spec in specs}
    assert found["identity"] == 0
    assert found["identity | flips"] < found["flips"] < found["flips >> noise(0.1)"]
    assert found["(flips | invert) ** 3"] == pytest.approx(3.2)
    assert complexity(parse("rand_augment(2,9)")) > complexity(parse("trivial_augment"))


class TestSpace:
    def test_what_is_forbidden_is_not_built(self):
        chosen = Space.of([], ["colour"])
        names = {type(a).__name__ for a in chosen.singles("image", (3, 32, 32))}
        assert "rotation" in names
        assert not names & set(space.GROUPS["colour"])
        assert not chosen.allows(parse("flips >> brightness(0.2)"))
        assert not chosen.allows(parse("trivial_augment"))  # it may draw a colour

    def test_what_is_fixed_comes_first(self):
        chosen = Space.of(["horizontal_flip"], [])
        assert repr(chosen.complete(parse("noise(0.1)"))) == "horizontal_flip >> noise(0.1)"
        assert repr(chosen.complete(identity())) == "horizontal_flip"

    def test_contradictions_and_unknown_names_are_refused(self):
        with pytest.raises(AuguryError, match="hue is in both always and never"):
            Space.of(["hue(0.1)"], ["colour"])
        with pytest.raises(
            AuguryError, match="never must name a family or a group of families, got 'colors'"
        ):
            Space.of([], ["colors"])


def test_a_search_ends_in_a_policy(few, digits, tmp_path):
    journal = tmp_path / "rounds.npz"
    found = search_policy(digits, epochs=2, journal=journal, device="cpu")
    assert found.chosen.spec == repr(found)
    assert {row.spec for row in found.rivals} | {found.spec} >= {
        "trivial_augment(1)",
        "horizontal_flip",
    }
    assert [step["round"] for step in found.path][:4] == [
        "single families",
        "policies",
        "leaders and recipes",
        "contenders",
    ]
    assert found.plan["epochs"] == 2
    again = search_policy(digits, epochs=2, journal=journal, device="cpu")  # from the journal
    assert again.rows == found.rows
    assert Policy.from_json(found.to_json()) == found
    with pytest.raises(AuguryError, match="a search with other data or settings"):
        search_policy(digits, epochs=3, journal=journal, device="cpu")
    journal.write_bytes(b"nonsense")
    with pytest.raises(AuguryError, match="is not the journal of a search"):
        search_policy(digits, epochs=2, journal=journal, device="cpu")


def test_a_search_that_was_stopped_goes_on(few, digits, tmp_path, monkeypatch):
    whole = search_policy(digits, epochs=1, device="cpu")
    journal, real, calls = tmp_path / "rounds.npz", rounds.run_folds, []

    def stopping(*args, **options):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*args, **options)

    monkeypatch.setattr(rounds, "run_folds", stopping)
    with pytest.raises(KeyboardInterrupt):
        search_policy(digits, epochs=1, journal=journal, device="cpu")
    resumed = search_policy(digits, epochs=1, journal=journal, device="cpu")
    assert resumed.rows == whole.rows
    assert repr(resumed) == repr(whole)


def test_a_search_with_a_budget_goes_on_with_the_work_it_chose(few, digits, tmp_path, monkeypatch):
    journal, real, calls = tmp_path / "rounds.npz", rounds.run_folds, []

    def stopping(*args, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*args, **options)

    monkeypatch.setattr(rounds, "run_folds", stopping)
    with pytest.raises(KeyboardInterrupt):
        search_policy(digits, epochs=1, budget=1000.0, journal=journal, device="cpu")
    monkeypatch.setattr(search, "choose_effort", None)  # the clock is not asked again
    resumed = search_policy(digits, epochs=1, budget=1000.0, journal=journal, device="cpu")
    assert resumed.chosen


def test_a_small_budget_is_named_as_it_was_given(digits):
    begun = time.perf_counter() - 6  # as when reading took so long
    with pytest.raises(AuguryError, match=r"a budget of 7 s is too short .* at least \d+ s"):
        search_policy(digits, budget=7.0, started=begun, device="cpu")


def test_budgets_cut_examples():
    data = augury.as_dataset(np.zeros((5000, 8, 8), np.uint8), np.arange(5000) % 2)
    full, cut = effort.Effort(200, 200, 400, 400), effort.Effort(100, 100, 200, 200)
    assert sum(cut.work(data)) == pytest.approx(sum(full.work(data)) / 2, rel=0.01)
    few = augury.as_dataset(np.zeros((300, 8, 8), np.uint8), np.arange(300) % 2)
    assert full.examples(400, few) == 225
    assert (full.last_folds(data), full.last_folds(few)) == (1, 4)  # fewer examples, more folds


def test_a_network_of_the_users_own_is_tried(few, digits):
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    found = search_policy(digits, epochs=1, network=net, device="cpu")
    assert [step["network"] for step in found.path][:2] == ["small", "Sequential"]
    with pytest.raises(AuguryError, match="give its last layer 10 outputs"):
        search_policy(digits, epochs=1, network=torch.nn.Flatten(), device="cpu")


def test_rates_of_a_chain_are_learned(digits):
    parts = [parse(s) for s in ("rotation(15)", "noise(0.05)", "flips", "invert")]
    chain = learned_chain(digits, parts, 0)
    assert chain is not None
    assert [repr(p) for p in chain.parts] == ["rotation(15)", "noise(0.05)"]
    assert all(rate >= 0.05 for rate in chain.rates)
    assert learned_chain(digits, [parse("flips"), parse("invert")], 0) is None


def policy(spec="rotation(15) >> (identity | flips)"):
    row = search.PolicyRow(spec, "chosen", 1.0, 0.5, 1.5, 0.9, 3)
    return Policy(spec, (row,), 90.0, "It is.", {"name": "data", "classes": ["a", "b"]},
                  {"epochs": 4}, (), {}, 0, 1.0)  # fmt: skip


def test_what_each_part_adds_is_what_is_lost_without_it():
    rows = [search.PolicyRow(*row) for row in (
        ("flips >> invert", "chosen", 3.0, 2.0, 4.0, 0.9, 3),
        ("invert", "rival", 2.5, 1.0, 3.0, 0.9, 2),
        ("invert", "part", 1.0, 0.0, 2.0, 0.8, 1, "flips"),
        ("flips", "part", 3.5, 2.0, 5.0, 0.9, 1, "invert"),
        ("flips >> invert", "shorter", 0.5, 0.0, 1.0, 0.7, 1, "2"),
    )]  # fmt: skip
    found = dataclasses.replace(policy("flips >> invert"), rows=tuple(rows))
    assert found.contributions == {"flips": 2.0, "invert": -0.5}
    assert found.chosen is rows[0]
    assert found.rivals == (rows[1],)
    assert (rows[0].part, rows[0].allowed) == ("", True)


def test_code_is_for_images_of_the_shape_that_the_data_have(monkeypatch):
    asked = []
    monkeypatch.setattr(
        sys.modules["augury.forecasting.policy.policy"], "export",
        lambda augmentation, library, shape: asked.append((library, shape)) or "code",
    )  # fmt: skip
    for dataset in ({}, {"shape": (3, 8, 8)}, {"shape": (64,)}):
        code = dataclasses.replace(policy("flips"), dataset=dataset).code
        assert code["The same with torchvision"] == "code"
        assert code["In Python, with augury"] == "augment = augury.parse('flips')"
    assert asked == [("torchvision", None), ("torchvision", (3, 8, 8)), ("torchvision", None)]


def test_a_policy_has_the_properties_of_its_augmentation():
    for spec in ("flips", "rotation(15)", "invert", "identity"):
        found, own = policy(spec), parse(spec)
        assert (found.linear, found.size) == (own.linear, own.size)
        assert (found.nodes(4) is None) is (own.nodes(4) is None)
        assert found.at_scale(0.5) == own.at_scale(0.5)
        assert found.words == in_words(own)
    given = augury.Sampled(lambda x: x)
    other = dataclasses.replace(policy("flips"), given=given, gallery="pictures")
    assert other.augmentation is given
    assert other == policy("flips")  # what only shows it is no part of it
    assert "gallery" not in json.loads(other.to_json())
    assert "given" not in json.loads(other.to_json())


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("role", "best", "role"),
        ("low", 2.0, "low"),
        ("probability", 1.5, "probability"),
        ("rounds", -1, "rounds"),
    ],
)
def test_a_row_that_cannot_be_is_refused(name, value, said):
    data = json.loads(policy().to_json())
    data["rows"][0][name] = value
    refused(said, Policy.from_json, json.dumps(data))


@pytest.mark.parametrize("count", [0, 2])
def test_a_policy_has_one_row_that_was_chosen(count):
    data = json.loads(policy().to_json())
    data["rows"] *= count
    refused(f"one row with the role chosen, got {count}", Policy.from_json, json.dumps(data))


def test_a_pipeline_that_a_file_does_not_hold_has_neither_words_nor_code():
    given = augury.Sampled(lambda x: x)
    found = dataclasses.replace(policy("flips"), spec=repr(given), given=given)
    read = Policy.from_json(found.to_json())
    assert read.spec == repr(given)
    assert (read.words, read.code) == ((), {})


def test_a_policy_is_an_augmentation():
    found, x = policy(), torch.rand(4, 3, 16, 16)
    rng = Rng(3, torch.arange(4))
    views = found.views(x, 2, rng)
    torch.testing.assert_close(views, parse(repr(found)).views(x, 2, rng))
    copied = pickle.loads(pickle.dumps(found))
    torch.testing.assert_close(copied.views(x, 2, rng), views)
    loaded = Policy.from_json(json.dumps(json.loads(found.to_json())))
    assert torch.equal(loaded.views(x, 2, rng), views)
    assert found(np.zeros((16, 16, 3), np.uint8)).shape == (16, 16, 3)


def test_a_policy_is_taken_wherever_an_augmentation_is():
    found, same = policy("rotation(15) | flips"), parse("rotation(15) | flips")
    assert {found: 1}[found] == 1
    assert parse(found) == same
    for combined, expected in (
        (found >> parse("blur"), "(rotation(15) | flips) >> blur"),
        (parse("blur") >> found, "blur >> (rotation(15) | flips)"),
        (found | parse("blur"), "rotation(15) | flips | blur"),
        (found**2, "(rotation(15) | flips) ** 2"),
        (0.5 * found | parse("blur"), "0.5*(rotation(15) | flips) | blur"),
    ):
        assert combined == parse(expected)
        assert hash(combined) == hash(parse(repr(combined)))
    assert found.to("torchvision") == same.to("torchvision")
    x, y = torch.rand(40, 1, 8, 8), torch.arange(40) % 2
    ranked = augury.rank(x, y, [found, "invert"], epochs=1, effort=0)
    assert {row.augmentation for row in ranked.rows} == {repr(same), "invert"}


def test_draws_from_json_are_the_same_in_another_process(tmp_path):
    found = policy("rotation(15) >> (identity | trivial_augment(2)) >> elastic(0.05)")
    x = torch.rand(8, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    (tmp_path / "policy.json").write_text(found.to_json())
    np.save(tmp_path / "x.npy", x.numpy())
    code = (
        "import numpy as np, torch, augury; from augury._base.rng import Rng; "
        "p = augury.Policy.from_json(open('policy.json').read()); "
        "x = torch.from_numpy(np.load('x.npy')); "
        "np.save('views.npy', p.views(x, 3, Rng(5, torch.arange(8))).numpy())"
    )
    done = run_forked(["python", "-c", code], tmp_path, dict(os.environ))
    assert done.returncode == 0, done.stderr
    views = found.views(x, 3, Rng(5, torch.arange(8)))
    assert np.array_equal(np.load(tmp_path / "views.npy"), views.numpy())


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_of_a_loader_give_what_one_process_gives(workers):
    images = torch.rand(10, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    data = TensorDataset(images, torch.arange(10))
    views = augury.TransformedDataset(data, policy(), seed=3)
    views.set_epoch(2)
    alone = torch.cat([x for x, _ in DataLoader(views, batch_size=4)])
    several = torch.cat([x for x, _ in DataLoader(views, batch_size=4, num_workers=workers)])
    assert torch.equal(alone, several)


def test_a_policy_becomes_a_page_a_table_and_a_figure():
    found = policy()
    assert found.to_html().startswith("<!doctype html>")
    assert "rotation(15)" in found.to_markdown()
    assert list(found.to_frame().index) == [found.spec]
    assert found.plot().axes


def test_few_images_get_a_mild_default():
    x = np.random.default_rng(0).integers(0, 255, (20, 16, 16, 3), np.uint8)
    found = search_policy(x, [0, 1] * 10, device="cpu")
    assert repr(found) == search.MILD
    assert "too few" in found.reason


def test_where_nothing_is_learnt_the_default_is_mild(few):
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 255, (200, 8, 8, 3), np.uint8)
    found = search_policy(noise, rng.integers(0, 2, 200), epochs=1, device="cpu")
    assert repr(found) == search.MILD
    assert "learnt nothing beyond the most frequent class" in found.reason
    assert found.rivals


def test_a_required_function_is_part_of_the_policy(few, digits):
    """No spec stands for a function of a session, so the policy itself holds it."""

    def mine(image):
        return image.flip(-1)

    own = augury.Sampled(mine)
    found = search_policy(digits, epochs=1, always=[own], device="cpu")
    assert repr(found).startswith(repr(own))
    x = digits.batch(torch.arange(4), torch.device("cpu"), torch.float32)
    views = found.views(x, 2, Rng(0, torch.arange(4)))
    assert views.shape == (2, *x.shape)
    assert found.kinds == {"image"} or found.kinds == own.kinds
    few_images = search_policy(digits.subsample(20, 0), epochs=1, always=[own], device="cpu")
    assert few_images.views(x, 1, Rng(0, torch.arange(4))).shape == (1, *x.shape)


def test_what_cannot_be_searched_is_refused(digits):
    with pytest.raises(AuguryError, match="images with one label each, but this is vector data"):
        search_policy(np.zeros((10, 3)), [0, 1] * 5)
    with pytest.raises(AuguryError, match="too short for one search; give at least"):
        search_policy(digits, budget=0.01, device="cpu")
    with pytest.raises(
        AuguryError, match=r"must be cnn, resnet, lenet or a torch\.nn\.Module, got 'mine'"
    ):
        search_policy(digits, plan=augury.TrainingPlan(network="mine"))
    with pytest.raises(AuguryError, match="either epochs or a plan"):
        search_policy(digits, epochs=1, plan=augury.TrainingPlan())


def test_large_images_are_tried_large_by_the_planned_network():
    large = augury.as_dataset(np.zeros((80, 64, 48), np.uint8), np.arange(80) % 2)
    assert (effort.side_of(large, True), effort.side_of(large, False)) == (64, 32)
    small = augury.as_dataset(np.zeros((80, 28, 28), np.uint8), np.arange(80) % 2)
    assert effort.side_of(small, True) == 32
