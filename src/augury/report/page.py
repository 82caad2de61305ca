"""The shell of every page: templates, style, script, and the policy that lets nothing else in."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from importlib import resources
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

_HERE = "augury.report"
_TEMPLATES = resources.files(_HERE) / "templates"


def render_page(template: str, data: str, *, package: str = _HERE, **context: Any) -> str:
    """Render a self-contained page: one file, no network access.

    Parameters
    ----------
    template
        The name of a template that extends ``shell.html``.
    data
        The page's numbers as JSON, which the page holds and offers to save.
    package
        Whose ``templates`` folder holds it; the shell is always this package's.
    context
        What the template needs; every value is escaped where it is written.
    """
    style = asset("parts.css") + asset("page.css")
    script = asset("page.js")
    policy = (
        f"default-src 'none'; img-src data:; media-src data:; style-src '{_hash(style)}'; "
        f"script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )
    parts = {"policy": policy, "style": style, "script": script, "data": _inert(data)}
    return render(template, package=package, **parts, **context)


def render(template: str, *, package: str = _HERE, **context: Any) -> str:
    """Render a template; what cannot be written as UTF-8 (odd file names) becomes a mark."""
    text = _environment(package).get_template(template).render(context)
    return text.encode("utf-8", "replace").decode()


def json_name(kind: str, name: str) -> str:
    """Return the name under which a page saves its numbers: ``ranking-my-photos.json``."""
    return "-".join([kind, *re.findall("[A-Za-z0-9]+", name)]) + ".json"


def fragment_id(text: str) -> str:
    """Return an id for elements of a page made from `text`: several pages may share a notebook."""
    return "a" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]


def asset(name: str) -> str:
    """Read a style or a script that travels with the package."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


@functools.cache
def _environment(package: str) -> Environment:
    return Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(_HERE)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _inert(data: str) -> str:
    """Write JSON so that nothing in it can end its element: the same values, other letters."""
    for mark in "<>&\u2028\u2029":
        data = data.replace(mark, f"\\u{ord(mark):04x}")
    return data
