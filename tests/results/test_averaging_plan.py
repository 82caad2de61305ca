"""The line of code that a choice of a plan prints."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import augury
from augury.results.averaging_plan import AveragingChoice


@pytest.mark.parametrize(
    ("spec", "shape"),
    [("scaling(0.5,1.5)", (2, 50)), ("rotation(20)", (1, 12, 12)), ("jitter(0.1)", (7,))],
)
def test_one_random_view_is_drawn_for_each_example(spec: str, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    x, y = 3 * torch.randn(8, *shape), torch.arange(8) % 3
    network = nn.Sequential(nn.Flatten(), nn.Linear(x[0].numel(), 3))
    choice = AveragingChoice(None, 0, 1, 1, True, 0.0, 0.0, 0.0)
    names = {"augury": augury, "torch": torch, "F": F, "network": network, "x": x, "y": y}
    found = []
    for step in (0, 1):
        exec(choice.code(spec), names | {"step": step}, names)
        (views,) = augury.parse(spec).views(x, 1, augury.Rng(step, torch.arange(8)))
        torch.testing.assert_close(names["loss"], F.cross_entropy(network(views), y))
        found.append(float(names["loss"].detach()))
    assert found[0] != found[1]
