"""The report: what it says, in which order, and that nothing in the data can act in it."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from markdown_it import MarkdownIt
from report_rankings import EVIL, SPECS, make_ranking, make_row, with_data, with_interval

import augury
from augury.data import describe
from augury.report import findings, to_fragment, to_html, to_markdown, verdict
from augury.report.curves import trend_curves
from augury.report.markdown import code, escape
from augury.report.page import render_page
from augury.report.words import INTERVAL
from augury.results.ranking import Baseline, Ranking, Row, Trend


def codes(ranking: Ranking) -> list[str]:
    """Return the codes of what was found."""
    return [finding.code for finding in findings.find(ranking)]


# What is imported


def test_no_torch_is_imported() -> None:
    script = (
        "import sys, augury.report, augury.report.charts; "
        "sys.exit('torch is there' if 'torch' in sys.modules else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# The verdict


def test_verdict_names_the_best_its_interval_and_the_counts() -> None:
    lead, counts = verdict.sentences(make_ranking())
    assert lead == (
        f"rotation(15) helps most on mnist5k: +0.021 alignment ({INTERVAL} +0.018 to +0.024)."
    )
    assert counts == (
        "10 of 24 candidates help, 3 cannot be told apart from no augmentation, 11 hurt."
    )


def test_a_ranking_prints_a_line_a_candidate() -> None:
    ranking = make_ranking()
    lines = str(ranking).splitlines()
    assert len(lines) == len(ranking.rows)
    assert lines[0].startswith(f"{ranking.rows[0].augmentation}: {ranking.rows[0].gain:+.3g} (")
    assert lines[0].endswith(f", {ranking.rows[0].verdict}")


def test_verdict_when_nothing_helps() -> None:
    ranking = make_ranking()
    hurting = tuple(row for row in ranking.rows if row.verdict == "hurts")
    assert verdict.sentences(replace(ranking, rows=hurting)) == [
        "No candidate is expected to help on mnist5k.",
        "All 11 candidates hurt.",
    ]
    unclear = (make_row("invert", 0.001), make_row("flips", -0.001))
    assert verdict.sentences(replace(ranking, rows=unclear)) == [
        "No gain is certain on mnist5k; try invert first: "
        f"+0.001 alignment ({INTERVAL} −0.002 to +0.004).",
        "None of the 2 candidates can be told apart from no augmentation.",
    ]


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        (0.02, "invert helps on mnist5k: +0.020 alignment"),
        (-0.02, "invert hurts on mnist5k: −0.020 alignment"),
        (0.001, "invert cannot be told apart from no augmentation on mnist5k: +0.001 alignment"),
    ],
)
def test_verdict_of_one_candidate(gain: float, said: str) -> None:
    ranking = replace(make_ranking(), rows=(make_row("invert", gain),))
    lead, rest = verdict.sentences(ranking)
    assert lead.startswith(said)
    assert rest == "It was the only candidate."


def test_verdict_when_the_highest_is_uncertain() -> None:
    rows = (make_row("invert", 0.03, 0.05), make_row("flips", 0.02), make_row("noise(0.1)", -0.02))
    lead, uncertain, counts = verdict.sentences(replace(make_ranking(), rows=rows))
    assert lead.startswith("flips leads the candidates known to help on mnist5k: +0.020 alignment")
    assert uncertain == "invert came out higher (+0.030), but less surely."
    assert counts == (
        "1 of 3 candidates helps, 1 cannot be told apart from no augmentation, 1 hurts."
    )


def test_no_candidate_at_all() -> None:
    empty = replace(make_ranking(), rows=())
    assert verdict.sentences(empty) == ["Nothing was ranked on mnist5k: no candidate was given."]
    for text in (to_html(empty), to_fragment(empty), to_markdown(empty)):
        assert "Nothing was ranked on mnist5k" in text


# Findings


def test_a_class_that_is_hurt_is_named_with_its_number() -> None:
    row = make_row(
        "rotation(30)",
        0.02,
        per_class={
            "six": with_interval(0.05),
            "nine": with_interval(-0.011),
            "one": with_interval(-0.002),
        },
    )
    (found,) = findings.find(with_data(replace(make_ranking(), rows=(row,)), notes=[]))[:1]
    assert (found.code, found.severity) == ("A001", "warning")
    assert found.evidence == ("rotation(30) (+0.020) hurts class nine (−0.011)",)
    assert findings.hurt_classes(replace(row, verdict="hurts")) == []


def test_findings_of_the_usual_ranking() -> None:
    ranking = make_ranking()
    found = {f.code: f for f in findings.find(ranking)}
    assert "A002" not in found
    assert "A007" not in found
    assert any("rotation(30) helps (+0.017)" in line for line in found["A005"].evidence)
    assert "translation(0.1) (+0.019)" in found["A006"].evidence[0]
    assert found["A008"].evidence == tuple(ranking.dataset["notes"])
    severities = [findings.SEVERITIES.index(f.severity) for f in findings.find(ranking)]
    assert severities == sorted(severities)


def test_nothing_helps_and_wide_intervals_are_found() -> None:
    rows = tuple(make_row(s, 0.001, 0.02) for s in ("invert", "flips", "shear(10)"))
    found = codes(with_data(replace(make_ranking(), rows=rows), notes=[]))
    assert found == ["A002", "A003"]


@pytest.mark.parametrize(
    ("specs", "edge"),
    [
        (["rotation(30)", "rotation(15)"], True),
        (["rotation(15)", "rotation(30)"], False),
        (["rotation(180)", "rotation(30)"], False),  # nothing is stronger than a full turn
        (["resized_crop(0.25)", "resized_crop(0.64)"], True),  # a smaller area is stronger
        (["resized_crop(0.64)", "resized_crop(0.25)"], False),
        (["scaling(0.7,1.3)", "scaling(0.9,1.1)"], True),
        (["rotation(30)", "shear(10)"], False),
        (["rotation(30) >> blur(1,2)", "rotation(15) >> blur(1,2)"], False),
    ],
)
def test_the_edge_of_what_was_tried(specs: list[str], edge: bool) -> None:
    rows = tuple(make_row(spec, gain) for spec, gain in zip(specs, (0.05, 0.02), strict=True))
    assert ("A004" in codes(replace(make_ranking(), rows=rows))) is edge


def trial(*rows: Row, score: float = 90.0, **changes: Any) -> Ranking:
    """Make a ranking by the trial: accuracies in per cent."""
    ranking = make_ranking(score="trial", rows=rows, baseline=Baseline(score, score, score))
    return with_data(ranking, **{"notes": [], **changes})


def test_what_to_try_first_and_how_sure_that_is() -> None:
    rows = (
        make_row("horizontal_flip", 1.8, 2.0, probability=0.82, verdict="probably helps"),
        make_row("invert", 0.2, 2.0, probability=0.55),
        make_row("flips", -1.0, 2.0, probability=0.1, verdict="probably hurts"),
    )
    ranking = trial(*rows)
    lead, counts = verdict.sentences(ranking)
    assert lead.startswith("Try horizontal_flip first on mnist5k: it probably helps, +1.8 points (")
    assert lead.endswith("; 82\u00a0% likely to help).")
    assert counts == (
        "1 of 3 candidates probably helps, 1 cannot be told apart from no augmentation, "
        "1 probably hurts."
    )
    (found,) = [f for f in findings.find(ranking) if f.code == "A002"]
    assert found.title == "No gain is certain"
    assert found.advice.startswith("Try horizontal_flip first: train with it and without it")
    assert "flips" not in " ".join(found.evidence)
    text = to_markdown(ranking)
    assert "likely to help" in text
    assert "Train without augmentation" not in text
    page = html.unescape(to_html(ranking))
    assert "Likely to help" in page
    assert 'class="verdict likely"' in page
    assert 'class="verdict doubtful"' in page
    assert 'augury.parse("horizontal_flip")' in page


def test_nobody_is_advised_against_all_from_ignorance() -> None:
    rows = [make_row(f"noise({k / 100})", 0.5 - k / 9, 3.0) for k in range(1, 9)]
    text = to_markdown(trial(*rows))
    assert "try noise(0.01) first" in text.replace("\\", "")
    assert "without augmentation, or" not in text


def test_at_the_ceiling_nothing_is_left_to_gain() -> None:
    rows = (make_row("invert", 0.0, 0.0), make_row("flips", 0.0, 0.0))
    ranking = trial(*rows, score=100.0)
    assert verdict.sentences(ranking)[0].startswith("Nothing is left to gain on mnist5k")
    assert codes(ranking) == ["A009"]
    assert "A009" not in codes(trial(*rows, score=99.9))
    assert "A009" not in codes(trial(*rows, score=100.0, classes=None, counts=None))


@pytest.mark.parametrize(
    ("warning", "code", "first"),
    [
        ("few-examples", "A011", True),
        ("many-classes", "A012", True),
        ("unequal-classes", "A010", False),
        ("few-in-class", "A013", False),
    ],
)
def test_what_the_data_are_warned_of(warning: str, code: str, first: bool) -> None:
    rows = (make_row("invert", 2.0, 1.0), make_row("flips", 1.0, 3.0))
    ranking = trial(*rows, warnings=[[warning, "there is so much of it"]])
    (found,) = [f for f in findings.find(ranking) if f.code == code]
    assert found.evidence == ("there is so much of it",)
    for text in (to_html(ranking), to_markdown(ranking), to_fragment(ranking)):
        said = text.find(found.title)
        assert (0 < said < text.index("helps most on")) is first
    assert code not in codes(trial(*rows))


def test_why_there_are_no_verdicts_is_said_first() -> None:
    ranking = trial(make_row("invert", 2.0, 3.0), make_row("flips", 1.0, 3.0))
    text = to_markdown(replace(ranking, warnings=("the trial was too short",)))
    said = "**No verdicts are given.** The trial was too short."
    assert 0 < text.index(said) < text.index("try invert first")


def test_the_warnings_of_data_are_known() -> None:
    few = augury.as_dataset(np.eye(24), [0] * 20 + [1] * 2 + [2] * 2)
    ranking = trial(make_row("invert", 2.0, 1.0), **describe(few, seen=4))
    assert {"A010", "A011", "A012", "A013"} <= set(codes(ranking))


def test_the_plan_is_printed() -> None:
    plan = {"epochs": 30, "examples": 5000, "side": 32, "network": "a ResNet-18"}
    plan["assumed"] = ["epochs", "network"]
    trend = Trend("invert", "epochs", (10, 30, 90), (0.5, 1.0, 1.5), (-1, 0.1, 0.5), (2, 2, 2.5))
    ranking = replace(
        trial(make_row("invert", 1.0, 0.5), make_row("flips", 0.5, 1.0)),
        plan=plan, effort={"steps": 1600, "repeats": 3}, extrapolation=(trend,),
    )  # fmt: skip
    said = (
        "The gains are for training for 30 epochs on 5,000 examples at 32 pixels with a ResNet-18 "
        "(epochs and network assumed)."
    )
    for text in (to_html(ranking), to_fragment(ranking)):
        assert said in text
    assert said.replace("(", "(") in to_markdown(ranking).replace("\\", "")
    page = html.unescape(to_html(ranking))
    assert "Gain against epochs; planned: 30." in page
    assert "steps 1,600, repeats 3" in page
    (drawing,) = trend_curves(ranking)
    assert [dot.tone for dot in drawing.dots] == ["unsure", "helps", "helps"]
    assert drawing.shaded is not None
    assert drawing.shaded[0] < drawing.dots[1].x < drawing.shaded[1]
    assert drawing.shaded[1] < drawing.dots[2].x
    assert Ranking.from_json(ranking.to_json()) == replace(ranking, gallery=None)


# The page


def test_page_sections_come_in_order() -> None:
    page = to_html(make_ranking())
    parts = [
        "helps most on",
        "<figure",
        "findings",
        "gallery",
        "classes",
        "table",
        "paste",
        "method",
    ]
    at = [page.index(f'id="{p}"') if p.isalpha() else page.index(p) for p in parts]
    assert at == sorted(at)
    for entry in ("fourier(2048)", "5,000", "1 × 14 × 14", "41 s", "augury rank mnist5k --seed 0"):
        assert entry in page
    assert html.escape('augury.parse("rotation(15)")', quote=False) in html.unescape(page)


def test_page_holds_no_address_and_no_inline_style() -> None:
    page = to_html(make_ranking())
    assert not re.findall(r"(?:https?:)?//[a-z]", re.sub(r"base64,[\w+/=]+", "", page))
    assert not re.findall(r"<[^>]* style=", page)
    assert not re.findall(r"<[^>]* on\w+=", page)
    policy = html.unescape(re.findall(r'Content-Security-Policy" content="([^"]+)"', page)[0])
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in policy


def test_page_holds_its_numbers_as_json() -> None:
    ranking = make_ranking(classes=[EVIL, "</script><script>alert(1)</script>", "a&b"])
    (data,) = re.findall(
        r'<script type="application/json" id="data">(.*?)</script>', to_html(ranking), re.S
    )
    assert "<" not in data
    assert Ranking.from_json(data) == replace(ranking, gallery=None)


def test_rendering_is_the_same_each_time() -> None:
    assert to_html(make_ranking()) == to_html(make_ranking())


@pytest.mark.parametrize("place", ["class", "name", "spec", "note", "features", "command"])
def test_nothing_from_the_data_acts(place: str) -> None:
    evil = f"{EVIL}\"'</script></svg></title>`*|&\u2028"
    ranking = make_ranking()
    if place == "class":
        ranking = make_ranking(classes=["one", evil])
        rows = [
            replace(r, per_class={"one": with_interval(0.1), evil: with_interval(-0.1)})
            for r in ranking.rows
        ]
        ranking = replace(ranking, rows=tuple(rows))
    elif place == "spec":
        ranking = make_ranking([evil, "invert"])
    elif place == "name":
        ranking = with_data(ranking, name=evil)
    elif place == "note":
        ranking = with_data(ranking, notes=[evil])
    else:
        ranking = replace(ranking, **{place: evil})
    for text in (to_html(ranking), to_fragment(ranking)):
        assert "<img src=x" not in text
        assert text.count("</svg></title>") == 0
    page = to_html(ranking)
    assert page.count("</script>") == 2
    assert html.escape(EVIL) in page
    shown = MarkdownIt("commonmark", {"html": True}).enable("table").render(to_markdown(ranking))
    assert "<img" not in shown
    assert "&lt;img src=x onerror=alert(1)&gt;" in shown


def test_odd_file_names_can_be_written() -> None:
    ranking = with_data(make_ranking(), name="caf\udce9")
    for text in (to_html(ranking), to_markdown(ranking), to_fragment(ranking)):
        assert "caf?" in text.encode().decode()


@pytest.mark.parametrize(
    ("ranking", "sentence"),
    [
        (make_ranking(kind="vector"), "Rows of a table have no pictures."),
        (replace(make_ranking(), gallery=None), "No pictures came with this result"),
        (make_ranking(classes=[]), "No gains by class came with this ranking."),
        (
            with_data(make_ranking(classes=[]), classes=None),
            "The target is a real value, so there are no classes to look at one by one.",
        ),
        (with_data(make_ranking(), notes=[]), "none: the data were used as they are"),
        (with_data(make_ranking(["invert"], ["a"]), notes=[]), "Only one candidate"),
        (
            with_data(
                replace(make_ranking(), rows=(make_row("invert", 0.02), make_row("flips", -0.1))),
                notes=[],
            ),
            "Nothing stands out.",
        ),
        (
            replace(make_ranking(), rows=(make_row("invert", -0.02), make_row("flips", -0.1))),
            "No candidate is expected to help, so there is none to copy.",
        ),
        (replace(make_ranking(), command=""), "repeat it with augury.rank on the same data"),
    ],
)
def test_empty_states_have_their_sentence(ranking: Ranking, sentence: str) -> None:
    assert sentence in html.unescape(to_html(ranking))


def test_a_transform_of_the_users_is_shown_as_it_is_used() -> None:
    ranking = make_ranking(["RandomRotation(degrees=15)", "invert"])
    code = "from training import augment\n\nimage = augment(image)"
    rows = (replace(ranking.rows[0], code=code), *ranking.rows[1:])
    for page in (to_html(replace(ranking, rows=rows)), to_markdown(replace(ranking, rows=rows))):
        assert f"{code}\n" in html.unescape(page).replace("</code>", "\n")
        assert "augury.parse(&#34;RandomRotation" not in page


def test_a_shell_page_needs_no_ranking() -> None:
    page = render_page("shell.html", "{}", title="Layers & more", file_name="layers.json")
    assert "<title>Layers &amp; more</title>" in page


# Markdown


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
    assert {len(cells(line)) for line in part.splitlines()} == {3}


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


def test_markdown_escapes() -> None:
    assert escape("a*b_[c]\n<d>|`") == r"a\*b\_\[c\] &lt;d&gt;\|\`"
    assert code("a`b") == "`` a`b ``"
    assert "````\na```b\n````" in to_markdown(replace(make_ranking(), command="a```b"))


# Notebooks


def test_fragment_is_small_scoped_and_still() -> None:
    ranking = make_ranking()
    text = to_fragment(ranking)
    assert "<script" not in text
    assert "<button" not in text
    assert "data:" not in text
    assert text.count("<table") == 1
    assert "helps most on" in text
    style = re.sub(r"/\*.*?\*/", "", re.findall("<style>(.*?)</style>", text, re.S)[0], flags=re.S)
    heads = re.findall(r"(?:^|[{}])\s*([^{}@]+)\{", style)
    assert [h for head in heads for h in head.split(",") if ".augury" not in h] == []
    assert ranking._repr_html_() == text
    other = to_fragment(replace(ranking, seed=1))
    ids = re.findall(' id="([^"]+)"', text)
    assert ids
    assert not set(ids) & set(re.findall(' id="([^"]+)"', other))
