from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from augury._base.rng import Rng, mix, mix_int, normal_from, uniform_from


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**40), st.integers(2, 30), st.integers(1, 7))
def test_draws_do_not_depend_on_batching_or_on_how_many_versions(seed, examples, split):
    split = min(split, examples - 1)
    whole = Rng(seed, torch.arange(examples))
    parts = [Rng(seed, torch.arange(split)), Rng(seed, torch.arange(split, examples))]
    assert torch.equal(whole.uniform(4, 3), torch.cat([p.uniform(4, 3) for p in parts], dim=1))
    assert torch.equal(whole.uniform(4)[:2], whole.uniform(2))
    assert torch.equal(
        whole.child(2).key(3)[:, 0], Rng(seed, torch.tensor([0])).child(2).key(3)[:, 0]
    )


def test_children_seeds_examples_and_versions_differ():
    rng = Rng(0, torch.arange(50))
    streams = [
        rng.key(8),
        rng.child(0).key(8),
        rng.child(1).key(8),
        Rng(1, torch.arange(50)).key(8),
    ]
    assert len(torch.cat([s.flatten() for s in streams]).unique()) == 4 * 50 * 8


def test_uniform_is_uniform_and_normal_is_normal():
    u = Rng(3, torch.arange(4000)).uniform(8, 5).double()
    counts = torch.histc(u, bins=20, min=0, max=1)
    expected = u.numel() / 20
    assert float(((counts - expected) ** 2 / expected).sum()) < 45.3  # chi-square, 19, p = 0.0006
    z = normal_from(Rng(5, torch.arange(4000)).key(8), 5).double()
    assert float(z.mean()) == pytest.approx(0, abs=0.01)
    assert float(z.std()) == pytest.approx(1, abs=0.01)
    assert float((z**4).mean()) == pytest.approx(3, abs=0.1)
    flat = z.flatten(0, 1)
    off = (flat.T @ flat / len(flat)) - torch.eye(5)
    assert float(off.abs().max()) < 0.03


def test_uniform_numbers_are_inside_the_open_interval():
    words = torch.cat([torch.arange(100), 2**24 - 1 - torch.arange(100)])
    found = uniform_from(words)
    assert float(found.min()) > 0
    assert float(found.max()) < 1
    assert float(normal_from(torch.tensor([0]), 2).abs().max()) < torch.inf
    others = words[words != 2**24 - 1]  # all but the one word that gave 1 are as they were
    expected = (others.to(torch.float32) + 0.5) / 2**24
    assert torch.equal(uniform_from(others), expected)


def test_whole_numbers_are_even():
    counts = torch.bincount(Rng(1, torch.arange(10000)).integers(3, 4).flatten(), minlength=4)
    assert float((counts / 30000 - 0.25).abs().max()) < 0.01


@given(st.integers(-(2**63), 2**63 - 1))
def test_an_integer_is_scrambled_as_a_tensor_is(value):
    assert mix_int(value) == int(mix(torch.tensor(value)))
