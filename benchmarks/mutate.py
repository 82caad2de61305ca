"""Mutation testing: does a test fail when the code is wrong?

    python benchmarks/mutate.py src/augury/statistics --jobs 2
    python benchmarks/mutate.py src/augury/statistics/jackknife.py \
        --tests tests/statistics/test_jackknife.py --out jackknife.json
    python benchmarks/mutate.py src/augury/forecasting --jobs 14 --sample 40 --out forecasting.json
    python benchmarks/mutate.py src/augury/forecasting --survivors forecasting.json --out again.json

Each mutant is a module with one small change: an operator swapped, a comparison turned, a constant
changed, a condition negated, a returned value dropped. Its tests run in a process forked from one
that has torch loaded, with the mutated source in place of the file, until the first of them fails.
A mutant that no test notices has survived: the tests leave something open, or the change makes no
difference, and then the result says why ("reason", which is kept from one run to the next).
Mutants that exceed three times the CPU time of the tests, and five seconds, count as killed. With
`--sample`, mutants are drawn at random from each module, by a seed; with `--seconds`, those that
were begun by then are a random sample of all. Tests that fail on the code as
it is, where a package is missing, are left out with `--tolerate`; the result lists them. With
`--survivors`, those that survived an earlier run are tried again with the tests that there are now,
and the rest of that result is kept. The result is written after every twenty mutants.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.abc
import importlib.util
import itertools
import json
import linecache
import math
import os
import platform
import random
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _mutant_tests import ROOT, tests_of
from _mutants import Mutant, mutants

RESULTS = ROOT / "benchmarks" / "results"


SLOW = (  # tests that train for long, and say little that others do not
    "tests/forecasting/test_spectrogram.py::test_networks_learn_from_spectrograms",
    "tests/forecasting/test_own_network.py::test_rank_trains_it",
)


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
        path, lines = str(self.path), self.source.splitlines(keepends=True)
        linecache.cache[path] = (len(self.source), None, lines, path)  # where Triton reads kernels
        exec(compile(self.source, str(self.path), "exec"), module.__dict__)


class _Failed:
    """Collects the tests that fail, and the files that cannot be imported."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.names.append(report.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.names.append(report.nodeid)


def run_tests(module: Path, source: str, tests: list[str], cpu: float, failed: _Failed) -> int:
    """Run tests on a source in place of a module, in this process: pytest's exit code."""
    import pytest

    limit = int(cpu) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    signal.alarm(8 * limit + 60)  # where it waits for ever
    for name in [name for name in sys.modules if name.split(".")[0] in ("augury", "augury_paper")]:
        del sys.modules[name]
    relative = module.relative_to(ROOT / "src").with_suffix("")
    parts = [part for part in relative.parts if part != "__init__"]
    sys.meta_path.insert(0, _Mutated(".".join(parts), module, source))
    with contextlib.suppress(ImportError):
        import hypothesis

        hypothesis.settings.register_profile(
            "mutate",
            derandomize=True,
            database=None,
            deadline=None,
            phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],  # a failure is enough
        )
        hypothesis.settings.load_profile("mutate")
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:doctest", "-o", "addopts=",
               "-o", "filterwarnings=", "--import-mode=importlib",
               "--continue-on-collection-errors"]  # fmt: skip
    return int(pytest.main([*options, *tests], plugins=[failed]))


def fork(
    module: Path, source: str, tests: list[str], cpu: float, failures: Path | None = None
) -> int:
    """Start tests on a source in a child process, noting `failures` in a file; return its id."""
    child = os.fork()
    if child:
        return child
    quiet = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(quiet, stream)
    code, failed = 1, _Failed()
    try:
        code = run_tests(module, source, tests, cpu, failed)
        if failures is not None:
            failures.write_text(json.dumps(failed.names))
    finally:
        os._exit(code)


@dataclass
class Module:
    """A module with its mutants and the tests that are to notice them."""

    path: Path
    tests: list[str]
    found: list[Mutant]
    cpu: float = 0.0
    left_out: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def chosen(self) -> list[str]:
        """The tests as pytest takes them, without those that are left out or slow."""
        files = {str(ROOT / name) for name in self.left_out}  # that cannot be imported
        out = [f"--deselect={name}" for name in (*self.left_out, *SLOW)]
        return [*(test for test in self.tests if test not in files), *out]


