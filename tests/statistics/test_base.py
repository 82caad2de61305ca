"""What all statistics share: groups, defaults, and what may be added to what."""

from __future__ import annotations

import math

import pytest
import torch
from refusal import refused

from augury.features.orbit import Orbit
from augury.statistics import Alignment, Estimate, HeldOutRisk, RidgeRisk, group_of
from augury.statistics.heldout import folds_of
from augury.statistics.ridge import solve_positive


def examples(count=40, classes=3):
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(count, 4, generator=generator, dtype=torch.float64)
    y = torch.arange(count) % classes
    return features, torch.nn.functional.one_hot(y, classes).double()


def fitted(statistic, features, targets):
    orbit = Orbit(features.unsqueeze(0), torch.ones(1))
    statistic.update(orbit, targets, torch.arange(len(targets)))
    return statistic


def test_an_examples_group_follows_from_its_index_and_never_changes():
    """Pinned: results of one release must be those of the next."""
    assert group_of(torch.arange(12), 20).tolist() == GROUPS
    many = group_of(torch.arange(20_000), 20)
    counts = torch.bincount(many, minlength=20)
    assert counts.min() > 900
    assert counts.max() < 1100


GROUPS = [7, 1, 6, 17, 14, 2, 8, 7, 18, 0, 2, 13]


def test_defaults_are_those_that_are_documented():
    features, targets = examples()
    assert len(fitted(Alignment(), features, targets).result().replicates) == 20
    assert HeldOutRisk(features, targets, True).groups == 20
    assert Estimate(1.0, torch.zeros(2), torch.zeros(0)).chance == -math.inf
    assert Estimate(1.0, torch.zeros(2), torch.zeros(0)).class_replicates.shape == (0, 0)
    held = HeldOutRisk(features, targets, True)
    plain = fitted(RidgeRisk(held), features, targets).result()
    assert RidgeRisk(held).ratios == (1e-3, 1e-2, 0.1, 1.0)
    explicit = RidgeRisk(held, folds=5, ratios=(1e-3, 1e-2, 0.1, 1.0))
    found = fitted(explicit, features, targets).result()
    assert plain.value == found.value
    assert torch.equal(plain.replicates, found.replicates)
    assert len(plain.replicates) == 20
    assert fitted(Alignment(), features, targets).result().value == pytest.approx(
        fitted(Alignment(centred=False, groups=20), features, targets).result().value
    )


def test_statistics_are_added_only_where_they_are_judged_on_the_same_examples():
    features, targets = examples()
    held = HeldOutRisk(features, targets, True)
    assert held == held
    assert held == HeldOutRisk(features.clone(), targets.clone(), True)
    for other in (
        HeldOutRisk(features + 1, targets, True),
        HeldOutRisk(features, targets.flip(1), True),
        HeldOutRisk(features, targets, False),
        HeldOutRisk(features, targets, True, groups=19),
    ):
        assert held != other
        refused("same settings", RidgeRisk(held).__add__, RidgeRisk(other))
    refused("same settings", RidgeRisk(held).__add__, RidgeRisk(held, folds=4))
    refused("same settings", Alignment().__add__, RidgeRisk(held))
    assert held != "held out"


def test_adding_leaves_both_statistics_as_they_were():
    features, targets = examples()
    one, two = (fitted(Alignment(), features, targets) for _ in range(2))
    before = one.result().value
    joined = one + two
    assert joined.sums[5].sum() == 80
    assert one.sums[5].sum() == two.sums[5].sum() == 40
    assert one.result().value == before
    assert (Alignment() + one).result().value == before
    assert (one + Alignment()).result().value == before
    assert (Alignment() + Alignment()).sums is None


def test_folds_hold_every_example_out_once():
    parts = folds_of(50, 5, torch.device("cpu"))
    assert len(parts) == 5
    assert sorted(torch.cat([outside for _, outside in parts]).tolist()) == list(range(50))
    for inside, outside in parts:
        assert sorted([*inside.tolist(), *outside.tolist()]) == list(range(50))
    refused("1 example fell into one fold", folds_of, 1, 5, torch.device("cpu"))


def test_the_estimate_of_losses_is_their_negative_mean_with_and_without_groups():
    features, targets = examples(30)
    losses = torch.arange(30, dtype=torch.float64)
    found = HeldOutRisk(features, targets, True, groups=4).estimate(losses)
    group = group_of(torch.arange(30), 4)
    assert found.value == -14.5
    for g in range(4):
        assert float(found.replicates[g]) == pytest.approx(-float(losses[group != g].mean()))
    for c in range(3):
        assert float(found.per_class[c]) == pytest.approx(-float(losses[c::3].mean()))
    none = torch.cat([targets, torch.zeros(30, 1, dtype=torch.float64)], 1)
    assert float(HeldOutRisk(features, none, True).estimate(losses).per_class[3]) == 0
    real = HeldOutRisk(features, targets[:, :1], False).estimate(losses)
    assert real.per_class.shape == (0,)


