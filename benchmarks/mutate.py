"""Mutation testing: does a test fail when the code is wrong?

    python benchmarks/mutate.py src/augury/statistics --jobs 2
    python benchmarks/mutate.py src/augury/statistics/jackknife.py \
        --tests tests/statistics/test_jackknife.py --out jackknife.json

Each mutant is a module with one small change: an operator swapped, a comparison turned, a constant
changed, a condition negated, a returned value dropped. Its tests run in a process forked from one
that has torch loaded, with the mutated source in place of the file, until the first of them fails.
A mutant that no test notices has survived: the tests leave something open, or the change makes no
difference, and then the result says why ("reason", which is kept from one run to the next).
Mutants that exceed ten times the CPU time of the tests count as killed.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.util
import json
import os
import platform
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
TESTS = {  # for modules whose tests are not in tests/<package>/test_<module>.py alone
    f"statistics/{module}.py": [f"tests/statistics/test_{name}.py" for name in names]
    for module, names in {
        "base": ("base", "alignment"),
        "alignment": ("base", "alignment"),
        "heldout": ("base", "ridge"),
        "ridge": ("base", "ridge"),
    }.items()
}
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


class _Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Load one module from mutated source."""

    def __init__(self, name: str, path: Path, source: str) -> None:
        self.name, self.path, self.source = name, path, source

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self.name:
            return None
        package = self.path.name == "__init__.py"
        return importlib.util.spec_from_loader(
            name, self, origin=str(self.path), is_package=package
        )

    def exec_module(self, module: Any) -> None:
        exec(compile(self.source, str(self.path), "exec"), module.__dict__)


def run_tests(module: Path, source: str, tests: list[str], cpu: float) -> int:
    """Run tests on a source in place of a module, in this process: pytest's exit code."""
    import hypothesis
    import pytest

    limit = int(cpu) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    for name in [name for name in sys.modules if name.split(".")[0] in ("augury", "augury_paper")]:
        del sys.modules[name]
    relative = module.relative_to(ROOT / "src").with_suffix("")
    parts = [part for part in relative.parts if part != "__init__"]
    sys.meta_path.insert(0, _Mutated(".".join(parts), module, source))
    hypothesis.settings.register_profile(
        "mutate",
        derandomize=True,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],  # a failure is enough
    )
    hypothesis.settings.load_profile("mutate")
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:doctest", "-o", "addopts=",
               "-o", "filterwarnings="]  # fmt: skip
    return int(pytest.main([*options, *tests]))


def fork(module: Path, source: str, tests: list[str], cpu: float) -> int:
    """Start the tests of a mutant in a child process; return its id."""
    child = os.fork()
    if child:
        return child
    quiet = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(quiet, stream)
    code = 1
    try:
        code = run_tests(module, source, tests, cpu)
    finally:
        os._exit(code)


def judge(module: Path, tests: list[str], found: list[Mutant], jobs: int) -> float:
    """Run the tests on each mutant, some at a time; return the tests' own CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _, status = os.waitpid(fork(module, module.read_text(), tests, 600), 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if status:
        raise SystemExit(f"the tests of {module} fail on the code as it is: {tests}")
    waiting, running = list(found), {}
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop(0)
            running[fork(module, mutant.source, tests, 10 * cpu + 5)] = mutant
        child, status = os.wait()
        mutant = running.pop(child)
        if os.WIFSIGNALED(status):
            mutant.outcome = "killed by its time"
        else:
            mutant.outcome = "killed" if os.WEXITSTATUS(status) else "survived"
        print("." if mutant.outcome != "survived" else "S", end="", flush=True)
    print(flush=True)
    return cpu


def tests_of(module: Path) -> list[str]:
    """Return the test files of a module."""
    relative = module.relative_to(ROOT / "src" / "augury")
    named = TESTS.get(str(relative), [f"tests/{relative.parent}/test_{relative.stem}.py"])
    return [str(ROOT / path) for path in named]


def _reasons(out: Path) -> dict[tuple[str, str, str], str]:
    """Return the reasons that an earlier result gives for survivors."""
    if not out.exists():
        return {}
    known = json.loads(out.read_text())["modules"]
    return {
        (name, one["before"], one["after"]): one["reason"]
        for name, module in known.items()
        for one in module["survived"]
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="+", type=Path, help="modules, or a folder of them")
    parser.add_argument("--tests", nargs="+", help="test files, for all the modules given")
    parser.add_argument("--select", help="run only the tests whose names match, as pytest's -k")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sample", type=int, help="mutants of each module, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS / "mutation.json")
    asked = parser.parse_args()
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    os.chdir(ROOT)
    import torch

    torch.set_num_threads(1)
    # what tests import is loaded here, once, so that each fork finds it in memory
    import hypothesis.strategies  # noqa: F401  # for the forks
    import matplotlib.pyplot  # noqa: F401  # likewise
    import pandas  # noqa: F401  # likewise
    import pytest  # noqa: F401  # likewise
    import scipy.stats  # noqa: F401  # likewise
    import sklearn.datasets
    import sklearn.utils.estimator_checks  # noqa: F401  # likewise
    import typer  # noqa: F401  # likewise

    import augury.forecasting.scores  # noqa: F401  # brings what it needs; loaded anew in forks

    paths = [p.resolve() for given in asked.modules
             for p in (sorted(given.glob("*.py")) if given.is_dir() else [given])]  # fmt: skip
    known, result = _reasons(asked.out), {}
    if asked.out.exists():
        result = json.loads(asked.out.read_text())["modules"]
    for path in paths:
        if path.name == "__init__.py":
            continue
        name = str(path.relative_to(ROOT))
        found = list(mutants(path.read_text()))
        if asked.sample and len(found) > asked.sample:
            found = random.Random(asked.seed).sample(found, asked.sample)
            found.sort(key=lambda mutant: mutant.line)
        tests = [str(Path(t).resolve()) for t in asked.tests] if asked.tests else tests_of(path)
        chosen = ["-k", asked.select] if asked.select else []
        started = time.perf_counter()
        cpu = judge(path, [*tests, *chosen], found, asked.jobs)
        left = [mutant for mutant in found if mutant.outcome == "survived"]
        for mutant in left:
            mutant.reason = known.get((name, mutant.before, mutant.after), "")
        shown = [{k: getattr(m, k) for k in ("line", "kind", "before", "after", "reason")}
                 for m in left]  # fmt: skip
        result[name] = {
            "tests": [str(Path(t).relative_to(ROOT)) for t in tests],
            "select": asked.select,
            "mutants": len(found),
            "killed": len(found) - len(left),
            "survived": shown,
        }
        print(f"{name}: {len(found) - len(left)} of {len(found)} killed, tests {cpu:.1f} s CPU, "
              f"{time.perf_counter() - started:.0f} s in all")  # fmt: skip
        for mutant in left:
            print(f"  {mutant.line}: {mutant.before}\n    → {mutant.after}")
        write(asked.out, result, asked)


def write(out: Path, modules: dict[str, Any], asked: argparse.Namespace) -> None:
    total = sum(module["mutants"] for module in modules.values())
    killed = sum(module["killed"] for module in modules.values())
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True,
                            check=False).stdout.strip()  # fmt: skip
    found = {
        "command": "python benchmarks/mutate.py",
        "seed": asked.seed,
        "commit": commit,
        "python": platform.python_version(),
        "machine": platform.platform(),
        "mutants": total,
        "killed": killed,
        "share": round(killed / max(total, 1), 4),
        "modules": modules,
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    print(f"killed={killed} of {total} ({killed / max(total, 1):.1%})")


if __name__ == "__main__":
    main()