def in_parallel(
    jobs: int, work: list[tuple[Any, Any]], done: Any = lambda what, status, cpu: None,
    until: float = math.inf,
) -> None:  # fmt: skip
    """Start each of `work` (what, a function that forks), some at a time; tell `done` its end."""
    waiting, running = list(work), {}
    while waiting or running:
        waiting = waiting if time.monotonic() < until else []
        while waiting and len(running) < jobs:
            what, start = waiting.pop(0)
            running[start()] = what
        if not running:  # time ran out before the next was begun
            break
        child, status, used = os.wait4(-1, 0)
        done(running.pop(child), status, used.ru_utime + used.ru_stime)


def measure(modules: list[Module], jobs: int, tolerate: bool) -> list[Module]:
    """Run the tests on the code as it is: how long they take, and which fail.

    With `tolerate`, those that fail are left out, and the rest must pass; a module without any
    is left out too. Returns the modules whose tests can judge mutants.
    """
    good = _passing(modules, jobs)
    failing = [m for m in modules if m not in good]
    if failing and not tolerate:
        raise SystemExit(f"the tests of {failing[0].name} fail on the code as it is")
    again = _passing([m for m in failing if m.left_out], jobs)
    for m in failing:
        if m not in again:
            print(f"{m.name}: left out, since none of its tests can be run here", flush=True)
    for m in good + again:
        print(f"{m.name}: {m.cpu:.1f} s, {len(m.left_out)} left out", flush=True)
    return [m for m in modules if m in good or m in again]


def _passing(modules: list[Module], jobs: int) -> list[Module]:
    """Return the modules whose tests pass as they are; note those that do not.

    Modules with the same tests are asked about once.
    """
    alike: dict[tuple[str, ...], list[Module]] = {}
    for m in modules:
        alike.setdefault(tuple(m.chosen), []).append(m)
    passing = []
    with tempfile.TemporaryDirectory() as folder:
        names = {tests: Path(folder) / str(k) for k, tests in enumerate(alike)}

        def done(tests: tuple[str, ...], status: int, cpu: float) -> None:
            failed = json.loads(names[tests].read_text()) if names[tests].exists() else []
            for m in alike[tests]:
                m.cpu = cpu
                m.left_out += failed if status else []
            passing.extend(alike[tests] if status == 0 else [])

        def start(tests: tuple[str, ...]) -> int:
            path = alike[tests][0].path
            return fork(path, path.read_text(), list(tests), 600, names[tests])

        in_parallel(jobs, [(tests, lambda tests=tests: start(tests)) for tests in alike], done)
    return passing


def judge(modules: list[Module], jobs: int, keep: Any, until: float = math.inf) -> None:
    """Run the tests on every mutant that is begun in time; `keep` is called now and then."""
    count = itertools.count(1)

    def done(mutant: Mutant, status: int, cpu: float) -> None:
        if os.WIFSIGNALED(status):
            mutant.outcome = "killed by its time"
        else:
            mutant.outcome = "killed" if os.WEXITSTATUS(status) else "survived"
        print("." if mutant.outcome != "survived" else "S", end="", flush=True)
        if next(count) % 20 == 0:
            keep()

    def start(m: Module, mutant: Mutant) -> int:
        return fork(m.path, mutant.source, ["-x", *m.chosen], 3 * m.cpu + 5)

    work = [(one, lambda m=m, one=one: start(m, one)) for m in modules for one in m.found]
    random.Random(0).shuffle(work)  # so that a run that was cut is a fair sample
    in_parallel(jobs, work, done, until)
    print(flush=True)


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
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modules", nargs="+", type=Path, help="modules, or folders of them")
    parser.add_argument("--tests", nargs="+", help="test files, for all the modules given")
    parser.add_argument("--select", help="run only the tests whose names match, as pytest's -k")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sample", type=int, help="mutants of each module, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--survivors", type=Path, help="only those that survived in this result")
    parser.add_argument("--tolerate", action="store_true", help="leave out tests that fail as is")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no more after these")
    parser.add_argument("--out", type=Path, default=RESULTS / "mutation.json")
    asked, began = parser.parse_args(), time.monotonic()
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # forks cannot share a GPU
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is imported: kernels run on a CPU
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    paths = [p.resolve() for given in asked.modules
             for p in (sorted(given.rglob("*.py")) if given.is_dir() else [given])]  # fmt: skip
    out = asked.out.resolve()
    again = None if asked.survivors is None else _survivors(asked.survivors)
    known, result = _reasons(out), {}
    if out.exists():
        result = json.loads(out.read_text())["modules"]
    os.chdir(ROOT)
    _preload()
    modules = []
    for path in paths:
        found = list(mutants(path.read_text()))
        if again is not None:
            name = str(path.relative_to(ROOT))
            found = [m for m in found if (name, m.before, m.after) in again]
        elif asked.sample and len(found) > asked.sample:
            found = random.Random(asked.seed).sample(found, asked.sample)
            found.sort(key=lambda mutant: mutant.line)
        tests = [str(Path(t).resolve()) for t in asked.tests] if asked.tests else tests_of(path)
        if found and tests:
            chosen = ["-k", asked.select] if asked.select else []
            modules.append(Module(path, [*tests, *chosen], found))
    modules = measure(modules, asked.jobs, asked.tolerate)

    def keep() -> None:
        found = {m.name: _summary(m, known, asked) for m in modules}
        if asked.survivors is not None:
            earlier = json.loads(asked.survivors.read_text())["modules"]
            found = earlier | {name: _judged_again(earlier[name], f) for name, f in found.items()}
        write(out, result | found, asked)

    judge(modules, asked.jobs, keep, began + asked.seconds)
    keep()
    for m in modules:
        left = [mutant for mutant in m.found if mutant.outcome == "survived"]
        tried = sum(bool(mutant.outcome) for mutant in m.found)
        print(f"{m.name}: {tried - len(left)} of {tried} killed, {m.cpu:.1f} s CPU")
        for mutant in left:
            print(f"  {mutant.line}: {mutant.before}\n    → {mutant.after}")
    done = [mutant for m in modules for mutant in m.found if mutant.outcome]
    killed = sum(mutant.outcome != "survived" for mutant in done)
    print(f"killed={killed} of {len(done)} ({killed / max(len(done), 1):.1%})")


