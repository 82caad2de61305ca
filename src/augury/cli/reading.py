"""The data of a command: read and prepared once, with a progress bar."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from augury.data import Dataset


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
