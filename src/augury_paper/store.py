"""Finished cells as files: each whole or not there, found again by what its numbers depend on."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from augury._base.errors import AuguryError
from augury._base.files import write
from augury_paper.cells import Cell


@dataclass(frozen=True)
class Store:
    """A folder of finished cells, ``EXPERIMENT/NAME-HASH.json``.

    The hash is of the cell's setting and of the data's source: a cell is not read back for other
    ones, nor for other data of the same name. On what machine it was computed is kept in it, and
    does not count.
    """

    folder: Path

    def path(self, cell: Cell, source: str) -> Path:
        """Say where a cell is kept."""
        key = json.dumps([cell.dataset, source, cell.setting], sort_keys=True)
        digest = hashlib.sha256(key.encode()).hexdigest()[:12]
        return self.folder / cell.experiment / f"{cell.name}-{digest}.json"

    def read(self, cell: Cell, source: str, data: str) -> dict[str, Any] | None:
        """Return the record of a finished cell; None where there is none that can be read.

        Parameters
        ----------
        cell, source
            The cell, and what stands for its data set.
        data
            A sum over the data, which the record's must equal; empty where they are gone.
        """
        try:
            record = json.loads(self.path(cell, source).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None  # never written, or damaged since: it is computed again
        if not isinstance(record, dict) or "result" not in record:
            return None
        return record if data in ("", record.get("data")) else None

    def write(
        self,
        cell: Cell,
        source: str,
        data: str,
        result: dict[str, Any],
        about: dict[str, Any],
    ) -> None:
        """Keep a cell's numbers, with what they depend on and `about`, how they were made."""
        path = self.path(cell, source)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AuguryError(f"cannot make the folder {path.parent}: {error.strerror}") from None
        record = {
            "experiment": cell.experiment,
            "name": cell.name,
            "dataset": cell.dataset,
            "source": source,
            "data": data,
            "setting": cell.setting,
            **about,
            "result": result,
        }
        write(path, json.dumps(record, indent=1) + "\n")
