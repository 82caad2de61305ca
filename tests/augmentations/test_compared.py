"""The docs say of every family of signals and tables what it was compared with."""

from __future__ import annotations

from pathlib import Path

import pytest

from augury.augmentations.families import FAMILIES

PAGE = Path(__file__).parents[2] / "docs" / "augmentations.md"
HEADS = {
    "series": "Series are channels × length",
    "sound": "Families for sound do not depend",
    "vector": "Families for tables",
}


def compared(kind: str) -> set[str]:
    """Return the families in the first column of the table after a kind's opening sentence."""
    text = PAGE.read_text().split(HEADS[kind])[1]
    rows = text[text.index("| family |") :].split("\n\n")[0].splitlines()[2:]
    return {word for row in rows for word in row.split("|")[1].split("`")[1::2]}


@pytest.mark.parametrize("kind", HEADS)
def test_every_family_has_a_row(kind):
    offered = {name for name, family in FAMILIES.items() if kind in family.kinds}
    everywhere = {"identity", "jitter", "feature_dropout"} if kind == "vector" else {"identity"}
    assert offered - everywhere <= compared(kind) <= offered | {"background"}
