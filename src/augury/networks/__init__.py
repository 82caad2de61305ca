"""Networks: find, load, read and cut a layer; average features at it; measure its invariance."""
