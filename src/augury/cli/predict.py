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
        typer.Option(metavar="FILE", help="Write the predictions as CSV, one row per example."),
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

    If DATA has labels, print the accuracy too.
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
    shown = out is not None or found.y is not None
    for note in found.notes:
        print(f"  {note}", file=sys.stdout if shown else sys.stderr)  # else it goes with the CSV
    predicted = fitted.predict(found.x)
    text = _table(fitted, found, predicted) if out is not None or found.y is None else ""
    if out is not None:
        write(out, text)
    if found.y is not None:
        _show_score(fitted, found, found.y, predicted)
    print(text if out is None else f"wrote {out}\n", end="")


def _show_score(model: Any, found: NewExamples, labels: np.ndarray, predicted: Any) -> None:
    import numpy as np

    from augury.data.labels import as_written

    real = not hasattr(model, "classes_")
    if real:
        value = model.score(found.x, labels)
    else:
        known: Any = as_written(model.classes_)
        unknown = np.setdiff1d(labels, known)
        if len(unknown):
            print(f"  the model does not know {count(len(unknown), 'class')} of the data")
        value = float(np.mean(as_written(predicted) == labels))
    print(f"{say_score(value, real)} on {count(len(found.x), 'example')} of {found.name}")


def _table(model: Any, found: NewExamples, predicted: Any) -> str:
    """Write predictions as CSV, with the labels if there are any."""
    columns: dict[str, list[Any]] = {} if found.y is None else {"label": found.y.tolist()}
    columns["predicted"] = predicted.tolist()
    if hasattr(model, "classes_"):
        chance = model.predict_proba(found.x).max(1)
        columns["probability"] = [f"{value:.4f}" for value in chance]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(columns)
    table.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()
