"""Arguments and options that commands share: each is defined once, under one name.

A command annotates its parameters with these aliases and sets the defaults itself. Choices are
`Literal` types: typer checks them, lists them in the help and completes them in the shell.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from augury._base.limits import MOST_EPOCHS

# The data

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A directory with one sub-directory of images or recordings per class, an .npz file, "
        "a CSV or Parquet table with --label, IDX files (like MNIST's), CIFAR's Python batches, "
        "series of the UCR archive (.ts, .tsv), or a built-in data set: digits, mnist1k, mnist5k.",
    ),
]
Label = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of a table to predict.")]
Size = Annotated[
    int | None,
    typer.Option(min=1, metavar="PIXELS", help="Resize images to this height and width."),
]
Kind = Annotated[
    Literal["image", "sound", "series", "vector"] | None,
    typer.Option(help="Kind of data, if the shape of the array is ambiguous."),
]
Task = Annotated[
    Literal["classification", "regression", "multi-label"] | None,
    typer.Option(
        help="Override the task detected from the labels: classes, numbers, or any number of "
        "labels per example."
    ),
]
Group = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN|PATTERN",
        help="Keep examples from the same source (a speaker, a patient) together in every split: "
        "the name of a column, or a regular expression with one capturing group, such as "
        "'_(.+)_', that is searched for in file names.",
    ),
]
Rate = Annotated[
    int | None,
    typer.Option(
        metavar="HZ",
        help="Resample recordings to this rate (default: the most common rate, at most 16,000); "
        "for waveforms in arrays, their sample rate.",
    ),
]
Seconds = Annotated[
    float | None, typer.Option(help="Length in seconds of the clips that recordings are cut into.")
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Skip images and recordings that cannot be read.")
]
MaxExamples = Annotated[
    int,
    typer.Option(
        min=0, help="Use at most this many examples, sampled proportionally by class; 0 for all."
    ),
]

# The computation

Seed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Random seed.")]


def _check_device(value: str) -> str:
    """Raise if CUDA is not available, before any work is done."""
    if value == "cuda":
        from augury._base.devices import check_cuda

        check_cuda()
    return value


Device = Annotated[
    Literal["auto", "cpu", "cuda"],
    typer.Option(help="Device to run on.", callback=_check_device),
]
NViews = Annotated[
    int, typer.Option("--n-views", min=1, help="Number of augmented views of each example.")
]
BatchSize = Annotated[
    int | None,
    typer.Option(min=1, help="Examples per batch; does not change the result."),
]
Memory = Annotated[
    float | None, typer.Option(help="Memory limit in GiB; default: half of the free memory.")
]
Epochs = Annotated[
    int | None,
    typer.Option(
        min=1, max=MOST_EPOCHS, help="Number of epochs you plan to train for; default: 40."
    ),
]
Effort = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=10,
        help="Fixed amount of work, from 0 to 10, instead of --budget: the same effort gives the "
        "same result. Default for a trial: 7 on a CPU (4 with your own network), 9 on a GPU (10 "
        "for 20,000 images or more). Below 3, a trial gives no verdicts; below 5 (9 with your own "
        "network), none stronger than 'probably'.",
    ),
]
Budget = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="Approximate time limit for the trials.")
]

_CLUSTER = (
    "Run on a Dask cluster: the address of its scheduler, local (one process per core), local:4 "
    "(four processes) or local-cuda (one per GPU)."
)
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="WHERE", help=f"{_CLUSTER} The result is the same. Default: run in this process."
    ),
]
TrialCluster = Annotated[
    str | None,
    typer.Option(
        metavar="WHERE",
        help=f"{_CLUSTER} The result is the same. Default: local-cuda if several GPUs are visible "
        "and Dask is installed (but not with --device cpu); otherwise, run in this process.",
    ),
]
FitCluster = Annotated[
    str | None,
    typer.Option(
        metavar="WHERE",
        help=f"{_CLUSTER} For the quadratic loss and one label per example; if the labels are "
        "numbers, DATA must be in shards, without --holdout. Default: run in this process.",
    ),
]
Journal = Annotated[
    Path | None,
    typer.Option(metavar="DIRECTORY", help="Save finished jobs here, so that work can be resumed."),
]

# Augmentations and networks

Augmentation = Annotated[
    list[str] | None,  # of one: two must be told apart from the last
    typer.Option(
        "--augmentation",
        "-a",
        metavar="SPEC",
        help="Augmentation to train with. Give only one; combine several as 'A >> B'.",
    ),
]
Candidates = Annotated[
    list[str] | None,
    typer.Option(
        "--augmentation",
        "-a",
        metavar="SPEC",
        help="Augmentation to judge, such as 'rotation(15)'; repeatable. Default: all families "
        "that suit the data, at several strengths.",
    ),
]
FromFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Read the augmentations to judge from a file, one per line."),
]
NETWORK = (
    "module:function that returns the network, a TorchScript file or exported program (.pt2), or "
    "the name of a timm model"
)
PlannedNetwork = Annotated[
    str | None,
    typer.Option(
        metavar="NETWORK",
        help=f"Network you plan to train: cnn (the default), resnet, lenet, {NETWORK}. Your own "
        "network is trained in the trials, even on a CPU.",
    ),
]
Weights = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Weights of the network: .safetensors or a state dict."),
]
Pretrained = Annotated[
    bool,
    typer.Option(
        "--pretrained", help="Download timm's pretrained weights and scale the inputs for them."
    ),
]
FineTuned = Annotated[
    bool,
    typer.Option(
        "--pretrained",
        help="Plan to fine-tune: start from the weights of --network; the weights of a timm model "
        "are downloaded.",
    ),
]

# Choices

Score = Literal["trial", "boosting", "ridge", "kernel-ridge", "alignment", "centred-alignment"]
FeatureMap = Literal["patches", "patches2", "gradient", "fourier", "flatten"]
Tune = Literal["all", "block", "head"]
TunedPart = Annotated[
    Tune,
    typer.Option(
        help="Part of your network to train: all, the last block and the head, or the head alone."
    ),
]
Kernel = Literal["gaussian", "laplacian", "matern"]
Sampling = Literal["iid", "orthogonal", "hadamard"]
Objective = Literal["first-order", "tangent", "second-order", "exact"]
Loss = Literal["quadratic", "logistic"]

# Results

Json = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result as JSON.")]
Report = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write a report: .html, or .md for Markdown."),
]
