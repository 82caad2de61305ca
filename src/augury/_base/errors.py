"""The exception that users see: what was expected, what was given and what to do."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class AuguryError(ValueError):
    """Raised for invalid input; its message is one line."""

    __module__ = "augury"  # where people import it from, so that tracebacks name that


@contextlib.contextmanager
def one_line() -> Iterator[None]:
    """Turn the errors of scikit-learn's checks, which have several lines, into one line."""
    try:
        yield
    except ValueError as error:
        raise AuguryError(" ".join(str(error).split())) from None
