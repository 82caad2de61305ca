"""How a command says that it was interrupted and has kept something."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path


class Interrupted(Exception):
    """Raised by a command that was interrupted and has kept something; the message says what."""


@contextlib.contextmanager
def resumable(journal: Path | None) -> Iterator[None]:
    """Turn an interrupt into the word that a journal, if there is one, has what was finished."""
    try:
        yield
    except KeyboardInterrupt:
        if journal is None:
            raise
        raise Interrupted(
            f"what was finished is saved in {journal}; run the same command to resume"
        ) from None
