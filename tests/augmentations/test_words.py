"""Augmentations in words."""

from __future__ import annotations

import pytest

from augury.augmentations import FAMILIES, parse
from augury.augmentations.words import WordedStep, in_words


def flat(steps: tuple[WordedStep, ...], depth: int = 0) -> list[str]:
    lines = []
    for step in steps:
        head = " ".join(filter(None, [step.chance, step.spec or step.text]))
        lines += ["  " * depth + head, *flat(step.inner, depth + 1)]
    return lines


@pytest.mark.parametrize(
    ("spec", "lines"),
    [
        ("identity", ["No change."]),
        ("flips >> noise(0.1)", ["flips", "noise(0.1)"]),
        ("identity | 3*flips", ["75 % flips"]),
        (
            "0.7*flips | 0.3*invert",
            ["One of these, chosen at random:", "  70 % flips", "  30 % invert"],
        ),
        (
            "2*identity | flips | (invert >> noise(0.1))",
            [
                "One of these, or no change (50 %):",
                "  25 % flips",
                "  25 % These, one after the other:",
                "    invert",
                "    noise(0.1)",
            ],
        ),
        ("flips ** 2", ["2 times, one after the other:", "  flips"]),
        (
            "chain(flips:3, invert:1)",
            [
                "A random number of steps, 4 on average, each one of these:",
                "  75 % flips",
                "  25 % invert",
            ],
        ),
    ],
)
def test_what_is_done_in_which_order_and_how_often(spec: str, lines: list[str]) -> None:
    assert flat(in_words(parse(spec))) == lines


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.__name__)
def test_settings_are_filled_in(family: type) -> None:
    for step in in_words(family()):
        assert "`" not in step.text.replace("``", "")


def test_many_equal_shares_leave_no_chance_of_no_change() -> None:
    found = in_words(parse(" | ".join(f"rotation({k})" for k in range(1, 29))))
    assert found[0].text == "One of these, chosen at random:"
    assert "`" not in in_words(parse("brightness(0.2)"))[0].text
