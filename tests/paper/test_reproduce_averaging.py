"""Figure 3 of the paper: LeNets that average at a layer, all trials at once."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from augury._base.rng import Rng
from augury.augmentations import parse
from augury.data.dataset import Dataset
from augury.networks.averaging import Averaging
from augury.objectives import multinomial
from augury_paper.averaging import cells, section
from augury_paper.averaging.experiment import train
from augury_paper.averaging.methods import AUGMENTATION, Method, methods
from augury_paper.averaging.page import best, summary
from augury_paper.cells import Bench, Images
from augury_paper.networks import LAYERS, LeNets, SummedLoss, lenet, seeded
from augury_paper.settings import CORES, PAPER, QUICK
from augury_paper.sgd import batch_order
from augury_paper.views import FreshViews, Pool

CPU = torch.device("cpu")
TINY = replace(
    QUICK, trials=2, batch_size=8, epochs=1, n_views=8, examples=24, tests=12, learning_rate=0.1
)
METHODS = list(dict.fromkeys(method for part in methods(8).values() for method in part))


def pictures(count: int, seed: int, side: int = 12) -> Dataset:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 256, (count, 1, side, side), generator=generator, dtype=torch.uint8)
    return Dataset(x, torch.arange(count) % 3, ("a", "b", "c"))


def alone(method: Method, net: torch.nn.Module, views, weights, x, y, seed: int) -> torch.Tensor:
    """One network's losses, by the public interface."""
    if method.n_views < 2:
        return multinomial(net(x), y)
    if method.layer is None:
        each = [w * multinomial(net(v), y) for v, w in zip(views, weights, strict=True)]
        return torch.stack(each).sum(0)
    extra = {"directions": 1} if method.order == 2 else {}
    averaging = Averaging(
        AUGMENTATION,
        LAYERS[method.layer],
        method.n_views,
        order=method.order,
        groups=method.groups,
        **extra,
    )
    return averaging.losses_of(net, views, y, weights=weights, seed=seed)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_members_average_as_they_would_alone(method, dense):
    members = [seeded(lambda: lenet(1, 12, 3), k).double() for k in range(2)]
    joined = LeNets.of(members, dense=dense).double()
    n = max(method.n_views, 1)
    generator = torch.Generator().manual_seed(0)
    views = torch.rand(n, 4, 1, 12, 12, generator=generator, dtype=torch.float64)
    weights = torch.rand(n, generator=generator, dtype=torch.float64)
    weights /= weights.sum()
    x, y = views[0], torch.tensor([0, 1, 2, 0])
    keys = Rng(5, torch.arange(4)).child(0).keys  # as Averaging draws them for seed 5
    together = method.losses(joined, views, weights, y, keys)
    each = [alone(method, net, views, weights, x, y, 5) for net in members]
    torch.testing.assert_close(together, torch.stack(each).sum(0), rtol=0, atol=1e-10)
    together.sum().backward()
    for k, (net, losses) in enumerate(zip(members, each, strict=True)):
        losses.sum().backward()
        grad = net.get_submodule("conv2").weight.grad
        torch.testing.assert_close(joined.conv2.weight.grad[k], grad, rtol=0, atol=1e-10)


@pytest.mark.parametrize("falling", [False, True])
@pytest.mark.parametrize(
    "method", [Method("none", 0), Method("one", 1), Method("layer 1, order 1", 4, 1)]
)
def test_training_together_is_training_alone(method, falling):
    data = pictures(24, 0)
    pool = Pool.of(data, parse(AUGMENTATION), 4, CPU)
    tiny = replace(TINY, falling=falling)
    model, seconds = train(method, pool, data, tiny, lambda share: None, torch.float64)
    fresh = FreshViews(data, parse(AUGMENTATION), CPU)
    fresh.renew(0)
    images = fresh.x if method.n_views == 1 else data.x
    assert seconds > 0
    for k in range(2):
        net = seeded(lambda: lenet(1, 12, 3), k).double()
        optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
        for k_step, rows in enumerate(batch_order(24, 8, 1, 0, CPU)):
            if falling:
                optimizer.param_groups[0]["lr"] = 0.1 * (1 - k_step / 3)
            views = pool.views[:, rows].double() / 255
            x, weights = images[rows].double() / 255, pool.weights.double()
            optimizer.zero_grad()
            alone(method, net, views, weights, x, data.y[rows], 0).mean().backward()
            optimizer.step()
        expected = net.get_submodule("conv2").weight
        torch.testing.assert_close(model.conv2.weight[k], expected, rtol=0, atol=1e-10)


