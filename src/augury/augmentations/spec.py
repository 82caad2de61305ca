"""Augmentations as text: ``rotation(15) >> blur(0.5,2.0)``, and back.

The grammar, loosest first, binds as Python does::

    mixture  = part { "|" part }
    part     = [ number "*" ] power, or sequence
    sequence = power { ">>" power }
    power    = atom [ "**" whole number ]
    atom     = name [ "(" arguments ")" ]  or  "(" mixture ")"
"""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Callable
from typing import Any

from augury._base.errors import AuguryError
from augury._base.text import listed, nearest
from augury.augmentations.base import Augmentation, number
from augury.augmentations.chain import read_chain
from augury.augmentations.combine import Mixture, Power, Then, Weighted
from augury.augmentations.families import FAMILIES
from augury.augmentations.sampled import Sampled, load_object

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_][\w.]*)|(?P<mark>>>|\*\*|[()|*,:=]))",
    re.ASCII,
)

LONGEST = 4096
"""The number of characters of the longest spec that is read."""

DEEPEST = 64
"""The number of brackets, one inside the other, that a spec may open."""


def signature(family: type[Augmentation]) -> str:
    """Write a family with its parameters and defaults: ``scaling(low=0.9, high=1.1)``."""
    fields = dataclasses.fields(family)  # type: ignore[arg-type]  # families are dataclasses
    shown = ", ".join(f"{f.name}={number(f.default)}" for f in fields)  # type: ignore[arg-type]  # numbers all
    return f"{family.__name__}({shown})" if shown else family.__name__


def parse(spec: str | Augmentation | Weighted, *, imports: bool = False) -> Augmentation:
    """Read an augmentation from its spec; ``parse(repr(a)) == a``.

    Parameters
    ----------
    spec
        For example ``"rotation(15)"``, ``"flips >> noise(0.1)"`` or ``"0.8*blur | 0.2*invert"``.
        A weight on its own is a probability: ``"0.3*blur"`` is ``0.3*blur | 0.7*identity``. An
        augmentation is returned as it is, a policy as the augmentation that was chosen.
    imports
        Whether ``sampled(module:function)`` may import code: only for specs that a user typed.

    Examples
    --------
    >>> parse("rotation(15) >> blur(0.5, 2)")
    rotation(15) >> blur(0.5,2)
    """
    if isinstance(spec, Augmentation):
        return spec.plain
    if not isinstance(spec, str):
        return _adapters().from_foreign(spec)
    try:
        return _Parser(spec, imports).whole()
    except AuguryError as error:
        raise AuguryError(f"cannot read the augmentation {_cut(spec, 80)}: {error}") from None


def _cut(text: str, most: int) -> str:
    """Quote a text, cut to a length that fits in a message."""
    return repr(text if len(text) <= most else text[: most - 1] + "…")


