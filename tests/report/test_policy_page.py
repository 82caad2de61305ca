"""The page of a policy: what it does, what it gains and over whom."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from report_rankings import EVIL, make_gallery

from augury.augmentations import parse
from augury.augmentations.words import WordedStep, in_words
from augury.report import policy as page
from augury.results.ranking import Gallery

SPEC = "rotation(15) >> (identity | translation(0.1))"


@dataclass(frozen=True)
class Row:
    spec: str
    role: str
    gain: float
    low: float
    high: float
    probability: float = 0.9
    rounds: int = 3
    part: str = ""
    allowed: bool = True


@dataclass(frozen=True)
class Found:
    """A policy as a search would return it."""

    rows: tuple[Row, ...] = (
        Row("trivial_augment(1)", "rival", 1.5, 0.2, 2.8),
        Row(SPEC, "chosen", 2.4, 1.1, 3.7),
        Row("horizontal_flip >> translation(0.125)", "rival", -2.0, -3.0, -1.0, 0.01),
        Row("rotation(15)", "tried", 2.0, 1.0, 3.0),
    )
    spec: str = SPEC
    contributions: dict[str, float] = field(
        default_factory=lambda: {"rotation(15)": 1.8, "translation(0.1)": -0.1}
    )
    per_class: dict[str, tuple[float, float, float]] = field(
        default_factory=lambda: {"cat": (3.0, 1.0, 5.0), "dog": (-2.0, -3.0, -1.0)}
    )
    baseline: float = 93.2
    reason: str = "It is expected to gain."
    dataset: dict[str, Any] = field(
        default_factory=lambda: {"name": "photos", "kind": "image", "examples": 900}
    )
    plan: dict[str, Any] = field(default_factory=lambda: {"epochs": 40, "network": "cnn"})
    path: tuple[dict[str, Any], ...] = ({"round": "policies", "policies": 31, "examples": 250},)
    seed: int = 0
    seconds: float = 141.0
    command: str = "augury policy photos/"
    trust: str = "Such searches were measured."
    gallery: Gallery | None = None
    code: dict[str, str] = field(default_factory=lambda: {"PyTorch": "augment = v2.Compose([])"})

    @property
    def chosen(self) -> Row:
        return next(row for row in self.rows if row.role == "chosen")

    @property
    def words(self) -> tuple[WordedStep, ...]:
        return in_words(parse(self.spec))

    def to_json(self) -> str:
        return json.dumps({"spec": self.spec})


def test_the_page_says_what_the_policy_does_and_gains() -> None:
    gallery = make_gallery([SPEC], "image", np.random.default_rng(0))
    text = html.unescape(page.to_html(Found(gallery=gallery)))
    order = [
        "Train on photos with this policy: +2.4 points",
        "for 40 epochs with a small CNN",
        "Rotation by an angle uniform in ± 15 degrees.",
        "<b>50 %</b> <code>translation(0.1)</code>",
        "data:image/png",
        "Compared with common recipes",
        "Some classes lose",
        "Points added",
        "augment = v2.Compose([])",
        "policies: 31 policies on 250 examples",
    ]
    at = [text.index(part) for part in order]
    assert at == sorted(at)
    assert text.count('class="strip"') == 3


def test_rivals_have_their_names_and_the_difference() -> None:
    text = page.to_markdown(Found())
    assert (
        "| TrivialAugment | `trivial_augment(1)` | +1.5 | +0.2 to +2.8 | 90\u00a0% | +0.9 |" in text
    )
    assert "flip and crop" in text
    assert "| `rotation(15)` | +2.0" not in text  # only tried on the way


def test_strengths_and_epochs() -> None:
    varied = (
        Row("rotation(10)", "milder", 2.1, 1.0, 3.0),
        Row(SPEC, "shorter", 1.2, 1.0, 3.0, part="20"),
    )
    found = Found(rows=(*Found().rows, *varied))
    once = replace(found, plan={**found.plan, "epochs": 1})
    assert "as it is, 1 epoch" in [name for name, _ in page.variations(once)]
    assert [name for name, _ in page.variations(found)] == [
        "milder",
        "as it is, 40 epochs",
        "half of the epochs",
    ]
    text = html.unescape(page.to_html(found))
    assert text.index("Strength and epochs") < text.index("Effect by class")
    assert "| milder | `rotation(10)` | +2.1 |" in page.to_markdown(found)
    assert "Strength and epochs" not in page.to_html(Found())


def test_findings() -> None:
    found = {f.code: f for f in page.find(Found())}
    assert set(found) == {"P001", "P003"}
    assert found["P001"].evidence == ("class dog: −2.0 (−3.0 to −1.0)",)
    assert found["P003"].evidence == ("nothing is lost without translation(0.1)",)
    higher = (*Found().rows, Row("trivial_augment(2)", "rival", 2.6, 1.0, 4.0))
    codes = {f.code for f in page.find(Found(rows=higher))}
    assert ("P002" in codes, "P005" in codes) == (True, False)
    barred = (*Found().rows, Row("trivial_augment(2)", "rival", 8.0, 6.0, 9.0, allowed=False))
    found = {f.code: f for f in page.find(Found(rows=barred))}
    assert "P002" not in found  # it is far more than noise
    lost = (Row("flips", "chosen", -3.0, -5.0, -1.0), Row("invert", "rival", -1.0, -2.0, 0.0))
    assert "P002" not in {f.code for f in page.find(Found(rows=lost))}
    assert found["P005"].evidence == ("TrivialAugment × 2: +8.0 points",)
    few = Found(dataset={**Found().dataset, "warnings": [["few-examples", "there are only 60"]]})
    assert any(f.evidence == ("there are only 60",) for f in page.find(few))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"spec": "identity"}, "Train on photos without augmentation."),
        (
            {"rows": (Row(SPEC, "chosen", 0.0, -100.0, 100.0, 0.5, 0),)},
            "Start with this mild policy on photos.",
        ),
        ({"contributions": {}}, "The policy has only one part, so there is nothing to leave out."),
        ({"per_class": {}}, "This policy has no gains by class."),
        ({"per_class": {str(k): (k, k - 1, k + 1) for k in range(200)}}, ">199</li>"),
        ({"command": ""}, "none: run from Python"),
    ],
)
def test_empty_states_have_their_sentence(changes: dict[str, Any], said: str) -> None:
    found = replace(Found(), **changes)
    assert said in html.unescape(page.to_html(found))
    page.to_markdown(found)
    page.to_fragment(found)
    page.policy_figure(found)


@pytest.mark.parametrize("make", [page.to_html, page.to_fragment])
def test_nothing_from_the_data_acts(make: Any) -> None:
    found = Found(
        dataset={"name": EVIL, "kind": "image"}, reason=EVIL, command=EVIL, code={EVIL: EVIL},
        per_class={EVIL: (-1.0, -2.0, -0.5)}, contributions={EVIL: -1.0},
    )  # fmt: skip
    assert "<img src=x" not in make(found)


def test_a_default_that_was_not_tried_is_better_by_nothing() -> None:
    unknown = Row(SPEC, "chosen", 0.0, -100.0, 100.0, 0.5, rounds=0)
    rival = Row("trivial_augment(1)", "rival", 5.0, -30.0, 40.0)
    found = Found(rows=(rival, unknown), contributions={})
    for text in (page.to_html(found), page.to_markdown(found)):
        assert "TrivialAugment" in text
        assert "better by" not in text.lower()
        assert "has a higher gain" not in text
    assert "better by" in page.to_markdown(Found())


def test_what_is_not_known_of_a_default_is_not_said() -> None:
    unknown = Row(SPEC, "chosen", 0.0, -100.0, 100.0, 0.5, rounds=0)
    untried = Found(rows=(unknown,), contributions={}, path=(), baseline=0.0)
    nothing = Row("identity", "chosen", 0.0, 0.0, 0.0, 0.5)
    none = Found(rows=(nothing,), spec="identity", contributions={})
    one = Found(contributions={})
    for found, said in (
        (untried, "The policy was not tried"),
        (none, "Training without augmentation has no parts."),
        (one, "The policy has only one part"),
    ):
        for text in (page.to_html(found), page.to_markdown(found)):
            assert said in text
    assert "0.0 % accuracy" not in page.to_html(untried)
    assert "93.2 % accuracy expected" in page.to_html(one)


def test_what_is_known_of_searches_is_said() -> None:
    for write in (page.to_html, page.to_markdown):
        assert "Such searches were measured." in write(Found())


def test_a_gain_that_is_not_likely_is_not_ordered() -> None:
    rows = (Row(SPEC, "chosen", 0.2, -1.0, 1.6, 0.68),)
    lead, _ = page.sentences(Found(rows=rows))
    assert lead.startswith("No gain is certain on photos; try this policy first: +0.2 points")


def test_variants_have_intervals() -> None:
    rows = (*Found().rows, Row(SPEC, "shorter", 2.7, -31.1, 29.1))
    assert "−31.1 to +29.1" in page.to_html(Found(rows=rows))
    assert "−31.1 to +29.1" in page.to_markdown(Found(rows=rows))