def test_the_joint_loss_is_the_sum_with_its_own_curvature():
    output = torch.randn(5, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    delta, y = output.flip(0), torch.tensor([0, 1, 2, 3, 0])
    loss = SummedLoss()
    expected = sum(F.cross_entropy(output[:, k], y, reduction="none") for k in range(3))
    torch.testing.assert_close(loss(output, y), expected)
    for b in range(5):
        hessian = torch.autograd.functional.hessian(
            lambda out, b=b: loss(out.view(1, 3, 4), y[b : b + 1]).sum(), output[b].flatten()
        )
        value = delta[b].flatten() @ hessian @ delta[b].flatten()
        torch.testing.assert_close(loss.curvature(output, delta, y)[b], value)


def test_cells_hold_full_and_none_to_compare_with():
    found = cells(PAPER)
    names = [f"mnist-{part}" for part in ("first", "second", "fewer", "usual")]
    assert [cell.name for cell in found[:4]] == names
    assert len(found) == 8
    for cell in found:
        assert [method["name"] for method in cell.setting["methods"][:2]] == ["full", "none"]
        assert json.loads(json.dumps(cell.setting)) == cell.setting
    layers = [(w["layer"], w["order"]) for c in found[:2] for w in c.setting["methods"][2:]]
    assert layers == [(k, order) for order in (1, 2) for k in range(5)]


def test_what_people_choose_between_can_be_measured_together():
    (cell,) = (c for c in cells(CORES) if c.dataset == "cifar10")
    names = [method["name"] for method in cell.setting["methods"]]
    assert names[:3] == ["full", "none", "1 random view"]
    assert {"4 views", "layer 0, 4 groups", "layer 0, order 1", "layer 0, order 2"} <= set(names)
    known = {method.name for part in methods(8).values() for method in part}
    assert set(names) <= known  # so that the page knows what each computes


def test_a_cell_gives_the_same_numbers_each_time():
    images = Images(pictures(24, 0), pictures(12, 1))
    shares: list[float] = []
    bench = Bench(CPU, lambda name: images, lambda share, words: shares.append(share))
    (cell,) = (c for c in cells(replace(TINY, epochs=7)) if c.name == "mnist-second")
    one, two = (cell.run(bench)["methods"] for _ in range(2))
    assert json.loads(json.dumps(one)) == one
    for found in (*one.values(), *two.values()):
        assert found.pop("training_seconds") > 0
        assert found.pop("processor_seconds") > 0
    assert one == two
    assert one["full"]["kl"] == [0.0, 0.0]
    assert all(value > 0 for value in one["none"]["kl"])
    assert shares[: len(shares) // 2] == sorted(shares[: len(shares) // 2])


def made(points: dict[str, tuple[float, float]]) -> dict:
    """Methods with these shares of a gain of ten points, and of the time."""
    rows = {"none": (0.0, 0.1), "full": (1.0, 1.0), **points}
    out = {}
    for name, (kept, time) in rows.items():
        layer = int(name[6]) if name.startswith("layer") else None
        out[name] = {
            "layer": layer,
            "order": 2 if "order 2" in name else 1,
            "groups": 2 if "groups" in name else 1,
            "accuracy": [0.8 + 0.1 * kept - 0.01, 0.8 + 0.1 * kept + 0.01],
            "kl": [0.0 if name == "full" else 0.01 / (1 + (layer or 0))] * 2,
            "training_seconds": 20 * time,
        }
    return {"methods": out}


def test_what_is_kept_is_a_share_of_the_gain():
    rows = {
        row["method"]: row
        for row in summary(
            made({"layer 1, order 1": (0.9, 0.5)})["methods"], {"layer 1, order 1": 0.4}
        )
    }
    assert rows["layer 1, order 1"]["kept"] == pytest.approx(0.9)
    assert rows["layer 1, order 1"]["time"] == pytest.approx(0.5)
    assert rows["layer 1, order 1"]["compute"] == 0.4
    assert rows["none"]["kept"] == pytest.approx(0)
    timed = made({"layer 1, order 1": (0.9, 0.5)})["methods"]
    for name, method in timed.items():  # the clock counts what else a CPU did
        method["processor_seconds"] = 8.0 if name == "full" else 2.0
    (row,) = (row for row in summary(timed, {}) if row["layer"] == 1)
    assert row["time"] == pytest.approx(0.25)
    found = made({})["methods"]
    found["full"]["accuracy"] = [0.81, 0.85]  # gains of 0.02 and 0.04
    found["none"]["accuracy"] = [0.79, 0.81]
    found["half"] = found["none"] | {"accuracy": [0.80, 0.84]}  # 0.01 and 0.03 of them
    (half,) = (row for row in summary(found, {}) if row["method"] == "half")
    assert half["kept"] == pytest.approx(2 / 3)
    assert half["kept_se"] == pytest.approx(abs(3 / 4 - 1 / 2) / 2)  # the jackknife of two


@pytest.mark.parametrize(
    ("points", "chosen"),
    [
        ({"layer 0, order 1": (0.96, 0.4), "layer 1, order 1": (0.99, 0.45)}, "layer 0, order 1"),
        ({"layer 0, order 1": (0.93, 0.4), "layer 1, order 1": (0.95, 0.6)}, "layer 0, order 1"),
        ({"layer 0, order 1": (0.5, 0.2), "layer 1, order 1": (0.8, 0.6)}, "layer 1, order 1"),
        ({"layer 2, order 1": (0.9, 0.9)}, "layer 2, order 1"),
    ],
)
def test_the_best_way_is_chosen_by_rule(points, chosen):
    compute = {name: time for name, (_, time) in points.items()}
    found = best(summary(made(points)["methods"], compute))
    assert found is not None
    assert found["method"] == chosen


def test_verdicts_follow_the_numbers():
    def said(points: dict[str, tuple[float, float]]) -> list[str]:
        base = {"layer 0, order 1": (0.1, 0.1), "layer 4, order 1": (1.0, 0.95)}
        return [c.verdict for c in section({"mnist-first": made(base | points)}, PAPER).claims[:3]]

    assert said({"layer 1, order 1": (0.93, 0.6)}) == ["holds", "holds", "holds"]
    assert said({"layer 1, order 1": (0.8, 0.6)})[0] == "holds weaker"
    assert said({"layer 1, order 1": (0.4, 0.6)})[0] == "does not hold"
    assert said({"layer 1, 2 groups": (0.96, 0.4)})[:2] == ["does not hold", "holds"]
    assert said({"layer 4, order 1": (1.0, 0.05)})[2] == "holds weaker"
    flat = made({"layer 0, order 1": (0.5, 0.5), "layer 4, order 1": (1.0, 0.9)})
    flat["methods"]["full"]["accuracy"] = flat["methods"]["none"]["accuracy"]
    found = section({"mnist-first": flat}, PAPER)
    assert found.claims[0].verdict == "could not be checked"
    assert "gained nothing" in found.claims[0].ours
    assert len(found.plots) == 1  # the divergence can still be shown


def test_what_is_missing_could_not_be_checked():
    empty = section({}, PAPER)
    assert {claim.verdict for claim in empty.claims} == {"could not be checked"}
    assert not empty.plots
    second = section({"mnist-second": made({"layer 1, order 2": (0.95, 0.5)})}, PAPER)
    assert second.claims[0].verdict == "holds"
    assert second.claims[2].verdict == "could not be checked"


def test_what_sets_a_cell_apart_stands_above_its_table():
    base = {"layer 0, order 1": (0.1, 0.1), "layer 4, order 1": (1.0, 0.95)}
    cells = {"mnist-first": made(base), "mnist-fewer": made({}) | {"note": "5,000 test images"}}
    (table,) = section(cells, PAPER).tables
    assert table.title == "MNIST: methods of training (5,000 test images)"
