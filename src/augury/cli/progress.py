"""A progress bar with the time left, on standard error, and only where a person looks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def bar(what: str) -> Iterator[Callable[[int, int, str], None]]:
    """Show a bar while the block runs; the block calls what it is given with (done, total, now)."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[now]}", markup=False),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as p:
        task = p.add_task(what, total=None, now="")

        def tick(done: int, total: int, now: str = "") -> None:
            p.update(task, completed=done, total=total, now=now)

        yield tick
