"""The appendix's figure of a residual network: trained with an augmentation against without."""

from __future__ import annotations

import json

import pytest
import torch

from augury.data.dataset import Dataset
from augury.networks.invariance import measure_invariance
from augury_paper.cells import Images
from augury_paper.invariance import cells, section
from augury_paper.invariance.experiment import ResNetTraining, schedule, train, trial
from augury_paper.networks import BlocksOfUnits, seeded
from augury_paper.settings import AUGMENTATIONS, PAPER, QUICK

CPU = torch.device("cpu")
SMALL = ResNetTraining(units=1, epochs=2, batch_size=8, learning_rate=0.05, images=6, n_views=3)


def pictures(count: int, seed: int) -> Dataset:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 256, (count, 3, 8, 8), generator=generator, dtype=torch.uint8)
    return Dataset(x, torch.arange(count) % 2, ("a", "b"))


def test_a_trial_compares_networks_of_one_start():
    images = Images(pictures(24, 0), pictures(12, 1))
    shares: list[float] = []
    one = trial(images, SMALL, 0, CPU, lambda share, words: shares.append(share))
    two = trial(images, SMALL, 0, CPU, lambda share, words: None)
    assert json.loads(json.dumps(one)) == one
    for found in (one, two):
        del found["training_seconds"]
    assert one == two
    assert one["layers"] == ["conv", "block1.0", "block2.0", "block3.0", "pool", "fc"]
    assert set(one["ratio"]) == set(AUGMENTATIONS)
    assert all(len(values) == 6 for values in one["ratio"].values())
    assert set(one["accuracy"]) == {"none", *AUGMENTATIONS}


def test_the_ratio_is_of_the_two_networks():
    """From the networks themselves, trained again, by `measure_invariance` alone."""
    from augury.augmentations import identity, parse

    images = Images(pictures(24, 0), pictures(12, 1))
    found = trial(images, SMALL, 3, CPU, lambda share, words: None)
    nets = [
        train(augmentation, images.train, SMALL, 3, CPU, lambda share: None)[0]
        for augmentation in (identity(), parse("blur(0.5,2.0)"))
    ]
    sample = images.test.x[:6].float() / 255
    without, with_it = (
        measure_invariance(net, sample, "blur(0.5,2.0)", layers=["pool"], n_views=3) for net in nets
    )
    ratio = with_it.rows[0].distance / without.rows[0].distance
    assert found["ratio"]["blur"][4] == pytest.approx(ratio, rel=1e-4)


def test_the_rate_climbs_through_a_quarter_and_ends_at_nothing():
    rates = schedule(400)
    assert (rates[:99].diff() > 0).all()
    assert (rates[101:].diff() < 0).all()
    assert 0.98 < float(rates.max()) <= 1
    assert 97 < int(rates.argmax()) < 102
    assert 0 < float(rates[-1]) < 0.01


def test_training_moves_the_network():
    data = pictures(24, 0)
    from augury.augmentations import identity

    still, _ = train(identity(), data, ResNetTraining(1, 1, 8, 0.0), 0, CPU, lambda share: None)
    start = seeded(lambda: BlocksOfUnits(1, 3, 2), 0)
    torch.testing.assert_close(still.conv.weight, start.conv.weight)  # at rate 0 it stands still
    moved, seconds = train(
        identity(), data, ResNetTraining(1, 1, 8, 0.1), 0, CPU, lambda share: None
    )
    assert not torch.allclose(moved.conv.weight, start.conv.weight)
    assert seconds > 0
    assert not moved.training


def test_the_network_is_the_papers():
    net = BlocksOfUnits()
    assert [len(block) for block in (net.block1, net.block2, net.block3)] == [9, 9, 9]
    convolutions = [m for m in net.modules() if isinstance(m, torch.nn.Conv2d)]
    assert len(convolutions) == 1 + 2 * 27 + 2  # two of them are the skips that change width
    assert net(torch.rand(2, 3, 32, 32)).shape == (2, 10)


def test_cells_are_trials():
    assert [cell.name for cell in cells(PAPER)] == [f"trial-{k}" for k in range(10)]
    assert [cell.name for cell in cells(QUICK)] == ["trial-0", "trial-1"]
    assert cells(PAPER)[0].setting["units"] == 9
    assert cells(QUICK)[0].setting["units"] == 1
    assert all(json.loads(json.dumps(c.setting)) == c.setting for c in cells(PAPER))


