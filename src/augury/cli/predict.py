"""`augury predict`: predictions of a fitted model for new examples."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from augury._base.errors import AuguryError
from augury._base.files import write
from augury._base.text import count
from augury.cli import options
from augury.cli.fit import say_score
from augury.cli.output import check_outputs, unless_printed

if TYPE_CHECKING:
    import numpy as np

    from augury.data import NewExamples


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file written by augury fit.")],
    data: options.Data,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the predictions to a file instead of printing them."
        ),
    ] = None,
    device: options.Device = "auto",
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of a table with the true labels, if any; default: the label's column in "
            "the table that the model was fitted to.",
        ),
    ] = None,
    size: options.Size = None,
    kind: options.Kind = None,
    skip_bad: options.SkipBad = False,
) -> None:
    """Predict the labels of DATA with a fitted MODEL.

    Print the predictions as CSV, with file names if DATA consists of files. If DATA has labels,
    also print the accuracy (R² for numbers, average precision for several labels per example), on
    standard error unless --out is given.
    """
    out = unless_printed(out)
    check_outputs(data, model, out=out)

    from augury._base.progress import bar
    from augury.data import Preparation, load_new
    from augury.kernel.persistence import read_model

    fitted: Any
    fitted, about = read_model(model, device=device)
    if not hasattr(fitted, "predict"):
        raise AuguryError(f"{model} contains only features and cannot predict; use a fitted model")
    kept = about.get("preparation")
    with bar("reading") as tick:
        found = load_new(
            data,
            None if kept is None else Preparation.from_dict(kept),
            shape=fitted.shape_,
            real=not hasattr(fitted, "classes_"),
            label=label,
            size=size,
            kind=kind,
            skip_bad=skip_bad,
            progress=lambda done, total: tick(done, total, "images"),
        )
    if found.x.shape[1:] != fitted.shape_:
        raise AuguryError(
            f"the model expects examples of shape {fitted.shape_}, got {found.x.shape[1:]}; "
            "for a table, pass --label"
        )
    predicted = fitted.predict(found.x)
    if found.y is not None and found.y.shape != predicted.shape:
        many = count(predicted.shape[1], "label") if predicted.ndim == 2 else "one value"
        raise AuguryError(
            f"the model predicts {many} for each example, but the labels of {found.name} have "
            f"shape {found.y.shape}; leave them out"
        )
    tags = _tags(about, predicted)
    text = _table(fitted, found, predicted, tags)
    said = [f"  {note}" for note in found.notes]
    if found.y is not None:
        said += _score(fitted, found, found.y, predicted, tagged="tags" in about)
    if out is None:
        print(text, end="")
    else:
        write(out, text)
        said.append(f"wrote {out}")
    for line in said:
        print(line, file=sys.stderr if out is None else sys.stdout)  # beside the CSV, not in it


def _tags(about: dict[str, Any], predicted: np.ndarray) -> list[str] | None:
    """Return the names of the labels of a model that predicts several; None if it does not."""
    if predicted.ndim == 1:
        return None
    names = about.get("tags")
    if not isinstance(names, list) or len(names) != predicted.shape[1]:
        names = range(predicted.shape[1])
    return [str(name) for name in names]


def _score(
    model: Any, found: NewExamples, labels: np.ndarray, predicted: np.ndarray, *, tagged: bool
) -> list[str]:
    """Return lines that say how well predictions agree with labels."""
    import numpy as np

    from augury.data.labels import as_written

    said: list[str] = []
    real = not hasattr(model, "classes_")
    if not real:
        known: Any = as_written(model.classes_)
        unknown = np.setdiff1d(labels, known)
        if len(unknown):
            said.append(f"  the model does not know {count(len(unknown), 'class')} of the data")
        predicted = np.asarray(as_written(predicted))
    score = say_score(predicted, labels, real=real, tagged=tagged)
    return [*said, f"{score} on {count(len(found.x), 'example')} of {found.name}"]


def _table(model: Any, found: NewExamples, predicted: np.ndarray, tags: list[str] | None) -> str:
    """Write predictions as CSV, with the files and the labels if there are any."""
    columns: dict[str, Any] = {"file": found.files} if found.files else {}
    for name, values in (("label", found.y), ("predicted", predicted)):
        if values is not None and tags is not None:
            each = zip(tags, values.T.tolist(), strict=True)
            columns |= {f"{name}_{tag}": column for tag, column in each}
        elif values is not None:
            columns[name] = values.tolist()
    if hasattr(model, "classes_"):
        chance = model.predict_proba(found.x).max(1)
        columns["probability"] = [f"{value:.4f}" for value in chance]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(columns)
    table.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()
