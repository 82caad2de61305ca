"""The entry of the command line: one clear line for what goes wrong, an exit code for scripts."""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

_PLAIN = {"−": "-", "–": "-", "×": "x", "·": "*", "“": '"', "”": '"', "’": "'", "\xa0": " "}
"""What stands for a sign in an output that lacks it."""


def main() -> None:
    """Run the command line.

    Bad input ends in one line on standard error and exit code 2, an interrupt in one line and 130.
    """
    pressed = False

    def press(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = True
        signal.default_int_handler(number, frame)

    before = signal.signal(signal.SIGINT, press)
    try:
        _run(lambda: pressed)
    except KeyboardInterrupt:
        _stop("interrupted: nothing was written", 130)
    except Exception:
        if pressed:  # an interrupted import of a C extension raises an ImportError of its own
            _stop("interrupted: nothing was written", 130)
        raise
    finally:
        signal.signal(signal.SIGINT, before)


def _run(pressed: Callable[[], bool]) -> None:
    """Run a command and say what goes wrong; imports are inside, as they may be interrupted."""
    from augury._base.errors import AuguryError
    from augury.cli.interrupted import Interrupted
    from augury.cli.output import abandon_output

    _prepare_output()
    try:
        from augury.cli.app import app

        code = app(prog_name="augury", standalone_mode=False)
        if pressed():
            raise KeyboardInterrupt  # typer has turned it into an exit code
        sys.stdout.flush()  # a full disk must be noticed here
        sys.exit(code or 0)
    except Exception as error:  # sorted below: what is not the user's is raised again
        if isinstance(error, Interrupted):
            _stop(f"interrupted: {error}", 130)
        if pressed():
            raise
        if isinstance(error, AuguryError):
            _stop(f"error: {error}", 2)
        if isinstance(error, BrokenPipeError):  # the reader of our output has left, as `head` does
            abandon_output()
            sys.exit(1)
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:  # files have their own line
            abandon_output()
            _stop(f"error: cannot write to standard output: {error.strerror}", 2)
        usage = getattr(error, "format_message", None)  # a usage error, wherever typer keeps it
        if usage is None:
            raise
        _stop(f"error: {usage().replace('Value error, ', '')}", 2)  # pydantic's own words


def _prepare_output() -> None:
    """Let nothing be lost in a closed output, one without some signs, or one of no width."""
    if os.environ.get("COLUMNS", "").strip("0") == "":
        os.environ.pop("COLUMNS", None)
    codecs.register_error("plainly", _plainly)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the shell
            nowhere = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, os.fdopen(nowhere, "w", encoding="utf-8"))
        elif isinstance(stream, io.TextIOWrapper):  # not a test's own
            with contextlib.suppress(OSError):  # of what was to be flushed before
                stream.reconfigure(errors="plainly")


def _plainly(error: UnicodeError) -> tuple[str, int]:
    """Return what to print for characters that the output lacks, and where they end."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN.get(sign, "?") for sign in lacking), error.end


def _stop(message: str, code: int) -> NoReturn:
    if code == 130:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not cut the line short
    print(" ".join(message.split()), file=sys.stderr)
    sys.exit(code)
