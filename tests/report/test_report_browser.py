"""The page in a real browser: offline, in both themes, by mouse and by keyboard."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from report_rankings import EVIL, SPECS, make_ranking, make_row, with_interval

from augury.report import to_fragment, to_html
from augury.results.ranking import Ranking

CHROMIUM = shutil.which("chromium")
if not os.environ.get("AUGURY_REQUIRE_BROWSER"):
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM:
        pytest.skip("chromium is not installed", allow_module_level=True)
Open = Callable[..., Any]

# The contrast of every visible piece of text with what lies behind it (WCAG 2, relative luminance).
CONTRAST = """() => {
  const channels = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const c = channels(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !e.getClientRects().length) continue;
    if (e.closest("script, style, title, desc")) continue;
    const style = getComputedStyle(e);
    const ink = channels(e.tagName === "text" ? style.fill : style.color);
    const [a, b] = [light(ink), light(behind(e))].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), e.tagName.toLowerCase(), e.className.toString()]);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    assert CHROMIUM, "AUGURY_REQUIRE_BROWSER is set, but chromium is not installed"
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Open:
    """Open a page from a file, offline; leaving it checks that nothing went wrong on the way."""

    @contextmanager
    def visit(result: Ranking | str, **options: Any) -> Iterator[Any]:
        file = tmp_path / "report.html"
        file.write_text(result if isinstance(result, str) else to_html(result), encoding="utf-8")
        context = browser.new_context(offline=True, accept_downloads=True, **options)
        page = context.new_page()
        wrong: list[str] = []
        page.on("console", lambda message: wrong.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (wrong.append("dialog"), dialog.dismiss()))
        page.on(
            "request",
            lambda r: None if r.url.startswith(("data:", file.as_uri())) else wrong.append(r.url),
        )
        try:
            page.goto(file.as_uri())
            yield page
            page.wait_for_timeout(50)
            assert wrong == []
        finally:
            context.close()

    return visit


def column(page: Any, number: int) -> list[str]:
    """Read a column of the table of candidates, top to bottom."""
    return page.locator(f"table.rows tbody tr > :nth-child({number})").all_inner_texts()


def head(page: Any, name: str) -> Any:
    """Find the button that sorts by a column."""
    return page.locator("thead").get_by_role("button", name=name, exact=True)


def test_the_watch_sees_what_goes_wrong(opened: Open) -> None:
    bad = "<!doctype html><title>bad</title><img src=x onerror='alert(1)'>"
    with pytest.raises(AssertionError, match="dialog"), opened(bad):
        pass


def test_the_measure_of_contrast_sees_faint_text(opened: Open) -> None:
    with opened("<!doctype html><title>t</title><p>clear<b style='color:#999'>faint</b>") as page:
        assert [round(ratio, 2) for ratio, _, _ in page.evaluate(CONTRAST)] == [21.0, 2.85]


def test_opens_offline_without_an_error(opened: Open) -> None:
    with opened(make_ranking()) as page:
        assert page.title() == "Augmentations ranked on mnist5k"
        assert "helps most" in page.locator(".lead").inner_text()
        for image in page.locator("details[open] img").all():
            assert image.evaluate("i => i.complete && i.naturalWidth") == 14


def test_table_sorts_on_click(opened: Open) -> None:
    ranking = make_ranking()
    with opened(ranking) as page:
        assert column(page, 2) == [row.augmentation for row in ranking.rows]
        heads = page.locator("table.rows thead th")
        assert heads.nth(0).get_attribute("aria-sort") == "ascending"
        head(page, "Candidate").click()
        assert column(page, 2) == sorted(SPECS)
        assert heads.nth(1).get_attribute("aria-sort") == "ascending"
        assert heads.nth(0).get_attribute("aria-sort") == "none"
        head(page, "Candidate").click()
        assert column(page, 2) == sorted(SPECS, reverse=True)
        head(page, "Gain").click()
        assert heads.nth(3).get_attribute("aria-sort") == "descending"
        gains = [float(g.replace("−", "-")) for g in column(page, 4)]
        assert gains == sorted(gains, reverse=True)
        head(page, "Gain").click()
        assert column(page, 1)[0] == "24"


def test_table_sorts_by_keyboard(opened: Open) -> None:
    with opened(make_ranking()) as page:
        head(page, "Rank").focus()
        page.keyboard.press("Enter")
        assert column(page, 1) == [str(k) for k in range(24, 0, -1)]
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        assert column(page, 2) == sorted(SPECS)


@pytest.mark.parametrize("kind", ["image", "series"])
def test_every_gallery_opens(opened: Open, kind: str) -> None:
    with opened(make_ranking(kind=kind)) as page:
        galleries = page.locator(".gallery details")
        assert galleries.count() == 24
        for k in range(1, 24):
            strip = galleries.nth(k).locator(".strip").first
            assert not strip.is_visible()
            galleries.nth(k).locator("summary").click()
            assert strip.is_visible()
            assert strip.locator("img, svg").count() == 5
        page.get_by_role("button", name="Close all").click()
        assert page.locator(".gallery details[open]").count() == 0
        page.get_by_role("button", name="Open all").click()
        assert page.locator(".gallery details[open]").count() == 24


