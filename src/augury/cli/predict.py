"""`augury predict`: what a fitted model says of new examples."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from augury.cli.fit import DATA, score
from augury.errors import AuguryError
from augury.files import check_writable, write

if TYPE_CHECKING:
    from augury.cli.examples import Examples


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that augury fit wrote.")],
    data: Annotated[str, DATA],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the predictions as CSV, one example a row."),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    label: Annotated[str | None, typer.Option(help="The column of a table to predict.")] = None,
    size: Annotated[
        int | None, typer.Option(help="Resize a folder's images to this many pixels a side.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(help="image, series or vector, where the shape of an array leaves a doubt."),
    ] = None,
) -> None:
    """Predict the labels of DATA with a MODEL, and say how many are right."""
    if out is not None:
        check_writable(out)

    from augury.cli.examples import read_examples
    from augury.cli.progress import bar
    from augury.estimators import about_model, load_model

    fitted = load_model(model, device=device)
    about = about_model(model)
    with bar("reading") as tick:
        found = read_examples(
            data,
            label,
            size or about.get("size"),
            kind,
            like=about,
            progress=lambda done, total: tick(done, total, "images"),
        )
    if found.x.shape[1:] != fitted.shape_:
        raise AuguryError(
            f"the model takes examples of shape {fitted.shape_}, and these have "
            f"{tuple(found.x.shape[1:])}; for a folder of images, give --size"
        )
    if found.y is not None:
        _show_score(fitted, found)
    if out is not None or found.y is None:
        text = _table(fitted, found)
        if out is None:
            print(text, end="")
        else:
            write(out, text)
            print(f"wrote {out}")


def _show_score(model: Any, found: Examples) -> None:
    unknown = 0 if found.real else sum(label not in model.classes_ for label in set(found.y))
    if unknown:
        print(f"  {unknown} of the data's classes are unknown to the model")
    print(f"{score(model, found.x, found.y)} on {len(found.x):,} examples of {found.name}")


def _table(model: Any, found: Examples) -> str:
    """Write predictions as CSV, with the labels where there are any."""
    columns: dict[str, list[Any]] = {} if found.y is None else {"label": found.y.tolist()}
    columns["predicted"] = model.predict(found.x).tolist()
    if hasattr(model, "classes_"):
        chance = model.predict_proba(found.x).max(1)
        columns["probability"] = [f"{value:.4f}" for value in chance]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(columns)
    table.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()
