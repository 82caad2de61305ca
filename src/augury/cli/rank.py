"""`augury rank`: which augmentations help on this data."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from augury._base.errors import AuguryError
from augury._base.files import check_writable, write

if TYPE_CHECKING:
    from augury.results.ranking import Ranking

_STYLE = {"helps": "green", "hurts": "red", "can't tell": "dim"}


def rank(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="digits, mnist5k, an .npz file, a folder with a folder of images a class, IDX "
            "files (MNIST's), CIFAR's python batches, or a CSV or Parquet table with --label.",
        ),
    ],
    augmentation: Annotated[
        list[str] | None,
        typer.Option("--augmentation", "-a", metavar="SPEC", help="A candidate; may be repeated."),
    ] = None,
    augmentations: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A file with candidates, one spec a line."),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(
            help="trial (the default: a small network briefly trained with each), ridge, "
            "kernel-ridge (the default with --model), alignment (the paper's) or "
            "centred-alignment."
        ),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(help="For a closed-form score: patches, gradient, fourier or flatten."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="Your own network as the feature map: a function that gives it, a saved program "
            "or a timm name.",
        ),
    ] = None,
    layer: Annotated[
        str | None,
        typer.Option(help="The layer of --model to use; without one, the network's gradient."),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(help="Seconds for the trial: screen all candidates, then retry the leaders."),
    ] = None,
    sweep: Annotated[
        bool,
        typer.Option(
            help="Try each family at several strengths and say how far is safe; with -a, only "
            "the families named (as -a rotation)."
        ),
    ] = False,
    versions: Annotated[
        int, typer.Option(help="Versions of each example to look at; the trial has its own.")
    ] = 8,
    max_examples: Annotated[
        int, typer.Option(help="Use at most so many examples, each class in proportion; 0: all.")
    ] = 5000,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Of everything random.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    label: Annotated[
        str | None,
        typer.Option(help="The column of a table to predict."),
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(help="Resize a folder's images to this many pixels a side."),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(help="image, series or vector, where the shape of an array leaves a doubt."),
    ] = None,
    skip_bad: Annotated[bool, typer.Option(help="Leave out images that cannot be read.")] = False,
    json: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the result as JSON."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page: .html, or .md for Markdown."),
    ] = None,
) -> None:
    """Rank augmentations by what they will do for a classifier of DATA, before training one."""
    for path in (json, report):
        if path is not None:
            check_writable(path)
    if report is not None and report.suffix.lower() not in (".html", ".htm", ".md"):
        raise AuguryError(f"a report ends in .html or .md, and {report.name!r} does not")
    if max_examples < 0:
        raise AuguryError(f"--max-examples must be 0 (all) or more, not {max_examples}")

    specs = [*(augmentation or []), *(_read_specs(augmentations) if augmentations else [])]

    from augury._base.devices import resolve_device
    from augury.augmentations import parse, strength_ladder
    from augury.cli.progress import bar
    from augury.data import load
    from augury.forecasting.rank import rank as rank_data
    from augury.networks.invariance.models import load_network

    candidates = [parse(spec, imports=True) for spec in specs] or None
    where = resolve_device(device)
    with bar("reading") as tick:
        found = load(
            data,
            label=label,
            size=size,
            kind=kind,
            max_examples=max_examples or None,
            seed=seed,
            skip_bad=skip_bad,
            progress=lambda done, total: tick(done, total, "images"),
        )
    if sweep:
        families = None if candidates is None else [type(c).__name__ for c in candidates]
        candidates = strength_ladder(found.kind, families)
    network = None if model is None else load_network(model, found.shape)
    with bar("ranking") as tick:
        result = rank_data(
            found,
            augmentations=candidates,
            score=score,
            features=features,
            model=network,
            layer=layer,
            versions=versions,
            budget=budget,
            max_examples=None,
            seed=seed,
            device=where,
            progress=tick,
            command=shlex.join(["augury", *sys.argv[1:]]),
        )
    show(result)
    if sweep:
        show_strengths(result)
    if json is not None:
        write(json, result.to_json())
        print(f"wrote {json}")
    if report is not None:
        page = result.to_markdown() if report.suffix.lower() == ".md" else result.to_html()
        write(report, page)
        print(f"wrote {report}")


def _read_specs(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise AuguryError(f"cannot read the augmentations in {path}: {reason}") from None
    specs = [line.split("#")[0].strip() for line in lines]
    if not any(specs):
        raise AuguryError(f"{path} holds no augmentation; give one spec a line, as rotation(15)")
    return [spec for spec in specs if spec]


def show(result: Ranking) -> None:
    """Print a ranking as a table."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    data = result.dataset
    about = f"{data['name']}: {data['examples']:,} examples of {data['kind']} data"
    if data["classes"]:
        about += f", {len(data['classes'])} classes"
    console.print(about, markup=False, highlight=False)
    for note in data["notes"]:
        console.print(f"  {note}", style="dim", markup=False, highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    gain = "points" if result.score == "trial" else "gain"
    for heading in ("", "augmentation", gain, "95 % interval", "verdict"):
        table.add_column(
            heading, justify="left" if heading in ("augmentation", "verdict") else "right"
        )
    digits = 2 if result.score == "trial" else 4
    for place, row in enumerate(result.rows, start=1):
        table.add_row(
            str(place),
            Text(row.augmentation),
            f"{row.gain:+.{digits}f}",
            f"{row.low:+.{digits}f} to {row.high:+.{digits}f}",
            Text(row.verdict, style=_STYLE[row.verdict]),
        )
    console.print(table)
    unit = result.score
    if result.score == "trial":
        unit = "% accuracy" if result.dataset["classes"] else "% of the variance explained"
    console.print(
        f"{result.baseline.score:.{digits}f} {unit} without augmentation; {result.features}; "
        f"{result.seconds:.1f} s",
        style="dim",
        markup=False,
        highlight=False,
    )
    if result.trust:
        console.print(result.trust, markup=False, highlight=False)


def show_strengths(result: Ranking) -> None:
    """Print how strong each family may safely be."""
    from rich.console import Console

    console = Console()
    for curve in result.curves(3):
        safe = curve.safe
        said = (
            "no setting is expected to gain" if safe is None else f"safe up to {safe.augmentation}"
        )
        console.print(f"{curve.family}: {said}", markup=False, highlight=False)
