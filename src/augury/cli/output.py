"""What commands print and write: lines, tables and the files of a result."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from augury._base.errors import AuguryError
from augury._base.files import check_writable, write
from augury._base.text import cause

if TYPE_CHECKING:
    from rich.table import Table

    from augury.results.base import Result

_PRINTED = Path("-")


def check_outputs(*inputs: str | Path | None, **outputs: Path | None) -> None:
    """Raise if a file could not be written, before the work is done.

    It must not be an input, nor another output; outputs are named like their options.
    """
    used = {os.path.realpath(path): "" for path in inputs if path is not None}
    for name, path in outputs.items():
        if path is None:
            continue
        if path == _PRINTED or _is_standard_output(path):
            raise AuguryError(f"--{name} cannot be written to standard output; name a file")
        check_writable(path)
        real = os.path.realpath(path)
        if other := used.get(real):
            raise AuguryError(f"{other} and --{name} are both {path}; use two different files")
        if real in used:
            raise AuguryError(f"--{name} would replace {path}, an input; use another file")
        used[real] = f"--{name}"
    report = outputs.get("report")
    if report is not None and report.suffix.lower() not in (".html", ".htm", ".md"):
        raise AuguryError(f"the name of a report must end in .html or .md, got {report.name!r}")


def _is_standard_output(path: Path) -> bool:
    """Return whether a path leads to where the command prints, as `/dev/stdout` does."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError):  # there is no such file, or nothing is printed to one
        return False


def unless_printed(out: Path | None) -> Path | None:
    """Return where to write text that is printed otherwise; ``-`` stands for printing it."""
    return None if out == _PRINTED else out


def save(result: Result, json: Path | None, report: Path | None) -> list[Path]:
    """Write a result to the requested files, all rendered before any is written; return these.

    Done before anything is printed, since the reader of the output may have left.
    """
    texts = {}
    if json is not None:
        texts[json] = result.to_json()
    if report is not None:
        markdown = report.suffix.lower() == ".md"
        texts[report] = result.to_markdown() if markdown else result.to_html()
    for path, text in texts.items():
        write(path, text)
    return list(texts)


def say_written(paths: Iterable[Path]) -> None:
    """Print which files were written."""
    for path in paths:
        print(f"wrote {path}")


def command_line() -> str:
    """Return the command that is running, as it could be typed again."""
    return shlex.join(["augury", *sys.argv[1:]])


def say(text: str | Table, *, dim: bool = False) -> None:
    """Print a line or a table; text of the user's is printed as it is."""
    from rich.console import Console

    try:
        Console().print(text, style="dim" if dim else None, markup=False, highlight=False)
    except BrokenPipeError:
        raise
    except OSError as error:
        abandon_output()
        raise AuguryError(f"cannot write to standard output: {cause(error)}") from error


def abandon_output() -> None:
    """Discard further output after standard output has failed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def new_table(**columns: str) -> Table:
    """Return an empty table; each column is named and justified: ``gain="right"``."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading, justify in columns.items():
        table.add_column(heading, justify=justify, overflow="fold")  # type: ignore[arg-type]  # str
    return table
