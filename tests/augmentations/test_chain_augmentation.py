"""`Chain`: an augmentation that draws from the stationary law, exactly."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from refusal import refused
from scipy.stats import chisquare, geom

from augury._base.rng import Rng
from augury.augmentations import (
    Chain,
    flips,
    horizontal_flip,
    noise,
    parse,
    pixel_shifts,
    quarter_turns,
    rotation,
    shear,
)
from augury.markov import enumerate_orbits


def everyone(b):
    return torch.arange(b)


@pytest.mark.parametrize(
    "text",
    [
        "chain(rotation(15):2, blur(0.5,2.0):1)",
        "chain((rotation(15) >> noise(0.1)):0.5, (flips | invert):2, pixel_shifts ** 2:1e-3)",
        "chain(chain(flips:1, invert:2):3) >> rotation(15)",
    ],
)
def test_its_repr_is_its_spec(text):
    chain = parse(text)
    assert parse(repr(chain)) == chain
    assert repr(parse("chain(flips:2,rotation(15))")) == "chain(flips:2, rotation(15):1)"


def test_walks_are_geometric_and_parts_are_picked_by_rate():
    chain = Chain((flips(), rotation(15)), (2, 1))
    steps = chain.draw(40, Rng(0, everyone(1000)))
    choices = torch.stack([step[0] for step in steps])
    moves = choices != 2
    assert not moves[-1].any()
    assert moves[-2].any()
    assert (moves[1:] <= moves[:-1]).all()  # a walk that has ended stays ended
    lengths = moves.sum(0).flatten().numpy()
    bins = np.bincount(np.minimum(lengths, 15), minlength=16)
    law = geom(0.25, loc=-1)
    expected = np.append(law.pmf(np.arange(15)), law.sf(14)) * lengths.size
    assert chisquare(bins, expected).pvalue > 1e-3
    picked = np.bincount(choices[moves].numpy())
    assert chisquare(picked, picked.sum() * np.array([2 / 3, 1 / 3])).pvalue > 1e-3


def test_draws_do_not_depend_on_the_batch():
    chain = parse("chain(rotation(15):2, noise(0.1):1, (flips | cutout(0.25)):1)")
    x = torch.rand(9, 2, 8, 8)
    whole = chain.views(x, 6, Rng(3, everyone(9)))
    assert whole.shape == (6, 9, 2, 8, 8)
    part = chain.views(x[4:7], 3, Rng(3, torch.arange(4, 7)))
    torch.testing.assert_close(whole[:3, 4:7], part)
    assert not torch.equal(whole, chain.views(x, 6, Rng(4, everyone(9))))


def test_walks_that_end_at_once_leave_the_example_alone():
    chain = Chain((noise(0.5),), (1,))
    params = chain.draw(50, Rng(0, everyone(4)))
    x = torch.rand(4, 1, 5, 5)
    out = chain.apply(x.unsqueeze(0), params)
    ended = params[0][0] == 1
    assert 60 < ended.sum() < 140
    same = (out == x).flatten(2).all(2)
    assert torch.equal(same, ended)


def test_a_step_applies_the_parts_in_turn():
    chain = Chain((rotation(30), shear(20)), (2, 2))
    x = torch.rand(3, 1, 8, 8, dtype=torch.float64)
    params = chain.draw(5, Rng(1, everyone(3)))
    out = chain.apply(x.unsqueeze(0), params)
    for i in range(5):
        for j in range(3):
            now = x[j].reshape(1, 1, 1, 8, 8)
            for choice, *step in params:
                k = int(choice[i, j])
                if k < 2:
                    now = chain.parts[k].apply(now, step[k][i, j].reshape(1, 1))
            torch.testing.assert_close(out[i, j], now[0, 0])


def test_shared_maps_have_an_adjoint_where_all_parts_are_linear():
    chain = Chain((rotation(30), shear(20)), (2, 2))
    assert chain.linear
    assert not Chain((noise(0.1),), (1,)).linear
    shared = chain.draw(6, Rng(0, torch.zeros(1, dtype=torch.int64)))
    x, w = torch.rand(2, 3, 1, 8, 8, dtype=torch.float64)
    out = chain.apply(x.unsqueeze(0), shared)
    assert out.shape == (6, 3, 1, 8, 8)
    forward = (out * w).sum((2, 3, 4))
    back = (chain.adjoint(w, shared) * x).sum((2, 3, 4))
    torch.testing.assert_close(forward, back)


def test_apply_leaves_its_input_alone_and_is_differentiable():
    chain = Chain((horizontal_flip(), rotation(15)), (3, 1))
    x = torch.rand(2, 1, 6, 6, dtype=torch.float64, requires_grad=True)
    before = x.detach().clone()
    chain.views(x, 4, Rng(0, everyone(2))).square().sum().backward()
    assert torch.equal(x.detach(), before)
    assert x.grad is not None
    assert x.grad.abs().sum() > 0


def test_draws_follow_the_stationary_law_on_images():
    # one lit pixel on a 5 × 10 torus: 50 states, and the finite chain knows their law
    dot = torch.zeros(1, 1, 5, 10)
    dot[..., 2, 3] = 1
    chain = parse("chain(pixel_shifts:4, flips:1)")
    orbits = enumerate_orbits(dot, chain)
    assert len(orbits.states) == 50
    law = orbits.chain.stationary()
    drawn = chain.views(dot, 100_000, Rng(0, everyone(1))).flatten(1).argmax(1).numpy()
    lit = orbits.states.reshape(50, -1).argmax(1)
    counts = np.bincount(drawn, minlength=50)[lit]
    assert chisquare(counts, 100_000 * law).pvalue > 1e-3


def test_pixel_shifts_lose_nothing():
    x = torch.arange(24.0).reshape(1, 2, 3, 4)
    shifted = torch.stack(pixel_shifts().maps(x))
    assert len(shifted) == pixel_shifts().size == 5
    assert torch.equal(shifted.flatten(2).sort(-1).values, x.flatten(1).expand(5, 1, -1))
    for one, back in ((1, 2), (3, 4)):
        assert torch.equal(pixel_shifts().maps(shifted[one])[back], x)
    assert parse("pixel_shifts") == pixel_shifts()


def test_bad_chains_are_refused():
    refused("expected an augmentation in a chain, got 3", Chain, (3,), (1,))
    refused("at least one augmentation", parse, "chain()")
    refused("must be 0 or more, but rate 1 is -1", Chain, (flips(), flips()), (1, -1))
    refused("all rates of the chain are zero", parse, "chain(flips:0, invert:0)")
    refused("got 1 augmentation and 2 rates", Chain, (flips(),), (1, 2))
    refused("expected ','", parse, "chain(flips:1 invert:2)")
    refused("needs square images", Chain((quarter_turns(),), (1,)).check, (1, 4, 6))
