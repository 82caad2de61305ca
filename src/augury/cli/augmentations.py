"""`augury augmentations`: the families, with their parameters."""

from __future__ import annotations

import inspect

from augury.cli.output import new_table, say


def augmentations() -> None:
    """List the families of augmentations."""
    from augury.augmentations import FAMILIES, signature

    table = new_table(family="left", **{"for": "left", "what it does": "left"})
    for family in FAMILIES.values():
        kinds = ", ".join(sorted(family.kinds))
        table.add_row(signature(family), kinds, (inspect.getdoc(family) or "").partition("\n")[0])
    say(table)
    say(
        "\nCombine them: a >> b (a, then b), a | b or 0.7*a | 0.3*b (one of them), a ** 2 (twice); "
        "sampled(module:function) is your own function."
    )
