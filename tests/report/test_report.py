"""The page: its order, its numbers, and that nothing in the data can act in it."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt
from report_rankings import EVIL, make_ranking, make_row, with_data, with_interval

from augury.report import to_fragment, to_html, to_markdown
from augury.report.page import render_page
from augury.results.ranking import Ranking


def test_no_torch_is_imported() -> None:
    script = (
        "import sys, augury.report, augury.report.charts; "
        "sys.exit('torch is there' if 'torch' in sys.modules else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


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
    assert policy.startswith("default-src 'none'; img-src data:; media-src data:;")
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
        (replace(make_ranking(), gallery=None), "This result has no pictures"),
        (make_ranking(classes=[]), "This ranking has no gains by class."),
        (
            with_data(make_ranking(classes=[]), classes=None),
            "The target is a real value, so there are no gains by class.",
        ),
        (with_data(make_ranking(), notes=[]), "none: the data was used as is"),
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
            "No candidate is expected to help, so there is nothing to copy.",
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
