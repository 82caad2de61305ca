"""List the public names with their parameters, and the commands with their options.

``python tests/api_inventory.py`` writes the list to ``api_inventory.txt``; a test compares them.
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_suffix(".txt")


def inventory() -> str:
    """Return the public names, commands and options, one per line."""
    import augury

    names = [f"augury.{name}" for name in augury.__all__ if name != "__version__"]
    lines = [line for name in names for line in _lines(name, getattr(augury, name[7:]))]
    for package in augury._PACKAGES:
        module = importlib.import_module(f"augury.{package}")
        lines += [f"augury.{package}.{name}" for name in getattr(module, "__all__", ())]
    return "\n".join([*sorted(lines), *_commands(), ""])


def _lines(name: str, found: Any) -> list[str]:
    """Return a name with its parameters; for a class also its methods with theirs."""
    lines = [name + _parameters(found)]
    if not inspect.isclass(found):
        return lines
    for each in dir(found):
        method = inspect.getattr_static(found, each)
        mine = getattr(getattr(found, each, None), "__module__", None) or ""
        if each.startswith("_") or not (mine.startswith("augury") or isinstance(method, property)):
            continue
        lines.append(
            f"{name}.{each}"
            + ("" if isinstance(method, property) else _parameters(getattr(found, each)))
        )
    return lines


def _parameters(found: Any) -> str:
    if not callable(found):
        return ""
    try:
        names = inspect.signature(found).parameters
    except ValueError:  # a C function or an exception class has no signature
        return ""
    return f"({', '.join(name for name in names if name != 'self')})"


def _commands() -> list[str]:
    import typer.main

    from augury.cli.app import app

    group: Any = typer.main.get_command(app)
    lines = []
    for name, command in sorted(group.commands.items()):
        options = sorted(
            " ".join(p.opts) if p.opts[0][0] == "-" else p.name.upper() for p in command.params
        )
        lines += [f"$ augury {name} {option}" for option in options]
    return lines


if __name__ == "__main__":
    FILE.write_text(inventory(), encoding="utf-8")
    print(f"wrote {FILE}")
