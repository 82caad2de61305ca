"""What a command works on, and where: its data, read with a progress bar, and its workers."""

from __future__ import annotations

import contextlib
import importlib
import logging
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from augury._base.errors import AuguryError

if TYPE_CHECKING:
    from augury.cluster import Workers
    from augury.data import Dataset, Shards


@contextlib.contextmanager
def connected(cluster: str | None, device: str) -> Iterator[Workers | None]:
    """Connect to a cluster while a command works, and print where its dashboard is."""
    if cluster is None:
        yield None
        return
    from augury.cluster import open_workers

    silence_dask()
    with open_workers(cluster, device) as workers:
        if workers.dashboard:
            said = f"{workers.slots} worker{'s' if workers.slots != 1 else ''}"
            print(f"{said}; dashboard: {workers.dashboard}", file=sys.stderr)
        yield workers


def silence_dask() -> None:
    """Keep Dask's own messages and tracebacks off the terminal: our errors are one line."""
    with contextlib.suppress(ImportError):  # what is missing is said when workers are opened
        importlib.import_module("distributed")  # which sets a level for some of its loggers
    dask = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    for name in (*dask, "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def read(
    data: str,
    *,
    label: str | None,
    size: int | None,
    seed: int,
    skip_bad: bool,
    kind: str | None = None,
    task: str | None = None,
    group: str | None = None,
    rate: int | None = None,
    seconds: float | None = None,
    max_examples: int = 0,
) -> Dataset:
    """Read DATA as the options say; see `augury.load`. With 0 for `max_examples`, all of it."""
    from augury._base.progress import bar
    from augury.data import load

    with bar("reading") as tick:
        return load(
            data,
            label=label,
            size=size,
            kind=kind,
            task=task,
            group=group,
            rate=rate,
            seconds=seconds,
            max_examples=max_examples or None,
            seed=seed,
            skip_bad=skip_bad,
            progress=lambda done, total: tick(done, total, "files"),
        )


def read_or_stream(
    data: str,
    streamed: bool,
    *,
    label: str | None,
    size: int | None,
    seed: int,
    kind: str | None = None,
    task: str | None = None,
    group: str | None = None,
    rate: int | None = None,
    seconds: float | None = None,
    **options: Any,
) -> tuple[Dataset, Shards | None]:
    """Read DATA; if it is a directory of shards and may be `streamed`, open it instead.

    Shards come with a sample of their examples, which says what they are.
    """
    from augury.data import is_sharded, open_shards

    if not (streamed and is_sharded(data)):
        found = read(
            data, label=label, size=size, kind=kind, task=task, group=group, rate=rate,
            seconds=seconds, seed=seed, **options,
        )  # fmt: skip
        return found, None
    refused = {"--group": group, "--rate": rate, "--seconds": seconds}
    given = [name for name, value in refused.items() if value is not None]
    if given:
        pronoun = "it" if len(given) == 1 else "them"
        raise AuguryError(f"{' and '.join(given)} cannot be used with shards; remove {pronoun}")
    shards = open_shards(data, label=label, size=size, kind=kind, task=task, seed=seed)
    return shards.about, shards
