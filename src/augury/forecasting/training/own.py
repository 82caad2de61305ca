"""Training of the user's own network, as the user plans to train it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from augury._base.errors import AuguryError
from augury._base.text import cause, kind_of
from augury.augmentations.base import Augmentation
from augury.data.dataset import Dataset
from augury.forecasting.training.adamw import one_cycle
from augury.forecasting.training.members import (
    Fold,
    Schedule,
    make_batches,
    member_loss,
    precision,
)
from augury.forecasting.training.spectrogram import AsItIs

_RATES = {"head": 5e-3, "block": 1e-3, "all": 1e-3}
_SCRATCH = 3e-3
_WARM_UP = 3  # steps before a graph is captured, in which libraries choose their kernels
_UNLIKE = 4.0  # times the variance that the first batch norm has known: photos differ by up to 3


@dataclass(frozen=True)
class OwnNetwork:
    """The user's own network, and how it will be trained.

    Attributes
    ----------
    network
        The network with the weights that training starts from; it is never changed.
    pretrained
        Whether those weights are kept; else every run draws its own.
    tune
        What is trained: ``"all"``, the last ``"block"`` and the head, or the ``"head"`` alone.
    """

    network: nn.Module
    pretrained: bool = False
    tune: str = "all"

    @property
    def rate(self) -> float:
        """The peak learning rate."""
        return _RATES[self.tune] if self.pretrained else _SCRATCH

    def check(self, data: Dataset, device: torch.device) -> None:
        """Raise one clear line where the network cannot be trained on the data."""
        if any(isinstance(p, UninitializedParameter) for p in self.network.parameters()):
            raise AuguryError(
                "the network has lazy layers, whose sizes are not known yet; run one batch through "
                "it first"
            )
        x = data.batch(torch.arange(min(2, len(data))), device, torch.float32)
        try:
            with torch.no_grad():
                out = copy.deepcopy(self.network).to(device).eval()(x)
        except torch.OutOfMemoryError:
            raise _too_large(data, device) from None
        except Exception as error:  # whatever a user's network may raise
            raise AuguryError(
                f"the network cannot take inputs of shape {data.shape}: {cause(error)}"
            ) from error
        wanted = data.outputs
        if not isinstance(out, Tensor) or out.shape != (len(x), wanted):
            came = tuple(out.shape[1:]) if isinstance(out, Tensor) else kind_of(out)
            several = f"{wanted} {'labels' if data.tags else 'classes'}"
            target = "one number" if data.task == "regression" else several
            raise AuguryError(
                f"the network returns {_count(came)} per example, but the data has {target}; "
                f"give its last layer {wanted} outputs, e.g. nn.Linear(in_features, {wanted})"
            )
        if not self.trained(self.network):
            raise AuguryError("the network has no parameters to train")

    def warning(self, data: Dataset, device: torch.device) -> str | None:
        """Return a warning where pixels are not on the scale that a network was trained on.

        Its first batch norm remembers the variances that it saw in training.
        """
        if not self.pretrained or data.kind != "image":
            return None
        net = copy.deepcopy(self.network).to(device).eval()
        first = next((m for m in net.modules() if isinstance(m, nn.BatchNorm2d)), None)
        if first is None or first.running_var is None:
            return None
        seen: list[Tensor] = []
        hook = first.register_forward_pre_hook(lambda module, args: seen.append(args[0].detach()))
        with torch.no_grad():
            net(data.batch(torch.arange(min(256, len(data))), device, torch.float32))
        hook.remove()
        known = first.running_var.float()
        ratio = (seen[0].float().var((0, 2, 3)) / known)[known > 1e-4]  # dead channels know none
        factor = float(ratio.clamp_min(1e-12).log().median().exp()) if len(ratio) else 1.0
        if 1 / _UNLIKE < factor < _UNLIKE:
            return None
        return (
            "the pretrained network receives inputs in [0, 1], and the inputs of its first batch "
            f"norm have {factor:.2g} times the variance seen in training; put the normalisation "
            "that it expects at the start of the network"
        )

    def trained(self, net: nn.Module) -> list[nn.Parameter]:
        """Return the parameters that training changes."""
        units = [unit for unit in _units(net) if any(True for _ in unit.parameters())]
        if self.tune == "all" or len(units) < 2:
            return list(net.parameters())
        start = len(units) - 1
        if self.tune == "block":
            weighty = [k for k in range(start) if any(p.dim() > 1 for p in units[k].parameters())]
            start = weighty[-1] if weighty else 0
        return [p for unit in units[start:] for p in unit.parameters()]

    def start(self, seed: int) -> nn.Module:
        """Return a copy with initial weights: the given ones, or new ones drawn from a seed."""
        net = copy.deepcopy(self.network)
        if not self.pretrained:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                for module in net.modules():
                    reset = getattr(module, "reset_parameters", None)
                    if callable(reset):
                        reset()
        return net


class OwnTrainer:
    """Trains copies of one network, one after the other, and judges each on held-out examples.

    On a GPU a step is captured once as a graph and replayed for all: networks of many small
    layers wait for their launches otherwise.
    """

    def __init__(
        self, own: OwnNetwork, data: Dataset, schedule: Schedule, device: torch.device
    ) -> None:
        self.own, self.data, self.schedule, self.device = own, data, schedule, device
        self.net = own.start(0).to(device)
        chosen = {id(p) for p in own.trained(self.net)}
        for p in self.net.parameters():
            p.requires_grad_(id(p) in chosen)
        self.parameters = [p for p in self.net.parameters() if p.requires_grad]
        self._rate = torch.tensor(schedule.rate, device=device)
        self._optimizer = self._new_optimizer()
        self._graph: torch.cuda.CUDAGraph | bool | None = None
        self._x: Tensor
        self._y: Tensor

    def run(self, candidate: Augmentation | None, fold: Fold) -> Tensor:
        """Train on a fold, with or without a candidate; return outputs for its held-out examples.

        They have the shape ``(examples, 1, C)``, as those of one member of a grouped network.
        """
        try:
            self._reset(fold.start)
            self._train(candidate, fold)
            return self._outputs(fold.held)
        except torch.OutOfMemoryError:
            raise _too_large(self.data, self.device) from None

    def _new_optimizer(self) -> torch.optim.AdamW:
        cuda = self.device.type == "cuda"
        return torch.optim.AdamW(
            self.parameters, self._rate if cuda else self.schedule.rate,
            weight_decay=self.schedule.decay, fused=True, capturable=cuda,
        )  # fmt: skip

    def _reset(self, seed: int) -> None:
        state = self.own.start(seed).state_dict()
        self.net.load_state_dict(state)
        for values in self._optimizer.state.values():
            for value in values.values():
                value.zero_()

    def _mode(self) -> None:
        """Put trained layers in training mode and frozen layers in evaluation mode."""
        self.net.train()
        for module in self.net.modules():
            own = list(module.parameters())
            if own and not any(p.requires_grad for p in own):
                module.eval()

    def _train(self, candidate: Augmentation | None, fold: Fold) -> None:
        self._mode()
        chosen = ([], [], [fold]) if candidate is None else ([candidate], [fold], [])
        steps = self.schedule.steps(len(fold.train))
        seen = AsItIs(self.data.shape)  # a network of one's own hears sound as it is
        batches = make_batches(self.data, self.schedule, *chosen, self.device, seen)
        for k, (x, y) in enumerate(batches):
            self._set_rate(one_cycle(k, steps)[0] * self.schedule.rate)
            self._step(x[:, 0], y[:, 0], k)

    def _set_rate(self, rate: float) -> None:
        if self.device.type == "cuda":
            self._rate.fill_(rate)
        else:
            self._optimizer.param_groups[0]["lr"] = rate

    def _step(self, x: Tensor, y: Tensor, k: int) -> None:
        if self.device.type != "cuda" or self._graph is False:
            self._compute(x, y)
        elif self._graph is None and k < _WARM_UP:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self._compute(x, y)
            torch.cuda.current_stream().wait_stream(side)
        else:
            if self._graph is None:
                self._capture(x, y)
            if not isinstance(self._graph, torch.cuda.CUDAGraph):
                self._compute(x, y)
                return
            self._x.copy_(x)
            self._y.copy_(y)
            self._graph.replay()

    def _capture(self, x: Tensor, y: Tensor) -> None:
        """Capture a step as a graph; a network that cannot be captured is stepped as it is."""
        self._x, self._y = x.clone(), y.clone()
        graph = torch.cuda.CUDAGraph()
        self._optimizer.zero_grad(set_to_none=True)
        try:
            with torch.cuda.graph(graph):
                self._compute(self._x, self._y, zero=False)
            self._graph = graph
        except Exception:  # whatever a user's network does that a graph cannot hold
            torch.cuda.synchronize()
            self._graph = False
            self._optimizer.zero_grad(set_to_none=True)

    def _compute(self, x: Tensor, y: Tensor, zero: bool = True) -> None:
        with precision(self.device, self.data.shape, cache=False):
            out = self.net(x)
        loss = member_loss(out.float().unsqueeze(1), y.unsqueeze(1), self.data.classes is not None)
        if zero:
            self._optimizer.zero_grad(set_to_none=True)
        loss.mean().backward()
        self._optimizer.step()

    @torch.no_grad()
    def _outputs(self, rows: Tensor) -> Tensor:
        self.net.eval()
        parts = []
        for index in rows.split(4 * self.schedule.batch):
            x = self.data.batch(index, self.device, torch.float32)
            with precision(self.device, self.data.shape):
                parts.append(self.net(x).float())
        return torch.cat(parts).unsqueeze(1)


def _units(net: nn.Module) -> Iterator[nn.Module]:
    """Yield the blocks of a network in order: its children, and those of plain containers."""
    for child in net.children():
        if isinstance(child, nn.Sequential | nn.ModuleList):
            yield from _units(child)
        else:
            yield child


def _count(shape: Any) -> str:
    if isinstance(shape, tuple) and len(shape) == 1:
        return f"{shape[0]} output{'s' if shape[0] != 1 else ''}"
    return f"outputs of shape {shape}" if isinstance(shape, tuple) else str(shape)


def _too_large(data: Dataset, device: torch.device) -> AuguryError:
    side = f" of {max(data.shape[1:])} pixels" if data.kind == "image" else ""
    return AuguryError(
        f"not enough memory on {device.type} to train the network on inputs{side}; use "
        "a smaller size (--size) or a device with more memory"
    )
