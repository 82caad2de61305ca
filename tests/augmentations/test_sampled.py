"""A function of the user's as an augmentation: its draws, what it takes and gives, its mistakes."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest
import torch
from refusal import refused

from augury._base.errors import AuguryError
from augury._base.rng import Rng
from augury.augmentations import Sampled, parse

MINE = """import numpy as np
import torch

def boom(x):
    raise ValueError("my\\nbug")

def empty(x):
    raise KeyError

def deep(x):
    return torch.nn.functional.linear(torch.zeros(2, 3), torch.zeros(3, 2))

def nan(x):
    return x * float("nan")

def nothing(x):
    pass

def pair(x):
    return [x, x]

def objects(x):
    return np.array([None])
"""


@pytest.fixture
def user_module(monkeypatch, tmp_path):
    """Write a module of the user's into the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()

    return write


def test_draws_depend_on_seed_and_example_alone():
    for fn in (
        lambda v: v + torch.rand(()),
        lambda v: v + float(np.random.rand()),  # noqa: NPY002  # what users' functions do
        lambda v, rng: v + float(rng.random()),
    ):
        family = Sampled(fn)
        x = torch.zeros(4, 3)
        before = torch.random.get_rng_state()
        whole = family.views(x, 2, Rng(0, torch.arange(4)))
        assert torch.equal(before, torch.random.get_rng_state())
        alone = family.views(x[2:3], 2, Rng(0, torch.tensor([2])))
        assert torch.equal(whole[:, 2:3], alone)
        assert len(whole[..., 0].unique()) == 8


def test_arrays_and_pil_images_come_and_go():
    x = torch.rand(2, 3, 5, 4)
    flip = x.flip(-1)
    array = Sampled(lambda a: a[:, ::-1].copy(), "array").views(x, 1, Rng(0, torch.arange(2)))
    torch.testing.assert_close(array[0], flip)
    pil = Sampled(lambda i: i.transpose(0), "pil").views(x, 1, Rng(0, torch.arange(2)))
    torch.testing.assert_close(pil[0], flip, atol=1 / 255, rtol=0)
    grey = Sampled(lambda i: i, "pil").views(x[:, :1], 1, Rng(0, torch.arange(2)))
    torch.testing.assert_close(grey[0], x[:, :1], atol=1 / 255, rtol=0)


def test_a_changed_shape_is_said():
    with pytest.raises(AuguryError, match=r"changed an example's shape from \(3,\) to \(2,\)"):
        Sampled(lambda v: v[:2]).views(torch.zeros(1, 3), 1, Rng(0, torch.arange(1)))


def test_spec_imports_only_where_allowed():
    assert parse("sampled(math:sqrt)", imports=True) == Sampled.load("math:sqrt")
    with pytest.raises(AuguryError, match="not allowed here"):
        parse("sampled(math:sqrt)")
    with pytest.raises(AuguryError, match="cannot load math:nothing"):
        parse("sampled(math:nothing)", imports=True)


def test_a_module_in_the_current_folder_is_found(user_module):
    user_module("beside_data", "def same(x):\n    return x\n")
    found = parse("sampled(beside_data:same)", imports=True)
    assert repr(found) == "sampled(beside_data:same)"


def test_what_a_users_function_does_wrong_is_one_line(user_module):
    user_module("mine", MINE)

    def run(name, takes="tensor"):
        family = Sampled.load(f"mine:{name}", takes)
        return family.views(torch.ones(1, 1, 2, 2), 1, Rng(0, torch.arange(1)))

    refused("sampled(mine:boom) failed: ValueError: my bug (mine.py:5)", run, "boom")
    refused("sampled(mine:empty,pil) failed: KeyError (mine.py:8)", run, "empty", "pil")
    refused("failed: RuntimeError: mat1|(mine.py:11)", run, "deep")  # not the place in torch
    refused("sampled(mine:nan) returned values that are not finite", run, "nan")
    refused("sampled(mine:nothing) returned None|a tensor", run, "nothing")
    refused("returned a list; return a PIL image", run, "pair", "pil")
    refused("returned an array of object|an array of numbers", run, "objects", "array")


def test_a_module_that_cannot_be_imported_is_one_line(user_module):
    user_module("half_written", "x = 1\ndef f(:\n")
    refused("SyntaxError: invalid syntax (half_written.py:2)", Sampled.load, "half_written:f")
    user_module("failing", "x = 1\n\nx / 0\n")
    words = "cannot load failing:f: ZeroDivisionError: division by zero (failing.py:3)"
    refused(words, Sampled.load, "failing:f")


def test_values_that_came_not_finite_may_stay_so():
    x = torch.full((1, 2), torch.nan)
    assert Sampled(lambda v: v).views(x, 1, Rng(0, torch.arange(1))).isnan().all()


def _blank(x):
    x[..., :2] = 0
    return x


@pytest.mark.parametrize("takes", ["tensor", "array"])
def test_a_function_may_work_in_place(takes):
    """It is given a copy: views of an example share none, and the example stays as it is."""
    x = torch.rand(2, 1, 4, 4)
    before = x.clone()
    views = Sampled(_blank, takes).views(x, 3, Rng(0, torch.arange(2)))
    assert torch.equal(x, before)
    changed = views != before
    assert changed.any()
    assert torch.equal(views[changed], torch.zeros_like(views[changed]))


def test_an_array_of_another_layout_is_explained():
    first = Sampled(lambda x: x.permute(2, 0, 1).numpy() if x.dim() == 3 else x)
    words = "changed an example's shape from|an array is read as height × width × channels"
    refused(words, first.views, torch.rand(2, 3, 4, 5), 1, Rng(0, torch.arange(2)))


def test_bytes_stand_for_pixels_in_the_unit_interval_whatever_holds_them():
    x = torch.zeros(2, 1, 10, 10)
    x[:, :, 4:6, 4:6] = 1
    rng = Rng(0, torch.arange(2))
    tensors = Sampled(lambda z: (z * 255).to(torch.uint8)).views(x, 1, rng)
    arrays = Sampled(lambda z: (z * 255).astype(np.uint8), takes="array").views(x, 1, rng)
    assert torch.equal(tensors, arrays)
    assert torch.equal(tensors[0], x)
