"""What is said of a comparison of two networks, and a profile as text."""

from __future__ import annotations

from augury.report.invariance import sentences
from augury.results.invariance import InvarianceProfile, LayerInvariance

LAYERS = ("input", "conv1", "conv2", "fc")


def profile(
    values: tuple[float, ...], width: float | None = 0.01, scale: float = 1.0, name: str = "a"
) -> InvarianceProfile:
    rows = tuple(
        LayerInvariance(
            layer,
            "flips",
            16,
            scale * value,
            scale,
            value,
            None if width is None else value - width,
            None if width is None else value + width,
        )
        for layer, value in zip(LAYERS, values, strict=True)
    )
    return InvarianceProfile(rows, name, {"name": "d", "examples": 9}, 4, 0, 1.0)


OTHER = profile((0.5, 0.4, 0.3, 0.2), name="b")


def lead(found: InvarianceProfile, other: InvarianceProfile = OTHER) -> str:
    return sentences(found.compare(other))[0]


def test_networks_are_compared_by_what_scale_does_not_change() -> None:
    same = "No difference: a is as invariant as b in 3 cases (a layer under an augmentation)."
    assert lead(profile((0.5, 0.4, 0.3, 0.2))) == same
    assert lead(profile((0.5, 0.4, 0.3, 0.2), scale=0.25)) == same
    assert lead(profile((0.5, 0.2, 0.1, 0.1), scale=9.0)) == (
        "a is more invariant than b in 3 of 3 cases (a layer under an augmentation)."
    )


def test_a_difference_within_the_intervals_does_not_count() -> None:
    assert lead(profile((0.5, 0.2, 0.6, 0.201))) == (
        "a is more invariant than b in 1 of 3 cases (a layer under an augmentation), less "
        "invariant in 1 (conv2 under flips), not clearly different in 1."
    )
    assert lead(profile((0.5, 0.395, 0.295, 0.205))) == (
        "No clear difference between a and b: their intervals overlap in 3 cases (a layer under "
        "an augmentation)."
    )
    few = profile((0.5, 0.395, 0.295, 0.205), width=None)
    assert "in 2 of 3 cases" in lead(few)


def test_without_a_layer_there_is_nothing_to_compare() -> None:
    other = profile((0.5, 0.0, 0.0, 0.0), name="b")
    assert "cannot be compared" in lead(profile((0.5, 0.4, 0.3, 0.2)), other)


def test_a_profile_prints_as_a_short_table() -> None:
    found = profile((0.5, 0.2, 0.6, 0.2))
    assert str(found).splitlines() == [
        "layer  features  flips",
        "input        16  0.500",
        "conv1        16  0.200",
        "conv2        16  0.600",
        "fc           16  0.200",
        "squared distance of views, relative to that between different examples",
    ]
    *_, line, note, said = str(found.compare(OTHER)).splitlines()
    assert line == "fc           16  0.200  1.000"
    assert note.startswith("squared distance")
    assert said.startswith("a is more invariant than b in 1 of 3 cases")