def test_the_best_penalty_is_looked_for_beside_the_best_of_those_given():
    features, targets = examples(30)
    held, seen = HeldOutRisk(features, targets[:, :1], False), []

    def predict(ratio):
        seen.append(ratio)
        return targets[:, :1] + math.log10(ratio / 10**-1.5)  # no error at 10^−1.5

    found = held.best(predict, (1e-3, 1e-2, 1e-1))
    assert found.value == pytest.approx(0, abs=1e-12)
    near = 1e-2 if 1e-2 * math.sqrt(10) in seen else 1e-1
    root = math.sqrt(10)
    assert seen == pytest.approx([1e-3, 1e-2, 1e-1, near / root, near * root])
    refused(
        "features of these examples are not finite",
        held.best,
        lambda ratio: targets[:, :1] * math.nan,
        (0.1,),
    )


def test_a_matrix_that_is_not_positive_gives_no_number():
    right = torch.ones(2, 1, dtype=torch.float64)
    good = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(good @ solve_positive(good, right), right)
    assert bool(solve_positive(-good, right).isnan().all())


def test_two_groups_are_enough_for_error_bars():
    features, targets = examples()
    assert len(fitted(Alignment(groups=2), features, targets).result().replicates) == 2
    refused("at least 2 groups, not 1", Alignment, groups=1)
    assert (
        fitted(RidgeRisk(HeldOutRisk(features, targets, True), folds=2), features, targets).folds
        == 2
    )
    refused("at least 2 folds, not 1", RidgeRisk, HeldOutRisk(features, targets, True), folds=1)


def test_the_mean_loss_of_a_class_of_one_is_its_loss():
    features, targets = examples(4, classes=4)
    found = HeldOutRisk(features, targets, True).estimate(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    assert found.per_class.tolist() == [-1, -2, -3, -4]


def test_the_sums_of_parts_are_added():
    features, targets = examples()
    halves = []
    for rows in (slice(0, 25), slice(25, 40)):
        half, index = Alignment(), torch.arange(40)[rows]
        half.update(Orbit(features[rows].unsqueeze(0), torch.ones(1)), targets[rows], index)
        halves.append(half.sums)
    joined = Alignment().of(halves)
    assert joined.sums[5].sum() == 40
    assert joined.result().value == pytest.approx(
        fitted(Alignment(), features, targets).result().value
    )
    assert halves[0][5].sum() == 25  # as it was


def test_batches_of_the_wrong_shape_are_refused():
    features, targets = examples(8)
    index, orbit = torch.arange(8), Orbit(features.unsqueeze(0), torch.ones(1))
    flat = Orbit(torch.zeros(1, 8), torch.ones(1))
    deep = Orbit(torch.zeros(1, 8, 4, 4), torch.ones(1))
    for given in (
        (flat, targets, index),
        (deep, targets, index),
        (orbit, targets[:, 0], index),
        (orbit, targets[:7], index[:7]),
        (orbit, targets, index[:7]),
    ):
        refused("expected features (views, examples, features)", Alignment().update, *given)
    refused("features and targets as each other", fitted(Alignment(), features, targets).__add__,
            fitted(Alignment(), features[:, :3], targets))  # fmt: skip


def test_one_group_holds_all():
    assert group_of(torch.arange(5), 1).tolist() == [0] * 5
    refused("groups must be a whole number of 1 or more, got 0", group_of, torch.arange(5), 0)


def test_what_is_held_out_has_a_target_for_each_example():
    features, targets = examples()
    refused("got shapes (40, 4) and (39, 3)", HeldOutRisk, features, targets[:39], True)
    refused("got shapes (40, 4) and (40,)", HeldOutRisk, features, targets[:, 0], True)


def test_replicates_of_a_class_of_two_are_the_loss_of_the_other():
    features, targets = examples(4, classes=2)
    found = HeldOutRisk(features, targets, True).estimate(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    without = found.class_replicates[GROUPS[:4]]  # each example is in a group of its own
    assert without.tolist() == [[-3, -3], [-2, -4], [-1, -3], [-2, -2]]


def test_errors_of_small_targets_are_shares_of_their_variance():
    features, _ = examples(4)
    targets = torch.tensor([[0.1], [0.3], [0.1], [0.3]], dtype=torch.float64)
    held = HeldOutRisk(features, targets, False)
    mean = torch.full((4, 1), 0.2, dtype=torch.float64)
    assert held.losses(mean).tolist() == pytest.approx([1.0] * 4)
    constant = HeldOutRisk(features, targets[:1].expand(4, 1), False)
    assert constant.losses(mean).tolist() == pytest.approx([0.01] * 4)  # 0.1², divided by 1
