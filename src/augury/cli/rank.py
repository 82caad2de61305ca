"""`augury rank`: which augmentations help on this data."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from augury._base.errors import AuguryError
from augury._base.limits import MOST_EPOCHS
from augury._base.text import count, listed
from augury.cli import options
from augury.cli.interrupted import resumable
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
    from torch import nn

    from augury.augmentations import Augmentation
    from augury.data import Dataset
    from augury.results.ranking import Ranking

_STYLE = {
    "helps": "green",
    "probably helps": "green",
    "can't tell": "dim",
    "probably hurts": "red",
    "hurts": "red",
}


def rank(
    data: options.Data,
    augmentation: options.Candidates = None,
    from_file: options.FromFile = None,
    pipeline: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME",
            help="Your own pipeline, such as a torchvision Compose: judge the whole pipeline, and "
            "the pipeline without each of its steps.",
        ),
    ] = None,
    score: Annotated[
        options.Score | None,
        typer.Option(
            help="How augmentations are judged. trial (default): train a network with each. "
            "boosting (default for tables): train boosted trees. The others do not train: ridge "
            "and kernel-ridge (default with --layer) solve a regression on fixed features, "
            "alignment is the paper's score."
        ),
    ] = None,
    feature_map: Annotated[
        options.FeatureMap | None,
        typer.Option(
            help="Features for a score that does not train; default: fourier. Your own --network "
            "takes their place."
        ),
    ] = None,
    network: options.PlannedNetwork = None,
    weights: options.Weights = None,
    pretrained: options.FineTuned = False,
    tune: options.TunedPart = "all",
    layer: Annotated[
        str | None,
        typer.Option(
            help="Layer of --network whose output to use as features for a score that does not "
            "train."
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_EPOCHS,
            help="Number of epochs you plan to train for; default: 40, or 100 for series.",
        ),
    ] = None,
    budget: options.Budget = None,
    effort: options.Effort = None,
    trends: Annotated[
        bool | None,
        typer.Option(
            "--trends/--no-trends",
            help="Also try the best three with more and fewer epochs and with fewer examples; on "
            "by default on a GPU if a report is written without --budget and --effort.",
        ),
    ] = None,
    sweep: Annotated[
        bool,
        typer.Option(
            "--sweep",
            help="Try each family at several strengths and print the strongest safe setting: "
            "starting from the best one, the last setting before the expected gain falls below "
            "half of the best. With -a, try only the given families, such as -a rotation.",
        ),
    ] = False,
    n_views: Annotated[
        int,
        typer.Option(
            "--n-views",
            min=1,
            help="Number of views of each example for a score that does not train; the others "
            "ignore it.",
        ),
    ] = 8,
    max_examples: options.MaxExamples = 20_000,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    cluster: options.TrialCluster = None,
    journal: options.Journal = None,
    label: options.Label = None,
    size: options.Size = None,
    kind: options.Kind = None,
    task: options.Task = None,
    group: options.Group = None,
    rate: options.Rate = None,
    background: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Noise recordings to mix in at three levels, as additional candidates.",
        ),
    ] = None,
    seconds: options.Seconds = None,
    skip_bad: options.SkipBad = False,
    json: options.Json = None,
    report: options.Report = None,
) -> None:
    """Rank augmentations on DATA before training.

    Print the expected gain of each candidate over no augmentation, with an interval and a verdict.
    """
    started = time.perf_counter()
    check_outputs(data, from_file, weights, json=json, report=report)

    listed = _read_specs(from_file) if from_file else []

    from augury._base.progress import bar
    from augury.adapters import take_apart
    from augury.augmentations import default_augmentations, parse, strength_ladder
    from augury.augmentations.base import Family
    from augury.augmentations.sampled import load_object
    from augury.forecasting.rank import rank as rank_data

    given = [parse(spec, imports=True) for spec in augmentation or []]
    for number, spec in listed:
        try:
            given.append(parse(spec, imports=True))
        except AuguryError as error:
            raise AuguryError(f"{from_file}, line {number}: {error}") from None
    candidates = given or None
    parts = {} if pipeline is None else take_apart(load_object(pipeline))
    if parts:
        candidates = [*(candidates or ()), *parts.values()]
    found, whole = read_or_stream(
        data, max_examples == 0 and score in ("alignment", "centred-alignment"), label=label,
        size=size, kind=kind, task=task, group=group, max_examples=max_examples, seed=seed,
        skip_bad=skip_bad, rate=rate, seconds=seconds,
    )  # fmt: skip
    if background is not None:
        mixed = _backgrounds(background, found, skip_bad)
        candidates = [*(candidates or default_augmentations(found.kind, found.shape)), *mixed]
    if sweep:
        if parts:
            raise AuguryError("--sweep cannot be combined with --pipeline; use one of them")
        families = None
        if candidates is not None:  # what combines families is named as it was given
            families = [type(c).__name__ if isinstance(c, Family) else repr(c) for c in candidates]
        candidates = strength_ladder(found.kind, families, shape=found.shape)
    planned = load_planned(network, found, weights, pretrained)
    with resumable(journal), connected(cluster, device) as workers, bar("ranking") as tick:
        result = rank_data(
            found if whole is None else whole,
            augmentations=candidates,
            score=score,
            epochs=epochs,
            feature_map=feature_map,
            network=planned,
            layer=layer,
            pretrained=pretrained or weights is not None,
            tune=tune,
            n_views=n_views,
            budget=budget,
            effort=effort,
            trends=False if trends is None and report is None else trends,
            started=started,
            max_examples=None,
            seed=seed,
            device=device,
            cluster=workers,
            journal=journal,
            progress=tick,
            command=command_line(),
        )
    written = save(result, json, report)
    show(result)
    if late := say_late(result.seconds, budget):
        say(late)
    if parts:
        show_contributions(result, parts)
    if sweep:
        show_strengths(result)
    say_written(written)


def load_planned(
    network: str | None, data: Dataset, weights: Path | None, pretrained: bool
) -> str | nn.Module | None:
    """Return the name of an architecture unchanged, or load the user's own network."""
    from augury.forecasting.plan import NETWORKS
    from augury.networks.load import is_timm_name, load_network

    if network is None or network in NETWORKS:
        if weights is not None:
            raise AuguryError("--weights is for your own network; pass the network with --network")
        return network
    timm = is_timm_name(network)
    return load_network(
        network, data.shape, weights=weights, pretrained=pretrained and timm,
        outputs=data.outputs if timm else None,
    )  # fmt: skip


