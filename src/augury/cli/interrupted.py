"""How a command says that it was interrupted and has kept something."""


class Interrupted(Exception):
    """Raised by a command that was interrupted and has kept something; the message says what."""
