import os

import torch

os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"  # its import would ask the network for a newer one

# torchvision imports beside a CPU build of torch only once its two compiled operators are declared
LIBRARY = torch.library.Library("torchvision", "DEF")
for _name in ("nms", "qnms"):
    LIBRARY.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