@pytest.mark.parametrize("make", [to_html, to_fragment])
def test_a_class_that_is_markup_runs_nothing(opened: Open, make: Callable[[Ranking], str]) -> None:
    each = {"one": with_interval(0.05), EVIL: with_interval(-0.03)}
    rows = tuple(make_row(spec, 0.02, per_class=each) for spec in (EVIL, "invert"))
    ranking = make_ranking([EVIL, "invert"], ["one", EVIL])
    ranking = replace(ranking, rows=rows, features=EVIL, command=EVIL)
    ranking.dataset.update(name=EVIL, notes=[EVIL])
    with opened(make(ranking)) as page:
        assert page.locator("img[src=x]").count() == 0
        assert EVIL in page.locator(".lead").inner_text()
        for details in page.locator("details").all():
            details.evaluate("d => { d.open = true; }")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("make", [to_html, to_fragment])
def test_all_text_can_be_read(opened: Open, scheme: str, make: Callable[[Ranking], str]) -> None:
    with opened(make(make_ranking()), color_scheme=scheme) as page:
        found = page.evaluate(CONTRAST)
        tags = {tag for _, tag, _ in found}
        assert {"p", "td", "th", "code", "text"} <= tags
        if make is to_html:
            assert {"a", "button", "h1", "h2", "h3", "dd", "li"} <= tags
        assert [entry for entry in found if entry[0] < 4.5] == []
        shade = page.evaluate("getComputedStyle(document.querySelector('.augury')).backgroundColor")
        assert shade == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 28)")


def test_the_theme_can_be_switched(opened: Open) -> None:
    with opened(make_ranking(), color_scheme="light") as page:
        before = [page.evaluate("getComputedStyle(document.body).backgroundColor")]
        page.get_by_role("button", name="Dark theme").click()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") not in before
        assert [entry for entry in page.evaluate(CONTRAST) if entry[0] < 4.5] == []
        page.get_by_role("button", name="Light theme").click()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") in before


@pytest.mark.parametrize("kind", ["image", "series", "vector"])
@pytest.mark.parametrize("classes", [2, 100])
def test_narrow_screens_do_not_scroll_sideways(opened: Open, kind: str, classes: int) -> None:
    long = ["rotation(15) >> blur(0.5,2.0) >> noise(0.1) >> translation(0.2)", "x" * 120, *SPECS]
    ranking = make_ranking(
        long, [f"a rather long class name {k}" for k in range(classes)], kind=kind
    )
    ranking.dataset.update(name="a/very/long/path/" * 8)
    with opened(ranking, viewport={"width": 360, "height": 740}) as page:
        for details in page.locator("details").all():
            details.evaluate("d => { d.open = true; }")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if classes == 100:  # the heat map scrolls in its own box instead
            box = page.locator(".scroll:has(.heat)")
            assert box.evaluate("b => b.scrollWidth > 3 * b.clientWidth")


@pytest.mark.parametrize("rows", [1, 33])
@pytest.mark.parametrize("width", [360, 1200])
def test_each_line_of_the_chart_stands_beside_its_name(opened: Open, rows: int, width: int) -> None:
    specs = [f"rotation({k + 1})" for k in range(rows)]
    with opened(make_ranking(specs), viewport={"width": width, "height": 800}) as page:
        offsets = page.evaluate(
            """() => {
              const box = (e) => e.getBoundingClientRect();
              const middle = (e) => box(e).y + box(e).height / 2;
              const names = [...document.querySelectorAll(".plot ul:first-child li")].map(middle);
              const bars = [...document.querySelectorAll(".plot .band")].map(middle);
              return names.map((y, k) => Math.abs(y - bars[k]));
            }"""
        )
        assert len(offsets) == rows
        assert max(offsets) < 2
        size = page.locator(".plot li").first.evaluate(
            "e => parseFloat(getComputedStyle(e).fontSize)"
        )
        assert size >= 11
        assert page.locator(".plot > svg").evaluate("s => s.getBoundingClientRect().width") > 140


def test_numbers_can_be_saved_and_shown(opened: Open) -> None:
    ranking = make_ranking(classes=["a<b", "c&d"])
    with opened(ranking) as page:
        with page.expect_download() as download:
            page.get_by_role("button", name="Download JSON").click()
        assert download.value.suggested_filename == "ranking-mnist5k.json"
        saved = Path(download.value.path()).read_text(encoding="utf-8")
        assert Ranking.from_json(saved) == replace(ranking, gallery=None)
        page.get_by_text("Show the JSON").click()
        page.wait_for_function("document.querySelector('.data pre').textContent")
        assert json.loads(page.locator(".data pre").inner_text()) == ranking.to_dict()


def test_lines_can_be_copied(opened: Open) -> None:
    with opened(make_ranking(), permissions=["clipboard-read", "clipboard-write"]) as page:
        page.get_by_role("button", name="Copy: The same in Python").click()
        page.wait_for_function("document.querySelectorAll('[data-copy]')[1].textContent != 'Copy'")
        assert page.evaluate("navigator.clipboard.readText()") == 'augury.parse("rotation(15)")'


def test_keyboard_reaches_the_verdict_first(opened: Open) -> None:
    with opened(make_ranking()) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the verdict"
        assert page.evaluate("document.activeElement.getBoundingClientRect().x") >= 0
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"


def test_page_reads_without_script(opened: Open) -> None:
    with opened(make_ranking(), java_script_enabled=False) as page:
        assert page.locator("table.rows tbody tr").count() == 24
        assert not page.locator("[data-script]").first.is_visible()
        assert page.locator(".gallery details").count() == 24
