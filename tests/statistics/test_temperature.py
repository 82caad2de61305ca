from __future__ import annotations

import math

import pytest
import reference_ridge as slow
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusal import refused

from augury.statistics import calibrated_log_loss, fit_scale


def logits_and_labels(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(40, *shape, generator=generator, dtype=torch.float64)
    noise = torch.randn(40, shape[-1], generator=generator)
    first = logits if logits.dim() == 2 else logits[:, 0]
    return logits, (first + noise).argmax(1)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.integers(2, 6), st.floats(0.1, 30))
def test_calibration_undoes_any_scale(seed, classes, scale):
    logits, y = logits_and_labels(seed, classes)
    found = calibrated_log_loss(logits * scale, y)
    torch.testing.assert_close(found, calibrated_log_loss(logits, y), atol=1e-5, rtol=0)
    assert float(found.mean()) <= math.log(classes) + 1e-9
    expected = slow.calibrated_log_losses(logits.numpy(), y.tolist())
    assert float(found.mean()) == pytest.approx(expected.mean(), abs=1e-9)


def test_each_member_has_a_temperature_of_its_own():
    logits, y = logits_and_labels(3, 4, 3)
    logits = logits * torch.tensor([0.1, 1.0, 5.0, 30.0]).view(4, 1)
    found, scales = calibrated_log_loss(logits, y), fit_scale(logits, y)
    assert found.shape == (40, 4)
    assert scales.shape == (4,)
    for k in range(4):
        torch.testing.assert_close(found[:, k], calibrated_log_loss(logits[:, k], y))
        torch.testing.assert_close(scales[k], fit_scale(logits[:, k], y))
    assert float(scales.max() / scales.min()) > 3


def test_predictions_without_an_error_get_the_largest_scale_allowed():
    logits = torch.eye(3, dtype=torch.float64)
    y = torch.arange(3)
    assert float(fit_scale(logits, y)) == pytest.approx(1e4, rel=1e-6)
    assert float(fit_scale(logits, y, bounds=(0.1, 5.0))) == pytest.approx(5.0, rel=1e-6)
    expected = math.log(math.exp(5) + 2) - 5
    found = calibrated_log_loss(logits, y, bounds=(0.1, 5.0))
    assert found.tolist() == pytest.approx([expected] * 3, abs=1e-6)


def test_predictions_worse_than_chance_get_the_least_scale():
    logits = -torch.eye(2, dtype=torch.float64)
    assert float(fit_scale(logits, torch.arange(2))) == pytest.approx(1e-3, rel=1e-6)


def test_logits_and_labels_that_do_not_fit_are_refused():
    logits, y = torch.eye(3), torch.arange(3)
    for wrong in (
        (logits[0], y),
        (logits.expand(2, 2, 3, 3), y[:2]),
        (logits, y[:2]),
        (logits[:0], y[:0]),
        (logits.long(), y),
        (logits, y.float()),
    ):
        refused("expected floating-point logits", fit_scale, *wrong)
    refused("class numbers must be from 0 to 2, got 1 to 3", fit_scale, logits, y + 1)
    refused("class numbers must be from 0 to 2, got -1 to 1", fit_scale, logits, y - 1)


@pytest.mark.parametrize("bounds", [(1.0,), (2.0, 1.0), (1.0, 1.0), (1.0, 2.0, 3.0)])
def test_bounds_are_two_scales_in_order(bounds):
    said = f"bounds must be the least and the largest scale, got {list(bounds)}"
    refused(said, calibrated_log_loss, torch.eye(3), torch.arange(3), bounds=bounds)
