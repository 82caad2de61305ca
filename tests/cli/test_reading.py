"""What a command prints while it is connected to workers."""

import logging

import distributed
import pytest

from augury.cli.reading import silence_dask


@pytest.fixture
def loud():
    """Loggers of Dask at the level that importing it sets for some of them."""
    assert distributed.__version__
    loggers = [logging.getLogger(f"distributed{part}") for part in ("", ".client", ".worker")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.WARNING)
    yield loggers
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


def test_tracebacks_of_dask_are_not_printed(loud):
    silence_dask()
    assert all(not logger.isEnabledFor(logging.ERROR) for logger in loud)
