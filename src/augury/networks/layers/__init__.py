"""The layers of a network: found by name, read while the network runs, cut at."""

from augury.networks.layers.cut import Cut
from augury.networks.layers.feature_map import Layer
from augury.networks.layers.find import INPUT, find_layer, match_layers, unwrapped
from augury.networks.layers.paths import cut_at, cuts
from augury.networks.layers.read import default_layers, read_layers

__all__ = [
    "INPUT",
    "Cut",
    "Layer",
    "cut_at",
    "cuts",
    "default_layers",
    "find_layer",
    "match_layers",
    "read_layers",
    "unwrapped",
]
