"""`augury export`: an augmentation as code of another library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from augury._base.errors import AuguryError
from augury._base.files import write
from augury.cli.output import check_outputs, unless_printed

Format = Literal[
    "torchvision",
    "kornia",
    "albumentations",
    "albumentations-json",
    "timm",
    "ultralytics",
    "audiomentations",
    "augury",
]


def export(
    spec: Annotated[
        str, typer.Argument(metavar="SPEC", help="Augmentation, for example 'rotation(15)'.")
    ],
    to: Annotated[Format, typer.Option(help="Library to write code for.")] = "torchvision",
    image_shape: Annotated[
        str | None,
        typer.Option(
            metavar="SHAPE", help="Channels, height and width of the images, for example 3,32,32."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the code to a file instead of printing it."),
    ] = None,
) -> None:
    """Write an augmentation as code for another library."""
    out = unless_printed(out)
    check_outputs(out=out)
    shape = None if image_shape is None else _read_shape(image_shape)

    from augury.adapters import export as export_augmentation

    text = export_augmentation(spec, to=to, image_shape=shape)
    if out is None:
        print(text, end="")
    else:
        write(out, text)
        print(f"wrote {out}")


def _read_shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(side) for side in text.replace("x", ",").split(","))
    except ValueError:
        raise AuguryError(
            f"--image-shape must be channels,height,width, for example 3,32,32, got {text!r}"
        ) from None
