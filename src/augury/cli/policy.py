"""`augury policy`: an augmentation policy for a planned training."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from augury._base.errors import AuguryError
from augury.cli import options
from augury.cli.interrupted import resumable
from augury.cli.output import (
    check_outputs,
    command_line,
    new_table,
    save,
    say,
    say_written,
    unless_printed,
)
from augury.cli.rank import describe_plan, load_planned
from augury.cli.reading import connected, read

if TYPE_CHECKING:
    from augury.augmentations import Augmentation
    from augury.forecasting.policy import Policy


_VARIED = {
    "part": "without {}",
    "milder": "milder",
    "stronger": "stronger",
    "shorter": "trained for {}",
}
"""How the choice was varied, by the role of a row."""


def policy(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="Images only, with one label each: a directory with one sub-directory per class, "
            "an .npz file, a CSV or Parquet table that lists image files, with --label, IDX files "
            "(like MNIST's), CIFAR's Python batches, or a built-in data set: digits, mnist1k, "
            "mnist5k.",
        ),
    ],
    epochs: options.Epochs = None,
    always: Annotated[
        list[str] | None,
        typer.Option(metavar="SPEC", help="Augmentation that the policy must contain; repeatable."),
    ] = None,
    never: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Family to exclude, or colour, flips or geometry for a whole group; repeatable.",
        ),
    ] = None,
    rival: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SPEC",
            help="Your own augmentation to compare with: a spec or MODULE:NAME; repeatable.",
        ),
    ] = None,
    network: options.PlannedNetwork = None,
    weights: options.Weights = None,
    pretrained: options.FineTuned = False,
    tune: options.TunedPart = "all",
    budget: options.Budget = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help="Print code for a library: torchvision, kornia, albumentations, "
            "albumentations-json, timm, ultralytics or augury.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the code to a file instead.")
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Save finished rounds to this file, so that a stopped search can be resumed.",
        ),
    ] = None,
    max_examples: options.MaxExamples = 20_000,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    cluster: options.TrialCluster = None,
    label: options.Label = None,
    size: options.Size = None,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|PATTERN",
            help="Keep images from the same source (a patient, a scene) together in every split: "
            "the name of a column, or a regular expression with one capturing group, such as "
            "'_(.+)_', that is searched for in file names.",
        ),
    ] = None,
    skip_bad: options.SkipBad = False,
    json: options.Json = None,
    report: options.Report = None,
) -> None:
    """Choose an augmentation policy for training on DATA.

    Try every family, then combinations of the families that help, and compare them with
    TrivialAugment, RandAugment and other common recipes. Print the best with its expected gain.
    """
    started = time.perf_counter()
    if out is not None and to is None:
        raise AuguryError("--out needs --to, the format of the code to write")
    out = unless_printed(out)
    check_outputs(data, weights, out=out, json=json, report=report)

    from augury._base.files import write
    from augury._base.progress import bar
    from augury.adapters import export
    from augury.forecasting.policy import search_policy

    if to is not None:  # what cannot be written must not wait for the search
        export("horizontal_flip", to=to)
    rivals = [_own(text) for text in rival or ()]
    found = read(
        data, label=label, size=size, group=group, max_examples=max_examples, seed=seed,
        skip_bad=skip_bad,
    )  # fmt: skip
    with resumable(journal), connected(cluster, device) as workers, bar("searching") as tick:
        result = search_policy(
            found, epochs=epochs, always=always or (), never=never or (), rivals=rivals,
            network=load_planned(network, found, weights, pretrained),
            pretrained=pretrained or weights is not None, tune=tune, budget=budget, started=started,
            seed=seed, device=device, max_examples=None, journal=journal, progress=tick,
            cluster=workers,
            command=command_line(),
        )  # fmt: skip
    written = save(result, json, report)
    show(result)
    say_written(written)
    if to is None:
        return
    code = export(result, to=to, image_shape=found.shape)  # may fail, so what was found comes first
    if out is None:
        print(code)
        return
    write(out, code)
    say_written([out])


def _own(text: str) -> Augmentation:
    """Read a pipeline of the user's: a spec, or an object of a module."""
    from augury.augmentations import parse
    from augury.augmentations.sampled import load_object

    if re.fullmatch(r"[\w.]+:\w+", text):
        return parse(load_object(text))
    return parse(text, imports=True)


def show(result: Policy) -> None:
    """Print a policy and its rivals."""
    from rich.text import Text

    from augury.report.policy import UNIT, sentences

    data = result.dataset
    say(f"{data['name']}: {data['examples']:,} images, {len(data['classes'])} classes")
    say(describe_plan(result.plan))
    for _, sentence in data["warnings"]:
        say(f"Warning: {sentence}.")
    say(f"policy: {result}")
    say(" ".join(sentences(result)))
    if result.trust:
        say(result.trust)
    if not result.path:
        return
    columns = {"policy": "left", "points": "right", "95 % interval": "right", "": "left"}
    table = new_table(**columns)
    for row in result.rows:
        if row.role in ("chosen", "rival"):
            note = "chosen" if row.role == "chosen" else ""
            forecast = f"{row.gain:+.1f}", f"{row.low:+.1f} to {row.high:+.1f}"
            if not row.rounds:  # a default for want of knowledge
                forecast = "", "not tried"
            table.add_row(Text(row.spec), *forecast, note)
    say(table)
    for row in result.rows:
        if row.role in _VARIED:
            varied = row.part
            if row.role == "shorter":
                varied += " epoch" if row.part == "1" else " epochs"
            name = _VARIED[row.role].format(varied)
            span = UNIT.span(row.low, row.high)
            say(f"  {name}: {UNIT.gain(row.gain)} ({span})", dim=True)
    say(
        f"{result.baseline:.1f} % accuracy expected without augmentation; {result.seconds:.1f} s",
        dim=True,
    )
