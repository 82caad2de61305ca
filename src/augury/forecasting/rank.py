"""Which augmentations will help: candidates judged on data, with error bars."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from augury import __version__
from augury._base.devices import resolve_device
from augury._base.errors import AuguryError
from augury._base.given import as_seed, as_whole
from augury._base.limits import MOST_VIEWS
from augury._base.progress import Tick, ticking, with_progress
from augury.adapters.usage import distinct, usage
from augury.augmentations import (
    Augmentation,
    Family,
    default_augmentations,
    parse,
)
from augury.cluster import Cluster, Journal, open_workers
from augury.data import Dataset, InMemory, Shards, Stream, as_dataset, describe
from augury.features import (
    FeatureMap,
    Flatten,
    FourierFeatures,
    GradientFeatures,
    PatchFeatures,
)
from augury.forecasting.effort import LEVELS
from augury.forecasting.forecast import Judgement
from augury.forecasting.gallery import make_gallery
from augury.forecasting.plan import NETWORKS, TrainingPlan
from augury.forecasting.scores import SCORES, Score, Setting
from augury.forecasting.scores.base import Judged
from augury.forecasting.series import series_plan
from augury.forecasting.tables import table_of
from augury.forecasting.training.own import OwnNetwork
from augury.forecasting.training.spectrogram import front_end
from augury.forecasting.unchanged import changes_nothing
from augury.forecasting.verdicts import UNDECIDED, explain, verdict
from augury.networks.digest import digest_network
from augury.networks.layers import Layer
from augury.report.words import TRAINED
from augury.results.ranking import Baseline, Ranking, Row

FEATURES: dict[str, Callable[[int], FeatureMap]] = {
    "fourier": lambda seed: FourierFeatures(1024, seed=seed),
    "flatten": lambda seed: Flatten(),
    "patches": lambda seed: PatchFeatures(seed=seed),
    "patches2": lambda seed: PatchFeatures(layers=2, seed=seed),
    "gradient": lambda seed: GradientFeatures(seed=seed),
}
"""Feature maps by name, each made from a seed."""

_FIT_SAMPLE = 1000


@with_progress("ranking")
def rank(
    x: Any,
    y: Any = None,
    augmentations: Iterable[Any] | None = None,
    *,
    epochs: int | None = None,
    plan: TrainingPlan | None = None,
    score: str | None = None,
    feature_map: str | FeatureMap | None = None,
    network: str | nn.Module | None = None,
    layer: str | None = None,
    pretrained: bool = False,
    tune: str = "all",
    n_views: int = 8,
    max_examples: int | None = 20_000,
    seed: int = 0,
    device: str | torch.device = "auto",
    label: str | None = None,
    kind: str | None = None,
    task: str | None = None,
    name: str = "data",
    groups: Any = None,
    group: str | None = None,
    rate: int | None = None,
    batch_size: int | None = None,
    budget: float | None = None,
    effort: int | None = None,
    trends: bool | None = None,
    started: float | None = None,
    cluster: Cluster = None,
    journal: str | Path | None = None,
    progress: Tick | bool | None = None,
    command: str = "",
) -> Ranking:
    """Rank augmentations by their expected gain in a planned training on this data.

    Parameters
    ----------
    x, y
        Examples and labels as arrays or tensors; or only `x`: a frame with `label`, a dataset, a
        ``DataLoader``, an iterable of pairs, or a path. See `augury.as_dataset`.
    augmentations
        Candidates: augmentations, specs such as ``"rotation(15)"``, transforms and pipelines from
        torchvision, kornia, Albumentations, audiomentations or timm, or functions of one example;
        by default, the families that suit the kind of data.
    epochs
        Planned number of epochs; short for ``plan=TrainingPlan(epochs=...)``.
    plan
        The planned training; by default 40 epochs on all of the data with a small CNN.
    score
        ``"trial"`` (a small network trained with each), ``"boosting"`` (gradient boosting, for
        tables), ``"alignment"`` (the paper's), ``"centred-alignment"``, ``"ridge"`` or
        ``"kernel-ridge"``. By default, ``"trial"``; ``"boosting"`` for tables, and
        ``"kernel-ridge"`` if `layer` is given.
    feature_map
        The feature map of a closed-form score, by name or as an object.
    network
        The planned network: ``"cnn"``, ``"resnet"``, ``"lenet"``, or your own network, which the
        trial then trains. For a closed-form score, your network is the feature map: the output of
        `layer`, or the gradient of the network if no layer is given.
    layer
        A layer of your network, for a closed-form score.
    pretrained, tune
        Whether your network starts from its weights, as in fine-tuning, or from new ones; and
        which part is trained: ``"all"``, the last ``"block"`` and the head, or only the ``"head"``.
    n_views
        Number of views of each example for a closed-form score; finite families use all views.
    max_examples
        Maximum number of examples, sampled proportionally by class; None for all.
    seed
        Random seed.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"`` or a torch device.
    label
        The column of a frame to predict.
    kind
        ``"image"``, ``"sound"``, ``"series"`` or ``"vector"``, if the shape of `x` is ambiguous.
    task
        ``"classification"``, ``"regression"`` or ``"multi-label"``; by default, integers and
        strings are classes.
    name
        Name of the data in the result.
    groups, group
        The group of each example, such as a speaker, or the column with the groups: see
        `augury.as_dataset`. A group is never split between training and testing.
    rate
        Sample rate of sound in Hz; recordings read from a path are resampled to it.
    batch_size
        Examples per batch for a closed-form score; does not change the result.
    budget
        Time limit in seconds. The largest amount of work that fits is chosen and reported.
    effort
        Amount of work, from 0 to 10, instead of a budget; the same effort gives the same result.
    trends
        Whether to also try the best candidates with fewer and more epochs and with fewer examples,
        because the ranking can change with them; on by default on a GPU if neither budget nor
        effort is given.
    started
        Start time of the budget, from `time.perf_counter`; by default, now.
    cluster
        Where to run: ``"local"`` for one process per core, ``"local-cuda"`` for one per GPU, the
        address of a Dask scheduler or a ``distributed.Client``. By default, in this process, but
        as with ``"local-cuda"`` if several GPUs are visible, `device` is ``"auto"`` or ``"cuda"``
        and Dask is installed. The result is the same.
    journal
        Directory in which finished jobs are saved, so that a stopped ranking can be resumed.
    progress
        Called with (done, total, candidate) as work progresses; True for a progress bar, False for
        none. By default, a notebook shows a bar.
    command
        The command that repeats the ranking, for the report.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> digits = load_digits()
    >>> found = rank(digits.images, digits.target, ["rotation(10)", "vertical_flip"], effort=3)
    >>> found.rows[-1].augmentation
    'vertical_flip'
    """
    started = time.perf_counter() if started is None else started
    budget = as_budget(budget)
    seed, n_views = as_seed(seed), as_whole("n_views", n_views, 1, MOST_VIEWS)
    batch_size = batch_size if batch_size is None else as_whole("batch_size", batch_size, 1)
    effort = effort if effort is None else as_whole("effort", effort, 0, len(LEVELS) - 1)
    if budget is not None and effort is not None:
        raise AuguryError("pass either budget or effort, not both")
    max_examples = max_examples if max_examples is None else as_whole("max_examples", max_examples)
    given = TrainingPlan.of(plan, epochs)
    stated = TrainingPlan.stated(plan, epochs, network)
    given, module = planned_network(given, network, pretrained, tune)
    read: Any = {
        "label": label, "kind": kind, "task": task, "name": name, "groups": groups, "group": group,
        "rate": rate,
    }  # fmt: skip
    stream = _stream(x, max_examples, score)
    if stream is not None:
        data = stream.about
    else:
        data = as_dataset(x, y, **read, max_examples=max_examples, seed=seed).distinct()
    candidates = _candidates(augmentations, data)
    if data.kind == "vector":
        table = table_of(data)
        candidates = [candidate.bound(table) for candidate in candidates]
    if score is None:
        usual = "boosting" if data.kind == "vector" and network is None else "trial"
        score = usual if layer is None else "kernel-ridge"
    if not isinstance(score, str) or score not in SCORES:
        raise AuguryError(f"score must be one of {', '.join(SCORES)}, got {score!r}")
    if score not in TRAINED and (budget is not None or effort is not None):
        raise AuguryError(
            f"budget and effort are only for {' and '.join(TRAINED)}, but the score is {score!r}"
        )
    if score == "boosting" and data.kind != "vector":
        raise AuguryError(f"boosting is for tables, but this is {data.kind} data; use trial")
    planned = given
    if data.kind == "series" and module is None:
        planned = series_plan(given, epochs is not None or plan is not None)
    where = resolve_device(device)
    own = None
    if score == "trial" and module is not None and layer is None:
        own, module = OwnNetwork(module, given.pretrained, given.tune), None
    phi = _feature_map(feature_map, module, layer, SCORES[score], data, where, seed)
    setting = Setting(
        data, phi, n_views, seed, where, batch_size=batch_size,
        plan=planned, budget=budget, effort=effort, started=started, own=own,
        trends=_follows(trends, where, budget, effort),
    )  # fmt: skip
    heard = score == "trial" and data.rate is not None and own is None
    front = front_end(data) if heard else None
    idle = {a for a in candidates if changes_nothing(a, data, seed, front)}
    judged_candidates = [a for a in candidates if a not in idle]
    with open_workers(cluster, where) as workers:
        kept = Journal()
        if journal is not None:
            whole = stream or InMemory(data, len(data))
            kept = Journal.open(journal, _key(whole, setting, score))
        setting = replace(setting, stream=stream, workers=workers, journal=kept)
        scorer = SCORES[score](setting, ticking(progress))
        judged = scorer.judge_all(judged_candidates)
    base = judged.baseline
    found = dict(zip(judged_candidates, judged.candidates, strict=True))
    nothing = Judgement(base.score, 0.0, 0.0, 0.0, 0.5)
    rows = [_row(a, found.get(a, nothing), judged, data) for a in candidates]
    rows.sort(key=lambda row: -row.gain)
    return Ranking(
        rows=tuple(rows),
        baseline=Baseline(base.score, base.low, base.high, judged.faultless),
        dataset=describe(data, seen=scorer.effort().get("examples"))
        | ({} if stream is None else _counts(stream)),
        score=score,
        features=scorer.describe(),
        seed=seed,
        n_views=n_views,
        seconds=round(time.perf_counter() - started, 3),
        command=command,
        trust=" ".join(filter(None, (scorer.trust(), explain(rows, _withheld(judged))))),
        plan=scorer.plan(planned.describe(given, data.total, data.shape, stated)),
        effort=scorer.effort(),
        warnings=judged.warnings,
        extrapolation=judged.trends,
        gallery=make_gallery(data, candidates, seed),
    )


def _stream(x: Any, max_examples: int | None, score: str | None) -> Shards | None:
    """Return the shards that a score goes through, where it needs no example twice."""
    if not isinstance(x, Shards) or (max_examples is not None and max_examples < len(x)):
        return None
    return x if score in ("alignment", "centred-alignment") else None


def _counts(stream: Shards) -> dict[str, Any]:
    """Return how many examples there are, of which the description of a stream is a sample."""
    counts = None if stream.about.classes is None else stream.y.bincount().tolist()
    return {"examples": len(stream), "counts": counts}


def _key(stream: Stream, setting: Setting, score: str) -> dict[str, Any]:
    """Return what the jobs of a ranking depend on, apart from their names."""
    phi, own = setting.phi, setting.own
    return {
        "version": __version__,
        "data": stream.digest(),
        "score": score,
        "features": None if phi is None else [phi.describe(), digest_network(phi)],
        "network": None if own is None else digest_network(own.network),
        "n_views": setting.n_views,
        "seed": setting.seed,
        "plan": asdict(setting.plan),
        "device": setting.device.type,
    }


def _follows(
    trends: bool | None, device: torch.device, budget: float | None, effort: int | None
) -> bool:
    return device.type == "cuda" and budget is None and effort is None if trends is None else trends


def planned_network(
    plan: TrainingPlan, network: str | nn.Module | None, pretrained: bool, tune: str
) -> tuple[TrainingPlan, nn.Module | None]:
    """Return the plan with its network named, and the network where it is the user's own.

    What `pretrained` and `tune` leave at their defaults is as the plan has it.
    """
    pretrained, tune = pretrained or plan.pretrained, plan.tune if tune == "all" else tune
    if isinstance(network, nn.Module):
        name = plan.network if plan.network != TrainingPlan().network else type(network).__name__
        return replace(plan, network=name, pretrained=pretrained, tune=tune), network
    if network is None:
        if pretrained or tune != "all":
            raise AuguryError(
                "pretrained and tune are only for your own network; pass it as network"
            )
        network = plan.network
    if network not in NETWORKS:
        raise AuguryError(
            f"network must be {', '.join(NETWORKS)} or a torch.nn.Module, got {network!r}; load "
            "your own with augury.load_network"
        )
    return replace(plan, network=network), None


def as_budget(budget: Any) -> float | None:
    """Return a number of seconds as a float, or None; raise if it is neither."""
    if budget is None:
        return None
    number = isinstance(budget, Real) and not isinstance(budget, bool | np.bool_)
    if not (number and 0 < float(budget) < math.inf):
        raise AuguryError(f"budget must be a positive number of seconds, got {budget!r}")
    return float(budget)


def _feature_map(
    features: str | FeatureMap | None,
    network: nn.Module | None,
    layer: str | None,
    score: type[Score],
    data: Dataset,
    device: torch.device,
    seed: int,
) -> FeatureMap | None:
    """Return the fitted feature map of a score; None for a score that uses none."""
    if network is None and layer is not None:
        raise AuguryError(f"layer {layer!r} needs a network; pass it as network")
    if network is not None and features is not None:
        raise AuguryError("your own network is the feature map; remove feature_map")
    if network is not None and score.default_features is None:
        raise AuguryError(
            f"the score {score.name!r} uses no feature map; use ridge or kernel-ridge with a "
            "network of your own"
        )
    if network is not None:
        features = GradientFeatures(network, seed=seed) if layer is None else Layer(network, layer)
    features = features or score.default_features
    return None if features is None else _fit(features, data, device, seed)


def _candidates(augmentations: Iterable[Any] | None, data: Dataset) -> list[Augmentation]:
    if augmentations is None:
        return default_augmentations(data.kind, data.shape)
    if isinstance(augmentations, str) or not isinstance(augmentations, Iterable):
        augmentations = [augmentations]
    candidates = distinct(parse(a) for a in augmentations)
    if data.rate is not None and data.preparation is not None:
        level = data.preparation.deviation[0] or 1.0
        candidates = [candidate.at_rate(data.rate, level) for candidate in candidates]
    for candidate in candidates:
        candidate.check(data.shape)
    if not candidates:
        raise AuguryError("the list of augmentations is empty; omit it to use the defaults")
    return candidates


def _fit(features: str | FeatureMap, data: Dataset, device: torch.device, seed: int) -> FeatureMap:
    if isinstance(features, str):
        if features not in FEATURES:
            known = ", ".join(FEATURES)
            raise AuguryError(f"unknown feature map {features!r}; known feature maps: {known}")
        features = FEATURES[features](seed)
    if not isinstance(features, FeatureMap):
        raise AuguryError(f"expected the name of a feature map or a FeatureMap, got {features!r}")
    sample = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed))[:_FIT_SAMPLE]
    x = data.batch(sample, device, torch.float32)
    with torch.no_grad():
        return features.to(device).fit(x, data.targets()[sample].to(x))


def _withheld(judged: Judged) -> bool:
    """Return whether a verdict is withheld only because the effect is too faint."""
    said = (verdict(j.gain, j.probability, judged.matters) for j in judged.candidates if j.faint)
    return judged.decides and any(word != UNDECIDED for word in said)


def _row(candidate: Augmentation, found: Judgement, judged: Judged, data: Dataset) -> Row:
    decides = judged.decides and not found.faint
    said = verdict(found.gain, found.probability, judged.matters) if decides else UNDECIDED
    if not (judged.sure and found.clear) and said in ("helps", "hurts"):
        said = f"probably {said}"
    magnitude = candidate.magnitude if isinstance(candidate, Family) else None
    return Row(
        repr(candidate), found.score, found.gain, found.low, found.high, said,
        per_class=dict(zip(data.classes or (), found.per_class, strict=False)),
        probability=found.probability if judged.decides else None,
        family="" if magnitude is None else type(candidate).__name__,
        magnitude=magnitude,
        strongest=isinstance(candidate, Family) and magnitude == candidate.strongest,
        code=usage(candidate),
    )  # fmt: skip