def _preload() -> None:
    """Load what tests need once, before the forks."""
    import torch

    torch.set_num_threads(1)
    for name in ("hypothesis.strategies", "matplotlib.pyplot", "pandas", "pytest", "scipy.stats",
                 "sklearn.datasets", "sklearn.utils.estimator_checks", "sklearn.linear_model",
                 "torch.utils.data", "torch.distributed.tensor", "torch._dynamo", "triton.language",
                 "typer", "augury.forecasting.scores"):  # fmt: skip
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def _survivors(path: Path) -> set[tuple[str, str, str]]:
    """Return the mutants that survived in an earlier result."""
    known = json.loads(path.read_text())["modules"]
    return {
        (name, one["before"], one["after"])
        for name, module in known.items()
        for one in module["survived"]
    }


def _judged_again(earlier: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Return an earlier result of a module without the survivors that are killed by now."""
    still = {(one["before"], one["after"]) for one in found["survived"]}
    seen = found["mutants"] == len(earlier["survived"])  # all of them were there and were tried
    left = [one for one in earlier["survived"] if (one["before"], one["after"]) in still]
    if not seen:
        return earlier
    killed = earlier["mutants"] - len(left)
    return earlier | {"tests": found["tests"], "left_out": found["left_out"], "killed": killed,
                      "survived": left}  # fmt: skip


def _summary(m: Module, known: dict[Any, str], asked: argparse.Namespace) -> dict[str, Any]:
    done = [mutant for mutant in m.found if mutant.outcome]
    left = [mutant for mutant in done if mutant.outcome == "survived"]
    for mutant in left:
        mutant.reason = known.get((m.name, mutant.before, mutant.after), "")
    shown = ("line", "kind", "before", "after", "reason")
    return {
        "tests": [str(Path(t).relative_to(ROOT)) for t in m.tests if t.endswith(".py")],
        "select": asked.select,
        "left_out": m.left_out,
        "mutants": len(done),
        "killed": len(done) - len(left),
        "survived": [{k: getattr(mutant, k) for k in shown} for mutant in left],
    }


def write(out: Path, modules: dict[str, Any], asked: argparse.Namespace) -> None:
    total = sum(module["mutants"] for module in modules.values())
    killed = sum(module["killed"] for module in modules.values())
    git = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    commit = (
        os.environ.get("AUGURY_COMMIT")
        or subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    )
    found = {
        "command": shlex.join(["python", "benchmarks/mutate.py", *sys.argv[1:]]),
        "seed": asked.seed,
        "commit": commit,
        "python": platform.python_version(),
        "machine": f"{platform.system()}, {platform.machine()}",
        "mutants": total,
        "killed": killed,
        "share": round(killed / max(total, 1), 4),
        "modules": modules,
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    beside = out.with_suffix(".part")
    beside.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    beside.replace(out)


if __name__ == "__main__":
    main()
