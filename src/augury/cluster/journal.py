"""Finished jobs, kept in a directory so that stopped work can be resumed."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.files import is_partial, write
from augury._base.given import as_path

_ABOUT = "journal.json"
_JOB = re.compile(r"[0-9a-f]{32}\.safetensors")


class Journal:
    """Results by the names of jobs: one file for each in a directory, or none without a path.

    A file is whole or not there, and holds tensors and text alone, so that nothing is executed
    when it is read.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path

    @classmethod
    def open(cls, path: str | Path | None, key: Mapping[str, Any]) -> Self:
        """Open a journal, or begin one; raise if it belongs to other data or settings.

        Parameters
        ----------
        path
            The directory; None for a journal that keeps nothing.
        key
            What results depend on beside the names of the jobs, in values that JSON can hold.
        """
        if path is None:
            return cls()
        path, kept = as_path(path), None
        key = json.loads(json.dumps(dict(key)))
        try:
            if (path / _ABOUT).is_file():
                kept = json.loads((path / _ABOUT).read_text(encoding="utf-8"))["key"]
            elif path.exists() and (not path.is_dir() or not all(map(is_partial, path.iterdir()))):
                raise ValueError
            else:
                path.mkdir(exist_ok=True)
        except OSError as error:
            raise AuguryError(f"cannot open the journal {path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError):
            raise AuguryError(f"{path} is not a journal; remove it or use another name") from None
        if kept is None:
            write(path / _ABOUT, json.dumps({"key": key}, indent=1))
        elif kept != key:
            other = next(name for name in {**key, **kept} if key.get(name) != kept.get(name))
            raise AuguryError(
                f"the journal {path} is for other data or settings (its {other} differs); remove "
                "it or use another name"
            )
        return cls(path)

    def read(self, job: str) -> tuple[Tensor, ...] | None:
        """Return the result of a job that is finished, or None."""
        if self.path is None or not (file := self._file(job)).is_file():
            return None
        from safetensors import safe_open

        try:
            with safe_open(file, framework="pt") as found:
                names = sorted(found.keys(), key=int)
                return tuple(found.get_tensor(name) for name in names)
        except Exception as error:  # a damaged file can raise anything
            raise AuguryError(
                f"{file} of the journal is damaged ({type(error).__name__}); remove it"
            ) from None

    def write(self, job: str, result: tuple[Tensor, ...]) -> None:
        """Save the result of a finished job."""
        if self.path is not None:
            from safetensors.torch import save

            named = {str(k): part.contiguous().cpu() for k, part in enumerate(result)}
            write(self._file(job), save(named, {"job": job}))

    def remove(self) -> None:
        """Remove the journal, what names it one last; a directory that is none is left alone."""
        if self.path is None or not (self.path / _ABOUT).is_file():
            return
        for file in self.path.iterdir():
            if file.is_file() and (_JOB.fullmatch(file.name) or is_partial(file)):
                file.unlink(missing_ok=True)
        (self.path / _ABOUT).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # other files are not the journal's
            self.path.rmdir()

    def _file(self, job: str) -> Path:
        assert self.path is not None
        return self.path / f"{blake2b(job.encode(), digest_size=16).hexdigest()}.safetensors"
