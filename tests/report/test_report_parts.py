"""The parts of a report: words, charts, the heat map and pictures."""

from __future__ import annotations

import base64
import io
import re
import subprocess
import sys
import wave
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from report_rankings import SPECS, make_ranking, make_row, with_data

from augury.report import to_html
from augury.report.charts import ranked_figure
from augury.report.heat import heat_map
from augury.report.intervals import ChartInterval, interval_chart
from augury.report.pictures import image, strips
from augury.report.words import Unit, duration
from augury.results.ranking import Gallery

# Words


def test_the_unit_is_said_in_one_place() -> None:
    ranking = make_ranking()
    assert Unit.of(ranking).gain(0.0214) == "+0.021 alignment"
    centred = replace(ranking, score="centred-alignment")
    assert Unit.of(centred).gain(-0.004) == "−0.004 centred alignment"
    points = replace(ranking, score="trial", rows=(make_row("invert", 1.3, 0.4),))
    assert Unit.of(points).gain(1.31) == "+1.3 points"
    assert Unit.of(ranking).signed(-0.0001) == "0.000"
    assert Unit.of(ranking).signed(float("nan")) == "unknown"


def test_digits_follow_the_width_of_the_intervals() -> None:
    fine = replace(make_ranking(), rows=(make_row("invert", 0.00042, 0.00003),))
    assert Unit.of(fine).signed(0.00042) == "+0.00042"


def test_an_interval_shows_on_which_side_of_zero_it_ends() -> None:
    unit = Unit("alignment", 3)
    assert unit.span(0.0003, 0.005) == "+0.0003 to +0.005"
    assert unit.span(-0.005, -1e-9) == "−0.005 to 0.000"


def test_small_words() -> None:
    assert [duration(s) for s in (0.43, 41.2, 125)] == ["0.4 s", "41 s", "2 min 5 s"]


# Charts


def make_intervals(gains: list[float], width: float = 0.1) -> list[ChartInterval]:
    return [
        ChartInterval(
            f"c{k}", g, g - width, g + width, "helps" if g > width else "hurts", "", f"t{k}"
        )
        for k, g in enumerate(gains)
    ]


def say(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}"


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40),
    st.floats(1e-6, 10),
)
@settings(max_examples=25, deadline=None)
def test_everything_lies_on_the_chart_in_order(gains: list[float], width: float) -> None:
    chart = interval_chart(make_intervals(gains, width), "t", "d", say)
    assert len(chart.lines) == len(gains)
    assert 2 <= len(chart.ticks) <= 16
    reach = width + max(map(abs, gains))
    for line in chart.lines:
        assert line.left is not None
        assert line.at is not None
        assert line.right is not None
        assert 0 <= line.left <= line.at <= line.right <= 100
        if not line.beyond and abs(line.interval.value) > 0.01 * reach:
            assert (line.at > chart.zero) == (line.interval.value > 0)
    assert [line.y for line in chart.lines] == sorted(line.y for line in chart.lines)


def test_great_harm_does_not_hide_what_helps() -> None:
    chart = interval_chart(make_intervals([1.0, -200.0]), "t", "d", say)
    assert [line.beyond for line in chart.lines] == [False, True]
    assert chart.lines[0].at is not None
    assert chart.lines[0].at - chart.zero > 10
    assert "beyond the left edge" in to_html(
        make_ranking(rows=(make_row("flips", 0.01), make_row("invert", -0.5)))
    )


def test_an_interval_that_is_cut_has_an_arrow() -> None:
    ends = [(1.0, 0.5, 1.5), (-1.0, -20.0, 1.0), (-30.0, -31.0, -29.0)]
    drawn = [ChartInterval("a", *each, "unsure", "", "") for each in ends]
    chart = interval_chart(drawn, "t", "d", say)
    assert [line.cut for line in chart.lines] == [False, True, False]
    assert chart.arrows == "values and ends of intervals"
    assert interval_chart(drawn[:2], "t", "d", say).arrows == "ends of intervals"
    assert interval_chart(drawn[:1], "t", "d", say).arrows == ""
    rows = (make_row("flips", 1.0, 0.5), make_row("invert", -1.0, low=-20.0, high=1.0))
    page = to_html(replace(make_ranking(), rows=rows, score="trial"))
    assert "an arrow marks ends of intervals beyond the left edge" in page
    assert page.count("M1 0L8 -5V5Z") == 1


def test_unknown_ends_are_left_out() -> None:
    chart = interval_chart(
        [ChartInterval("a", 0.1, float("nan"), float("inf"), "unsure", "", "")], "t", "d", say
    )
    assert (chart.lines[0].left, chart.lines[0].right) == (None, None)
    row = make_row("invert", 0.1, low=float("nan"), high=float("nan"), verdict="can't tell")
    assert "unknown to unknown" in to_html(make_ranking(rows=(row,)))


