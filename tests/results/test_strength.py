from __future__ import annotations

from dataclasses import replace

import pytest
from report_rankings import make_ranking, make_row

from augury._base.errors import AuguryError
from augury.augmentations import strength_ladder
from augury.report.curves import strength_curves as draw_curves
from augury.results.strength import strength_curves as curves


def rows(**gains):
    return tuple(make_row(f"rotation({angle[1:]})", gain, 0.1) for angle, gain in gains.items())


def test_the_safe_range_keeps_half_of_the_best_gain():
    (curve,) = curves(rows(a180=-3.5, a5=0.8, a15=1.2, a30=1.3, a60=0.7, a90=0.2))
    assert [row.magnitude for row in curve.rows] == [5, 15, 30, 60, 90, 180]
    assert curve.safe.augmentation == "rotation(60)"


def test_where_nothing_gains_nothing_is_safe():
    (curve,) = curves(rows(a5=-0.1, a15=-0.2))
    assert curve.safe is None


def test_where_no_gain_is_known_nothing_is_safe():
    unknown = tuple(make_row(f"rotation({a})", 0.5, 2.0) for a in (5, 15, 30))
    assert {row.verdict for row in unknown} == {"can't tell"}
    (curve,) = curves(unknown)
    assert curve.safe is None
    ranking = replace(make_ranking(), rows=unknown)
    (drawing,) = draw_curves(ranking)
    assert (drawing.said, drawing.shaded) == ("No setting is known to help.", None)


def test_what_is_known_to_help_is_safe_beside_what_may_gain_more():
    known = make_row("rotation(15)", 1.0, 0.5)
    unsure = make_row("rotation(30)", 1.2, 2.0)
    (curve,) = curves((known, unsure, make_row("rotation(60)", 0.4, 2.0)))
    assert curve.safe is unsure  # it keeps more than half of the gain of the best that is known


def test_strength_follows_the_family():
    crop = [make_row(f"resized_crop({a})", 1, 0.1) for a in (0.25, 0.9, 0.5)]
    zoom = [make_row(f"scaling({a})", 1, 0.1) for a in ("0.6,1.4", "0.9,1.1")]
    found = {c.family: [r.augmentation for r in c.rows] for c in curves((*crop, *zoom))}
    assert found["resized_crop"] == ["resized_crop(0.9)", "resized_crop(0.5)", "resized_crop(0.25)"]
    assert found["scaling"] == ["scaling(0.9,1.1)", "scaling(0.6,1.4)"]


def test_ladders_suit_the_kind_and_unknown_ones_are_said():
    assert {type(a).__name__ for a in strength_ladder("vector")} == {
        "jitter", "feature_dropout", "column_noise", "column_dropout", "swap_noise",
        "neighbour_mix",
    }  # fmt: skip
    assert [repr(a) for a in strength_ladder("image", ["rotation"])][:2] == [
        "rotation(5)",
        "rotation(15)",
    ]
    with pytest.raises(AuguryError, match="flips has no strength to sweep; families for image"):
        strength_ladder("image", ["flips"])


def test_curves_are_drawn_with_the_safe_range():
    ranking = make_ranking()
    ranking = replace(ranking, rows=rows(a5=0.8, a30=1.3, a180=-3.5))
    (drawing,) = draw_curves(ranking)
    assert [dot.label for dot in drawing.dots] == ["5", "30", "180"]
    assert drawing.dots[1].y < drawing.zero < drawing.dots[2].y
    assert drawing.shaded is not None
    assert drawing.shaded[0] == 0
    assert drawing.dots[1].x < drawing.shaded[1] < drawing.dots[2].x
    page = ranking.to_html()
    assert "Up to rotation(30), at least half of the best gain is expected." in page
    assert 'id="strength"' in page
