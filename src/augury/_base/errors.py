"""The one exception that users see: a sentence on what was expected, what came and what to do."""


class AuguryError(ValueError):
    """Raised for input that cannot be used; its message is one clear line."""

    __module__ = "augury"  # where people import it from, so that tracebacks name that
