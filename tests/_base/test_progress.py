"""The progress bar: in a real notebook, on a terminal, and nowhere else."""

from __future__ import annotations

import inspect
import io
import json
import os
import pty
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
from forked import start_forked

import augury
from augury._base.progress import NotebookBar, in_notebook

RANK = """
from sklearn.datasets import load_digits
import augury
digits = load_digits()
ranking = augury.rank(
    digits.images[:300], digits.target[:300], ["rotation(10)", "invert"], score="ridge"{more}
)
ranking
"""


@pytest.fixture(scope="module")
def cells() -> list[tuple[list[Any], list[Any]]]:
    """Rank with and without a bar in one notebook; what each cell shows, and updates later."""
    nbclient = pytest.importorskip("nbclient", reason="comes with the extra dev")
    import nbformat

    every_tick = "from augury._base.progress import NotebookBar; NotebookBar.seconds_between = 0\n"
    texts = (every_tick + RANK.format(more=""), RANK.format(more=", progress=False"))
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell(text) for text in texts]
    updates: list[list[Any]] = [[] for _ in texts]

    class Client(nbclient.NotebookClient):
        def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
            if msg["msg_type"] == "update_display_data":
                updates[cell_index].append(msg["content"]["data"])
            return super().process_message(msg, cell, cell_index)

    with warnings.catch_warnings(action="ignore"):  # of Jupyter's own packages
        Client(book, timeout=120, kernel_name="python3").execute()
    return [(cell.outputs, found) for cell, found in zip(book.cells, updates, strict=True)]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_notebook_shows_a_bar_that_is_updated_in_place(cells: Any) -> None:
    outputs, updates = cells[0]
    assert [o["output_type"] for o in outputs] == ["display_data", "execute_result"]
    shown, result = outputs
    assert shown["data"]["text/plain"].startswith("ranking: ")  # what is left of the bar
    assert "s left · " in updates[0]["text/plain"]
    assert "<progress value=" in updates[0]["text/html"]
    assert "rotation(10)" in result["data"]["text/html"]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_notebook_may_be_asked_for_none(cells: Any) -> None:
    outputs, updates = cells[1]
    assert [o["output_type"] for o in outputs] == ["execute_result"]
    assert not updates


@pytest.mark.slow
def test_a_program_shows_a_bar_on_a_terminal_where_asked(tmp_path: Path) -> None:
    for more, expected in (("", False), (", progress=True", True)):
        reader, terminal = pty.openpty()
        code = RANK.format(more=more).replace("\nranking\n", "\n")
        files = (tmp_path / "out", Path(os.ttyname(terminal)))
        environment = {**os.environ, "TERM": "xterm"}
        child = start_forked(["python", "-c", code], tmp_path, environment, files)
        seen = io.BytesIO()

        def read(reader: int = reader, seen: io.BytesIO = seen) -> None:
            try:
                while chunk := os.read(reader, 4096):
                    seen.write(chunk)
            except OSError:  # how a terminal without a writer ends
                pass

        thread = threading.Thread(target=read)
        thread.start()
        child.join()
        os.close(terminal)
        thread.join()
        assert child.exitcode == 0
        os.close(reader)
        assert (b"ranking" in seen.getvalue()) is expected


def test_nothing_is_shown_outside() -> None:
    assert not in_notebook()
    assert "progress" in inspect.signature(augury.rank).parameters  # as it is documented


def test_names_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[dict[str, str]] = []
    display = type("display", (), {"display": staticmethod(lambda d, **o: drawn.append(d))})
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(NotebookBar, "seconds_between", 0)
    NotebookBar("ranking").tick(1, 2, "<b>")
    assert "&lt;b&gt;" in json.dumps(drawn)
