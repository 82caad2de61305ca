"""A network by name or path: a function of the user's, a timm model, a saved program."""

from __future__ import annotations

import importlib
import pickle
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from augury._base.errors import AuguryError
from augury._base.text import cause, did_you_mean
from augury.augmentations.sampled import blame, load_object


def load_network(
    spec: str,
    shape: tuple[int, ...],
    *,
    weights: str | Path | None = None,
    pretrained: bool = False,
) -> nn.Module:
    """Find a network and put it in eval mode.

    Parameters
    ----------
    spec
        ``module:function`` (a function that gives the network, or the network itself), the path
        of a TorchScript file or an exported program, or the name of a timm model.
    shape
        The shape of one input; a timm model is made for its channels.
    weights
        A file of weights for the network: safetensors, or a state dict saved by torch.
    pretrained
        Let timm fetch its trained weights.
    """
    path = Path(spec).expanduser()
    if path.is_file():
        model = _saved(path)
    elif ":" in spec:
        model = _called(spec)
    elif path.suffix in (".pt", ".pt2", ".pth", ".ts") or len(path.parts) > 1:
        raise AuguryError(f"there is no file {spec}; check the path")
    else:
        model = _timm(spec, shape, pretrained)
    if weights is not None:
        _fill(model, Path(weights).expanduser())
    return model.eval()


def _called(spec: str) -> nn.Module:
    model = load_object(spec)
    if callable(model) and not isinstance(model, nn.Module):
        try:
            model = model()
        except Exception as error:  # whatever a function of the user's may raise
            raise AuguryError(f"{spec} failed: {blame(error)}") from error
    if not isinstance(model, nn.Module):
        raise AuguryError(f"{spec} gives a {type(model).__name__}, not a torch.nn.Module")
    return model


def _timm(name: str, shape: tuple[int, ...], pretrained: bool) -> nn.Module:
    try:
        timm = importlib.import_module("timm")
    except (ImportError, RuntimeError, OSError) as error:  # torchvision may not fit torch
        raise AuguryError(
            f"{name!r} is no file and no module:function, and timm, which might know it, cannot "
            f"be imported ({cause(error)}); pip install timm, or give module:function"
        ) from None
    if not timm.is_model(name):
        hint = did_you_mean(name, timm.list_models()) or "; see timm.list_models()"
        raise AuguryError(f"timm has no model {name!r}{hint}")
    model = timm.create_model(name, pretrained=pretrained, in_chans=shape[0])
    config = getattr(model, "pretrained_cfg", {})
    if pretrained and len(config.get("mean", ())) == shape[0]:
        model.register_forward_pre_hook(_standardise(config["mean"], config["std"]))
    return model


def _standardise(mean: Any, std: Any) -> Any:
    """Bring pixels in [0, 1] to the scale that a network was trained on."""

    def hook(module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        x = args[0]
        centre, scale = (x.new_tensor(values).view(-1, 1, 1) for values in (mean, std))
        return ((x - centre) / scale, *args[1:])

    return hook


def _saved(path: Path) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is deprecated, and programs live longer
        try:
            if path.suffix == ".pt2":
                return _unflattened(torch.export.load(str(path)))
            return torch.jit.load(str(path), map_location="cpu")
        except Exception as error:  # whatever the file makes torch raise
            raise AuguryError(
                f"cannot read {path} as a network: {cause(error)}; give an exported program "
                "(.pt2) or a TorchScript file; for a state dict, give module:function and --weights"
            ) from None


def _unflattened(program: Any) -> nn.Module:
    """Give an exported program back its modules, so that its layers can be seen."""
    values = [n.meta["val"] for n in program.graph.nodes if n.op == "placeholder"]
    inputs = [v for v in values[-1:] if isinstance(v, Tensor)]
    if inputs and inputs[0].dim() and isinstance(inputs[0].shape[0], int):
        raise AuguryError(
            f"the program takes batches of {inputs[0].shape[0]} only; export it with "
            "dynamic_shapes=({0: torch.export.Dim('batch')},)"
        )
    return torch.export.unflatten(program)


def _fill(model: nn.Module, path: Path) -> None:
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            state = load_file(str(path))
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever the file makes torch raise
        unknown = isinstance(error, pickle.UnpicklingError)  # torch's own words are a page
        reason = "it does not hold plain tensors alone" if unknown else cause(error)
        raise AuguryError(
            f"cannot read the weights in {path}: {reason}; give .safetensors, or what "
            "torch.save(model.state_dict(), ...) writes, not a whole model"
        ) from None
    try:
        model.load_state_dict(state)
    except (RuntimeError, AttributeError, TypeError) as error:
        reason = " ".join(str(error).split())[:160]
        raise AuguryError(f"the weights in {path} do not fit the network: {reason}") from None
