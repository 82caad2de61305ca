"""The planned training."""

from __future__ import annotations

import pytest
from refusal import refused

from augury.forecasting.plan import EPOCHS, TrainingPlan


def test_defaults():
    plan = TrainingPlan()
    assert (plan.epochs, plan.examples, plan.side, plan.network) == (40, None, None, "cnn")
    assert (plan.pretrained, plan.tune, EPOCHS) == (False, "all", 40)


@pytest.mark.parametrize(
    ("name", "least", "range_"),
    [
        ("epochs", 1, "from 1 to 10,000"),
        ("examples", 2, "of 2 or more"),
        ("side", 4, "of 4 or more"),
    ],
)
def test_numbers_are_whole_and_large_enough(name, least, range_):
    assert getattr(TrainingPlan(**{name: least}), name) == least
    for value in (least - 1, 2.5, True, "7"):
        refused(f"{name} must be a whole number {range_}, got", TrainingPlan, **{name: value})


def test_no_more_epochs_than_a_trial_can_take():
    assert TrainingPlan(epochs=10_000).epochs == 10_000
    refused(
        "epochs must be a whole number from 1 to 10,000, got 10001", TrainingPlan, epochs=10_001
    )


def test_epochs_cannot_be_left_open_and_the_rest_can():
    refused("epochs must be", TrainingPlan, epochs=None)
    TrainingPlan(examples=None, side=None)
    refused("tune must be all, block or head, got 'neck'", TrainingPlan, tune="neck")
    for tune in ("all", "block", "head"):
        assert TrainingPlan(tune=tune).tune == tune


def test_what_was_assumed_is_said():
    plan = TrainingPlan(epochs=7)
    found = plan.describe(plan, 500, (3, 24, 32))
    assert (found["epochs"], found["examples"], found["side"]) == (7, 500, 32)
    assert found["assumed"] == ["examples", "network"]
    given = TrainingPlan(examples=90, side=16, network="resnet")
    found = given.describe(given, 500, (3, 24, 32))
    assert (found["examples"], found["side"]) == (90, 16)
    assert found["assumed"] == ["epochs"]


def test_what_was_stated_is_not_assumed_although_it_is_the_default():
    plan = TrainingPlan()
    assert TrainingPlan.stated(None, None, None) == ()
    assert TrainingPlan.stated(None, 40, "cnn") == ("epochs", "network")
    assert TrainingPlan.stated(plan, None, None) == ("epochs",)
    found = plan.describe(plan, 500, (3, 24, 32), ("epochs", "network"))
    assert found["assumed"] == ["examples"]


def test_tables_and_series_have_no_side():
    for shape in ((9,), (2, 50)):
        found = TrainingPlan().describe(TrainingPlan(), 10, shape)
        assert found["side"] is None
        assert found["assumed"] == ["epochs", "examples", "network"]


def test_the_longer_side_of_an_image_is_meant():
    plan = TrainingPlan()
    assert plan.describe(plan, 9, (3, 48, 32))["side"] == 48
    assert plan.describe(plan, 9, (3, 32, 48))["side"] == 48


def test_a_plan_or_epochs():
    plan = TrainingPlan(epochs=3)
    assert TrainingPlan.of(plan, None) is plan
    assert TrainingPlan.of(None, None) == TrainingPlan()
    assert TrainingPlan.of(None, 7) == TrainingPlan(epochs=7)
    refused("either epochs or a plan", TrainingPlan.of, plan, 7)
    refused("plan must be a TrainingPlan, got 3", TrainingPlan.of, 3, None)
