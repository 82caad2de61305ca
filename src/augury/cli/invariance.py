"""`augury invariance`: how invariant each layer of a network is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from augury._base.errors import AuguryError
from augury.cli import options
from augury.cli.output import (
    check_outputs,
    command_line,
    new_table,
    save,
    say,
    say_written,
)
from augury.cli.reading import connected, read_or_stream

if TYPE_CHECKING:
    from augury.results.invariance import InvarianceProfile


def invariance(
    network: Annotated[
        str,
        typer.Argument(metavar="NETWORK", help=f"The network: {options.NETWORK}."),
    ],
    data: options.Data,
    augmentation: Annotated[
        list[str],
        typer.Option(
            "--augmentation", "-a", metavar="SPEC", help="Augmentation to apply; repeatable."
        ),
    ],
    against: Annotated[
        str | None,
        typer.Option(metavar="NETWORK", help="Another network to compare with, layer by layer."),
    ] = None,
    weights: options.Weights = None,
    against_weights: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Weights of the other network.")
    ] = None,
    pretrained: options.Pretrained = False,
    layer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A layer, or a pattern such as 'layer1.*'; repeatable. Default: the layers at "
            "which the network can be cut, keeping residual blocks whole.",
        ),
    ] = None,
    n_views: options.NViews = 16,
    max_examples: options.MaxExamples = 1000,
    batch_size: options.BatchSize = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    cluster: options.Cluster = None,
    journal: options.Journal = None,
    label: options.Label = None,
    size: options.Size = None,
    kind: options.Kind = None,
    rate: options.Rate = None,
    seconds: options.Seconds = None,
    skip_bad: options.SkipBad = False,
    json: options.Json = None,
    report: options.Report = None,
) -> None:
    """Measure how invariant each layer of a network is.

    A layer is invariant if its output changes little when an example is augmented, compared with
    how much it differs between examples.
    """
    check_outputs(data, weights, against_weights, json=json, report=report)
    if against_weights is not None and against is None:
        raise AuguryError("--against-weights needs --against, the network to load them into")

    from augury._base.devices import resolve_device
    from augury._base.progress import bar
    from augury.augmentations import parse
    from augury.networks.invariance import measure_invariance
    from augury.networks.load import is_timm_name, load_network

    if pretrained and not any(is_timm_name(spec) for spec in (network, against or network)):
        raise AuguryError(
            f"--pretrained is for timm models, but {network} is not the name of one; load your own "
            "weights with --weights"
        )
    candidates = [parse(spec, imports=True) for spec in augmentation]
    where = resolve_device(device)
    found, whole = read_or_stream(
        data, max_examples == 0, label=label, size=size, kind=kind, max_examples=max_examples,
        seed=seed, skip_bad=skip_bad, rate=rate, seconds=seconds,
    )  # fmt: skip

    def measure(spec: str, filled: Path | None, kept: Path | None) -> InvarianceProfile:
        download = pretrained and is_timm_name(spec)
        loaded = load_network(spec, found.shape, weights=filled, pretrained=download)
        with bar("measuring") as tick:
            return measure_invariance(
                loaded.to(where),
                found if whole is None else whole,
                candidates,
                layers=layer,
                n_views=n_views,
                seed=seed,
                batch_size=batch_size,
                name=_label(spec, filled),
                cluster=workers,
                journal=kept,
                progress=tick,
                command=command_line(),
            )

    with connected(cluster, device) as workers:
        result = measure(network, weights, journal)
        if against is not None:
            kept = None if journal is None else journal.with_name(f"{journal.name}-against")
            result = result.compare(measure(against, against_weights, kept))
    written = save(result, json, report)
    show(result)
    say_written(written)


def _label(spec: str, weights: Path | None) -> str:
    return spec if weights is None else f"{spec} ({weights.name})"


def show(result: InvarianceProfile) -> None:
    """Print a profile as a table, one row per layer and one column per augmentation."""
    from rich.text import Text

    from augury.report.invariance import say as number
    from augury.report.invariance import sentences

    data = result.dataset
    say(f"{result.network} on {data['name']}: {data['examples']:,} examples")
    for note in data["notes"]:
        say(f"  {note}", dim=True)
    table = new_table(layer="left", features="right")
    compared = result.against is not None
    for name in result.augmentations:
        table.add_column(Text(name), justify="right")
        if compared:
            table.add_column("ratio", justify="right")
    for name in result.layers:
        rows = [result[name, augmentation] for augmentation in result.augmentations]
        values = [
            text
            for r in rows
            for text in (number(r.relative), *([number(r.relative_ratio)] * compared))
        ]
        table.add_row(Text(name), f"{rows[0].size:,}", *values)
    say(table)
    note = "squared distance of views, relative to that between different examples"
    if compared:
        note += f"; ratio to that of {result.against}"
    say(f"{note}; {result.n_views} views; {result.seconds:.1f} s", dim=True)
    if compared:
        say(sentences(result)[0])
