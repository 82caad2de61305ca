"""The runner of the reproduction: what is kept, what is said, and that it goes on."""

from __future__ import annotations

import json
import platform
import types
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from augury._base.errors import AuguryError
from augury_paper import QUICK, make_page, reproduce, run
from augury_paper.cells import Bench, Cell
from augury_paper.section import Claim, Section
from augury_paper.settings import Settings
from augury_paper.store import Store

TINY = replace(QUICK, trials=2, n_components=20, epochs=1, examples=60, tests=40)


def _cell(name: str = "a", work: Any = None, dataset: str = "digits", **setting: Any) -> Cell:
    return Cell("chain", name, dataset, setting, work or (lambda bench: {"value": [1.0]}))


@pytest.fixture
def experiment(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """Stand in for all experiments: one, whose cells a test names."""
    module = types.SimpleNamespace(list=[], seen=[])

    def section(results: dict[str, dict[str, Any]], settings: Settings) -> Section:
        assert all(result["machine"].startswith(platform.machine()) for result in results.values())
        for result in results.values():
            result.pop("machine")
        module.seen.append(results)
        claim = Claim("words <b>", "1", str(sorted(results)), "holds")
        return Section("chain", "A title", "Some words", (claim,))

    module.cells = lambda settings: module.list
    module.section = section
    monkeypatch.setattr(run, "EXPERIMENTS", ("chain",))
    monkeypatch.setattr(run, "_experiment", lambda name: module)
    return module


def go(tmp_path: Path, **options: Any) -> tuple[run.Outcome, list[str]]:
    said: list[str] = []
    options = {"settings": TINY, "data": tmp_path / "none", "device": "cpu", **options}
    outcome = reproduce(("chain",), out=tmp_path / "out", say=said.append, **options)
    return outcome, said


def test_a_finished_cell_is_not_computed_again(
    tmp_path: Path, experiment: types.SimpleNamespace
) -> None:
    calls: list[int] = []

    def work(bench: Bench) -> dict[str, Any]:
        calls.append(1)
        return {"value": (1, 2)}

    experiment.list = [_cell("a", work)]
    first, _ = go(tmp_path)
    second, _ = go(tmp_path)
    assert (first.computed, first.kept, second.computed, second.kept) == (1, 0, 0, 1)
    assert len(calls) == 1
    assert experiment.seen == [{"a": {"value": [1, 2]}}] * 2  # always as the file holds it


@pytest.mark.parametrize(("only", "computed"), [("b", 1), (("a", "c"), 2), ((), 3)])
def test_some_cells_can_be_chosen_by_parts_of_their_names(
    tmp_path: Path, experiment: types.SimpleNamespace, only: Any, computed: int
) -> None:
    experiment.list = [_cell("one-a"), _cell("one-b"), _cell("one-c")]
    assert go(tmp_path, only=only)[0].computed == computed


def test_another_setting_is_another_cell(tmp_path: Path, experiment: types.SimpleNamespace) -> None:
    experiment.list = [_cell("a", n=1)]
    go(tmp_path)
    experiment.list = [_cell("a", n=2)]
    assert go(tmp_path)[0].computed == 1
    assert len(list((tmp_path / "out/cells/chain").iterdir())) == 2


def test_data_of_another_source_is_another_cell(tmp_path: Path) -> None:
    store, cell = Store(tmp_path), _cell(dataset="mnist")
    store.write(cell, "mnist5k", "1a2b", {"value": 1}, {})
    assert store.read(cell, "mnist", "1a2b") is None
    assert store.read(cell, "mnist5k", "1a2b") is not None
    assert store.read(cell, "mnist5k", "3c4d") is None
    assert store.read(cell, "mnist5k", "") is not None  # they are gone; the numbers are not


def test_other_data_of_the_same_name_are_computed_again(
    tmp_path: Path, experiment: types.SimpleNamespace
) -> None:
    rng = np.random.default_rng(0)
    archive = {
        f"{kind}_{part}": values
        for part in ("train", "test")
        for kind, values in (
            ("x", rng.integers(0, 255, (60, 28, 28)).astype(np.uint8)),
            ("y", np.arange(60) % 10),
        )
    }
    (tmp_path / "data").mkdir()
    experiment.list = [_cell("a", dataset="mnist")]

    def again(**arrays: Any) -> tuple[int, int]:
        np.savez(tmp_path / "data" / "mnist.npz", **{**archive, **arrays})
        outcome, _ = go(tmp_path, data=tmp_path / "data")
        return outcome.computed, outcome.kept

    assert again() == (1, 0)
    assert again() == (0, 1)
    assert again(y_test=archive["y_test"][::-1]) == (1, 0)
    (tmp_path / "data" / "mnist.npz").unlink()
    outcome, _ = go(tmp_path, data=tmp_path / "data", settings=replace(TINY, examples=5000))
    assert outcome.computed == 0


@pytest.mark.parametrize("content", ["", '{"result": {"val', "[]", "{}"])
def test_a_damaged_cell_is_computed_again(
    tmp_path: Path, experiment: types.SimpleNamespace, content: str
) -> None:
    experiment.list = [_cell("a")]
    go(tmp_path)
    (path,) = (tmp_path / "out/cells/chain").iterdir()
    path.write_text(content)
    assert go(tmp_path)[0].computed == 1
    assert json.loads(path.read_text())["result"] == {"value": [1.0]}


def test_a_failing_cell_is_one_line_and_the_rest_goes_on(
    tmp_path: Path, experiment: types.SimpleNamespace
) -> None:
    def fail(bench: Bench) -> dict[str, Any]:
        raise RuntimeError("out of memory:\n  tried to allocate 40 GiB")

    experiment.list = [_cell("a", fail), _cell("b")]
    outcome, said = go(tmp_path)
    assert outcome.computed == 1
    assert said == ["chain a failed: out of memory: tried to allocate 40 GiB"]
    assert outcome.failed == said
    assert experiment.seen[-1] == {"b": {"value": [1.0]}}


def test_missing_data_is_said_once_with_how_to_get_it(
    tmp_path: Path, experiment: types.SimpleNamespace
) -> None:
    experiment.list = [_cell("a", dataset="cifar10"), _cell("b", dataset="cifar10"), _cell("c")]
    outcome, said = go(tmp_path)
    assert (outcome.computed, len(said)) == (1, 1)
    assert "cifar10 was not found in" in said[0]
    assert "--download" in said[0]
    experiment.list = [_cell("d", dataset="mammograms")]
    assert "mammograms.npz there with x_train, y_train, x_test and y_test" in go(tmp_path)[1][0]


def test_results_hold_all_cells_and_the_page_is_made_of_them(
    tmp_path: Path, experiment: types.SimpleNamespace
) -> None:
    experiment.list = [_cell("a"), _cell("b", lambda bench: {"value": [float("nan")]})]
    outcome, _ = go(tmp_path)
    results = json.loads((tmp_path / "out/results.json").read_text())
    assert [record["name"] for record in results["cells"]] == ["a", "b"]
    assert set(results["seconds"]) == {"digits"}
    page = outcome.page.read_text(encoding="utf-8")
    assert page == make_page(results)
    assert "words &lt;b&gt;" in page
    assert "NaN" not in page.split('id="data">')[1].split("</script>")[0]


def test_progress_counts_all_cells_that_are_left(
    tmp_path: Path, experiment: types.SimpleNamespace
) -> None:
    def work(bench: Bench) -> dict[str, Any]:
        bench.tick(0.5, "half")
        return {}

    seen: list[tuple[int, int, str]] = []
    experiment.list = [_cell("a", work), _cell("b", work)]
    go(tmp_path, progress=lambda *at: seen.append(at))
    assert [at[:2] for at in seen] == [
        (0, 2000), (0, 2000), (500, 2000), (1000, 2000), (1500, 2000), (2000, 2000),
    ]  # fmt: skip
    assert seen[4][2] == "chain b: half"


def test_an_unknown_experiment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AuguryError, match="there is no experiment 'table2'; choose from table1,"):
        reproduce(("table2",), out=tmp_path)


