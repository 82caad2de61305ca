"""Words that messages share, and pixels as bytes."""

from __future__ import annotations

import torch

from augury._base.pixels import to_bytes
from augury._base.text import cause, did_you_mean, flat, listed, nearest


def test_names_stay_on_one_line() -> None:
    assert flat("a\nb\x1b") == "a\\nb\\x1b"
    assert len(flat("x" * 5000)) == 300
    assert listed([]) == ""
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed("abcdef", 4) == "a, b, c, d and 2 more"
    assert cause(ValueError("first\nsecond")) == "first"
    assert cause(KeyError()) == "KeyError"
    assert len(cause(ValueError("x" * 500))) == 120


def test_near_names_are_found_whatever_their_case() -> None:
    assert did_you_mean("mnist", ["digits", "MNIST5k"]) == "; did you mean MNIST5k?"
    assert did_you_mean("zzz", ["digits"]) == ""
    assert nearest("layer", ["layer1", "layer2", "head"], 3, 0.3)[:2] == ["layer2", "layer1"]


def test_pixels_are_rounded_and_clipped() -> None:
    x = torch.tensor([-0.5, 0.0, 0.4999 / 255, 0.5001 / 255, 1.0, 1.5])
    assert to_bytes(x).tolist() == [0, 0, 0, 1, 255, 255]
