"""Features averaged over views, as a module: loaded, and asked for a gradient."""

from __future__ import annotations

import torch
from refusal import refused

from augury.augmentations import parse
from augury.features import AugmentedFourier, FourierFeatures

TURN = parse("rotation(15)")


def test_loaded_frequencies_are_those_of_the_views_too():
    x = torch.rand(20, 1, 6, 6)
    one, other = (
        AugmentedFourier(TURN, FourierFeatures(32, gamma=0.1, seed=seed), n_views=4).fit(x)
        for seed in (0, 1)
    )
    assert not torch.allclose(one(x), other(x))
    other.load_state_dict(one.state_dict())
    assert torch.equal(one(x), other(x))


def test_a_lost_gradient_is_refused():
    x = torch.rand(4, 1, 6, 6)
    phi = FourierFeatures(32, gamma=0.1).fit(x)
    psi = AugmentedFourier(TURN, FourierFeatures(32, gamma=0.1), n_views=4).fit(x)
    for features in (phi, psi):
        refused("no gradient with respect to their input", features, x.clone().requires_grad_())
        with torch.no_grad():
            assert features(x.clone().requires_grad_()).shape == (4, 32)
