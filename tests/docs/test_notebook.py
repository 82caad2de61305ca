"""The notebook of the documentation: runs, and is committed with the output that it has."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

BOOK = Path(__file__).parents[2] / "docs" / "tour.ipynb"


def kinds(book: Any) -> list[list[tuple[str, list[str]]]]:
    """Return what kinds of output each cell has."""
    return [
        [(out.output_type, sorted(out.get("data", {}))) for out in cell.get("outputs", [])]
        for cell in book.cells
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Jupyter's own packages
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_notebook_runs_and_holds_its_output(tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="comes with the extra dev")
    import nbformat

    committed = nbformat.read(BOOK, as_version=4)
    again = deepcopy(committed)
    for cell in again.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(
        again, timeout=300, kernel_name="python3", resources=resources
    ).execute()
    assert kinds(again) == kinds(committed)
    shown = [out for cell in committed.cells for out in cell.get("outputs", [])]
    assert "rotation(10)" in shown[2]["data"]["text/html"]
    assert BOOK.stat().st_size < 100_000
