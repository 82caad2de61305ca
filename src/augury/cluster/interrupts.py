"""Ctrl-C while workers of this machine start: it reaches this process alone, and in due time."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from multiprocessing import resource_tracker


@contextlib.contextmanager
def held_interrupts() -> Iterator[None]:
    """Hold an interrupt back while the block runs, and deliver it at the end.

    A cluster that is interrupted half-way through its start, which takes seconds, cannot be closed;
    one that has started can. Processes begun by threads of the block are never interrupted: a
    terminal sends Ctrl-C to them too, but it is this process that ends them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are handled by the main thread
        return
    pressed = False

    def remember(*_: object) -> None:
        nonlocal pressed
        pressed = True

    resource_tracker.ensure_running()  # which would lift the mask of the thread that starts it
    before = signal.signal(signal.SIGINT, remember)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # new threads inherit it
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, before)
        if pressed:
            signal.raise_signal(signal.SIGINT)
