"""Words shared by the readers' messages: each message stays one short line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def cause(error: BaseException) -> str:
    """Give the first line of a library's own message, cut to a readable length."""
    lines = str(getattr(error, "strerror", None) or error).strip().splitlines()
    line = flat(lines[0].strip()) if lines else type(error).__name__
    return line if len(line) <= 120 else line[:117] + "..."


def listed(names: Iterable[object], most: int = 8) -> str:
    """Write names as ``a, b and 3 more``."""
    texts = [flat(name) for name in names]
    if len(texts) > most:
        texts = [", ".join(texts[:most]), f"{len(texts) - most} more"]
    return " and ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else "".join(texts)


def flat(name: object) -> str:
    """Write a name on one line: names of files and columns may hold line breaks and worse."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(name))


def nearest(name: str, known: Sequence[str]) -> str:
    """Write ``; did you mean x?``, or nothing where no known name is near."""
    lower = {k.lower(): k for k in known}
    near = difflib.get_close_matches(name.lower(), list(lower), n=1, cutoff=0.6)
    return f"; did you mean {flat(lower[near[0]])}?" if near else ""
