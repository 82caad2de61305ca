"""Finished rounds of a search, kept in a file so that a stopped search can be resumed."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from augury._base.errors import AuguryError
from augury._base.files import check_writable, write
from augury._base.given import as_path
from augury.cluster import Journal
from augury.forecasting.trial import HeldOut

_FIELDS = ("index", "losses", "right", "replicas", "half")


class RoundJournal:
    """Rounds by title, in memory and, where a path is given, in one ``.npz`` file.

    The file is written whole after each round. It holds numbers and text alone, so that nothing
    is executed when it is read. Finished jobs are kept beside it, in the directory ``FILE.jobs``,
    until the search is finished: of few examples, two rounds may make the same folds.
    """

    def __init__(self, path: Path | None = None, key: dict[str, Any] | None = None) -> None:
        self.path, self.key = path, key or {}
        self.arrays: dict[str, np.ndarray] = {}
        self.rounds: dict[str, dict[str, Any]] = {}
        self.effort: dict[str, Any] | None = None  # chosen by the clock, so kept with the rounds

    @classmethod
    def open(cls, path: str | Path | None, key: dict[str, Any]) -> RoundJournal:
        """Open a journal; raise if the file belongs to another search."""
        if path is None:
            return cls(None, key)
        file = as_path(path)
        journal = cls(file, key)
        check_writable(file)
        if not file.exists():
            return journal
        try:
            with np.load(file, allow_pickle=False) as found:
                about = json.loads(str(found["about"]))
                journal.arrays = {k: found[k] for k in found.files if k != "about"}
                journal.rounds, kept = about["rounds"], about["key"]
                journal.effort = about["effort"]
        except Exception as error:  # a damaged file can raise anything
            raise AuguryError(
                f"{path} is not the journal of a search ({type(error).__name__}); remove it or use "
                "another name"
            ) from None
        if kept != json.loads(json.dumps(key)):
            raise AuguryError(
                f"{path} is the journal of a search with other data or settings; remove it or use "
                "another name"
            )
        return journal

    def read(self, title: str, specs: Sequence[str]) -> list[HeldOut] | None:
        """Return a finished round of the same candidates, or None."""
        entry = self.rounds.get(title)
        if entry is None or entry["specs"] != list(specs):
            return None
        return [
            HeldOut(*(torch.from_numpy(self.arrays[f"{title}/{k}/{name}"]) for name in _FIELDS))
            for k in range(entry["folds"])
        ]

    def jobs(self) -> Journal:
        """Return the journal of jobs; raise if it belongs to another search."""
        return Journal.open(self._beside, self.key)

    @property
    def _beside(self) -> Path | None:
        return None if self.path is None else self.path.with_name(f"{self.path.name}.jobs")

    def write(self, title: str, specs: Sequence[str], folds: Sequence[HeldOut]) -> None:
        """Save a finished round."""
        self.rounds[title] = {"specs": list(specs), "folds": len(folds)}
        for k, fold in enumerate(folds):
            for name in _FIELDS:
                self.arrays[f"{title}/{k}/{name}"] = getattr(fold, name).numpy()
        if self.path is not None:
            buffer = io.BytesIO()
            about = json.dumps({"key": self.key, "rounds": self.rounds, "effort": self.effort})
            np.savez_compressed(buffer, about=np.array(about), **self.arrays)  # type: ignore[arg-type]  # names of arrays
            write(self.path, buffer.getvalue())

    def finish(self) -> None:
        """Remove the jobs: all rounds are in the file."""
        Journal(self._beside).remove()
