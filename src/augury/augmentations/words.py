"""An augmentation in words: what is done, in which order and how often."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, replace

from augury.augmentations.base import Augmentation
from augury.augmentations.chain import Chain
from augury.augmentations.combine import Mixture, Power, Then
from augury.augmentations.symmetries import identity


@dataclass(frozen=True)
class WordedStep:
    """One line of a description, with the lines that belong to it."""

    text: str
    spec: str = ""
    """The augmentation that the line is about, where it is about one family."""
    chance: str = ""
    """How probable the step is, where it is not always taken."""
    inner: tuple[WordedStep, ...] = ()


def in_words(augmentation: Augmentation) -> tuple[WordedStep, ...]:
    """Return the steps of an augmentation, in order.

    Examples
    --------
    >>> from augury.augmentations import parse
    >>> for step in in_words(parse("horizontal_flip >> (0.5*identity | 0.5*rotation(15))")):
    ...     print(step.chance or "always", step.spec, "-", step.text)
    always horizontal_flip - Left-right flip with probability ½.
    50 % rotation(15) - Rotation by an angle uniform in ± 15 degrees.
    """
    if isinstance(augmentation, Then):
        return tuple(step for part in augmentation.parts for step in in_words(part))
    if isinstance(augmentation, identity):
        return (WordedStep("No change."),)
    if isinstance(augmentation, Power):
        times = f"{augmentation.times} times, one after the other:"
        return (WordedStep(times, inner=in_words(augmentation.base)),)
    if isinstance(augmentation, Chain):
        shares = [rate / augmentation.beta for rate in augmentation.rates]
        title = f"A random number of steps, {augmentation.beta:.2g} on average, each one of these:"
        return (WordedStep(title, inner=_shared(augmentation.parts, shares)),)
    if isinstance(augmentation, Mixture):
        shares = augmentation.probabilities.tolist()
        real = [(p, s) for p, s in zip(augmentation.parts, shares, strict=True)
                if not isinstance(p, identity)]  # fmt: skip
        total = sum(share for _, share in real)
        if len(real) == 1:
            return _shared((real[0][0],), [total])
        title = "One of these, chosen at random:"
        if total < 1 - 1e-6:  # not a sum that rounding left below one
            title = f"One of these, or no change ({_percent(1 - total)}):"
        parts, shares = [part for part, _ in real], [share for _, share in real]
        return (WordedStep(title, inner=_shared(tuple(parts), shares)),)
    return (WordedStep(_family(augmentation), repr(augmentation)),)


def _shared(parts: tuple[Augmentation, ...], shares: list[float]) -> tuple[WordedStep, ...]:
    """Return parts with the probability of each."""
    steps = []
    for part, share in zip(parts, shares, strict=True):
        inner = in_words(part)
        if len(inner) == 1 and not inner[0].chance:
            steps.append(replace(inner[0], chance=_percent(share)))
        else:
            steps.append(
                WordedStep("These, one after the other:", chance=_percent(share), inner=inner)
            )
    return tuple(steps)


def _family(augmentation: Augmentation) -> str:
    """Return the first sentence of a family's docstring with its own settings filled in."""
    text = (inspect.getdoc(type(augmentation)) or repr(augmentation)).splitlines()[0]
    text = re.sub(r"(?<!`)`(\w+)`(?!`)", lambda m: _setting(augmentation, m[1]), text)
    return text.replace("``", "")


def _setting(augmentation: Augmentation, name: str) -> str:
    value = getattr(augmentation, name, name)
    text = f"{value:g}" if isinstance(value, int | float) else str(value)
    return f"{text} degrees" if name == "degrees" else text


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
