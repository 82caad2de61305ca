"""Which examples belong together: columns, arrays and patterns for the names of files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from refusal import refused

from augury.data import as_dataset, load
from augury.data.describe import describe


def images(root: Path) -> Path:
    for label in ("cat", "dog"):
        for source in ("anna", "ben", "cleo"):
            for k in range(2):
                path = root / label / f"{source}_{k}.png"
                path.parent.mkdir(exist_ok=True, parents=True)
                Image.fromarray(np.full((6, 6), 40 * k, np.uint8)).save(path)
    return root


def groups(data) -> list[int]:
    assert data.groups is not None
    return data.groups.tolist()


def test_a_pattern_for_names_of_files(tmp_path):
    data = load(images(tmp_path), group=r"/(.+)_")
    assert groups(data) == [0, 0, 1, 1, 2, 2] * 2
    assert "examples belong to 3 groups, which are never split" in data.notes
    few = load(tmp_path, group=r"/(.+)_", max_examples=8)
    assert len(groups(few)) == 8
    assert few.subsample(6, 0).groups is not None


def test_a_column_is_no_feature():
    frame = pd.DataFrame({"a": np.arange(8.0), "who": list("xxyyzzxx"), "y": [0, 1] * 4})
    data = as_dataset(frame, label="y", group="who")
    assert data.shape == (1,)
    assert groups(data) == [0, 0, 1, 1, 2, 2, 0, 0]


def test_a_column_or_pattern_of_a_list_of_files(tmp_path):
    files = sorted(images(tmp_path).rglob("*.png"))
    names = [str(file.relative_to(tmp_path)) for file in files]
    who = [Path(name).name.split("_")[0] for name in names]
    frame = pd.DataFrame({"file": names, "label": [n.split("/")[0] for n in names], "who": who})
    frame.to_csv(tmp_path / "list.csv", index=False)
    by_column = load(tmp_path / "list.csv", label="label", group="who")
    by_pattern = load(tmp_path / "list.csv", label="label", group=r"/(.+)_")
    assert groups(by_column) == groups(by_pattern) == [0, 0, 1, 1, 2, 2] * 2
    assert not any("not used" in note for note in by_column.notes)


def test_an_array_of_an_archive(tmp_path):
    x, y = np.zeros((6, 8, 8), np.uint8), [0, 1] * 3
    np.savez(tmp_path / "a.npz", x=x, y=y, site=[3, 3, 5, 5, 5, 3])
    assert groups(load(tmp_path / "a.npz", group="site")) == [0, 0, 1, 1, 1, 0]
    refused(
        "has no array 'sites'; its arrays are x, y and site",
        load,
        tmp_path / "a.npz",
        group="sites",
    )


def test_groups_in_python_follow_what_is_kept():
    x, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    who = np.repeat(list("abcdefgh"), 5)
    data = as_dataset(x, y, groups=who, max_examples=20, seed=3)
    pairs = as_dataset(list(zip(x, y, strict=True)), groups=who, max_examples=20, seed=3)
    assert len(data) == len(pairs) == 20
    for found in (data, pairs):
        back = {tuple(np.round(row, 6)): g for row, g in zip(x, who, strict=True)}
        scale = found.preparation
        raw = found.x.numpy() * np.array(scale.deviation) + np.array(scale.mean)
        names = [back[min(back, key=lambda k: np.abs(np.array(k) - row).sum())] for row in raw]
        assert len(set(zip(names, groups(found), strict=True))) == len(set(names))


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("_(.+", "is not a regular expression"),
        ("_.+", "with one pair of brackets"),
        ("/(ann)a", "matches 4 of 12 files; it does not match cat/ben_0.png"),
        ("(cat|dog)/", "class 'cat' comes from only one group, 'cat'"),
        ("(png)", "every example belongs to the group 'png'"),
    ],
)
def test_bad_patterns(pattern, line, tmp_path):
    refused(line, load, images(tmp_path), group=pattern)


def test_refusals():
    x = np.zeros((4, 3)) + np.arange(4.0)[:, None]
    refused("3 groups for 4 examples", as_dataset, x, [0, 1, 0, 1], groups=[0, 0, 1])
    refused("some groups are missing", as_dataset, x, [0, 1, 0, 1], groups=["a", None, "b", "b"])
    refused("the group 'who' cannot be used here", load, "digits", group="who")
    refused(
        "has no column 'whom'; did you mean who?",
        as_dataset,
        pd.DataFrame({"a": x[:, 0], "who": 1, "y": [0, 1] * 2}),
        label="y",
        group="whom",
    )


@pytest.mark.parametrize("groups", [4, 5])
def test_few_groups_are_warned_of(groups):
    rng = np.random.default_rng(0)
    labels, owners = np.arange(200) % 2, np.arange(200) // 2 % groups
    data = as_dataset(rng.normal(size=(200, 3)), labels, groups=owners)
    codes = [code for code, _ in describe(data)["warnings"]]
    assert ("few-groups" in codes) is (groups < 5)
