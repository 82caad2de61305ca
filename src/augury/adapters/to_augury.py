"""The augmentation itself, as code."""

from __future__ import annotations

from augury import __version__
from augury import augmentations as ours
from augury.adapters.code import call, comment, write_value
from augury.adapters.walk import leaves


class Augury:
    """Code that makes the augmentation again."""

    name = "augury"

    def __init__(self, shape: tuple[int, ...] | None = None) -> None:
        self.shape = shape

    def write(self, augmentation: ours.Augmentation) -> str:
        """Write the code."""
        imports = any(isinstance(leaf, ours.Sampled) for leaf in leaves(augmentation))
        made = call("augury.parse", repr(augmentation))
        made = made.with_options(imports=True) if imports else made
        title = comment(
            f"{augmentation}, written by augury {__version__}.\n"
            "augment(image) takes PIL images, arrays and tensors, one or a batch; "
            "augment.transform(seed=0) draws from a seed."
        )
        value = write_value(made, "", len("augment = "))
        return "\n".join(title) + f"\nimport augury\n\naugment = {value}\n"
