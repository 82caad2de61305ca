"""`augury invariance` as a person meets it."""

from __future__ import annotations

import importlib
import json
import sys
from functools import partial

import pytest
import torch
from refusal import said_in_one_line as refused

from augury import InvarianceProfile

NETWORK = """
import torch
from torch import nn

def small(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10)
    )

def other():
    return small(1)

class Tuple(nn.Module):
    def forward(self, x):
        return x, x

def pair():
    return nn.Sequential(nn.Conv2d(1, 4, 3), Tuple())

def broken():
    raise KeyError("width")

def leaves():
    raise SystemExit(3)

def wide():
    return nn.Sequential(nn.Flatten(), nn.Linear(100, 3))

def same(x):
    return x
"""
FAST = ("--max-examples", "60", "--n-views", "3", "--device", "cpu")


@pytest.fixture
def run(run, monkeypatch, tmp_path):
    """Run `augury invariance …` in this process, in a folder with a network."""
    (tmp_path / "networks_here.py").write_text(NETWORK)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "networks_here", raising=False)
    return partial(run, "invariance")


def test_a_table_a_page_and_json(run, tmp_path):
    code, out, err = run(
        "networks_here:small", "digits", "-a", "rotation(15)", "-a", "blur(0.5,2.0)", *FAST,
        "--json", "out.json", "--report", "out.html",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "rotation(15)" in out
    assert "60 of 1,797 examples" in out
    found = InvarianceProfile.from_json((tmp_path / "out.json").read_text())
    assert found.layers == ("input", "0", "1", "2", "3", "4")
    assert found.augmentations == ("rotation(15)", "blur(0.5,2.0)")
    assert found.command.startswith("augury invariance networks_here:small digits")
    assert found.n_views == 3
    page = (tmp_path / "out.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "networks_here:small" in page


def test_batch_size_does_not_matter(run, tmp_path):
    for size in (2, 60):
        options = ("--batch-size", size, "--json", f"{size}.json")
        assert run("networks_here:small", "digits", "-a", "noise(0.1)", *FAST, *options)[0] == 0
    a, b = (json.loads((tmp_path / f"{s}.json").read_text())["rows"] for s in (2, 60))
    for one, other in zip(a, b, strict=True):
        assert one["relative"] == pytest.approx(other["relative"], rel=1e-4)


def test_two_networks_are_compared(run, tmp_path):
    code, out, _ = run(
        "networks_here:small", "digits", "-a", "rotation(15)", *FAST,
        "--against", "networks_here:other", "--layer", "0", "--layer", "[34]",
        "--report", "out.md", "--json", "out.json",
    )  # fmt: skip
    assert code == 0
    assert "ratio" in out
    assert "than networks_here:other in" in " ".join(out.split())
    found = InvarianceProfile.from_json((tmp_path / "out.json").read_text())
    assert found.layers == ("0", "3", "4")
    assert found.against == "networks_here:other"
    assert all(cell.ratio > 0 for cell in found.rows)
    assert "relative ratio" in (tmp_path / "out.md").read_text()


def test_weights_are_loaded(run, tmp_path):
    sys.path.insert(0, str(tmp_path))
    torch.save(importlib.import_module("networks_here").other().state_dict(), "other.pt")
    arguments = ("digits", "-a", "rotation(15)", *FAST, "--json")
    run("networks_here:small", *arguments, "a.json", "--weights", "other.pt")
    run("networks_here:other", *arguments, "b.json")
    a, b = (InvarianceProfile.from_json((tmp_path / f"{name}.json").read_text()) for name in "ab")
    assert a.rows == b.rows
    assert a.network == "networks_here:small (other.pt)"


def test_a_function_beside_the_data_is_an_augmentation(run):
    code, out, _ = run("networks_here:small", "digits", "-a", "sampled(networks_here:same)", *FAST)
    assert code == 0
    assert "sampled(networks_here:same)" in out.replace("\n", "")


def test_networks_of_the_users_that_fail_are_one_line(run, tmp_path):
    base = ("digits", "-a", "rotation(15)", *FAST)
    small = "networks_here:small"
    place = NETWORK[: NETWORK.index("raise")].count("\n") + 1
    words = f"networks_here:broken failed: KeyError: 'width' (networks_here.py:{place})"
    refused(run("networks_here:broken", *base), words)
    refused(run("networks_here:leaves", *base), "networks_here:leaves failed: SystemExit: 3")
    (tmp_path / "half_here.py").write_text("def make(:")
    refused(run("half_here:make", *base), "cannot load half_here:make: SyntaxError", ".py:1)")
    wide = "networks_here:wide cannot take a batch of shape (2, 1, 8, 8)"
    refused(run("networks_here:wide", *base), wide, "that accepts this data")
    refused(run("networks_here:wide", *base, "--layer", "1"), wide)
    refused(run(small, *base, "--against", "networks_here:wide"), wide)


def test_options_without_effect_are_refused(run):
    base = ("networks_here:small", "digits", "-a", "rotation(15)", *FAST)
    refused(run(*base, "--against-weights", "other.pt"), "--against-weights needs --against")
    refused(run(*base, "--pretrained"), "--pretrained is for timm models", "--weights")


def test_bad_input_is_one_line(run, tmp_path):
    base = ("digits", "-a", "rotation(15)", *FAST)
    small = "networks_here:small"
    refused(run("networks_here:nothing", *base), "cannot load networks_here:nothing")
    refused(run("nowhere.pt2", *base), "there is no file nowhere.pt2")
    refused(run(small, *base, "--layer", "conv9"), "no layer 'conv9'", "its layers: input, 0")
    refused(run("networks_here:pair", *base, "--layer", "1"), "returns a tuple, not a tensor")
    refused(
        run(small, *base, "--report", "out.txt"), "the name of a report must end in .html or .md"
    )
    refused(run(small, *base, "--json", "no/out.json"), "the directory no does not exist")
    refused(run(small, "digits", "-a", "turn(3)", *FAST), "turn")
    refused(run(small, "nothing", "-a", "rotation(15)"), "unknown data 'nothing'")
    refused(run(small, *base, "--batch-size", "0"), "'--batch-size'")
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == ["networks_here.py"]
