"""A row of an invariance profile is found by any form of its augmentation."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from augury import measure_invariance, parse
from augury.results.invariance import InvarianceProfile


def measured(*specs: str) -> InvarianceProfile:
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU()).eval()
    return measure_invariance(network, torch.rand(3, 1, 6, 6), specs, layers=["0"], n_views=4)


def test_a_row_is_found_by_every_spec_of_its_augmentation() -> None:
    given = ["0.5*flips", "rotation(15.0)", "blur(0.5, 2) >> flips", "0.7*identity | 0.3*flips"]
    profile = measured(*given)
    for spec, row in zip(given, profile.rows, strict=True):
        for key in (spec, parse(spec), row.augmentation, f" {spec} "):
            assert profile["0", key] is row
    assert profile["0", "rotation(15)"] is profile.rows[1]  # equal, though written otherwise
    assert profile["0", 0.5 * parse("flips")] is profile.rows[0]  # a weight alone
    assert InvarianceProfile.from_json(profile.to_json())["0", "0.5*flips"] == profile.rows[0]


def test_a_key_that_is_not_there_names_those_that_are() -> None:
    profile = measured("flips", "rotation(15)")
    for key in (("0", "rotation(16)"), ("0", "no spec("), ("1", "flips"), "0", ("0", 3)):
        with pytest.raises(KeyError) as caught:
            profile[key]  # type: ignore[index]  # as users do
        said = caught.value.args[0]
        assert repr(key) in said
        assert "layers: 0" in said
        assert "augmentations: flips and rotation(15)" in said
        assert "\n" not in said
