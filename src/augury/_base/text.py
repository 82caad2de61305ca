"""Words that messages share, so that each message stays one short line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST = 300  # characters of a name that a message repeats


def flat(name: object) -> str:
    """Return a name on one line: names of files and columns may hold line breaks and worse."""
    text = str(name)
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def cause(error: BaseException, most: int = 120) -> str:
    """Return the first line of another library's message, cut to a readable length."""
    lines = str(getattr(error, "strerror", None) or error).strip().splitlines()
    line = flat(lines[0].strip()) if lines else type(error).__name__
    return line if len(line) <= most else line[: most - 3] + "..."


def listed(names: Iterable[object], most: int = 8) -> str:
    """Return names as ``a, b and c``; past `most`, as ``a, b and 3 more``."""
    texts = [flat(name) for name in names]
    if len(texts) > most:
        texts = [", ".join(texts[:most]), f"{len(texts) - most:,} more"]
    return " and ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else "".join(texts)


def nearest(name: str, known: Iterable[str], n: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return at most `n` known names that resemble a name, whatever their case, best first."""
    lower = {k.lower(): k for k in known}
    return [lower[k] for k in difflib.get_close_matches(name.lower(), lower, n=n, cutoff=cutoff)]


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return ``; did you mean x?``, or nothing where no known name resembles this one."""
    return "".join(f"; did you mean {flat(near)}?" for near in nearest(name, known, 1, cutoff))
