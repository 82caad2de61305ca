"""Rankings to report on, as a run would give them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from augury._base.errors import AuguryError
from augury.adapters.usage import usage
from augury.augmentations import Family, parse
from augury.results.ranking import Baseline, Gallery, Ranking, Row

EVIL = "<img src=x onerror=alert(1)>"
SPECS = [
    "rotation(15)",
    "translation(0.1)",
    "rotation(30)",
    "elastic(0.05)",
    "scaling(0.9,1.1)",
    "shear(10)",
    "rotation(5)",
    "blur(0.05,1.0)",
    "noise(0.05)",
    "resized_crop(0.64)",
    "contrast(0.35)",
    "brightness(0.25)",
    "blur(0.5,2.0)",
    "posterize(2)",
    "shear(25)",
    "scaling(0.7,1.3)",
    "elastic(0.12)",
    "cutout(0.5)",
    "noise(0.2)",
    "horizontal_flip",
    "solarize(0.3)",
    "quarter_turns",
    "rotation(180)",
    "invert",
]


def with_interval(gain: float, width: float = 0.008) -> tuple[float, float, float]:
    """Return a class's gain with its interval."""
    return (float(gain), float(gain - width), float(gain + width))


def make_row(spec: str, gain: float, width: float = 0.003, **changes: Any) -> Row:
    """Make a row whose verdict follows from its interval."""
    low, high = gain - width, gain + width
    said = "helps" if low > 0 else "hurts" if high < 0 else "can't tell"
    try:
        found = parse(spec)
    except AuguryError:  # what only a page must bear: markup, functions, very long names
        found = None
    magnitude = found.magnitude if isinstance(found, Family) else None
    row = Row(
        spec, 0.4 + gain, gain, low, high, said,
        code="" if found is None else usage(found),
        family="" if magnitude is None else type(found).__name__,
        magnitude=magnitude,
        strongest=isinstance(found, Family) and magnitude == found.strongest,
    )  # fmt: skip
    return replace(row, **changes)


def make_ranking(
    specs: list[str] | tuple[str, ...] = tuple(SPECS),
    classes: list[str] | None = None,
    *,
    kind: str = "image",
    seed: int = 0,
    **changes: Any,
) -> Ranking:
    """Make a ranking as a run on small images (or series, or vectors) would give it."""
    rng = np.random.default_rng(seed)
    names = [str(c) for c in range(10)] if classes is None else classes
    gains = np.linspace(0.021, -0.024, len(specs)) if len(specs) > 1 else [0.021] * len(specs)
    rows = []
    for spec, gain in zip(specs, gains, strict=True):
        shifts = rng.normal(0, 0.006, len(names))
        each = {n: with_interval(gain + d) for n, d in zip(names, shifts, strict=True)}
        rows.append(make_row(spec, float(gain), per_class=each))
    shape = {"image": (1, 14, 14), "series": (2, 50), "vector": (20,)}[kind]
    ranking = Ranking(
        rows=tuple(rows),
        baseline=Baseline(0.4, 0.39, 0.41),
        dataset={
            "name": "mnist5k",
            "kind": kind,
            "examples": 5000,
            "shape": list(shape),
            "classes": names,
            "counts": [5000 // max(len(names), 1)] * len(names),
            "notes": ["5,000 of 60,000 examples were used, sampled with seed 0"],
        },
        score="alignment",
        features="fourier(2048)",
        seed=0,
        n_views=8,
        seconds=41.2,
        command="augury rank mnist5k --seed 0 --report report.html",
        gallery=make_gallery(list(specs), kind, rng),
    )
    return replace(ranking, **changes)


def make_gallery(specs: list[str], kind: str, rng: np.random.Generator) -> Gallery | None:
    """Make random pictures: three originals with four views of each."""
    if kind == "vector":
        return None
    if kind == "series":
        return Gallery(
            rng.normal(size=(3, 2, 50)), {s: rng.normal(size=(3, 4, 2, 50)) for s in specs}
        )

    def draw(*lead: int) -> np.ndarray:
        return rng.integers(0, 256, (*lead, 14, 14, 3), dtype=np.uint8)

    return Gallery(draw(3), {spec: draw(3, 4) for spec in specs})


def with_data(ranking: Ranking, **changes: Any) -> Ranking:
    """Change what a ranking says of its data."""
    return replace(ranking, dataset={**ranking.dataset, **changes})
