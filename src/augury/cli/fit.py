"""`augury fit`: a kernel classifier or regressor, trained with an augmentation."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from augury._base.errors import AuguryError
from augury._base.files import check_writable

DATA = typer.Argument(
    metavar="DATA",
    help="digits, mnist5k, an .npz file, a folder with a folder of images a class, IDX files "
    "(MNIST's), CIFAR's python batches, or a CSV or Parquet table with --label.",
)


def fit(
    data: Annotated[str, DATA],
    out: Annotated[Path, typer.Option(metavar="MODEL", help="Where to write the model.")],
    augmentation: Annotated[
        str, typer.Option("--augmentation", "-a", metavar="SPEC", help="What to train with.")
    ] = "identity",
    features: Annotated[int, typer.Option(help="The number of Fourier features.")] = 4096,
    kernel: Annotated[str, typer.Option(help="gaussian, laplacian or matern.")] = "gaussian",
    gamma: Annotated[
        str, typer.Option(help="The kernel's γ: alignment, median, held-out or a number.")
    ] = "alignment",
    sampling: Annotated[
        str, typer.Option(help="Of the frequencies: iid, orthogonal or hadamard.")
    ] = "iid",
    versions: Annotated[int, typer.Option(help="Versions to average over.")] = 6,
    objective: Annotated[
        str, typer.Option(help="first-order, tangent, second-order or exact.")
    ] = "first-order",
    loss: Annotated[str, typer.Option(help="quadratic or logistic.")] = "quadratic",
    ridge: Annotated[str, typer.Option(help="The penalty λ: gcv or a number.")] = "gcv",
    holdout: Annotated[
        float, typer.Option(help="Leave out this share of the examples and test on them.")
    ] = 0.0,
    memory: Annotated[
        float | None, typer.Option(help="GiB to use; by default half of what is free.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Of everything random.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    label: Annotated[str | None, typer.Option(help="The column of a table to predict.")] = None,
    size: Annotated[
        int | None, typer.Option(help="Resize a folder's images to this many pixels a side.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(help="image, series or vector, where the shape of an array leaves a doubt."),
    ] = None,
    skip_bad: Annotated[bool, typer.Option(help="Leave out images that cannot be read.")] = False,
) -> None:
    """Train a kernel classifier of DATA with an augmentation, and write it to MODEL."""
    check_writable(out)
    if not 0 <= holdout < 1:
        raise AuguryError(f"--holdout is a share from 0 to below 1, not {holdout}")

    from augury.augmentations import parse
    from augury.cli.examples import read_examples
    from augury.cli.progress import bar
    from augury.kernel import (
        AugmentedKernelClassifier,
        AugmentedKernelRegressor,
        save_model,
    )

    parsed = parse(augmentation)
    with bar("reading") as tick:
        found = read_examples(
            data,
            label,
            size,
            kind,
            skip_bad=skip_bad,
            progress=lambda done, total: tick(done, total, "images"),
        )
    if found.real and loss != "quadratic":
        raise AuguryError(f"the labels are numbers, for which --loss is quadratic, not {loss!r}")
    train, test = _split(len(found.x), holdout, seed)
    if not len(train):
        raise AuguryError(
            f"--holdout {holdout:g} leaves none of {len(found.x):,} examples to fit; give less"
        )
    options: dict[str, Any] = {
        "features": features,
        "kernel": kernel,
        "gamma": _number(gamma, "--gamma"),
        "sampling": sampling,
        "versions": versions,
        "objective": objective,
        "ridge": _number(ridge, "--ridge"),
        "memory": memory,
        "device": device,
        "seed": seed,
    }
    model: Any = (
        AugmentedKernelRegressor(parsed, **options)
        if found.real
        else AugmentedKernelClassifier(parsed, loss=loss, **options)
    )
    started = time.perf_counter()
    with bar("fitting") as tick:
        model.fit(
            found.x[train],
            found.y[train],
            progress=lambda done, total: tick(done, total, "features"),
        )
    seconds = time.perf_counter() - started
    print(f"{found.name}: {len(train):,} examples of {found.kind} data")
    for note in (*found.notes, *filter(None, [model.note_])):
        print(f"  {note}")
    print(f"{model.describe()}; {seconds:.1f} s")
    if len(test):
        value = model.score(found.x[test], found.y[test])
        print(f"{say_score(value, found.real)} on {len(test):,} examples left out")
    save_model(model, out, about=found.about)
    print(f"wrote {out}")


def say_score(value: float, real: bool) -> str:
    """Say how good a model is on labelled examples."""
    return f"R² {value:.3f}" if real else f"accuracy {value:.2%}"


def _split(count: int, holdout: float, seed: int) -> tuple[Any, Any]:
    import numpy as np

    order = np.random.default_rng(seed).permutation(count)
    tested = round(holdout * count)
    return np.sort(order[tested:]), np.sort(order[:tested])


def _number(text: str, option: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        if text in ("gcv", "alignment", "median", "held-out"):
            return text
        raise AuguryError(f"{option} takes a number or one of its words, not {text!r}") from None
