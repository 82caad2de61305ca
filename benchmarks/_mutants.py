"""Mutants of a module: one small change each, made in its syntax tree."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SWAPS: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.And: ast.Or, ast.Or: ast.And,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
TURNS: dict[type, type] = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}


@dataclass
class Mutant:
    """One change of a module."""

    line: int
    kind: str
    before: str
    after: str
    source: str
    outcome: str = ""
    reason: str = ""


def mutants(source: str) -> Iterator[Mutant]:
    """Yield all mutants of a module."""
    tree = ast.parse(source)
    places = list(_places(tree))
    for number, (statement, node) in enumerate(places):
        for kind, change in _changes(node):
            # The same place in a copy of the tree, which is changed there.
            other = copy.deepcopy(tree)
            line, copied = list(_places(other))[number]
            change(copied)
            ast.fix_missing_locations(other)
            before, after = ast.unparse(statement), ast.unparse(line)
            if before != after:
                before, after = _differing(before, after)
                yield Mutant(node.lineno, kind, before, after, ast.unparse(other))


def _places(tree: ast.AST) -> Iterator[tuple[ast.stmt, Any]]:
    """Yield the nodes that can be changed, each with the statement that it is in."""

    def walk(node: ast.AST, statement: ast.stmt | None) -> Iterator[tuple[ast.stmt, Any]]:
        if isinstance(node, ast.stmt):
            statement = node
        if isinstance(node, ast.Raise | ast.Import | ast.ImportFrom | ast.JoinedStr | ast.Assert):
            return  # messages, names, and what only a type checker needs
        if isinstance(node, ast.keyword) and node.arg == "strict":
            return  # of zip: asserts that lengths agree
        if statement is not None and hasattr(node, "lineno"):
            yield statement, node
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from walk(child, statement)

    yield from walk(tree, None)


def _changes(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the changes of a node: a name, and a function that makes it in place."""

    def setting(name: str, value: Any) -> Any:
        return lambda at: setattr(at, name, value)

    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in SWAPS:
        yield "operator", setting("op", SWAPS[type(node.op)]())
    elif isinstance(node, ast.Compare):
        for table in (SWAPS, TURNS):
            if type(node.ops[0]) in table:
                turned = table[type(node.ops[0])]()
                yield "comparison", lambda at, turned=turned: at.ops.__setitem__(0, turned)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        yield "sign", lambda at: _replace(at, at.operand)
    elif isinstance(node, ast.Constant) and not isinstance(node.value, str | bytes | None):
        value = node.value
        if isinstance(value, bool):
            yield "constant", setting("value", not value)
        elif isinstance(value, int | float):
            yield "constant", setting("value", value + 1 if isinstance(value, int) else
                                      1.5 * value + (value == 0))  # fmt: skip
    elif isinstance(node, ast.Return) and node.value is not None:
        none = isinstance(node.value, ast.Constant) and node.value.value is None
        if not none:
            yield "return", setting("value", ast.Constant(None))
    if isinstance(node, ast.If | ast.IfExp | ast.While) and not isinstance(node.test, ast.Constant):
        yield "condition", lambda at: setattr(at, "test", ast.UnaryOp(ast.Not(), at.test))


def _replace(at: Any, by: Any) -> None:
    """Turn one node into another, in place."""
    at.__class__ = by.__class__
    for name in list(vars(at)):
        delattr(at, name)
    vars(at).update(vars(by))


def _differing(before: str, after: str) -> tuple[str, str]:
    """Return the first line that differs: a statement may be a whole class."""
    for old, new in zip(before.splitlines(), after.splitlines(), strict=False):
        if old != new:
            return old.strip(), new.strip()
    return before, after
