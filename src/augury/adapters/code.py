"""Exported code as a tree of calls, written out as ``ruff format`` would leave it."""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

WIDTH = 88  # the line length that ruff and black use unless told otherwise
_INDENT = "    "


@dataclass(frozen=True)
class Name:
    """An expression that is written as it is: ``cv2.INTER_LINEAR``.

    Parameters
    ----------
    text
        The expression.
    value
        What it evaluates to, for formats that hold values instead of code.
    """

    text: str
    value: Any = None


@dataclass(frozen=True)
class Call:
    """A call in the exported code.

    Parameters
    ----------
    name
        What is called: ``v2.RandomRotation``.
    args, options
        Its positional and keyword arguments: numbers, strings, tuples, lists, names or calls.
    note
        A comment to write above it.
    needs
        Names of the functions and classes that are copied into the code for this call.
    """

    name: str
    args: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    needs: tuple[str, ...] = ()

    def with_options(self, **options: Any) -> Call:
        """Return this call with some keyword arguments changed."""
        return replace(self, options={**self.options, **options})


def call(name: str, *args: Any, note: str = "", needs: Iterable[str] = (), **options: Any) -> Call:
    """Return a `Call`, written like the call itself."""
    return Call(name, args, options, note, tuple(needs))


def function(name: str, **options: Any) -> Call:
    """Return a reference to a function that is copied into the code, with its options bound."""
    if options:
        return call("partial", Name(name), needs=[name], **options)
    return call("", Name(name), needs=[name])


def children(value: Any) -> Iterator[Call]:
    """Yield every call in a tree, parents first."""
    if isinstance(value, Call):
        yield value
        for inner in (*value.args, *value.options.values()):
            yield from children(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from children(inner)


def write_value(value: Any, indent: str = "", room: int = 0) -> str:
    """Write a value as code; `room` characters are taken on its first or last line."""
    flat = _flat(value)
    noted = any(inner.note for inner in children(value) if inner is not value)
    if not noted and len(indent) + room + len(flat) <= WIDTH:
        return flat
    if isinstance(value, Call) and value.name:
        items = [("", a) for a in value.args] + [(f"{k}=", v) for k, v in value.options.items()]
        return f"{value.name}({_lines(items, indent)}{indent})"
    if isinstance(value, list) and value:
        return f"[{_lines([('', inner) for inner in value], indent)}{indent}]"
    return flat


def _lines(items: list[tuple[str, Any]], indent: str) -> str:
    inner = indent + _INDENT
    comma = "," if len(items) > 1 else ""
    written = ["\n"]
    for prefix, value in items:
        written += [f"{line}\n" for line in comment(getattr(value, "note", ""), inner)]
        written.append(f"{inner}{prefix}{write_value(value, inner, len(prefix) + 1)}{comma}\n")
    return "".join(written)


def _flat(value: Any) -> str:
    if isinstance(value, Name):
        return value.text
    if isinstance(value, Call):
        items = [_flat(a) for a in value.args]
        items += [f"{k}={_flat(v)}" for k, v in value.options.items()]
        return f"{value.name}({', '.join(items)})" if value.name else items[0]
    if isinstance(value, list):
        return f"[{', '.join(map(_flat, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_flat, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_flat(k)}: {_flat(v)}' for k, v in value.items())}}}"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(_round(value)) if isinstance(value, float) else repr(value)


def _round(value: float) -> float:
    """Drop what binary arithmetic added: 1 - 0.9 is written as 0.1."""
    return float(f"{value:.10g}")


def comment(text: str, indent: str = "") -> list[str]:
    """Return a text as comment lines of at most `WIDTH` characters."""
    prefix = f"{indent}# "
    return [
        line
        for paragraph in text.splitlines()
        for line in textwrap.wrap(
            paragraph,
            WIDTH,
            initial_indent=prefix,
            subsequent_indent=prefix,
            break_long_words=False,
            break_on_hyphens=False,
        )
    ]


def write_module(title: str, pipeline: Call, parts: str) -> str:
    """Write a module that defines ``augment``: title, imports, copied parts, pipeline.

    Parameters
    ----------
    title
        The opening comment.
    pipeline
        What ``augment`` is.
    parts
        The file of ``emitted/`` that holds the functions and classes to copy, and the imports
        that they and the pipeline may use; only those used are written.
    """
    source = (files("augury.adapters") / "emitted" / f"{parts}.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    texts = {
        node.name: ast.get_source_segment(source, node)
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    needs = dict.fromkeys(name for inner in children(pipeline) for name in inner.needs)
    body = [str(texts[name]) for name in texts if name in needs]
    assignment = f"augment = {write_value(pipeline, '', len('augment = '))}"
    text = "\n\n\n".join([*body, assignment])
    imports = _imports(tree, text)
    head = "\n".join(comment(title))
    return f"{head}\n{imports}" + ("\n\n\n" if body else "\n\n") + f"{text}\n"


def _imports(tree: ast.Module, text: str) -> str:
    """Return the import lines of a file that a text uses, the standard library's first."""
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    blocks: tuple[list[str], list[str]] = ([], [])
    for node in tree.body:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if any((alias.asname or alias.name) in used for alias in node.names):
            home = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
            third_party = str(home).split(".")[0] not in sys.stdlib_module_names
            blocks[third_party].append(ast.unparse(node))
    ordered = [sorted(block, key=lambda line: line.lower().split()) for block in blocks]
    ordered = [sorted(block, key=lambda line: line.startswith("from")) for block in ordered]
    return "\n\n".join("\n".join(block) for block in ordered if block)
