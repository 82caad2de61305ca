"""Mutated specs of augmentations."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import torch

from augury._base.errors import AuguryError
from augury._base.rng import Rng
from augury.augmentations import FAMILIES, parse, signature
from augury.augmentations.base import Augmentation

from .bytes import mutate_text

SEEDS = (
    *(signature(family) for family in FAMILIES.values()),
    *FAMILIES,
    "rotation(15) >> blur(0.5,2.0)", "flips | invert", "0.8*blur | 0.2*invert", "rotation(5) ** 3",
    "(flips >> noise(0.1)) ** 2 | identity", "chain(rotation(5), flips, rates=(1, 2))",
    "chain(0.5*rotation(5), 2*translation(0.1))", "0.3*blur", "scaling(low=0.5, high=2)",
    "sampled(os:system)", "sampled(builtins:eval, array)", "sampled(math:sqrt,pil)",
)  # fmt: skip
TOKENS = (
    *FAMILIES, "(", ")", ">>", "|", "**", "*", ",", ":", "=", "-", "+", ".", "e", "0", "1", "2",
    "0.5", "1e999", "-1", "nan", "inf", "999999999", "9" * 400, "true", "rates", "low", "high",
    "chain(", "sampled(", "(" * 200, ")" * 200, "** 999999999", " >> flips" * 50, "| 1*flips", "\0",
    "é", "\n", "__import__('os')", "{", "lambda x: x", "²", "٣",
)  # fmt: skip


NUMBERS = (
    "0", "1", "2", "3", "-1", "0.5", "0.999", "1.5", "10", "64", "65", "1000", "99999999", "1e-300",
    "1e300", "1e999", "-1e999", "9" * 400, "true", "false", ".5", "5.", "-0.0", "180", "360.5",
)  # fmt: skip
_PARTS = re.compile(r"[A-Za-z_]\w*|[\d.]+|>>|\*\*|\S|\s+")


def mutate_tokens(text: str, rng: random.Random) -> str:
    """Change a few tokens of a spec, most of them to others of their kind."""
    parts = _PARTS.findall(text)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(parts))
        old = parts[at]
        if rng.random() < 0.2:
            parts[at : at + 1] = rng.choice(([], [old, old], [old, rng.choice(TOKENS)]))
        elif old[0].isdigit() or old[0] == ".":
            parts[at] = rng.choice(NUMBERS)
        elif old[0].isalpha():
            parts[at] = rng.choice(tuple(FAMILIES))
        else:
            parts[at] = rng.choice((">>", "|", "*", "**", ",", "(", ")", "=", " ", ">> 0.5*"))
        if not parts:
            return ""
    return "".join(parts)


def case(rng: random.Random, directory: Path) -> tuple[str, Callable[[], object]]:
    """Make a spec; what can be read must write itself, and most must make views."""
    text = rng.choice(SEEDS)
    if rng.random() < 0.3:
        text = rng.choice((" >> ", " | ", " ** 2 >> ")).join((text, rng.choice(SEEDS)))
    spec = mutate_text(text, rng, TOKENS) if rng.random() < 0.3 else mutate_tokens(text, rng)

    def call() -> None:
        found = parse(spec)
        if parse(repr(found)) != found:
            raise AssertionError(f"{spec!r} is read as {found!r}, which is read otherwise")
        _use(found)

    return "spec", call


def _use(augmentation: Augmentation) -> None:
    """Make views of the first kind of data that the augmentation is for."""
    for shape in ((3, 8, 8), (2, 12), (5,)):
        try:
            augmentation.check(shape)
        except AuguryError:
            continue
        x = torch.rand((2, *shape), generator=torch.Generator().manual_seed(0))
        augmentation.views(x, 2, Rng(0, torch.arange(2)))
        return
