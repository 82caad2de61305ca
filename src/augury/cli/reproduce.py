"""`augury reproduce`: the paper's table and figures, compared with its numbers."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from augury._base.errors import AuguryError
from augury._base.text import count
from augury.cli import options
from augury.cli.interrupted import Interrupted

_MOST_TRIALS = 1000


def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EXPERIMENT]...",
            help="table1, approximation, alignment, averaging, invariance or chain; default: all.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory with the data sets; default: ~/.cache/augury."),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="mnist, cifar10 or mammograms; repeatable."),
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Download MNIST and CIFAR-10 if they are missing.")
    ] = False,
    device: options.Device = "auto",
    trials: Annotated[
        int | None, typer.Option(help="Number of training runs per model; the paper has 10.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small subsets and 2 trials: minutes on a laptop.")
    ] = False,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Directory for results and the page.")
    ] = Path("reproduction"),
) -> None:
    """Reproduce the experiments of the paper.

    The page shows each claim, the paper's number, ours, and whether the claim holds. Finished parts
    are saved in the output directory; run the same command again to resume a stopped run.
    """
    from augury._base.progress import bar
    from augury_paper import EXPERIMENTS, PAPER, QUICK
    from augury_paper import reproduce as run

    settings = QUICK if quick else PAPER
    if unknown := [name for name in dataset or () if name not in PAPER.datasets]:
        known = ", ".join(PAPER.datasets)
        raise AuguryError(f"there is no data set {unknown[0]!r}; choose from {known}")
    if trials is not None and not 1 <= trials <= _MOST_TRIALS:
        raise AuguryError(f"--trials must be from 1 to {_MOST_TRIALS:,}, not {trials:,}")
    if data is not None and not data.expanduser().is_dir() and not download:
        raise AuguryError(f"--data {data} is not a directory; create it or use another one")
    settings = replace(
        settings,
        trials=trials or settings.trials,
        datasets=tuple(dict.fromkeys(dataset)) if dataset else settings.datasets,
    )
    try:
        with bar("reproducing") as tick:
            outcome = run(
                experiments or EXPERIMENTS,
                out=out,
                settings=settings,
                data=data,
                device=device,
                fetch=download,
                progress=tick,
                say=lambda line: print(line, file=sys.stderr, flush=True),
            )
    except KeyboardInterrupt:
        raise Interrupted(
            f"finished cells are saved in {out}; run the same command to resume"
        ) from None
    print(f"{outcome.computed} cells computed, {outcome.kept} already done")
    print(f"wrote {outcome.page}")
    if outcome.failed:
        raise AuguryError(
            f"{count(len(outcome.failed), 'cell')} failed, see above; run the same command to try "
            "again"
        )
