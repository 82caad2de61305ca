"""The augmentation itself, as code."""

from __future__ import annotations

import sys

from augury import __version__
from augury import augmentations as ours
from augury._base.errors import AuguryError
from augury.adapters.code import call, comment, write_value
from augury.adapters.foreign import Foreign
from augury.adapters.walk import leaves


class Augury:
    """Code that makes the augmentation again."""

    name = "augury"

    def __init__(self, shape: tuple[int, ...] | None = None) -> None:
        self.shape = shape

    def write(self, augmentation: ours.Augmentation) -> str:
        """Write the code."""
        own = [leaf for leaf in leaves(augmentation) if isinstance(leaf, ours.Sampled)]
        for leaf in own:
            _check_found(leaf)
        imports = bool(own)
        made = call("augury.parse", repr(augmentation))
        made = made.with_options(imports=True) if imports else made
        title = comment(
            f"{augmentation}, written by augury {__version__}.\n"
            "augment(image) takes PIL images, arrays and tensors, one or a batch; "
            "augment.transform(seed=0) draws from a seed."
        )
        value = write_value(made, "", len("augment = "))
        return "\n".join(title) + f"\nimport augury\n\naugment = {value}\n"


def _check_found(own: ours.Sampled) -> None:
    """Raise unless a function of the user's own can be imported by its path elsewhere."""
    module, _, name = own.path.partition(":")
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    known = found is own.fn or (found is not None and isinstance(own, Foreign))  # with its origin
    if module == "__main__" or not known:
        raise AuguryError(
            f"{own} is a function that cannot be imported and cannot be exported; define it by "
            "name in a module, or put it into the exported code by hand"
        )
