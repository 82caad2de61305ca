"""Multi-label targets: each example has some of several labels, or none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from augury._base.errors import AuguryError
from augury._base.text import count, flat


def are_tags(values: np.ndarray, task: str | None) -> bool:
    """Return whether labels are a table of 0 and 1, a column for each label.

    Rows with exactly one 1 each may be one-hot classes, and are taken as labels only where the
    task says so.
    """
    if task not in (None, "multi-label") or values.ndim != 2 or values.shape[1] < 2:
        return False
    if values.dtype.kind not in "biuf" or not np.isin(values, (0, 1)).all():
        return False
    return task is not None or not bool((values.sum(1) == 1).all())


def check_tags(values: np.ndarray, names: Sequence[object] | None) -> tuple[str, ...]:
    """Return the labels' names; raise if one of them tells nothing."""
    columns = values.shape[1]
    tags = tuple(str(k) for k in range(columns)) if names is None else tuple(map(str, names))
    if len(tags) != columns:
        raise AuguryError(
            f"{count(len(tags), 'name')} for {count(columns, 'label')}; give one for each column "
            "of y"
        )
    for tag, column in zip(tags, values.T, strict=True):
        if min(int(column.sum()), len(column) - int(column.sum())) < 2:
            what = "all" if column.mean() > 0.5 else "none"
            raise AuguryError(
                f"label {flat(tag)!r} applies to {what} of the {len(column):,} examples, or to "
                f"all but one of them; remove it"
            )
    return tags
