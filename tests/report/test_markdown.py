"""The report as Markdown."""

from __future__ import annotations

import re
from dataclasses import replace

from report_rankings import EVIL, SPECS, make_ranking, with_data

from augury.report import to_html, to_markdown
from augury.report.markdown import code, escape, table
from augury.report.ranking import facts
from augury.report.words import INTERVAL, Unit
from augury.results.ranking import Baseline, Ranking


def cells(line: str) -> list[str]:
    """Split a line of a Markdown table at the bars that are not escaped."""
    return [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_markdown_tables_have_one_shape() -> None:
    ranking = make_ranking(["rotation(15) | blur", *SPECS], [EVIL, "a|b"])
    text = to_markdown(ranking)
    (part,) = re.findall(r"## All candidates\n\n(.*?)\n\n##", text, re.S)
    lines = part.splitlines()
    assert cells(lines[0]) == ["rank", "candidate", "verdict", "gain", INTERVAL, "alignment"]
    assert len(lines) == 2 + 25 + 1
    assert {len(cells(line)) for line in lines} == {6}
    assert cells(lines[2])[1] == r"`rotation(15) \| blur`"
    assert cells(lines[-1])[1] == "no augmentation"
    (part,) = re.findall(r"## By class\n\n(.*?)\n\n##", text, re.S)
    assert part.startswith("How much each class gains or loses, compared with no augmentation, in")
    assert {len(cells(line)) for line in part.splitlines()[2:]} == {3}
    gain, low, high = ranking.rows[1].per_class["a|b"]
    unit = Unit.of(ranking)
    shown = next(row for row in map(cells, part.splitlines()[2:]) if row[0] == f"`{SPECS[0]}`")
    assert shown[2].replace("**", "") == f"{unit.signed(gain)} ({unit.span(low, high)})"


def test_markdown_says_the_same_in_the_same_order() -> None:
    text = to_markdown(make_ranking())
    heads = re.findall("^#+ (.*)$", text, re.M)
    assert heads == [
        "Augmentations ranked on mnist5k",
        "Findings",
        "By class",
        "All candidates",
        "Ready to paste",
        "How it was computed",
    ]
    assert text.index("helps most on mnist5k") < text.index("## Findings") < text.index("**A006**")
    assert "data:image" not in text


def test_words_stand_to_the_left_and_numbers_to_the_right() -> None:
    shown = table(["loss", "time", "note"], [["a", "1", "b"]], right=1, last=1)
    assert shown.splitlines()[1] == "| --- | --: | --- |"


def test_markdown_escapes() -> None:
    assert escape("a*b_[c]\n<d>|`") == r"a\*b\_\[c\] &lt;d&gt;\|\`"
    assert code("a`b") == "`` a`b ``"
    assert "````\na```b\n````" in to_markdown(replace(make_ranking(), command="a```b"))


def table_head(ranking: Ranking) -> list[str]:
    (part,) = re.findall(r"## All candidates\n\n(.*?)\n", to_markdown(ranking))
    return cells(part)


def test_the_score_is_named_with_its_unit() -> None:
    trial = make_ranking(score="trial")
    assert table_head(trial)[-1] == "expected accuracy, %"
    assert ">Expected accuracy, %<" in to_html(trial)
    assert table_head(with_data(trial, task="regression"))[-1] == "expected R², %"
    ridge = make_ranking(score="kernel-ridge", baseline=Baseline(-0.0599, -0.07, -0.05))
    text = to_markdown(ridge)
    assert table_head(ridge)[-1] == "minus held-out loss"
    assert "+0.021 loss reduction (" in text
    assert "minus held-out loss −0.060 (" in text
    assert "kernel-ridge: minus the held-out loss of ridge regression" in text
    assert "expected in the planned training" in to_markdown(trial)


def test_the_method_shows_only_what_applies() -> None:
    done = {"level": 3, "epochs": 1, "examples": 300, "folds": 1, "replicas": 2, "side": 32}
    found = dict(facts(make_ranking(score="trial", effort=done)))
    assert found["Effort"] == (
        "level 3; each candidate trained once for 1 epoch on 300 examples; a network without "
        "augmentation 2 times"
    )
    assert "Views of each example" not in found
    large = with_data(make_ranking(score="trial", effort=done), shape=[3, 64, 48])
    assert dict(facts(large))["Effort"].endswith("; images reduced to 32 pixels")
    trees = make_ranking(score="boosting", effort={"folds": 4, "repeats": 1, "copies": 3})
    assert dict(facts(trees))["Effort"] == (
        "4 folds, every row held out once; 3 augmented copies of each row"
    )
    assert dict(facts(make_ranking()))["Views of each example"] == "8"