def made(*ratios: float) -> dict:
    layers = ["conv", "block1.0", "block2.0", "block3.0", "pool", "fc"]
    every = {name: list(ratios) for name in AUGMENTATIONS}
    accuracy = dict.fromkeys(["none", *AUGMENTATIONS], 0.8)
    return {"layers": layers, "ratio": every, "relative_ratio": every, "accuracy": accuracy}


def test_verdicts_follow_the_numbers():
    def said(*ratios: float) -> tuple[str, str]:
        found = section({"trial-0": made(*ratios), "trial-1": made(*ratios)}, PAPER).claims
        assert len({claim.verdict for claim in found[:3]}) == 1
        return found[0].verdict, found[3].verdict

    assert said(1.1, 0.6, 0.5, 0.45, 0.3, 0.3) == ("holds", "holds")
    assert said(1.1, 0.9, 0.5, 0.45, 0.3, 0.3)[1] == "holds weaker"  # the second block fell more
    assert said(1.1, 0.6, 1.2, 0.45, 0.3, 0.3)[0] == "does not hold"
    assert said(1.1, 0.6, 0.5, 0.45, 0.5, 0.3)[1] == "holds weaker"
    assert said(1.1, 0.9, 0.5, 0.45, 0.5, 0.3)[1] == "does not hold"
    mixed = made(1.1, 0.6, 0.5, 0.45, 0.3, 0.3)
    mixed["ratio"]["crop"] = [1.1, 1.0, 0.9, 0.8, 0.9, 0.3]
    found = section({"trial-0": mixed}, PAPER).claims
    assert [claim.verdict for claim in found[:4]] == ["holds", "holds", "holds", "holds weaker"]
    assert "no layer exceeds 1 by two standard errors" in found[1].ours


def test_layers_that_may_be_below_1_do_not_refute_the_claim():
    one = made(1.0, 1.0, 0.5, 0.5, 0.5, 0.9)
    other = made(1.0, 1.0, 0.5, 0.5, 0.5, 1.3)
    claim = section({"trial-0": one, "trial-1": other}, PAPER).claims[0]
    assert claim.verdict == "holds weaker"  # 1.1 on average, but within two errors of 1
    assert "no layer exceeds 1" in claim.ours
    other = made(1.0, 1.0, 0.5, 0.5, 0.5, 0.9)
    for cell in (one, other):
        cell["ratio"]["rotation"][2:4] = [1.2, 1.2]
    claim = section({"trial-0": one, "trial-1": other}, PAPER).claims[0]
    assert claim.verdict == "does not hold"
    assert "above 1 by two standard errors in block2.0, block3.0" in claim.ours


def test_most_layers_are_enough_to_hold_weaker():
    cell = made()
    cell["layers"] = ["conv", *(f"block{b}.{u}" for b in (1, 2, 3) for u in range(9)), "pool", "fc"]
    for name in AUGMENTATIONS:
        cell["ratio"][name] = cell["relative_ratio"][name] = [1.1, 1.2, 1.3, *[0.5] * 27]
    assert section({"trial-0": cell}, PAPER).claims[0].verdict == "holds weaker"


def test_the_distance_between_examples_is_judged_by_itself():
    cell = made(1.1, 0.6, 0.5, 0.45, 0.3, 0.3)
    cell["relative_ratio"] = cell["relative_ratio"] | {"crop": [1.1, 0.6, 1.2, 1.2, 0.3, 0.3]}
    found = section({"trial-0": cell}, PAPER).claims
    assert [claim.verdict for claim in found[4:]] == ["holds", "does not hold", "holds"]
    assert [claim.own for claim in found] == [False] * 4 + [True] * 3


def test_what_is_missing_could_not_be_checked():
    empty = section({}, PAPER)
    assert {claim.verdict for claim in empty.claims} == {"could not be checked"}
    assert not empty.plots
    still = made(1.0, 0.5, 0.5, 0.5, 0.4, 0.3)
    still["ratio"]["rotation"][0] = None  # nothing moved there without augmentation either
    assert section({"trial-0": still}, PAPER).claims[0].verdict == "holds"
    part = made(1.0, 0.5, 0.5, 0.5, 0.4, 0.3)
    part["ratio"]["rotation"][2] = None  # in one of two trials
    both = {"trial-0": part, "trial-1": made(1.0, 0.5, 0.6, 0.5, 0.4, 0.3)}
    claim = section(both, PAPER).claims[0]
    assert (claim.verdict, claim.ours) == (
        "holds",
        "0.30 to 0.60; below 1 in 4 of 4 later layers, in 4 by two standard errors; no layer "
        "exceeds 1 by two standard errors",
    )
