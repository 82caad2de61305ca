"""Files that are whole or not there: written beside, then renamed."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from augury._base.errors import AuguryError
from augury._base.text import cause, flat

_BESIDE = ".augury-"  # and not the file's own name, which may be as long as names can be


def check_writable(path: str | Path) -> Path:
    """Raise if a file could not be written there, before long work is done for it."""
    path = _target(path)
    folder = path.parent
    if not folder.is_dir():
        raise AuguryError(f"cannot write {path}: the directory {folder} does not exist; create it")
    try:
        handle, probe = tempfile.mkstemp(dir=folder, prefix=_BESIDE)
        os.close(handle)
        os.unlink(probe)
    except OSError as error:
        raise AuguryError(f"cannot write {path}: {error.strerror}") from error
    return path


def write(path: str | Path, content: str | bytes) -> None:
    """Write a file atomically: to a temporary file next to it, flushed, then renamed.

    Where the path is a link, the file that it leads to is replaced.
    """
    path = _target(path)
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_BESIDE)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException as error:  # an interrupt too must leave no half-written file
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        if isinstance(error, OSError):
            raise AuguryError(
                f"cannot write {path}: {error.strerror}; no partial file was left"
            ) from error
        raise


def is_partial(path: Path) -> bool:
    """Return whether this is what a process left that was killed while it wrote a file."""
    return path.name.startswith(_BESIDE)


def _target(path: str | Path) -> Path:
    """Follow links to the file itself; raise if it is not a regular file."""
    try:
        target = Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)
        folder = target.is_dir()
        there = Path(path)  # a link such as /dev/stdout may lead to what has no name
        other = there.exists() and not there.is_file()
    except (OSError, ValueError) as error:  # a name too long, or with a null character
        raise AuguryError(f"cannot write {flat(path)}: {cause(error)}") from error
    if folder:
        raise AuguryError(f"cannot write {path}: it is a directory; use the name of a file")
    if other:
        raise AuguryError(f"cannot write {path}: it is a device or a pipe; use the name of a file")
    return target


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