def _backgrounds(path: Path, found: Dataset, skip_bad: bool) -> list[Augmentation]:
    """Return the recordings of a path as noise at several levels."""
    from augury.augmentations import background
    from augury.data import load_noise

    if found.rate is None:
        raise AuguryError(f"--background is for sound, but this is {found.kind} data; remove it")
    noise = load_noise(path, found.rate, skip_bad=skip_bad)
    return [background(noise, low, high, str(path)) for low, high in background.ladder]


def _read_specs(path: Path) -> list[tuple[int, str]]:
    """Return the specs of a file with the numbers of their lines."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise AuguryError(f"cannot read the augmentations in {path}: {reason}") from None
    numbered = [(n, line.split("#")[0].strip()) for n, line in enumerate(lines, start=1)]
    specs = [(number, spec) for number, spec in numbered if spec]
    if not specs:
        raise AuguryError(
            f"{path} contains no augmentation; expected one spec per line, such as rotation(15)"
        )
    return specs


def show(result: Ranking) -> None:
    """Print a ranking as a table, and what it comes to in words."""
    from rich.text import Text

    from augury.report.ranking import without
    from augury.report.verdict import sentences
    from augury.report.words import Unit

    data = result.dataset
    about = f"{data['name']}: {data['examples']:,} examples of {data['kind']} data"
    if data["classes"]:
        about += f", {len(data['classes'])} classes"
    say(about)
    for note in data["notes"]:
        say(f"  {note}", dim=True)
    trial = result.in_points
    if trial:
        say(describe_plan(result.plan))
    for _, sentence in data["warnings"]:
        say(f"Warning: {sentence}.")
    for warning in result.warnings:
        say(f"No verdicts: {warning}.")
    digits = 2 if trial else 4
    table = new_table(
        **{
            "": "right",
            "augmentation": "left",
            "points" if trial else "gain": "right",
            "95 % interval": "right",
            "verdict": "left",
        }
    )
    for place, row in enumerate(result.rows, start=1):
        table.add_row(
            str(place),
            Text(row.augmentation),
            _signed(row.gain, digits),
            f"{_signed(row.low, digits)} to {_signed(row.high, digits)}",
            Text(row.verdict, style=_STYLE[row.verdict]),
        )
    say(table)
    say(
        f"{without(result, Unit('', digits))} without augmentation; {result.features}; "
        f"{result.seconds:.1f} s",
        dim=True,
    )
    say(" ".join(sentences(result)))
    if result.trust:
        say(result.trust)


def say_late(seconds: float, budget: float | None) -> str:
    """Return a sentence if a budget was exceeded by over 20 % and two seconds; else nothing."""
    if budget is None or seconds <= 1.2 * budget + 2:
        return ""
    return (
        f"This took {seconds:.0f} s, more than the budget of {budget:g} s: the trials ran more "
        "slowly than the timing at the start suggested."
    )


def _signed(value: float, digits: int) -> str:
    return f"{round(value, digits) + 0.0:+.{digits}f}"  # adding 0 takes the sign off a zero


def describe_plan(plan: dict[str, Any]) -> str:
    """Return the planned training in a line, with what was assumed."""
    epochs = f"{count(plan['epochs'], 'epoch')} on " if plan["epochs"] else ""
    line = f"for {epochs}{plan['examples']:,} examples"
    if plan["side"]:
        line += f" of {plan['side']} pixels"
    line += f" with {'a pretrained ' if plan['pretrained'] else ''}{plan['network']}"
    assumed = plan["assumed"]
    return line + (f" ({listed(assumed, 9)} assumed)" if assumed else "")


def show_contributions(result: Ranking, parts: dict[str, Augmentation]) -> None:
    """Print what each step of a pipeline adds: the whole's gain less that without the step.

    The errors of the two gains are combined as if they were independent. They share the training
    without augmentation, so that the interval of their difference is rather too wide.
    """
    whole, *others = parts
    digits = 2 if result.in_points else 4
    all_steps = result[repr(parts[whole])]
    if result.warnings:
        say("No verdicts are given, so the contribution of each step is uncertain. Estimates:")
    for name in others:
        rest = result[repr(parts[name])]
        added = all_steps.gain - rest.gain
        low = added - math.hypot(all_steps.gain - all_steps.low, rest.high - rest.gain)
        high = added + math.hypot(all_steps.high - all_steps.gain, rest.gain - rest.low)
        say(
            f"{name.removeprefix('without ')} adds {_signed(added, digits)} to the pipeline "
            f"(95 % interval {_signed(low, digits)} to {_signed(high, digits)})"
        )


def show_strengths(result: Ranking) -> None:
    """Print how strong each family may safely be."""
    for curve in result.curves(3):
        safe = curve.safe
        if safe is None:
            say(f"{curve.family}: no setting is known to help")
        else:
            say(f"{curve.family}: safe up to {safe.augmentation}")
