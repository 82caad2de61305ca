"""What averaging refuses, each in one line that says what to do."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference_networks import ResNet, batch, make
from refusal import refused
from torch import nn
from torch.utils.checkpoint import checkpoint

from augury import Averaging, TangentPropagation

T = "rotation(15)"


def test_bad_layers_are_refused_in_one_line():
    model, (x, y) = make("resnet")[0], batch()
    for size in (1, 5):  # at one example broadcasting would hide it
        for layer, better in (
            ("layer1.0.conv1", "layer1.0"),
            ("layer1.1.bn2", "layer1.1"),
            ("layer2.0.down", "layer2.0"),
        ):
            words = f"'{layer}' does not cut the network|average at '{better}' instead"
            refused(words, Averaging(T, layer, 2).loss, model, x[:size], y[:size])
    refused(
        "'layer1.0.relu' is called 2 times|average at 'layer1.0' instead",
        Averaging(T, "layer1.0.relu", 2).loss, model, x, y,
    )  # fmt: skip
    words = "no layer 'layer1.0.conv'|similar names: layer1.0.conv"
    refused(words, Averaging(T, "layer1.0.conv", 2).loss, model, x, y)
    vit = make("vit")[0]
    refused("average at 'blocks.1' instead", Averaging(T, "blocks.1.mlp.0", 2).loss, vit, x, y)


def test_a_path_that_autograd_cannot_see_is_seen():
    class Hidden(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x):
            return self.b(self.a(x)) * (1 + x.detach().sum(1, keepdim=True))

    x, y = torch.rand(3, 4), torch.arange(3) % 2
    refused("'a' does not cut", Averaging("jitter(0.1)", "a", 2).loss, Hidden(), x, y, seed=0)


def test_a_path_that_carries_nothing_yet_is_seen():
    class Gated(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.gate = (
                nn.Linear(4, 4),
                nn.Linear(4, 2),
                nn.Parameter(torch.zeros(1)),
            )

        def forward(self, x):
            return self.b(self.a(x) + self.gate * x)

    x, y = torch.rand(3, 4), torch.arange(3) % 2
    how = Averaging("jitter(0.1)", "a", 2)
    refused("'a' does not cut|average at 'b'", how.loss, Gated(), x, y, seed=0)


def test_a_layer_that_remembers_the_input_is_seen():
    class Memory(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.mid, self.last = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x):
            self.kept = self.first(x)
            return self.last(self.mid(self.kept) + self.kept)

    x, y = torch.rand(3, 4), torch.arange(3) % 2
    how = Averaging("jitter(0.1)", "mid", 2)
    refused("'mid' does not cut|'last'", how.loss, Memory(), x, y, seed=0)


@pytest.mark.filterwarnings("ignore:None of the inputs")  # a pass without gradients, as meant
@pytest.mark.parametrize("reentrant", [False, True])
def test_a_layer_inside_a_checkpoint_is_refused(reentrant):
    class Checkpointed(ResNet):
        def forward(self, x):
            x = torch.relu(self.bn1(self.conv1(x)))
            for stage in (self.layer1, self.layer2):
                x = checkpoint(stage, x, use_reentrant=reentrant)
            return self.fc(self.pool(x).flatten(1))

    torch.manual_seed(0)
    model, (x, y) = Checkpointed().double(), batch()
    how = Averaging(T, "layer1.0", 2)
    refused("'layer1.0' is inside a checkpoint|instead", how.loss, model, x, y)
    how = Averaging(T, "pool", 2)
    how.loss(model, x, y).backward()  # and one after it trains as ever
    twin = ResNet().double()
    twin.load_state_dict(make("resnet")[0].state_dict())
    how.loss(twin, x, y).backward()
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


class Pair(nn.Module):
    def forward(self, x):
        return x, x


class Swapped(nn.Module):
    """A layer that puts time first, as old transformers do."""

    def forward(self, x):
        return x.transpose(0, 1)


def test_outputs_that_cannot_be_averaged_are_refused():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.pair, self.end = Pair(), nn.Linear(4, 2)

        def forward(self, x):
            return self.end(self.pair(x)[0])

    x, y = torch.rand(3, 4), torch.arange(3) % 2
    how = Averaging("jitter(0.1)", "pair", 2)
    refused("'pair' returns a tuple, not a tensor", how.loss, Both(), x, y, seed=0)
    model = nn.Sequential(nn.Linear(4, 3), Swapped(), Swapped(), nn.Linear(3, 2))
    how = Averaging("jitter(0.1)", "1", 2)
    refused("first dimension must be the batch|'2'", how.loss, model, x, y, seed=0)
    twice = nn.Sequential(nn.Linear(4, 3), Pair())
    refused(
        "the network returns a tuple", Averaging("jitter(0.1)", "0", 2).loss, twice, x, y, seed=0
    )


def test_bad_settings_are_refused_in_one_line():
    refused("at least 2 views, got n_views=1", Averaging, T, "pool1", 1)
    refused("layer must be a layer's path|'input', not 2", Averaging, T, 2)
    refused("expected an augmentation|got a number", Averaging, 3, "pool1")
    refused("order must be 1 or 2, not 3", Averaging, T, "pool1", order=3)
    refused("curvature must be|'newton'", Averaging, T, "pool1", order=2, curvature="newton")
    refused("directions must be 1 or more", Averaging, T, "pool1", order=2, directions=0)
    refused("groups must divide the 16 views, got 3", Averaging, T, "pool1", groups=3)
    refused("curvature must be", TangentPropagation, T, curvature="x")
    model, (x, y) = make("lenet")[0], batch()
    loss = nn.CrossEntropyLoss()
    refused("one number|reduction='none'", Averaging(T, "pool1", 2).loss, model, x, y, loss)
    refused("drawn at random: pass seed=", Averaging("noise(0.1)", "pool1", 2).loss, model, x, y)
    how = Averaging(T, "pool1", 2, order=2, directions=1)
    refused("drawn at random: pass seed=", how.loss, model, x, y)
    how = Averaging("flips", "pool1", 16, groups=8)
    refused("the 4 views that flips has, got 8", how.loss, model, x, y)
    refused(
        "horizontal_flip has no tangent", TangentPropagation("horizontal_flip").loss, model, x, y
    )
    refused("must be a torch.nn.Module", Averaging(T, "pool1", 2).loss, lambda x: x, x, y)


def test_indices_may_be_a_list_and_must_be_one_for_each_example():
    model, (x, y) = make("lenet")[0].eval(), batch()
    how = Averaging(T, "input", n_views=4, groups=4, rule=False)
    with torch.no_grad():
        expected = how.loss(model, x, y, seed=1, index=torch.arange(len(x)) + 3)
        for kind in (list, np.array):
            index = kind(range(3, len(x) + 3))
            assert torch.equal(how.loss(model, x, y, seed=1, index=index), expected)
        for bad in (["a"] * len(x), 2**70, [0.5] * len(x)):
            refused("index must be", how.loss, model, x, y, seed=1, index=bad)
        said = f"one number for each of the {len(x)} examples, got 2"
        refused(said, how.loss, model, x, y, seed=1, index=[0, 1])


@pytest.mark.parametrize("groups", [1, 4])
def test_targets_are_counted_as_the_user_does(groups):
    model, (x, _) = make("lenet")[0], batch()
    how = Averaging(T, "pool1", n_views=4, groups=groups)
    said = f"one target for each of the {len(x)} examples, got shape (3,)"
    refused(said, how.loss, model, x, torch.arange(3))
    refused("y must be a tensor, got a list", how.loss, model, x, [0] * len(x))


def test_a_batch_of_bytes_is_refused():
    model, (x, y) = make("lenet")[0], batch()
    pixels = (x * 255).to(torch.uint8)
    for how in (Averaging(T, "pool1", 2), Averaging(T, "input", 2), TangentPropagation(T)):
        refused("floating-point, not torch.uint8|x.float() / 255", how.loss, model, pixels, y)
    refused(
        "floating-point", Averaging(T, "pool1", 2).losses_of, model, pixels.expand(2, *x.shape), y
    )


def test_the_wrong_mode_is_refused():
    model, (x, y) = make("resnet")[0].eval(), batch()
    for how in (Averaging(T, "layer1.0", 2), TangentPropagation(T)):
        refused("eval mode|network.train()", how.loss, model, x, y)
        with torch.no_grad():  # to measure is no training
            assert torch.isfinite(how.loss(model, x, y))


def test_sync_batch_norm_is_refused_at_the_second_order():
    model, (x, y) = nn.SyncBatchNorm.convert_sync_batchnorm(make("resnet")[0]), batch()
    refused("SyncBatchNorm|order=1", Averaging(T, "fc", 2, order=2).loss, model, x, y)


def test_wrappers_that_must_be_outside_are_refused():
    class DistributedDataParallel(nn.Module):  # by name, so that no process group is needed
        def __init__(self, module):
            super().__init__()
            self.module = module

    model, (x, y) = make("lenet")[0], batch()
    from augury import Averaged  # what the message advises can be imported

    assert Averaged(model, Averaging(T, "pool1", 2))(x, y).dim() == 0
    refused(
        "must run inside DistributedDataParallel|DistributedDataParallel(augury.Averaged(",
        Averaging(T, "pool1", 2).loss, DistributedDataParallel(model), x, y,
    )  # fmt: skip
