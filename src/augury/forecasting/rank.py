"""Which augmentations will help: candidates judged on data, with error bars."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from augury._base.devices import resolve_device
from augury._base.errors import AuguryError
from augury._base.pixels import to_bytes
from augury._base.rng import Rng
from augury.augmentations import (
    Augmentation,
    Family,
    default_augmentations,
    identity,
    parse,
)
from augury.data import Dataset, as_dataset, describe
from augury.features import (
    FeatureMap,
    Flatten,
    FourierFeatures,
    GradientFeatures,
    PatchFeatures,
)
from augury.forecasting.scores import SCORES, Setting
from augury.networks.layers import Layer
from augury.results.ranking import Baseline, Gallery, Ranking, Row
from augury.statistics.base import Estimate
from augury.statistics.jackknife import jackknife

FEATURES: dict[str, Callable[[int], FeatureMap]] = {
    "fourier": lambda seed: FourierFeatures(1024, seed=seed),
    "flatten": lambda seed: Flatten(),
    "patches": lambda seed: PatchFeatures(seed=seed),
    "patches2": lambda seed: PatchFeatures(layers=2, seed=seed),
    "gradient": lambda seed: GradientFeatures(seed=seed),
}
"""Feature maps by name, each made from a seed."""

_FIT_SAMPLE = 1000


def rank(
    x: Any,
    y: Any = None,
    augmentations: Iterable[str | Augmentation] | None = None,
    *,
    score: str | None = None,
    features: str | FeatureMap | None = None,
    model: nn.Module | None = None,
    layer: str | None = None,
    versions: int = 8,
    max_examples: int | None = 5000,
    seed: int = 0,
    device: str | torch.device = "auto",
    label: str | None = None,
    kind: str | None = None,
    task: str | None = None,
    name: str = "data",
    batch_size: int | None = None,
    budget: float | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    command: str = "",
) -> Ranking:
    """Rank augmentations by what they are expected to do for a classifier of this data.

    Parameters
    ----------
    x, y
        Examples and labels: arrays, tensors; or as `x` alone a frame with `label`, a dataset, a
        ``DataLoader``, an iterable of pairs, or a path: whatever `augury.as_dataset` takes.
    augmentations
        Candidates, as augmentations or specs such as ``"rotation(15)"``; by default those that
        suit the kind of data.
    score
        ``"trial"`` (a small network briefly trained with each), ``"alignment"`` (the paper's),
        ``"centred-alignment"``, ``"ridge"`` or ``"kernel-ridge"``. By default the trial, and
        kernel-ridge where a network of your own is given.
    features
        The feature map of a score that uses one, by name or as an object.
    model, layer
        A network of your own as the feature map: the output of a layer of it, or its gradient
        (what training it would start from) where no layer is named.
    versions
        How many versions of each example are looked at; finite families use all of theirs.
    max_examples
        More examples than these are subsampled, each class in proportion; None for all.
    seed
        Of everything random.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"`` or a torch device.
    label
        The column of a frame to predict.
    kind
        ``"image"``, ``"series"`` or ``"vector"`` where the shape of `x` leaves a doubt.
    task
        ``"classification"`` or ``"regression"``; by default whole numbers and words are classes.
    name
        What the data is called in the result.
    batch_size
        Examples at a time; chosen from the number of versions by default, and without effect on
        the result.
    budget
        About how many seconds the trial may take: all candidates are screened, then the leaders
        tried again; by default as long as a whole trial takes.
    progress
        Called with (done, total, candidate) as work goes on.
    command
        The command that repeats this, for the report.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> digits = load_digits()
    >>> found = rank(digits.images, digits.target, ["rotation(10)", "vertical_flip"])
    >>> found.rows[-1].augmentation
    'vertical_flip'
    """
    started = time.perf_counter()
    read: Any = {"label": label, "kind": kind, "task": task, "name": name}
    data = as_dataset(x, y, **read, max_examples=max_examples, seed=seed)
    candidates = _candidates(augmentations, data)
    if model is None and layer is not None:
        raise AuguryError(f"the layer {layer!r} is of no network; give the network as model")
    if model is not None and features is not None:
        raise AuguryError("a network of your own is the feature map; leave features out")
    score = score or ("trial" if model is None else "kernel-ridge")
    if score not in SCORES:
        raise AuguryError(f"no score is called {score!r}; the scores: {', '.join(SCORES)}")
    if budget is not None and score != "trial":
        raise AuguryError(f"a budget is for the trial score, and the score is {score!r}")
    if budget is not None and not (isinstance(budget, int | float) and budget > 0):
        raise AuguryError(f"budget is a number of seconds above 0, such as 60; got {budget!r}")
    if versions < 1:
        raise AuguryError(f"versions must be 1 or more, not {versions}")
    where = resolve_device(device)
    if model is not None and SCORES[score].default_features is None:
        raise AuguryError(
            f"the score {score!r} uses no feature map, so a network of your own tells it nothing; "
            "use ridge or kernel-ridge"
        )
    if model is not None:
        features = GradientFeatures(model, seed=seed) if layer is None else Layer(model, layer)
    features = features or SCORES[score].default_features
    phi = None if features is None else _fit(features, data, where, seed)
    setting = Setting(data, phi, versions, seed, where, batch_size=batch_size, budget=budget)

    bar = _Progress(progress)
    scorer = SCORES[score](setting, bar.tick)
    bar.total = scorer.ticks(1 + len(candidates))
    base, *found = scorer.evaluate_all([identity(), *candidates])
    rows = [_row(a, e, base, data) for a, e in zip(candidates, found, strict=True)]
    rows.sort(key=lambda row: -row.gain)
    half = jackknife(base.value, base.replicates).half
    return Ranking(
        rows=tuple(rows),
        baseline=Baseline(base.value, base.value - half, base.value + half),
        dataset=describe(data),
        score=score,
        features=scorer.describe(),
        seed=seed,
        versions=versions,
        seconds=round(time.perf_counter() - started, 3),
        command=command,
        trust=scorer.trust(),
        gallery=make_gallery(data, candidates, seed),
    )


def _candidates(
    augmentations: Iterable[str | Augmentation] | None, data: Dataset
) -> list[Augmentation]:
    if augmentations is None:
        return default_augmentations(data.kind, data.shape)
    if isinstance(augmentations, str) or not isinstance(augmentations, Iterable):
        augmentations = [augmentations]
    unique = dict.fromkeys(parse(a) for a in augmentations)
    for candidate in unique:
        candidate.check(data.shape)
    if not unique:
        raise AuguryError("no augmentation was given to rank; leave it out for the defaults")
    return list(unique)


def _fit(features: str | FeatureMap, data: Dataset, device: torch.device, seed: int) -> FeatureMap:
    if isinstance(features, str):
        if features not in FEATURES:
            known = ", ".join(FEATURES)
            raise AuguryError(f"no feature map is called {features!r}; the feature maps: {known}")
        features = FEATURES[features](seed)
    sample = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed))[:_FIT_SAMPLE]
    x = data.batch(sample, device, torch.float32)
    with torch.no_grad():
        return features.to(device).fit(x, data.targets()[sample].to(x))


def _row(candidate: Augmentation, found: Estimate, base: Estimate, data: Dataset) -> Row:
    gain = found.value - base.value
    sampling, doubt = jackknife(gain, found.replicates - base.replicates).half, 1.96 * found.doubt
    half = math.hypot(sampling, doubt)
    low, high = gain - half, gain + half
    verdict = "helps" if low > 0 else "hurts" if high < 0 else "can't tell"
    named: dict[str, tuple[float, float, float]] = {}
    if data.classes is not None:
        gains = (found.per_class - base.per_class).tolist()
        counts = data.y.bincount(minlength=len(data.classes)).tolist()
        for name, of_class, n in zip(data.classes, gains, counts, strict=True):
            reach = math.hypot(sampling * math.sqrt(len(data) / n), doubt)  # n of all examples
            named[name] = (of_class, of_class - reach, of_class + reach)
    magnitude = candidate.magnitude if isinstance(candidate, Family) else None
    return Row(
        repr(candidate), found.value, gain, low, high, verdict, named,
        family="" if magnitude is None else type(candidate).__name__,
        magnitude=magnitude,
        strongest=isinstance(candidate, Family) and magnitude == candidate.strongest,
    )  # fmt: skip


class _Progress:
    def __init__(self, report: Callable[[int, int, str], None] | None) -> None:
        self.report, self.done, self.total = report, 0, 0

    def tick(self, now: str) -> None:
        self.done += 1
        if self.report is not None:
            self.report(self.done, self.total, now)


def make_gallery(
    data: Dataset,
    candidates: Sequence[Augmentation],
    seed: int,
    *,
    originals: int = 4,
    versions: int = 6,
    side: int = 64,
) -> Gallery | None:
    """Make pictures of a few examples, of different classes where there are, and their versions."""
    if data.kind == "vector":
        return None
    index = _varied(data, originals)
    x = data.batch(index, torch.device("cpu"), torch.float32)
    rng = Rng(seed, index)
    shown = {repr(a): _picture(a.views(x, versions, rng), side) for a in candidates}
    return Gallery(_picture(x.unsqueeze(0), side), shown)


def _varied(data: Dataset, count: int) -> Tensor:
    if data.classes is None:
        return torch.arange(min(count, len(data)))
    first = [int((data.y == c).nonzero()[0]) for c in range(len(data.classes))]
    step = max(1, len(first) // count)
    return torch.tensor(first[::step][:count])


def _picture(views: Tensor, side: int) -> np.ndarray:
    """Bring ``(n, b, ...)`` to ``(b, n, ...)``: bytes with three channels for images."""
    views = views.transpose(0, 1)
    if views.dim() == 4:
        return views.numpy()
    if max(views.shape[-2:]) > side:
        scale = side / max(views.shape[-2:])
        size = [max(1, round(s * scale)) for s in views.shape[-2:]]
        small = F.interpolate(views.flatten(0, 1), size, mode="bilinear", antialias=True)
        views = small.unflatten(0, views.shape[:2])
    if views.shape[2] != 3:
        views = views[:, :, :1].expand(-1, -1, 3, -1, -1)
    return to_bytes(views).movedim(2, -1).numpy()