def test_an_output_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(AuguryError, match="cannot make the folder"):
        reproduce((), out=tmp_path / "out")


def test_a_cell_can_have_numpy_free_json_only(
    tmp_path: Path, experiment: types.SimpleNamespace
) -> None:
    """A cell that gives what JSON cannot hold is a mistake of ours, and must not pass silently."""
    experiment.list = [_cell("a", lambda bench: {"value": np.float32(1)})]
    with pytest.raises(TypeError, match="not JSON serializable"):
        go(tmp_path)
    assert not list((tmp_path / "out/cells").rglob("*.json"))


@pytest.mark.filterwarnings("default")
def test_a_warning_is_a_line_and_said_once(
    tmp_path: Path, experiment: types.SimpleNamespace
) -> None:
    def work(bench: Bench) -> dict[str, Any]:
        for _ in range(3):
            warnings.warn("products are\nrough", UserWarning, stacklevel=1)
        return {"value": [1.0]}

    experiment.list = [_cell(work=work)]
    outcome, said = go(tmp_path)
    assert said == ["chain a: products are rough"]
    assert outcome.computed == 1


def _paths(settings: Settings) -> dict[str, Path]:
    cells = [cell for name in run.EXPERIMENTS for cell in run._experiment(name).cells(settings)]
    return {f"{c.experiment}/{c.name}": Store(Path()).path(c, c.dataset) for c in cells}


@pytest.mark.parametrize("change", [{"examples": 2000}, {"tests": 300}])
def test_no_cell_is_kept_when_the_data_change(change: dict[str, int]) -> None:
    before, after = _paths(QUICK), _paths(replace(QUICK, **change))
    assert not [name for name in before if before[name] == after[name]]


def test_cells_that_a_setting_does_not_concern_are_kept() -> None:
    before, after = _paths(QUICK), _paths(replace(QUICK, learning_rate=0.02))
    same = {name for name in before if before[name] == after[name]}
    assert {"chain/theory", "table1/mnist-none-closed", "alignment/mnist-trial"} <= same
    assert not {"table1/mnist-none-descent", "averaging/mnist-first"} & same
