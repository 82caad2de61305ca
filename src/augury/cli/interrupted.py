"""How a command says that it was interrupted and has kept something."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path


class Interrupted(Exception):
    """Raised by a command that was interrupted; the message says what it has kept."""


@contextlib.contextmanager
def resumable(journal: Path | None) -> Iterator[None]:
    """Turn an interrupt into the word where a journal, if there is one, has what was finished."""
    try:
        yield
    except KeyboardInterrupt:
        if journal is None:
            raise
        kept = _finished(journal)
        if kept is None:
            raise Interrupted(f"nothing was finished, so {journal} has nothing to resume") from None
        raise Interrupted(
            f"what was finished is saved in {kept}; run the same command to resume"
        ) from None


def _finished(journal: Path) -> Path | None:
    """Return what has finished work: a file of rounds, a directory of jobs, or that of a round."""
    if journal.is_file():
        return journal
    beside = journal.with_name(f"{journal.name}.jobs")
    return next((path for path in (journal, beside) if any(path.glob("*.safetensors"))), None)
