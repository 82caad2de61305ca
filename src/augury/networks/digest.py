"""What a network is, as a hash: journals keep results of one network apart from another's."""

from __future__ import annotations

import re
from hashlib import blake2b

from torch import nn


def digest_network(network: nn.Module) -> str:
    """Return a hash of a network's layers, as they are printed, and of its weights."""
    layers = re.sub("0x[0-9a-f]+", "", repr(network))  # addresses differ from process to process
    found = blake2b(layers.encode("utf-8", "replace"), digest_size=16)
    for name, value in network.state_dict().items():
        found.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        found.update(value.detach().cpu().double().numpy().tobytes())
    return found.hexdigest()
