"""The one exception that users see: a sentence on what was expected, what came and what to do."""


class AuguryError(ValueError):
    """Raised for invalid input; its message is one line."""

    __module__ = "augury"  # where people import it from, so that tracebacks name that
