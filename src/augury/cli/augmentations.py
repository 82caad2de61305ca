"""`augury augmentations`: the families, with their parameters."""

from __future__ import annotations

import inspect


def augmentations() -> None:
    """List the families of augmentations with their parameters and defaults."""
    from rich.console import Console
    from rich.table import Table

    from augury.augmentations import FAMILIES, signature

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("family", "for", "what it does"):
        table.add_column(heading, overflow="fold")
    for family in FAMILIES.values():
        kinds = ", ".join(sorted(family.kinds))
        table.add_row(signature(family), kinds, inspect.getdoc(family) or "")
    console = Console()
    console.print(table, markup=False)
    console.print(
        "\nCombine them: a >> b (a, then b), a | b or 0.7*a | 0.3*b (one of them), a ** 2 (twice); "
        "sampled(module:function) is a function of your own.",
        markup=False,
        highlight=False,
    )
