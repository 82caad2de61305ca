"""`augury fit`: a kernel classifier or regressor, trained with an augmentation."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from augury._base.errors import AuguryError
from augury.cli import options
from augury.cli.interrupted import resumable
from augury.cli.output import check_outputs
from augury.cli.reading import connected, read_or_stream

if TYPE_CHECKING:
    import numpy as np

    from augury.data import Dataset


def fit(
    data: options.Data,
    out: Annotated[Path, typer.Option(metavar="MODEL", help="Write the model to this file.")],
    augmentation: options.Augmentation = None,
    n_components: Annotated[int, typer.Option(min=1, help="Number of Fourier features.")] = 4096,
    kernel: Annotated[options.Kernel, typer.Option(help="Kernel function.")] = "gaussian",
    gamma: Annotated[
        str | None,
        typer.Option(
            help="Kernel parameter γ: a number, or the method that chooses it: alignment (default "
            "for classification), held-out (default for regression) or median."
        ),
    ] = None,
    sampling: Annotated[
        options.Sampling, typer.Option(help="How the frequencies of the features are drawn.")
    ] = "iid",
    n_views: options.NViews = 6,
    objective: Annotated[
        options.Objective,
        typer.Option(help="Loss over all views of an example: exact, or an approximation."),
    ] = "first-order",
    loss: Annotated[options.Loss, typer.Option(help="Loss of a prediction.")] = "quadratic",
    ridge: Annotated[
        str, typer.Option(help="Penalty λ: a number, or gcv to choose it by cross-validation.")
    ] = "gcv",
    holdout: Annotated[
        float, typer.Option(help="Fraction of the examples to hold out for testing.")
    ] = 0.0,
    memory: options.Memory = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    cluster: options.FitCluster = None,
    journal: options.Journal = None,
    label: options.Label = None,
    size: options.Size = None,
    kind: options.Kind = None,
    task: options.Task = None,
    group: options.Group = None,
    rate: options.Rate = None,
    seconds: options.Seconds = None,
    skip_bad: options.SkipBad = False,
) -> None:
    """Train a kernel model with an augmentation."""
    check_outputs(data, out=out)
    specs = augmentation or ["identity"]
    if len(specs) > 1:
        raise AuguryError(
            f"a model is trained with one augmentation, got {len(specs)}; combine them as "
            f"-a '{' >> '.join(specs)}' (one after another) or -a '{' | '.join(specs)}' (one of "
            "them)"
        )
    if not 0 <= holdout < 1:
        raise AuguryError(f"--holdout must be at least 0 and less than 1, got {holdout}")

    from augury._base.progress import bar
    from augury.augmentations import parse
    from augury.data import is_sharded
    from augury.kernel import (
        AugmentedKernelClassifier,
        AugmentedKernelRegressor,
        save_model,
    )

    parsed = parse(specs[0])
    streamed = not holdout and loss == "quadratic"
    if journal is not None and cluster is None and not (streamed and is_sharded(data)):
        raise AuguryError("--journal saves the sums of shards; use it with shards or --cluster")
    found, whole = read_or_stream(
        data, streamed, label=label, size=size, kind=kind, task=task, group=group, seed=seed,
        skip_bad=skip_bad, rate=rate, seconds=seconds,
    )  # fmt: skip
    if holdout:  # or a copy of a held-out example would be predicted from memory
        found = found.distinct()
    assert found.preparation is not None  # `load` always has one
    parsed.check(found.shape)
    real, labels = found.classes is None, found.labels()
    if real and loss != "quadratic":
        raise AuguryError(f"the labels are numbers, so --loss must be quadratic, got {loss!r}")
    train, test = _split(found, holdout, seed)
    if not len(train):
        raise AuguryError(
            f"--holdout {holdout:g} leaves none of the {len(found.x):,} examples to fit; reduce it"
        )
    settings: dict[str, Any] = {
        "n_components": n_components,
        "kernel": kernel,
        "sampling": sampling,
        "n_views": n_views,
        "objective": objective,
        "ridge": _number(ridge, "--ridge", ("gcv",)),
        "memory": memory,
        "device": device,
        "random_state": seed,
    }
    if gamma is not None:
        settings["gamma"] = _number(gamma, "--gamma", ("alignment", "held-out", "median"))
    model: Any = (
        AugmentedKernelRegressor(parsed, **settings)
        if real
        else AugmentedKernelClassifier(parsed, loss=loss, **settings)
    )
    started = time.perf_counter()
    examples = (found.x[train], labels[train]) if whole is None else (whole,)
    with resumable(journal), connected(cluster, device) as workers, bar("fitting") as tick:
        model.fit(
            *examples,
            progress=lambda done, total: tick(done, total, "features"),
            cluster=workers,
            journal=journal,
        )
    took = time.perf_counter() - started
    count = len(train) if whole is None else len(whole)
    about: dict[str, Any] = {"preparation": found.preparation.to_dict()}
    if found.tags is not None:
        about["tags"] = list(found.tags)
    save_model(model, out, about=about)
    print(f"{found.name}: {count:,} examples of {found.kind} data")
    for note in (*found.notes, *filter(None, [model.note_])):
        print(f"  {note}")
    print(f"{model.describe()}; {took:.1f} s")
    if len(test):
        predicted, tagged = model.predict(found.x[test]), found.tags is not None
        said = say_score(predicted, labels[test], real=real, tagged=tagged)
        print(f"{said} on {len(test):,} held-out examples")
    print(f"wrote {out}")


def say_score(predicted: np.ndarray, labels: np.ndarray, *, real: bool, tagged: bool) -> str:
    """Return how good predictions are, in words; `tagged` if an example has several labels."""
    if tagged:
        import torch

        from augury.statistics.precision import average_precision

        values = average_precision(torch.from_numpy(predicted), torch.from_numpy(labels))
        return f"average precision {float(values.mean()):.2%}"
    if real:
        from sklearn.metrics import r2_score

        return f"R² {r2_score(labels, predicted):.3f}"
    return f"accuracy {float((predicted == labels).mean()):.2%}"


def _split(found: Dataset, holdout: float, seed: int) -> tuple[Any, Any]:
    """Return which examples to fit and which to test; groups stay whole."""
    import numpy as np

    count = len(found)
    order = np.random.default_rng(seed).permutation(count)
    tested = round(holdout * count)
    if found.groups is not None:
        groups = found.groups.numpy()
        place = np.random.default_rng(seed).permutation(groups.max() + 1)[groups]
        order = order[np.argsort(place[order], kind="stable")]
        ends = np.flatnonzero(np.diff(place[order], append=-1)) + 1  # where a group ends
        tested = int(ends[np.abs(ends - tested).argmin()]) if tested else 0
    return np.sort(order[tested:]), np.sort(order[:tested])


def _number(text: str, option: str, choices: tuple[str, ...]) -> float | str:
    try:
        return float(text)
    except ValueError:
        if text in choices:
            return text
        raise AuguryError(
            f"{option} must be a number or {' or '.join(choices)}, got {text!r}"
        ) from None
