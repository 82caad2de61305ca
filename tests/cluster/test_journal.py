"""A journal keeps what was finished and refuses what is not its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from augury._base.errors import AuguryError
from augury.cluster import Journal


def test_results_are_kept_bit_for_bit(tmp_path):
    made = (torch.randn(3, 4), torch.arange(5), torch.zeros(0, 2), torch.tensor(2.5).double())
    Journal.open(tmp_path / "j", {"seed": 0}).write("a job", made)
    found = Journal.open(tmp_path / "j", {"seed": 0}).read("a job")
    assert found is not None
    assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(made, found, strict=True))


def test_without_a_path_nothing_is_kept():
    journal = Journal.open(None, {"seed": 0})
    journal.write("a job", (torch.zeros(1),))
    assert journal.read("a job") is None


def test_a_journal_of_other_settings_is_refused(tmp_path):
    Journal.open(tmp_path / "j", {"data": "a", "seed": 0})
    with pytest.raises(AuguryError, match=r"for other data or settings \(its seed differs\)"):
        Journal.open(tmp_path / "j", {"data": "a", "seed": 1})


def test_what_is_no_journal_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "photo.png").touch()
    for name in ("file", "folder"):
        with pytest.raises(AuguryError, match="is not a journal; remove it"):
            Journal.open(tmp_path / name, {})
    with pytest.raises(AuguryError, match="cannot open the journal"):
        Journal.open(tmp_path / "missing" / "j", {})


def test_what_is_no_journal_is_not_removed(tmp_path):
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    (tmp_path / "folder" / "photo.png").touch()
    Journal(tmp_path / "folder").remove()
    assert (tmp_path / "folder" / "photo.png").exists()
    journal = Journal.open(tmp_path / "j", {})
    journal.write("a job", (torch.zeros(1),))
    (tmp_path / "j" / "model.safetensors").touch()
    journal.remove()
    assert [file.name for file in (tmp_path / "j").iterdir()] == ["model.safetensors"]


def test_a_damaged_result_is_named(tmp_path):
    journal = Journal.open(tmp_path / "j", {})
    journal.write("a job", (torch.zeros(1),))
    (file,) = (tmp_path / "j").glob("*.safetensors")
    file.write_bytes(b"no")
    with pytest.raises(AuguryError, match=f"{file.name} of the journal is damaged"):
        journal.read("a job")


def test_a_journal_that_was_killed_as_it_began_is_begun_again(tmp_path):
    (tmp_path / "j").mkdir()
    (tmp_path / "j" / ".augury-x1y2").touch()  # as a process leaves it that is killed in `write`
    Journal.open(tmp_path / "j", {"seed": 0}).write("a job", (torch.zeros(1),))
    assert Journal.open(tmp_path / "j", {"seed": 0}).read("a job") is not None


def test_a_journal_that_is_killed_as_it_is_removed_is_still_one(tmp_path, monkeypatch):
    journal = Journal.open(tmp_path / "j", {"seed": 0})
    for k in range(3):
        journal.write(f"job {k}", (torch.zeros(1),))
    unlink, left = Path.unlink, [2]

    def killed(self, missing_ok=False):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        unlink(self, missing_ok)

    monkeypatch.setattr(Path, "unlink", killed)
    with pytest.raises(KeyboardInterrupt):
        journal.remove()
    monkeypatch.undo()
    again = Journal.open(tmp_path / "j", {"seed": 0})
    assert sum(again.read(f"job {k}") is not None for k in range(3)) == 1
    again.remove()
    assert list(tmp_path.iterdir()) == []
