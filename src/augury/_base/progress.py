"""A progress bar with the time left: on a terminal, or below a notebook's cell."""

from __future__ import annotations

import contextlib
import functools
import html
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
Tick = Callable[[int, int, str], None]
"""Called with (done, total, what is being done)."""


@contextlib.contextmanager
def bar(what: str) -> Iterator[Callable[..., None]]:
    """Show a bar while the block runs; the block calls what it is given with (done, total, now).

    In a notebook the bar is below the cell. Otherwise it is on standard error, and only where that
    is a terminal.
    """
    if in_notebook():
        cell = NotebookBar(what)
        yield cell.tick
        cell.close()
        return
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


def in_notebook() -> bool:
    """Return whether this runs in a kernel of Jupyter, Colab or the like."""
    ipython = sys.modules.get("IPython")  # a notebook has it imported
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class NotebookBar:
    """A bar below a notebook's cell: HTML that is replaced in place, with no widgets needed."""

    seconds_between = 0.2

    def __init__(self, what: str) -> None:
        self.what, self.started, self.last, self.handle = what, time.perf_counter(), 0.0, None

    def tick(self, done: int, total: int, now: str = "") -> None:
        """Draw how far it is, a few times a second at most."""
        elapsed = time.perf_counter() - self.started
        if elapsed - self.last < self.seconds_between or not total:
            return
        self.last = elapsed
        left = elapsed * (total - done) / done if done else 0.0
        words = [self.what, f"{100 * done / total:.0f} %"]
        words += [f"{left:.0f} s left"] if done else []
        self._show(" · ".join([*words, *([now] if now else [])]), done, total)

    def close(self) -> None:
        """Replace the bar by how long it took; what was too short for a bar leaves nothing."""
        if self.handle is not None:
            self._show(f"{self.what}: {time.perf_counter() - self.started:.0f} s")

    def _show(self, text: str, done: int = 0, total: int = 0) -> None:
        from IPython.display import display

        drawn = f'<progress value="{done}" max="{total}"></progress> ' if total else ""
        data = {"text/plain": text, "text/html": f"<div>{drawn}{html.escape(text)}</div>"}
        if self.handle is None:
            self.handle = display(data, raw=True, display_id=True)
        else:
            self.handle.update(data, raw=True)


def ticking(progress: Tick | bool | None) -> Tick:
    """Return what to call as work progresses: `progress` if it is callable."""
    return progress if callable(progress) else lambda done, total, now: None


def with_progress(what: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function with an argument `progress` show a bar by default in notebooks.

    ``progress`` may be a callable, called with (done, total, now); True, for a bar on a terminal
    too; False, for none.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def shown(*args: P.args, **options: P.kwargs) -> R:
            given: Any = options.get("progress")
            if callable(given):
                return function(*args, **options)
            options["progress"] = None
            if given is False or (given is None and not in_notebook()):
                return function(*args, **options)
            with bar(what) as tick:
                options["progress"] = tick
                return function(*args, **options)

        return shown

    return decorate
