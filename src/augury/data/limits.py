"""How large data may be: small files can promise huge contents."""

from __future__ import annotations

from augury._base.errors import AuguryError
from augury._base.text import flat

MOST_BYTES = 16 << 30
"""The largest array that is read into memory."""

MOST_PIXELS = 64_000_000
"""The largest image that is decoded."""


def check_bytes(size: int, what: object, advice: str) -> None:
    """Raise if an array would fill the memory, before any of it is read."""
    if size > MOST_BYTES:
        raise AuguryError(
            f"{flat(what)} would take {size / (1 << 30):,.1f} GiB in memory, above the limit of "
            f"{MOST_BYTES >> 30} GiB; {advice}"
        )
