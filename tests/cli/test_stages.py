"""Each stage between the command and its page is passed once (docs/walkthrough.md)."""

from __future__ import annotations

import functools
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from refusal import said_in_one_line as refused
from sklearn.datasets import load_digits
from torch.utils.data import TensorDataset

import augury
import augury.forecasting.policy  # before anything is counted: a module keeps what it imports
import augury.forecasting.rank
from augury._base.devices import resolve_device
from augury.data import Preparation
from augury.data.labels import encode
from augury.data.load import prepare
from augury.report.findings import find
from augury.results.strength import strength_curves


@pytest.fixture
def count(monkeypatch):
    """Count the calls of functions, under whatever name a module of ours holds them."""
    calls: dict[str, int] = {}

    def watch(function):
        calls[function.__name__] = 0

        @functools.wraps(function)
        def counted(*args, **kwargs):
            calls[function.__name__] += 1
            return function(*args, **kwargs)

        for name, module in list(sys.modules.items()):
            if name.split(".")[0] == "augury":
                for key, value in list(vars(module).items()):
                    if value is function:
                        monkeypatch.setattr(module, key, counted)
        return counted

    def start(*functions):
        for function in functions:
            watch(function)
        fit = watch(Preparation.fit.__func__)
        monkeypatch.setattr(Preparation, "fit", classmethod(fit))
        return calls

    return start


@pytest.fixture
def photos(tmp_path):
    digits = load_digits()
    for i in range(120):
        folder = tmp_path / "photos" / f"class {digits.target[i] % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray((digits.images[i] * 15).astype(np.uint8)).save(folder / f"{i}.png")
    return tmp_path / "photos"


@pytest.mark.parametrize("most", [0, 80])
def test_rank_of_a_directory_passes_each_stage_once(run, photos, count, most):
    calls = count(encode, prepare, resolve_device, strength_curves, find)
    code, _, err = run(
        "rank", photos, "--sweep", "-a", "rotation", "--effort", "0", "--max-examples", most,
        "--report", "page.html",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert calls == {
        "encode": 1, "prepare": 1, "fit": 1, "resolve_device": 1, "strength_curves": 1, "find": 1,
    }  # fmt: skip


def sources(tmp_path):
    digits = load_digits()
    x, y = digits.images[:100].astype(np.float32), digits.target[:100] % 2
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    pairs = list(zip(x, y.tolist(), strict=True))
    yield (x, y)
    yield (TensorDataset(torch.from_numpy(x), torch.from_numpy(y)),)
    yield (pairs,)
    yield (iter(pairs),)
    yield (tmp_path / "x.npy",)


@pytest.mark.parametrize("which", range(5))
@pytest.mark.parametrize("most", [None, 40])
def test_labels_are_encoded_once_and_all_examples_counted(tmp_path, count, which, most):
    given = list(sources(tmp_path))[which]
    calls = count(encode)
    data = augury.as_dataset(*given, max_examples=most)
    assert calls == {"encode": 1, "fit": 1}
    assert (len(data), data.total) == (most or 100, 100)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is CUDA here")
@pytest.mark.parametrize("command", ["rank", "policy", "fit"])
def test_a_missing_device_is_refused_before_data_are_read(run, photos, count, command):
    calls = count(prepare)
    out = ("--out", "m") if command == "fit" else ()
    refused(run(command, photos, "--device", "cuda", *out), "torch finds no CUDA")
    assert calls["prepare"] == 0
