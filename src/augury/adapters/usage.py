"""How a candidate is used after a ranking: a line to paste, and a name of its own."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Container, Iterable

from augury.adapters.foreign import Bridge, Foreign, OnSamples
from augury.adapters.walk import leaves
from augury.augmentations import Augmentation, Sampled, background


def usage(augmentation: Augmentation) -> str:
    """Return the Python that applies a candidate where people train.

    A spec is parsed. A transform or a function of the user's is imported if it was loaded from a
    module, and called as its library calls it; one that was passed as an object is named in a
    comment, since only the user's program has it.

    Examples
    --------
    >>> from augury.augmentations import parse
    >>> print(usage(parse("rotation(15)")))
    augury.parse("rotation(15)")
    """
    if isinstance(augmentation, Sampled):
        return _own(augmentation)
    if any(isinstance(leaf, background) for leaf in leaves(augmentation)):
        return _passed(augmentation) + "view = augmentation(example)"
    own = [leaf for leaf in leaves(augmentation) if isinstance(leaf, Sampled)]
    if all(_importable(leaf) for leaf in own):
        spec = json.dumps(repr(augmentation), ensure_ascii=False)
        return f"augury.parse({spec}{', imports=True' if own else ''})"
    return _passed(augmentation) + "view = augmentation(example)"


def _own(augmentation: Sampled) -> str:
    called = augmentation.fn
    line = called.usage if isinstance(called, Bridge | OnSamples) else "view = {}(example)"
    if not _importable(augmentation):
        return _passed(augmentation) + line.format("transform")
    module, _, name = augmentation.path.partition(":")
    return f"from {module} import {name.partition('.')[0]}\n\n" + line.format(name)


def _passed(augmentation: Augmentation) -> str:
    return f"# what you passed to augury: {augmentation}\n"


def _importable(augmentation: Sampled) -> bool:
    """Return whether another program can import it by its path: no lambda, nothing in __main__."""
    module, _, name = augmentation.path.partition(":")
    parts = [*module.split("."), *name.split(".")]
    return module != "__main__" and all(part.isidentifier() for part in parts)


def distinct(augmentations: Iterable[Augmentation]) -> list[Augmentation]:
    """Return the candidates without repetitions; different ones get different names."""
    found: dict[str, Augmentation] = {}
    for augmentation in dict.fromkeys(augmentations):
        name = unique(repr(augmentation), found)
        if name != repr(augmentation) and isinstance(augmentation, Sampled):
            augmentation = _renamed(augmentation, name)
        found[name] = augmentation
    return list(found.values())


def _renamed(augmentation: Sampled, name: str) -> Sampled:
    if isinstance(augmentation, Foreign):
        return dataclasses.replace(augmentation, name=name, origin="")
    return Foreign(augmentation.fn, augmentation.takes, name=name)


def unique(name: str, taken: Container[str]) -> str:
    """Return a name that is not taken: the name itself, or with a number after it."""
    number, found = 2, name
    while found in taken:
        found = f"{name} ({number})"
        number += 1
    return found
