"""What tests of forecasts share."""

import pytest

from augury.forecasting.training import members


@pytest.fixture
def exact(monkeypatch):
    """Train in float32, whatever this machine is fastest with."""
    monkeypatch.setattr(members, "has_bfloat16", lambda device: False)
