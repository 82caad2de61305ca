"""Results whose JSON was edited by hand: refused in one line, or rendered in every form."""

from __future__ import annotations

import copy
import json
import random
from dataclasses import replace
from typing import Any

import pytest
import torch
from report_rankings import make_ranking
from torch import nn

import augury
from augury import AuguryError
from augury.forecasting.policy.policy import Policy, PolicyRow
from augury.objectives import certify, multinomial
from augury.results.base import Result
from augury.results.ranking import Ranking, Trend

CASES = 80
"""Edited files of each result."""

ODD = (
    None, True, -1, 0, 3, -2.5, 1e308, -1e308, 1e-320, 10**400, "nan", "inf", "-inf", "", "x",
    "helps", "epochs", "\ud800", "<b>$_", [], {}, [1], {"a": 1},
)  # fmt: skip


def ranking() -> Ranking:
    specs = ("rotation(15)", "rotation(30)", "rotation(60)", "invert")
    found = make_ranking(specs, ["cat", "dog"], gallery=None, score="trial")
    sure = replace(found.rows[0], probability=0.99)
    warnings = [["few-examples", "there are only 60 examples"]]
    return replace(
        found,
        rows=(sure, *found.rows[1:]),
        dataset={**found.dataset, "task": "classification", "warnings": warnings},
        plan={"epochs": 30, "examples": 5000, "side": 32, "network": "cnn", "assumed": ["epochs"]},
        effort={"level": 3, "examples": 250},
        extrapolation=(
            Trend("invert", "epochs", (15, 30, 60), (0.5, 1, 1.5), (-1, 0.1, 0.5), (2, 2, 2.5)),
        ),
    )


def policy() -> Policy:
    rows = [PolicyRow(*values) for values in (
        ("flips >> invert", "chosen", 3.0, 2.0, 4.0, 0.9, 1),
        ("trivial_augment(1)", "rival", 1.0, 0.0, 2.0, 0.8, 1),
        ("invert", "part", 1.0, 0.0, 2.0, 0.8, 1, "flips"),
        ("flips >> invert", "shorter", 0.5, 0.0, 1.0, 0.7, 1, "2"),
    )]  # fmt: skip
    return Policy(
        "flips >> invert", tuple(rows), 93.2, "It gains.",
        {"name": "photos", "kind": "image", "examples": 900, "shape": [3, 8, 8]},
        {"epochs": 40, "network": "cnn", "examples": 900},
        ({"round": "policies", "policies": 31, "examples": 250},),
        {"cat": (3.0, 1.0, 5.0), "dog": (-2.0, -3.0, -1.0)}, 0, 141.0,
    )  # fmt: skip


def network() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2)).eval()


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    """Return a small result of each kind."""
    torch.manual_seed(0)
    x = torch.rand(6, 1, 8, 8)
    specs, layers = ["flips", "rotation(10)"], ["0", "3"]
    profile = augury.measure_invariance(network(), x, specs, layers=layers, n_views=2)
    orbit = augury.Orbit(torch.rand(2, 8, 3), torch.full((2,), 0.5))
    return {
        "ranking": ranking(),
        "policy": policy(),
        "profile": profile.compare(profile),
        "plan": augury.plan_averaging(network(), x, "flips", n_views=2, repeats=1, layers=["0"]),
        "certificate": certify(orbit, multinomial),
    }


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return all (container, key) of a tree."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    found = [(value, key) for key in keys]
    inner = [value[key] for key in keys if isinstance(value[key], dict | list)]
    return found + [place for each in inner for place in places(each)]


def edit(data: Any, rng: random.Random) -> None:
    """Change one value, as a slip of the hand might."""
    spots = places(data)
    if not spots:
        return
    where, key = rng.choice(spots)
    how = rng.randrange(6)
    if how == 0:
        del where[key]
    elif how == 1 and isinstance(where, list):
        where.append(copy.deepcopy(where[key]))
    elif how == 2 and isinstance(where[key], int | float):
        where[key] = -where[key]
    elif how == 3:
        other = rng.choice(list(where) if isinstance(where, dict) else range(len(where)))
        where[key], where[other] = where[other], where[key]
    elif how == 4 and isinstance(where[key], dict | list):
        where[key] = type(where[key])()
    else:
        where[key] = copy.deepcopy(rng.choice(ODD))


def render(result: Result) -> None:
    """Make everything that a result can become."""
    result.to_frame()
    result.to_markdown().encode()
    result.to_html().encode()
    result.plot()
    result._repr_html_()
    assert isinstance(str(result), str)


@pytest.mark.filterwarnings("ignore:No artists with labels")  # a name that begins with "_"
@pytest.mark.parametrize("kind", ["ranking", "policy", "profile", "plan", "certificate"])
def test_what_is_read_can_be_rendered(kind: str, results: dict[str, Result]) -> None:
    given, rng, read = results[kind], random.Random(0), 0
    for case in range(CASES):
        data = given.to_dict()
        data = json.loads(json.dumps(data))
        for _ in range(rng.choice((1, 1, 2, 3))):
            edit(data, rng)
        text = json.dumps(data)
        try:
            found = type(given).from_json(text)
        except AuguryError:
            continue
        read += 1
        try:
            render(found)
        except Exception as error:
            pytest.fail(f"case {case}: {error!r} for {text}")
    assert 0 < read < CASES


@pytest.mark.parametrize("kind", ["ranking", "policy", "profile", "plan", "certificate"])
def test_what_is_not_edited_is_read(kind: str, results: dict[str, Result]) -> None:
    given = results[kind]
    assert type(given).from_json(given.to_json()) == given
    render(given)
