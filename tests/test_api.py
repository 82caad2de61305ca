"""The public API: what the docs name can be imported, and nothing changes unnoticed."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from api_inventory import FILE, inventory

import augury

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.py")]
)
PUBLIC = {"augury", *(f"augury.{package}" for package in augury._PACKAGES)}


def test_every_public_name_can_be_imported() -> None:
    assert [name for name in augury.__all__ if not hasattr(augury, name)] == []
    assert set(augury._HOME) == set(augury.__all__) - {"__version__"}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        augury.nothing  # noqa: B018  # the access is what is tested


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_name_what_can_be_imported(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    code = (
        text
        if page.suffix == ".py"
        else "\n".join(re.findall(r"```(?:py.*?)\n(.*?)```", text, re.S))
    )
    for module, names in re.findall(r"from (augury[\w.]*) import \(?([\w, \n]+)", code):
        assert module in PUBLIC, f"{module} is not public"
        found = importlib.import_module(module)
        for name in re.findall(r"\w+", names.split("\n")[0] if "(" not in names else names):
            assert name in found.__all__, f"{module}.{name}"
    for name in re.findall(r"\baugury\.(\w+)", re.sub(r"from augury\S* import.*", "", code)):
        assert name in augury.__all__ or name in augury._PACKAGES, f"augury.{name}"
    for name in re.findall(r"`augury\.(\w+)", text):  # advice in running text
        assert hasattr(augury, name), f"augury.{name}"


def test_the_reference_is_complete() -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    named = set(re.findall(r":: (augury[\w.]*)$", text, re.M))
    assert {f"augury.{name}" for name in augury.__all__} - named == {"augury.__version__"}
    missing = []
    for package in (f"augury.{name}" for name in augury._PACKAGES):
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", []):
            home = getattr(getattr(module, name), "__module__", package)
            if not {f"{package}.{name}", f"augury.{name}", package, home} & named:
                missing.append(f"{package}.{name}")
    assert missing == []


def test_nothing_public_changes_unnoticed() -> None:
    assert inventory() == FILE.read_text(encoding="utf-8"), "python tests/api_inventory.py"


def test_one_name_is_one_class() -> None:
    found: dict[str, list[str]] = {}
    for file in sorted((ROOT / "src").rglob("*.py")):
        if "emitted" not in file.parts:  # code that is copied for users, who have no augury
            names = re.findall(r"^class ([A-Z]\w*)", file.read_text(encoding="utf-8"), re.M)
            for name in names:
                found.setdefault(name, []).append(str(file.relative_to(ROOT / "src")))
    assert {name: files for name, files in found.items() if len(files) > 1} == {}
