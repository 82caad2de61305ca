"""The commands, one file each, gathered into one program."""

from __future__ import annotations

from typing import Annotated

import typer

from augury import __version__
from augury.cli.augmentations import augmentations
from augury.cli.export import export
from augury.cli.fit import fit
from augury.cli.invariance import invariance
from augury.cli.policy import policy
from augury.cli.predict import predict
from augury.cli.rank import rank
from augury.cli.reproduce import reproduce

app = typer.Typer(
    rich_markup_mode=None,  # plain help: rich's alone would take half of the time of --help
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (rank, policy, augmentations, export, invariance, fit, predict, reproduce):
    app.command()(command)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"augury {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def program(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Find out which data augmentations will help before you train."""
    if context.invoked_subcommand is None:
        print(context.get_help())
