"""Finished cells as files, complete or absent, found by everything their numbers depend on."""

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
        """Return the path of a cell's file."""
        key = json.dumps([cell.dataset, source, cell.setting], sort_keys=True)
        digest = hashlib.sha256(key.encode()).hexdigest()[:12]
        return self.folder / cell.experiment / f"{cell.name}-{digest}.json"

    def read(self, cell: Cell, source: str, data: str) -> dict[str, Any] | None:
        """Return the record of a finished cell, or None if there is no readable one.

        Parameters
        ----------
        cell, source
            The cell, and the name of the data that are used for its data set.
        data
            Checksum of the data, which must equal the record's; empty if they are missing.
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