def test_figure_draws_each_row_without_global_state() -> None:
    ranking = with_data(make_ranking(["sampled(a:$x$)", *SPECS]), name="costs $5 or $6")
    figure = ranked_figure(ranking)
    figure.savefig(io.BytesIO())
    (axes,) = figure.axes
    assert [t.get_text() for t in axes.get_yticklabels()] == [r.augmentation for r in ranking.rows]
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the best on top
    drawn = sorted(x for group in axes.containers for x in group[0].get_xdata())
    assert drawn == sorted(row.gain for row in ranking.rows)
    ranked_figure(make_ranking(rows=())).savefig(io.BytesIO())
    script = "import sys, augury.report.charts; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


# The heat map


def test_colours_follow_sign_and_size() -> None:
    values = np.array([[-1.0, -0.3, 0.0, 0.3, 1.0, np.nan]])
    heat = heat_map(["row"], list("abcdef"), values, lambda v: f"{v:+.1f}", {(0, 1)})
    ((_, cells),) = heat.rows
    assert [c.level for c in cells] == ["n4", "n1", "z", "p1", "p4", "z"]
    assert [c.flagged for c in cells] == [False, True, False, False, False, False]
    assert cells[0].title == "row, a: -1.0"
    assert cells[5].text == "–"


def test_too_many_columns_keep_the_most_affected() -> None:
    values = np.zeros((2, 500))
    values[1, [7, 400]] = 3, -4
    heat = heat_map(["a", "b"], [str(j) for j in range(500)], values, str)
    assert len(heat.columns) == 120
    assert heat.left_out == 380
    assert {"7", "400"} <= set(heat.columns)
    assert list(heat.columns) == sorted(heat.columns, key=int)


@pytest.mark.parametrize("number", [2, 100])
def test_all_classes_are_in_the_page(number: int) -> None:
    names = [f"class {k}" for k in range(number)]
    page = to_html(make_ranking(classes=names))
    table = page[page.index('class="heat"') : page.index('id="table"')]
    assert [n for n in names if f">{n}</th>" not in table] == []
    assert len(re.findall(r'<td class="[npz]\d?[ "]', table)) == 24 * number


# Pictures


def test_an_image_comes_back_from_its_uri() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (9, 12, 3), dtype=np.uint8)
    picture = image(pixels)
    png = base64.b64decode(picture.uri.removeprefix("data:image/png;base64,"))
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(png)).convert("RGB")), pixels)
    assert (picture.width, picture.height, picture.pixelated) == (72, 54, True)


def test_large_images_are_made_smaller() -> None:
    rng = np.random.default_rng(0)
    large = rng.integers(0, 256, (40, 8, 300, 200, 3), dtype=np.uint8)
    gallery = Gallery(large[:, 0], {"invert": large, "flips": large})
    drawn = strips(gallery)
    size = sum(len(p.uri) for s in drawn.values() for strip in s for p in strip.views)
    assert size < 10e6
    first = drawn["invert"][0].original
    assert (first.width, first.height, first.pixelated) == (48, 72, False)


def test_series_are_lines_on_a_common_scale() -> None:
    gallery = Gallery(np.zeros((1, 2, 500)), {"shift(0.1)": np.full((1, 3, 2, 500), 4.0)})
    (strip,) = strips(gallery)["shift(0.1)"]
    assert len(strip.views) == 3
    assert len(strip.original.lines) == 2
    assert strip.original.lines[0].startswith("1.0,54.0 ")
    assert strip.views[0].lines[0].startswith("1.0,2.0 ")
    assert len(strip.original.lines[0].split()) <= 132
    page = to_html(make_ranking(["shift(0.1)", "jitter(0.1)"], kind="series"))
    assert page.count("<polyline") == 2 * 3 * 5 * 2


def test_sound_has_a_spectrogram_and_a_player():
    time = np.arange(4000) / 8000
    tone = np.sin(2 * np.pi * 1000 * time)[None, None]
    views = np.stack([tone[0], 0.1 * tone[0]])[None]
    (strip,) = strips(Gallery(tone[None], {"gain(20)": views}, 8000))["gain(20)"]
    head, _, body = strip.original.audio.partition(",")
    assert head == "data:audio/wav;base64"
    with wave.open(io.BytesIO(base64.b64decode(body))) as file:
        assert (file.getframerate(), file.getnframes(), file.getsampwidth()) == (8000, 4000, 1)
        samples = np.frombuffer(file.readframes(4000), np.uint8)
    np.testing.assert_allclose(samples / 127.5 - 1, tone[0, 0], atol=0.01)
    picture = Image.open(io.BytesIO(base64.b64decode(strip.original.uri.partition(",")[2])))
    bright = np.asarray(picture, float).sum(2).mean(1)
    assert bright.argmax() == pytest.approx(len(bright) * 0.75, abs=2)  # a quarter from the bottom
    quiet = base64.b64decode(strip.views[1].audio.partition(",")[2])[44:]
    assert np.ptp(np.frombuffer(quiet, np.uint8)) < 30  # views keep their loudness
    silent = Gallery(np.zeros((1, 1, 100)), {"gain(3)": np.zeros((1, 2, 1, 100))}, 8000)
    assert len(strips(silent)["gain(3)"][0].views) == 2
