"""The progress bar: in a real notebook, on a terminal, and nowhere else."""

from __future__ import annotations

import inspect
import io
import json
import os
import pty
import subprocess
import sys
import threading
from typing import Any

import pytest

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


def run_notebook(*cells: str) -> list[Any]:
    """Run cells in a kernel of their own, and return the outputs of the last one."""
    nbclient = pytest.importorskip("nbclient", reason="comes with the extra dev")
    import nbformat

    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    messages = []

    class Client(nbclient.NotebookClient):
        def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
            messages.append(msg)
            return super().process_message(msg, cell, cell_index)

    Client(book, timeout=120, kernel_name="python3").execute()
    updates = [m["content"]["data"] for m in messages if m["msg_type"] == "update_display_data"]
    return [book.cells[-1].outputs, updates]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Jupyter's own packages
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_notebook_shows_a_bar_that_is_updated_in_place() -> None:
    every_tick = "from augury._base.progress import NotebookBar; NotebookBar.seconds_between = 0"
    outputs, updates = run_notebook(every_tick, RANK.format(more=""))
    shown, result = outputs
    assert [o["output_type"] for o in outputs] == ["display_data", "execute_result"]
    assert shown["data"]["text/plain"].startswith("ranking: ")  # what is left of the bar
    assert "s left · " in updates[0]["text/plain"]
    assert "<progress value=" in updates[0]["text/html"]
    assert "rotation(10)" in result["data"]["text/html"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_notebook_may_be_asked_for_none() -> None:
    outputs, updates = run_notebook(RANK.format(more=", progress=False"))
    assert [o["output_type"] for o in outputs] == ["execute_result"]
    assert not updates


def test_a_program_shows_a_bar_on_a_terminal_where_asked() -> None:
    for more, expected in (("", False), (", progress=True", True)):
        reader, terminal = pty.openpty()
        code = RANK.format(more=more).replace("\nranking\n", "\n")
        child = subprocess.Popen(
            [sys.executable, "-c", code], stderr=terminal, env={**os.environ, "TERM": "xterm"}
        )
        os.close(terminal)
        seen = io.BytesIO()

        def read(reader: int = reader, seen: io.BytesIO = seen) -> None:
            try:
                while chunk := os.read(reader, 4096):
                    seen.write(chunk)
            except OSError:  # how a terminal without a writer ends
                pass

        thread = threading.Thread(target=read)
        thread.start()
        assert child.wait() == 0
        thread.join()
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
