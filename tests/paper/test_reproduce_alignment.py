"""Figure 2 on the page: models trained side by side, and the rules of its verdicts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from augury.augmentations import identity, rotation
from augury.data import as_dataset
from augury.features import FourierFeatures
from augury.statistics import group_of
from augury_paper import PAPER, QUICK, alignment
from augury_paper.alignment.experiment import transformations
from augury_paper.alignment.models import frequencies, train_heads, train_lenets
from augury_paper.cells import Bench, Images
from augury_paper.networks import lenet, seeded
from augury_paper.sgd import batch_order
from augury_paper.views import FreshViews

CPU = torch.device("cpu")
TINY = replace(
    QUICK, trials=2, n_components=12, batch_size=16, epochs=2, n_views=2, learning_rate=0.05
)


def _images(side: int = 28) -> Images:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (60, side, side), dtype=np.uint8)
    y = np.arange(60) % 3
    return Images(
        as_dataset(x[:36], y[:36], kind="image"), as_dataset(x[36:], y[36:], kind="image")
    )


def _silent(share: float) -> None:
    assert 0 <= share <= 1


def test_heads_train_as_each_would_alone() -> None:
    images, gamma = _images(8), 0.01
    omega = frequencies((1, 8, 8), gamma, TINY, CPU)
    found = train_heads(images, identity(), omega, TINY, CPU, _silent)
    for trial, accuracy in enumerate(found):
        phi = FourierFeatures(TINY.n_components, gamma=gamma, seed=trial).fit(
            torch.zeros(1, 1, 8, 8)
        )

        def features(data: Any, phi: Any = phi) -> torch.Tensor:
            x = data.batch(torch.arange(len(data)), CPU, torch.float32)
            return phi(x) * TINY.size

        head = torch.nn.Linear(TINY.n_components, 3)
        torch.nn.init.zeros_(head.weight)
        torch.nn.init.zeros_(head.bias)
        descent = torch.optim.SGD(head.parameters(), TINY.learning_rate, momentum=TINY.momentum)
        generator, x = torch.Generator().manual_seed(trial), features(images.train)
        for _ in range(TINY.epochs):
            for rows in torch.randperm(36, generator=generator).split(TINY.batch_size):
                descent.zero_grad()
                F.cross_entropy(head(x[rows]), images.train.y[rows]).backward()
                descent.step()
        right = head(features(images.test)).argmax(1) == images.test.y
        assert accuracy == right.double().mean().item()


def test_every_cell_gives_a_number_a_transformation() -> None:
    """On a few images; the alignment and its error are those of their definition."""
    settings = replace(TINY, epochs=1, examples=36, tests=24, datasets=("mnist",))
    images, shares = _images(28), []
    bench = Bench(CPU, lambda name: images, lambda share, words: shares.append(share))
    found = {cell.name: cell.run(bench) for cell in alignment.cells(settings)}
    specs = list(transformations("mnist"))
    assert all(part["specs"] == specs for part in found.values())
    assert found["mnist-trial"]["gain"][0] == 0
    assert len(set(found["mnist-trial"]["gain"])) > 3
    assert np.shape(found["mnist-rbf"]["accuracy"]) == (len(specs), settings.trials)
    assert np.shape(found["mnist-lenet"]["accuracy"]) == (len(specs), settings.trials)
    assert max(shares) == 1

    x, y = images.train.x.float() / 255, F.one_hot(images.train.y, 3).double()
    scores = found["mnist-alignment"]
    phi = FourierFeatures(settings.n_components, gamma=scores["gamma"], seed=0).fit(x[:1])
    psi = phi(x).double()

    def aligned(rows: torch.Tensor) -> float:
        k, same = psi[rows] @ psi[rows].mT, y[rows] @ y[rows].mT
        return float((k * same).sum() / k.norm() / same.norm())

    every = torch.arange(len(x))
    assert scores["alignment"][0] == pytest.approx(aligned(every), rel=1e-5)
    groups = group_of(every, 10)
    left = torch.tensor([aligned(every[groups != g]) for g in range(10)])
    error = float((9 / 10 * (left - left.mean()).square().sum()).sqrt())
    assert scores["error"][0] == pytest.approx(error, rel=1e-3)


def test_lenets_train_as_each_would_alone() -> None:
    images = _images()
    tiny = replace(TINY, epochs=1)
    found = train_lenets(images, rotation(15), tiny, CPU, _silent)
    views = FreshViews(images.train, rotation(15), CPU)
    views.renew(0)
    for trial, accuracy in enumerate(found):
        net = seeded(lambda: lenet(1, 28, 3), trial)
        descent = torch.optim.SGD(net.parameters(), tiny.learning_rate, momentum=tiny.momentum)
        for rows in batch_order(36, tiny.batch_size, 1, 0, CPU):
            descent.zero_grad()
            F.cross_entropy(net(views[rows]), images.train.y[rows]).backward()
            descent.step()
        x = images.test.batch(torch.arange(24), CPU, torch.float32)
        assert accuracy == (net(x).argmax(1) == images.test.y).double().mean().item()


def test_views_are_new_in_each_epoch_and_the_same_again() -> None:
    data = _images().train
    one, other = (FreshViews(data, rotation(15), CPU) for _ in range(2))
    one.renew(0)
    first = one.x.clone()
    one.renew(1)
    other.renew(0)
    assert torch.equal(first, other.x)
    assert not torch.equal(first, one.x)


def test_the_appendix_lists_the_transformations() -> None:
    assert "rotation(15)" in transformations("mnist")
    assert "rotation(5)" in transformations("cifar10")
    assert [len(transformations(name)) for name in ("mnist", "cifar10")] == [7, 7]


def test_cells_are_those_of_the_data_sets_asked_for() -> None:
    names = [cell.name for cell in alignment.cells(PAPER)]
    assert len(names) == len(set(names)) == 2 * 4
    only = alignment.cells(replace(PAPER, datasets=("cifar10", "mammograms")))
    assert {cell.dataset for cell in only} == {"cifar10"}
    assert (
        only[0].setting == next(c for c in alignment.cells(PAPER) if c.name == only[0].name).setting
    )


def _results(accuracy: list[float], score: list[float]) -> dict[str, dict[str, Any]]:
    specs = transformations("mnist")
    found: dict[str, dict[str, Any]] = {
        "mnist-alignment": {"specs": specs, "alignment": score, "error": [0.01] * 7}
    }
    for model in ("rbf", "lenet"):
        each = [[value, value + 0.0001] for value in accuracy]
        found[f"mnist-{model}"] = {"specs": specs, "accuracy": each}
    return found


def test_verdicts_follow_the_correlation() -> None:
    rising = [0.90, 0.97, 0.91, 0.89, 0.80, 0.92, 0.93]  # rotation best, flips worst
    score = [0.40, 0.47, 0.41, 0.39, 0.30, 0.42, 0.43]
    section = alignment.section(_results(rising, score), PAPER)
    verdicts = [claim.verdict for claim in section.claims]
    assert verdicts == ["holds", "holds", *["could not be checked"] * 2, "holds"]
    assert "rank correlation 1.00 ± 0.00" in section.claims[0].ours
    assert len(section.plots) == 2
    falling = alignment.section(_results(rising, [-value for value in score]), PAPER)
    assert falling.claims[0].verdict == "does not hold"
    same = alignment.section(_results([0.9] * 7, score), PAPER)
    assert same.claims[1].verdict == "could not be checked"  # 0 of so few may be anything


def test_nothing_known_is_said_and_nothing_fails() -> None:
    claims = alignment.section({}, PAPER).claims
    assert {claim.verdict for claim in claims} == {"could not be checked"}
    partial = _results([0.9] * 7, [0.4] * 7)
    del partial["mnist-lenet"]
    assert alignment.section(partial, PAPER).claims[1].verdict == "could not be checked"
