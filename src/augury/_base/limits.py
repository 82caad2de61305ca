"""The largest numbers that make sense; imported by the command line, so without torch."""

from __future__ import annotations

MOST_VIEWS = 4096
"""The most views of an example: more take memory and time, and add nothing."""

MOST_EPOCHS = 10_000
"""The most epochs of a planned training: a trial takes as many, and would not end with more."""
