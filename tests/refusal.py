"""The check that all tests of bad input share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from augury.errors import AuguryError


def refused(words: str, call: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Check that a call is refused in one line that has all these words, parted by ``|``."""
    with pytest.raises(AuguryError) as caught:
        call(*args, **options)
    message = str(caught.value)
    assert "\n" not in message
    for word in words.split("|"):
        assert word in message, message
