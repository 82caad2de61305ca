"""The page of the reproduction: what it shows, and that a browser takes it without a word."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from augury_paper.errata import ERRATA, differences
from augury_paper.page import Facts, lead, to_html
from augury_paper.plots import draw
from augury_paper.section import Claim, PageTable, Plot, Section, Series

CHROMIUM = shutil.which("chromium")

LINE = Plot(
    "Objectives <through> training",
    "epoch",
    "difference & more",
    (
        Series("first order", (0.0, 1.0, 2.0), (0.1, 0.2, 0.15), (0.01, 0.02, 0.01)),
        Series("second order", (0.0, 1.0, 2.0), (0.01, 0.02, 0.015)),
    ),
    log=True,
)
DOTS = Plot(
    "Accuracy",
    "layer",
    "accuracy, %",
    (Series("LeNet", (0.0, 1.0), (90.0, 91.0), (0.2, 0.1), joined=False, names=("a", "$b_1$")),),
    ticks=("input", "a long name"),
)


def make_page() -> str:
    claims = (
        Claim("It is <b>so</b>", "70–100 %", "85 ± 3 %", "holds"),
        Claim("It is larger than a long sentence says", "6", "4.1 ± 0.2", "holds weaker"),
        Claim("It is not so", "1", "−1", "does not hold"),
        Claim("Nobody looked", "1", "no data", "could not be checked"),
    )
    table = PageTable("All numbers", ("name", "value"), (("rotation(15)", "1.0 ± 0.1"),))
    section = Section(
        "averaging",
        "Averaging (Figure 3)",
        "Some words.",
        claims,
        (table,),
        (LINE, DOTS),
        ("As said.",),
    )
    settings = {
        "trials": 2, "n_components": 1000, "learning_rate": 0.01, "momentum": 0.9, "batch_size": 64,
        "epochs": 4, "n_views": 8, "examples": 0, "tests": 500,
    }  # fmt: skip
    facts = Facts(settings, False, ["a machine"], [], 7, {"mnist": 61.0, "digits": 2.0})
    return to_html([section], facts, ERRATA, {"cells": [], "value": float("inf")})


def test_claims_stand_with_their_verdicts() -> None:
    page = make_page()
    assert (
        "Of the paper's 4 claims, 1 holds, 1 holds weaker, 1 does not hold and 1 could"
        in page.replace("&#39;", "'")
    )
    assert "It is &lt;b&gt;so&lt;/b&gt;" in page
    assert re.search(r'<span class="verdict hurts">does not hold</span>', page)
    assert "These are smaller settings than the paper's" in page.replace("&#39;", "'")


def test_times_are_marked_and_nothing_else_is() -> None:
    assert re.findall(r'<span class="time">(.*?)</span>', make_page()) == [
        "1 min 3 s",
        "2.0 s",
        "1 min 1 s",
    ]


def test_the_lead_counts() -> None:
    def section(*claims: tuple[str, bool]) -> Section:
        found = (Claim("", "", "", v, own) for v, own in claims)  # type: ignore[arg-type]  # str
        return Section("chain", "", "", tuple(found))

    assert lead([]) == "No claim was checked."
    four = section(*[("holds", False)] * 3, ("does not hold", False))
    assert lead([four]) == "Of the paper's 4 claims, 3 hold and 1 does not hold."
    assert lead([four, section(("holds", True))]) == (
        "Of the paper's 4 claims, 3 hold and 1 does not hold. Of 1 check of our own, by other "
        "methods or measures, 1 holds."
    )


def test_all_nine_differences_are_told() -> None:
    assert [entry.number for entry in ERRATA] == list(range(1, 10))
    page = make_page()
    for entry in ERRATA:
        assert entry.title in page
    assert len(differences("chain")) == 3


@pytest.mark.parametrize("plot", [LINE, DOTS])
def test_a_drawing_has_no_style_of_its_own(plot: Plot) -> None:
    drawing = draw(plot)
    ElementTree.fromstring(drawing.replace("xlink:href", "href"))
    assert "style" not in drawing
    assert "#0000" not in drawing  # every colour has become a class
    assert 'class="f-c0"' in drawing or "s-c0" in drawing
    assert drawing == draw.__wrapped__(plot)  # drawn again, not remembered


def test_a_dollar_sign_is_no_mathematics() -> None:
    assert "$b_1$" in draw(DOTS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not os.environ.get("AUGURY_REQUIRE_BROWSER"):
        pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
        if not CHROMIUM:
            pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.mark.parametrize("width", [360, 1100])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_opens_offline_without_a_word(
    browser: Any, tmp_path: Path, width: int, scheme: str
) -> None:
    file = tmp_path / "page.html"
    file.write_text(make_page(), encoding="utf-8")
    context = browser.new_context(
        offline=True, viewport={"width": width, "height": 800}, color_scheme=scheme
    )
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(file.as_uri())
    page.wait_for_timeout(50)
    assert wrong == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    inked = page.locator("figure .f-c1, figure .s-c1").first
    colour = inked.evaluate("e => getComputedStyle(e).stroke + getComputedStyle(e).fill")
    wanted = {"light": "rgb(179, 67, 12)", "dark": "rgb(242, 147, 92)"}[scheme]
    assert wanted in colour
    context.close()
