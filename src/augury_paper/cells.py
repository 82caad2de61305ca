"""Cells: the parts of an experiment, each computed once and kept as a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from augury.data.dataset import Dataset


@dataclass(frozen=True)
class Images:
    """A data set with its split; bytes, channels first, in host memory."""

    train: Dataset
    test: Dataset


@dataclass(frozen=True)
class Bench:
    """What a cell is given to work with.

    Attributes
    ----------
    device
        Where to compute.
    images
        Load a data set by name: ``"mnist"``, ``"cifar10"`` or ``"mammograms"``.
    tick
        Call with the share of the cell's work that is done, 0 to 1, and a few words.
    """

    device: torch.device
    images: Callable[[str], Images]
    tick: Callable[[float, str], None]


@dataclass(frozen=True)
class Cell:
    """A part of an experiment that is computed in one go: all that can train together.

    Attributes
    ----------
    experiment
        The experiment: ``"table1"``.
    name
        Its own name there, fit for a file: ``"mnist-traditional"``.
    dataset
        The data set it needs; a cell whose data are missing is skipped with a message.
    setting
        Everything that its numbers depend on, as JSON: a change computes it again.
    run
        Returns its numbers as JSON, lists with one entry per trial; the same every time except
        under keys that contain ``"seconds"``.
    """

    experiment: str
    name: str
    dataset: str
    setting: dict[str, Any]
    run: Callable[[Bench], dict[str, Any]]
