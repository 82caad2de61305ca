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
    refused('ranking.seed: expected an integer, got "x"', read, seed="x")
    refused("ranking.seed: expected an integer, got true", read, seed=True)
    refused("ranking has a field 'extra'", read, extra=1)
    refused("ranking.baseline: expected an object, got 3", read, baseline=3)
    refused("ranking.baseline lacks the field 'low'", read, baseline={"score": 1, "high": 2})
    rows = [*good["rows"][:1], {**good["rows"][1], "per_class": {"a": "b"}}]
    refused("ranking.rows[1].per_class['a']: expected a list, got \"b\"", read, rows=rows)
    refused("ranking.rows: expected a list, got null", read, rows=None)
    del good["seconds"]
    refused("lacks the field 'seconds'", read)


def test_values_that_contradict_each_other_are_named() -> None:
    good = make_ranking(("invert",), ["cat"]).to_dict()

    def read(**changes: object) -> Ranking:
        return Ranking.from_json(json.dumps({**good, **changes}))

    def row(**changes: object) -> Ranking:
        return read(rows=[{**good["rows"][0], **changes}])

    refused("rows[0]: verdict must be one of helps, probably|got 'great'", row, verdict="great")
    refused("ranking.rows[0]: expected an interval|got 2 to 1", row, low=2, high=1)
    refused("ranking.rows[0]: expected a probability from 0 to 1, got 1.5", row, probability=1.5)
    refused("class 'cat': expected an interval|got 2 to 1", row, per_class={"cat": [1, 2, 1]})
    refused("per_class['cat']: expected a list of 3, got [1, 2]", row, per_class={"cat": [1, 2]})
    refused("gain: expected a number of at most 1e300, got 1000", row, gain=10**400)
    refused("ranking: seconds must be finite and 0 or more, got nan", read, seconds="nan")
    refused("ranking.dataset.examples: expected an integer", read, dataset={"examples": "many"})
    refused("ranking.dataset.warnings[0][0]: expected", read, dataset={"warnings": [["odd", "so"]]})
    refused("ranking.plan.epochs: expected an integer", read, plan={"epochs": [3]})
    trend = {"augmentation": "invert", "along": "epochs"}
    lists = {"values": [1, 2], "gains": [1, 2], "lows": [0, 1], "highs": [2]}
    refused("as many values as gains", read, extrapolation=[{**trend, **lists}])
    lists["highs"] = [2, 0]
    refused("expected an interval|got 1 to 0", read, extrapolation=[{**trend, **lists}])


def test_a_profile_has_a_row_for_each_layer_and_augmentation() -> None:
    good = PROFILE.to_dict()
    (row,) = good["rows"]

    def read(*rows: object) -> InvarianceProfile:
        return InvarianceProfile.from_json(json.dumps({**good, "rows": rows}))

    other = {**row, "layer": "conv2", "augmentation": "invert"}
    said = "expected one row for each layer under each augmentation"
    refused(f"{said}, got none", read)
    refused(f"{said}, got 2 rows for 4 pairs", read, row, other)
    refused(f"{said}, got 2 rows for 1 pair", read, row, row)
    refused("profile.rows[0]: distance must be 0 or more, got -1", read, {**row, "distance": -1})
    refused("expected both ends of an interval", read, {**row, "low": 0.1})


def test_a_ranking_of_nothing_is_a_table_without_rows() -> None:
    frame = make_ranking(()).to_frame()
    assert (len(frame), "gain" in frame) == (0, True)


def test_the_gallery_stays_out_of_the_json() -> None:
    ranking = make_ranking()
    assert ranking.gallery is not None
    assert Ranking.from_json(ranking.to_json()) == replace(ranking, gallery=None)


def test_a_ranking_is_a_sequence_of_its_rows():
    ranking = make_ranking(gallery=None)
    assert tuple(ranking) == ranking.rows
    assert len(ranking) == len(ranking.rows)
    assert ranking[0] == ranking.rows[0] == ranking[ranking.rows[0].augmentation]
    assert replace(ranking, rows=())  # a result, though empty


def test_a_path_instead_of_json_is_told_apart():
    refused("pass the text of a file, not its path", Ranking.from_json, "ranking.json")
