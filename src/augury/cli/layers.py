"""`augury layers`: how invariant each layer of a network is."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from augury._base.errors import AuguryError
from augury._base.files import check_writable, write

if TYPE_CHECKING:
    from augury.networks.invariance import Profile


def layers(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="module:function that gives the network, a saved TorchScript file or exported "
            "program (.pt2), or the name of a timm model.",
        ),
    ],
    data: Annotated[str, typer.Argument(metavar="DATA", help="As for rank.")],
    augmentation: Annotated[
        list[str],
        typer.Option("--augmentation", "-a", metavar="SPEC", help="May be repeated."),
    ],
    against: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Another network to compare with, layer by layer."),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Weights for MODEL: .safetensors or a state dict."),
    ] = None,
    against_weights: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Weights for the other network.")
    ] = None,
    pretrained: Annotated[
        bool, typer.Option(help="Let timm fetch its trained weights, and scale inputs for them.")
    ] = False,
    layer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A layer, or a pattern such as 'layer1.*'; may be repeated. By default the "
            "layers that cut the network, residual blocks whole.",
        ),
    ] = None,
    versions: Annotated[int, typer.Option(help="Versions of each example to look at.")] = 16,
    max_examples: Annotated[
        int, typer.Option(help="Use at most so many examples, each class in proportion; 0: all.")
    ] = 1000,
    batch_size: Annotated[
        int | None, typer.Option(help="Examples at a time; without effect on the result.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Of everything random.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    label: Annotated[str | None, typer.Option(help="The column of a table to leave out.")] = None,
    size: Annotated[
        int | None, typer.Option(help="Resize a folder's images to this many pixels a side.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(help="image, series or vector, where the shape of an array leaves a doubt."),
    ] = None,
    skip_bad: Annotated[bool, typer.Option(help="Leave out images that cannot be read.")] = False,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the result as JSON.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page: .html, or .md for Markdown."),
    ] = None,
) -> None:
    """Measure how far augmentations move each layer's features, relative to other examples."""
    for path in (json, report):
        if path is not None:
            check_writable(path)
    if report is not None and report.suffix.lower() not in (".html", ".htm", ".md"):
        raise AuguryError(f"a report ends in .html or .md, and {report.name!r} does not")
    if max_examples < 0:
        raise AuguryError(f"--max-examples must be 0 (all) or more, not {max_examples}")
    if batch_size is not None and batch_size < 1:
        raise AuguryError(f"--batch-size must be 1 or more, not {batch_size}")
    if against_weights is not None and against is None:
        raise AuguryError("--against-weights is for the network of --against; give that too")
    if pretrained and not any(_named(spec) for spec in (model, against) if spec is not None):
        raise AuguryError(
            f"--pretrained is for a timm model, and {model} is none; give its weights by --weights"
        )

    from augury._base.devices import resolve_device
    from augury.augmentations import parse
    from augury.cli.progress import bar
    from augury.data import load
    from augury.networks.invariance import profile
    from augury.networks.invariance.models import load_network

    candidates = [parse(spec, imports=True) for spec in augmentation]
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

    def measure(spec: str, filled: Path | None) -> Profile:
        network = load_network(spec, found.shape, weights=filled, pretrained=pretrained).to(where)
        with bar("measuring") as tick:
            return profile(
                network,
                found,
                candidates,
                layers=layer,
                versions=versions,
                seed=seed,
                batch_size=batch_size,
                name=_label(spec, filled),
                progress=tick,
                command=shlex.join(["augury", *sys.argv[1:]]),
            )

    result = measure(model, weights)
    if against is not None:
        result = result.over(measure(against, against_weights))
    show(result)
    if json is not None:
        write(json, result.to_json())
        print(f"wrote {json}")
    if report is not None:
        page = result.to_markdown() if report.suffix.lower() == ".md" else result.to_html()
        write(report, page)
        print(f"wrote {report}")


def _named(spec: str) -> bool:
    """Whether a network is the name of a timm model, not module:function and not a file."""
    return ":" not in spec and not Path(spec).expanduser().is_file()


def _label(spec: str, weights: Path | None) -> str:
    return spec if weights is None else f"{spec} ({weights.name})"


def show(result: Profile) -> None:
    """Print a profile as a table: a layer a row, an augmentation a column."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from augury.report.layers import say

    console = Console()
    data = result.dataset
    about = f"{result.model} on {data['name']}: {data['examples']:,} examples"
    console.print(about, markup=False, highlight=False)
    for note in data["notes"]:
        console.print(f"  {note}", style="dim", markup=False, highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("layer", overflow="fold")
    table.add_column("features", justify="right")
    compared = result.against is not None
    for name in result.augmentations:
        table.add_column(Text(name), justify="right")
        if compared:
            table.add_column("ratio", justify="right")
    for name in result.layers:
        cells = [result[name, augmentation] for augmentation in result.augmentations]
        values = [text for c in cells for text in (say(c.relative), *([say(c.ratio)] * compared))]
        table.add_row(Text(name), f"{cells[0].size:,}", *values)
    console.print(table)
    note = "distance of versions, squared, relative to that between different examples"
    if compared:
        note += f"; ratio of the distance to that of {result.against}"
    console.print(
        f"{note}; {result.versions} versions; {result.seconds:.1f} s",
        style="dim",
        markup=False,
        highlight=False,
    )
