"""Networks: load one; find, read and cut its layers; average features; measure invariance.

- `load`: a network from ``module:function``, a saved file or a timm name;
- `layers`: its layers, found by name, read while it runs, cut at;
- `averaging`: the loss of many views, averaged at a layer (Section 5.3 of the paper);
- `tangent`: tangent propagation, averaging at the input without views;
- `planning`: what averaging at each layer costs and keeps;
- `invariance`: how far augmentations move the features of each layer.
"""
