"""The check that all tests of bad input share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from augury._base.errors import AuguryError


def refused(words: str, call: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Check that a call is refused in one line that has all these words, parted by ``|``."""
    with pytest.raises(AuguryError) as caught:
        call(*args, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 2000
    for word in words.split("|"):
        assert word in message, message


def said_in_one_line(result: tuple[int, str, str], *words: str) -> None:
    """Check that a command ended in one line on standard error and a non-zero exit."""
    code, out, err = result
    assert code == 2, (code, out, err)
    assert len(err.strip().splitlines()) == 1
    assert err.startswith("error: ")
    assert "Traceback" not in out + err
    for word in words:
        assert word in err, err
