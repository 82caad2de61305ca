"""What all results share: JSON that is checked when it is read, and values that survive it."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from refusal import refused
from report_rankings import make_ranking, make_row

from augury.results.base import Result
from augury.results.invariance import InvarianceProfile, LayerInvariance
from augury.results.ranking import Ranking

PROFILE = InvarianceProfile(
    (LayerInvariance("conv1", "flips", 16, 0.1, 0.0, math.inf, None, None),),
    "net",
    {"name": "d"},
    4,
    0,
    1.0,
)


@pytest.mark.parametrize("result", [make_ranking(gallery=None), PROFILE])
def test_json_gives_the_same_result_back(result: Result) -> None:
    assert type(result).from_json(result.to_json()) == result
    assert type(result).from_json(result.to_json().encode()) == result
    assert json.loads(result.to_json()) == result.to_dict()
    assert result.to_dict()["augury"] == result.name


def test_numbers_that_json_lacks_survive() -> None:
    row = make_row("invert", 0.1, low=-math.inf, high=math.nan)
    text = make_ranking(rows=(row,)).to_json()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    (found,) = Ranking.from_json(text).rows
    assert found.low == -math.inf
    assert math.isnan(found.high)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        (b"\xff\xfe", "not JSON"),
        ("[1, 2]", "other JSON"),
        ('{"a": 1}', "other JSON"),
        (
            PROFILE.to_json(),
            "expected the JSON of augury's ranking|got a file of kind 'invariance profile'",
        ),
    ],
)
def test_a_foreign_file_is_one_line(text: str | bytes, words: str) -> None:
    refused(words, Ranking.from_json, text)


def test_damaged_fields_are_named() -> None:
    good = make_ranking().to_dict()

    def read(**changes: object) -> Ranking:
        return Ranking.from_json(json.dumps({**good, **changes}))

    refused("schema 99|reads schema 1", read, schema=99)
    refused("ranking.seed: expected an integer, got 'x'", read, seed="x")
    refused("ranking.seed: expected an integer, got True", read, seed=True)
    refused("ranking has a field 'extra'", read, extra=1)
    refused("ranking.baseline: expected an object, got 3", read, baseline=3)
    refused("ranking.baseline lacks the field 'low'", read, baseline={"score": 1, "high": 2})
    rows = [*good["rows"][:1], {**good["rows"][1], "per_class": {"a": "b"}}]
    refused("ranking.rows[1].per_class['a']: expected a list, got 'b'", read, rows=rows)
    refused("ranking.rows: expected a list", read, rows=None)
    del good["seconds"]
    refused("lacks the field 'seconds'", read)


def test_the_gallery_stays_out_of_the_json() -> None:
    ranking = make_ranking()
    assert ranking.gallery is not None
    assert Ranking.from_json(ranking.to_json()) == replace(ranking, gallery=None)
