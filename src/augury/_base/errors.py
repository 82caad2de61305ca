"""The exception that users see: what was expected, what was given and what to do."""


class AuguryError(ValueError):
    """Raised for invalid input; its message is one line."""

    __module__ = "augury"  # where people import it from, so that tracebacks name that