class _Parser:
    def __init__(self, text: str, imports: bool) -> None:
        if len(text) > LONGEST:
            raise AuguryError(f"it has {len(text):,} characters; at most {LONGEST:,} are allowed")
        self.imports = imports
        self.depth = 0
        self.tokens: list[tuple[str, str]] = []
        at, text = 0, text.rstrip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if not found:
                raise AuguryError(f"unexpected {text[at:].strip()[:10]!r}")
            self.tokens.append((str(found.lastgroup), found[found.lastgroup or 0]))
            at = found.end()

    def peek(self, offset: int = 0) -> str:
        return self.tokens[offset][1] if len(self.tokens) > offset else ""

    def take(self, expected: str = "") -> str:
        if not self.tokens:
            raise AuguryError(f"it ends where {expected or 'more'} should follow")
        _, text = self.tokens.pop(0)
        if expected and text != expected:
            raise AuguryError(f"expected {expected!r}, got {text!r}")
        return text

    def whole(self) -> Augmentation:
        result = self.mixture()
        if self.tokens:
            raise AuguryError(f"unexpected {self.peek()!r} after {result}")
        return result

    def mixture(self) -> Augmentation:
        self.depth += 1
        if self.depth > DEEPEST:
            raise AuguryError(f"its brackets are nested more than {DEEPEST} deep")
        parts = [self.part()]
        while self.peek() == "|":
            self.take()
            parts.append(self.part())
        self.depth -= 1
        if len(parts) == 1:
            only = parts[0]
            return only.alone() if isinstance(only, Weighted) else only
        return Mixture.of(*parts)

    def part(self) -> Augmentation | Weighted:
        if self.tokens and self.tokens[0][0] == "number":
            weight = self.number()
            self.take("*")
            weighted = Weighted(weight, self.power())
            if self.peek() == ">>":
                raise AuguryError(
                    f"put brackets around a weighted sequence: {number(weight)}*(… >> …)"
                )
            return weighted
        parts = [self.power()]
        while self.peek() == ">>":
            self.take()
            parts.append(self.power())
        return parts[0] if len(parts) == 1 else Then.of(*parts)

    def power(self) -> Augmentation:
        base = self.atom()
        if self.peek() != "**":
            return base
        self.take()
        return Power(base, self.number())

    def number(self) -> float:
        text = self.take()
        try:
            # an integer of more digits than a float holds is as good as the float
            return int(text) if text.lstrip("+-").isdigit() and len(text) < 16 else float(text)
        except ValueError:
            raise AuguryError(f"expected a number, got {_cut(text, 40)}") from None

    def atom(self) -> Augmentation:
        if self.peek() == "(":
            self.take()
            inside = self.mixture()
            self.take(")")
            return inside
        if self.tokens and self.tokens[0][0] != "name":
            raise AuguryError(f"expected a family's name, got {self.peek()!r}")
        name = self.take("a family's name") if not self.tokens else self.take()
        reader = SPECIAL.get(name)
        if reader is not None:
            return reader(self)
        family = FAMILIES.get(name)
        if family is None:
            raise AuguryError(_unknown(name))
        return self.family(family)

    def family(self, family: type[Augmentation]) -> Augmentation:
        values: list[Any] = []
        named: dict[str, Any] = {}
        if self.peek() == "(":
            self.take()
            while self.peek() != ")":
                if self.tokens and self.tokens[0][0] == "name" and self.peek(1) == "=":
                    key = self.take()
                    self.take("=")
                    if key in named:
                        raise AuguryError(f"{family.__name__} is given {key} twice")
                    named[key] = self.value()
                else:
                    values.append(self.value())
                if self.peek() != ")":
                    self.take("," if self.tokens else ")")
            self.take(")")
        try:
            return family(*values, **named)
        except TypeError:
            fields = dataclasses.fields(family)  # type: ignore[arg-type]  # families are dataclasses
            named_only = [f"{f.name}={number(f.default)}" for f in fields if f.kw_only]  # type: ignore[arg-type]  # numbers all
            hint = f"; write {listed(named_only)} with its name" if named_only else ""
            raise AuguryError(f"expected {signature(family)}{hint}") from None

    def value(self) -> Any:
        word = self.peek().lower()
        if word in ("true", "false"):
            self.take()
            return word == "true"
        return self.number()


def _sampled(parser: _Parser) -> Augmentation:
    if not parser.imports:
        raise AuguryError("sampled(module:function) imports code and is not allowed here")
    parser.take("(")
    path = parser.take()
    parser.take(":")
    path += ":" + parser.take()
    takes = ""
    if parser.peek() == ",":
        parser.take()
        takes = parser.take()
    parser.take(")")
    if takes:
        return Sampled.load(path, takes)
    return _adapters().from_foreign(load_object(path), path=path)


def _adapters() -> Any:
    """Return the package that knows other libraries: it lies above, so it is found by name."""
    return importlib.import_module("augury.adapters")


SPECIAL: dict[str, Callable[[_Parser], Augmentation]] = {"chain": read_chain, "sampled": _sampled}
"""Names whose arguments are not plain numbers, each with its reader."""


def _unknown(name: str) -> str:
    near = nearest(name, [*FAMILIES, *SPECIAL], cutoff=0.5)
    shown = [signature(FAMILIES[n]) if n in FAMILIES else n for n in near]
    hint = f"; did you mean {shown[0]}?" if shown else "."
    return f"no family is called {_cut(name, 40)}{hint} The families: {', '.join(FAMILIES)}"
