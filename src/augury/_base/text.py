"""Words that messages share, so that each message stays one short line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from numbers import Real

_LONGEST = 300  # characters of a name that a message repeats


def flat(name: object) -> str:
    """Return a name on one line: names of files and columns may hold line breaks and worse."""
    text = str(name)
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


_KINDS = {
    "NoneType": "None",
    "str": "a string",
    "bytes": "bytes",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "list": "a list",
    "tuple": "a tuple",
    "dict": "a dictionary",
    "set": "a set",
    "ndarray": "an array",
    "Tensor": "a tensor",
    "type": "a class",
    "function": "a function",
    "object": "an object",
}


def kind_of(value: object) -> str:
    """Return what a value is, in words: ``a string``, ``an array``, ``None``, ``a MyClass``."""
    name = type(value).__name__
    article = "an" if name[:1].lower() in "aeiou" else "a"
    return _KINDS.get(name, f"{article} {flat(name)}")


def is_number(word: str) -> bool:
    """Return whether a word can be read as a number."""
    try:
        float(word)
    except ValueError:
        return False
    return True


def shown(value: object) -> str:
    """Return a number or a short string as it is, and of anything else what it is."""
    short = isinstance(value, Real) or (isinstance(value, str) and len(value) <= 60)
    return repr(value) if short else kind_of(value)


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


def count(number: int, noun: str) -> str:
    """Write a count: ``1 candidate``, ``5,000 examples``, ``2 classes``, ``3 policies``."""
    plural = {"s": f"{noun}es", "y": f"{noun[:-1]}ies"}.get(noun[-1], f"{noun}s")
    return f"{number:,} {noun if number == 1 else plural}"


def are(number: int) -> str:
    """Return the verb for so many."""
    return "is" if number == 1 else "are"


def nearest(name: str, known: Iterable[str], n: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return at most `n` known names that resemble a name, whatever their case, best first."""
    lower = {k.lower(): k for k in known}
    return [lower[k] for k in difflib.get_close_matches(name.lower(), lower, n=n, cutoff=cutoff)]


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return ``; did you mean x?``, or nothing where no known name resembles this one."""
    return "".join(f"; did you mean {flat(near)}?" for near in nearest(name, known, 1, cutoff))
