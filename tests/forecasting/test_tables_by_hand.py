"""What a table tells its augmentations, with numbers computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from augury.augmentations import column_noise
from augury.data import Dataset, as_dataset
from augury.forecasting import tables as module
from augury.forecasting.tables import run_table_folds, table_of
from augury.forecasting.trial import Trial, make_fold

COLOURS = ["red", "green", "blue"]


def mixed():
    """A table of a real column, one of three levels, one of words and one with gaps."""
    rng = np.random.default_rng(0)
    real = rng.normal(size=30)
    gaps = np.where(np.arange(30) % 5 == 2, np.nan, rng.normal(size=30))
    columns = {
        "real": real,
        "level": np.arange(30) % 3 * 2.0,
        "colour": np.array(COLOURS, dtype=object)[np.arange(30) % 3],
        "gaps": gaps,
        "y": np.arange(30) % 2,
    }
    pandas = pytest.importorskip("pandas")
    return as_dataset(pandas.DataFrame(columns), label="y"), real


def test_columns_words_levels_and_gaps():
    data, _ = mixed()
    found = table_of(data)
    names = [name for name, _ in data.preparation.columns]
    words = [word is not None for _, word in data.preparation.columns]
    assert found.words.tolist() == words
    assert sum(words) == 3
    numbers = {name: k for k, name in enumerate(dict.fromkeys(names))}
    assert found.column.tolist() == [numbers[name] for name in names]
    level, gap, real = (names.index(name) for name in ("level", "gaps", "real"))
    assert level in found.levels
    assert len(found.levels[level]) == 3
    torch.testing.assert_close(found.levels[level], data.x[:, level].unique())
    assert real not in found.levels
    assert not any(words[k] for k in found.levels)
    assert bool(found.missing[gap])
    assert not bool(found.missing[real])
    assert float(found.absent[gap]) == float(data.x[2, gap])
    assert float(found.absent[real]) == 0
    for k, word in enumerate(words):
        if word:  # no word at all: zero, in standard units
            mean, deviation = data.preparation.mean[k], data.preparation.deviation[k]
            assert float(found.absent[k]) == pytest.approx(-mean / deviation)
            assert float(found.absent[k]) == pytest.approx(float(data.x[:, k].min()))


def plain(column, y=None, **options):
    x = np.stack([column, np.linspace(0, 1, len(column)) ** 2], 1)
    return as_dataset(x, np.arange(len(column)) % 2 if y is None else y, **options)


@pytest.mark.parametrize(("levels", "ordinal"), [(20, True), (21, False), (2, True)])
def test_a_column_of_at_most_twenty_whole_numbers_is_ordinal(levels, ordinal):
    data = plain(np.arange(100.0) % levels)
    assert (0 in table_of(data).levels) is ordinal
    assert 1 not in table_of(data).levels


@pytest.mark.parametrize(
    ("step", "ordinal"), [(1.0, True), (3.0, True), (0.5, False), (1.3, False)]
)
def test_levels_are_whole_numbers(step, ordinal):
    assert (0 in table_of(plain(step * (np.arange(60.0) % 4))).levels) is ordinal


def test_only_the_rows_that_are_given():
    data = plain(np.arange(40.0))
    rows = torch.tensor([3, 1, 30])
    found = table_of(data, rows)
    assert torch.equal(found.x, data.x[rows])
    assert torch.equal(found.y, data.y[rows])
    assert len(table_of(data).x) == 40
    real = plain(np.arange(40.0), np.linspace(0, 1, 40))
    assert table_of(real, rows).y is None
    assert found.columns == 2


def test_a_column_without_spread_does_not_divide_by_zero():
    mean, deviation = module._moments(plain(np.ones(40)))
    assert mean.tolist()[0] == pytest.approx(1.0)
    assert float(deviation.min()) > 0
    assert torch.isfinite(table_of(plain(np.ones(40))).absent).all()


def test_each_fold_knows_its_own_rows(monkeypatch):
    data, trial, asked = plain(np.arange(40.0)), Trial(1, examples=10, folds=3), []

    def run_folds(data, candidates, trial, numbers, **options):
        asked.append((candidates, numbers, options))
        return [numbers[0]]

    monkeypatch.setattr(module, "run_folds", run_folds)
    found = run_table_folds(data, [column_noise(0.1)], trial, [2, 0], seed=5, tick=print)
    assert found == [2, 0]
    for number, (candidates, numbers, options) in zip([2, 0], asked, strict=True):
        train = make_fold(data, trial, 5, number).train
        assert torch.equal(candidates[0].table.x, data.x[train])
        assert numbers == [number]
        assert options == {"seed": 5, "tick": print}


def test_raw_rows_are_taken_as_they_are():
    """Without a preparation, values are those that were given."""
    x = torch.stack([torch.arange(12.0) % 3, torch.linspace(0, 1, 12) ** 2], 1)
    data = Dataset(x, torch.arange(12) % 2, ("a", "b"))
    mean, deviation = module._moments(data)
    assert (mean.tolist(), deviation.tolist()) == ([0, 0], [1, 1])
    assert table_of(data).levels[0].tolist() == [0, 1, 2]
    assert table_of(data).column.tolist() == [0, 1]


def test_a_constant_column_of_halves_is_not_ordinal():
    """Its deviation is 0, and stands for 1."""
    assert 0 not in table_of(plain(np.full(40, 2.5))).levels
    assert 0 in table_of(plain(np.full(40, 2.0))).levels


@pytest.mark.parametrize(("off", "ordinal"), [(0.9e-4, True), (1.2e-4, False)])
def test_whole_to_one_part_in_ten_thousand(off, ordinal):
    x = torch.tensor([0.0, 1.0, 1.0 + off, 2.0]).repeat(3)[:, None]
    data = Dataset(x, torch.arange(12) % 2, ("a", "b"))
    assert (0 in table_of(data).levels) is ordinal
    large = Dataset(1000 * x, torch.arange(12) % 2, ("a", "b"))
    assert (0 in table_of(large).levels) is ordinal
