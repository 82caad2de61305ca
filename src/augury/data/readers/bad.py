"""Files that cannot be read: the first one raises, unless they are skipped."""

from __future__ import annotations

from pathlib import Path

from augury._base.errors import AuguryError
from augury._base.text import flat, listed


class Unreadable(Exception):
    """A file that cannot be used; the message says why in a few words."""


def relative(file: Path, root: Path) -> str:
    """Return a file's path below a directory, with forward slashes."""
    return (file.relative_to(root) if file.is_relative_to(root) else file).as_posix()


class BadFiles:
    """The files below a directory that could not be read, named in one note.

    Parameters
    ----------
    root
        Where their paths begin.
    shown
        What to call that directory.
    skip
        Whether to skip them.
    noun
        What they hold: ``"image"`` or ``"recording"``.
    """

    def __init__(self, root: Path, shown: str, skip: bool, noun: str) -> None:
        self.root, self.shown, self.skip, self.noun = root, shown, skip, noun
        self.names: list[str] = []

    def add(self, file: Path, error: Unreadable) -> None:
        """Remember a file, or raise."""
        name = flat(relative(file, self.root))
        if not self.skip:
            raise AuguryError(
                f"cannot read the {self.noun} {name} in {flat(self.shown)}: {error}; repair or "
                f"remove it, or skip such {self.noun}s with --skip-bad (skip_bad=True in "
                "Python)"
            )
        self.names.append(name)

    def notes(self) -> list[str]:
        """Return what was left out, if anything was."""
        if not self.names:
            return []
        many = len(self.names) > 1
        some = f"{len(self.names):,} {self.noun}{'s' if many else ''}"
        left = f"{'were' if many else 'was'} left out"
        return [f"{some} could not be read and {left}: {listed(self.names, 5)}"]
