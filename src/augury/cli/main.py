"""The command line's entry: one clear line for what goes wrong, an exit code for scripts."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer

from augury import __version__
from augury._base.errors import AuguryError
from augury.cli.augmentations import augmentations
from augury.cli.fit import fit
from augury.cli.layers import layers
from augury.cli.predict import predict
from augury.cli.rank import rank
from augury.cli.reproduce import reproduce

app = typer.Typer(
    help="Which data augmentations will help, before you train.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _stop(message: str, code: int) -> NoReturn:
    print(" ".join(message.split()), file=sys.stderr)
    sys.exit(code)


def command(function: Callable[..., None]) -> None:
    """Add a command that ends in one line on bad input (exit 2) or when interrupted (exit 130)."""

    @functools.wraps(function)
    def guarded(*args: object, **kwargs: object) -> None:
        try:
            function(*args, **kwargs)
        except AuguryError as error:
            _stop(f"error: {error}", 2)
        except KeyboardInterrupt:
            _stop("interrupted: nothing was written", 130)
        except BrokenPipeError:  # the reader of our output has left, as `head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)

    app.command()(guarded)


command(rank)
command(augmentations)
command(layers)
command(fit)
command(predict)
command(reproduce)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"augury {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """Which data augmentations will help, before you train."""


def main() -> None:
    """Run the command line."""
    app()
