"""Load a network from ``module:function``, a saved file or a timm name."""

from __future__ import annotations

import contextlib
import importlib
import logging
import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from augury._base.errors import AuguryError
from augury._base.text import cause, did_you_mean, kind_of
from augury.augmentations.sampled import blame, load_object


def load_network(
    spec: str,
    shape: tuple[int, ...],
    *,
    weights: str | Path | None = None,
    pretrained: bool = False,
    outputs: int | None = None,
) -> nn.Module:
    """Load a network and put it in eval mode.

    Parameters
    ----------
    spec
        ``module:function`` (a function that returns the network, or the network itself), the path
        of a TorchScript file or an exported program (``.pt2``), or the name of a timm model.
    shape
        The shape of one input; a timm model is built for its number of channels.
    weights
        A file of weights for the network: safetensors, or a state dict saved by torch.
    pretrained
        Download the trained weights of a timm model, and scale inputs in [0, 1] as it expects.
    outputs
        Number of outputs of a timm model; by default, as many as it was trained with.

    Examples
    --------
    >>> load_network("torch.nn:Identity", (1, 8, 8)).training
    False
    """
    path = Path(spec).expanduser()
    if pretrained and not is_timm_name(spec):
        raise AuguryError(
            f"pretrained weights are for timm models, but {spec} is not the name of one; load "
            "your own with weights (--weights FILE)"
        )
    if path.is_file():
        network = _saved(path)
    elif ":" in spec:
        network = _called(spec)
    elif path.suffix in (".pt", ".pt2", ".pth", ".ts") or len(path.parts) > 1:
        raise AuguryError(f"there is no file {spec}; check the path")
    else:
        network = _timm(spec, shape, pretrained, outputs)
    if weights is not None:
        _load_weights(network, Path(weights).expanduser())
    return network.eval()


def is_timm_name(spec: str) -> bool:
    """Return whether a network is given by a timm name, not as module:function or a file."""
    return ":" not in spec and not Path(spec).expanduser().is_file()


def _called(spec: str) -> nn.Module:
    network = load_object(spec)
    if callable(network) and not isinstance(network, nn.Module):
        try:
            network = network()
        except (Exception, SystemExit) as error:  # whatever a user's function may raise
            raise AuguryError(f"{spec} failed: {blame(error)}") from error
    if not isinstance(network, nn.Module):
        raise AuguryError(f"{spec} must be or return a torch.nn.Module, not {kind_of(network)}")
    return network


def _timm(name: str, shape: tuple[int, ...], pretrained: bool, outputs: int | None) -> nn.Module:
    try:
        timm = importlib.import_module("timm")
    except (ImportError, RuntimeError, OSError) as error:  # torchvision may not fit torch
        raise AuguryError(
            f"{name!r} is neither a file nor module:function, and timm, which may have a model of "
            f"that name, cannot be imported ({cause(error)}); pip install timm, or use "
            "module:function"
        ) from None
    if not timm.is_model(name):
        hint = did_you_mean(name, timm.list_models()) or "; see timm.list_models()"
        raise AuguryError(f"timm has no model {name!r}{hint}")
    try:
        with _quiet():
            last = {} if outputs is None else {"num_classes": outputs}
            network = timm.create_model(name, pretrained=pretrained, in_chans=shape[0], **last)
    except Exception as error:  # whatever the download or the architecture may raise
        if not pretrained:
            raise AuguryError(f"timm cannot build {name}: {cause(error)}") from error
        raise AuguryError(
            f"cannot download the trained weights of {name} ({cause(error)}); check the "
            "connection, or omit pretrained and load the weights from a file (--weights FILE)"
        ) from error
    config = getattr(network, "pretrained_cfg", {})
    if pretrained and len(config.get("mean", ())) == shape[0]:
        network.register_forward_pre_hook(_standardise(config["mean"], config["std"]))
    return network


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence the retries that a failing download logs and warns about, while the block runs."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _standardise(mean: Any, std: Any) -> Any:
    """Return a hook that brings pixels in [0, 1] to the scale that a network was trained on."""

    def hook(module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        x = args[0]
        centre, scale = (x.new_tensor(values).view(-1, 1, 1) for values in (mean, std))
        return ((x - centre) / scale, *args[1:])

    return hook


def _saved(path: Path) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is deprecated, but its files remain in use
        try:
            if path.suffix == ".pt2":
                return _unflattened(torch.export.load(str(path)))
            return torch.jit.load(str(path), map_location="cpu")
        except AuguryError:
            raise
        except Exception as error:  # whatever the file makes torch raise
            raise AuguryError(
                f"cannot read {path} as a network: {cause(error)}; expected an exported program "
                "(.pt2) or a TorchScript file; for a state dict, use module:function and --weights"
            ) from None


def _unflattened(program: Any) -> nn.Module:
    """Return an exported program with its modules restored, so that its layers can be read."""
    values = [n.meta["val"] for n in program.graph.nodes if n.op == "placeholder"]
    inputs = [v for v in values[-1:] if isinstance(v, Tensor)]
    if inputs and inputs[0].dim() and isinstance(inputs[0].shape[0], int):
        raise AuguryError(
            f"the program accepts only batches of {inputs[0].shape[0]}; export it with "
            "dynamic_shapes=({0: torch.export.Dim('batch')},)"
        )
    return torch.export.unflatten(program)


def _load_weights(network: nn.Module, path: Path) -> None:
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            state = load_file(str(path))
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever the file makes torch raise
        unknown = isinstance(error, pickle.UnpicklingError)  # torch's own message is a page long
        reason = "it does not hold plain tensors alone" if unknown else cause(error)
        raise AuguryError(
            f"cannot read the weights in {path}: {reason}; expected .safetensors, or a file "
            "written by torch.save(network.state_dict(), ...), not a whole network"
        ) from None
    try:
        network.load_state_dict(state)
    except (RuntimeError, AttributeError, TypeError) as error:
        reason = " ".join(str(error).split())[:160]
        raise AuguryError(f"the weights in {path} do not fit the network: {reason}") from None
