"""How long it takes until augury answers: the wheel's size, its installation, import and help.

    python benchmarks/start.py [--quick] [--out FOLDER]

Builds the wheel, installs it into new environments, and starts it. Starts are medians over rounds,
with Python's own start (`python -c pass`) taken in turns with the others and subtracted; CPU time
stands beside wall time, since other work on the machine changes it little. The installation with
all dependencies is timed without a cache of wheels, and depends on the network: --quick leaves it
out.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

import torch
from _result import add_out, environment, save

ROOT = Path(__file__).parents[1]
STARTS = {
    "python": ["-c", "pass"],
    "import augury": ["-c", "import augury"],
    "augury --help": ["-m", "augury", "--help"],
    "augury rank --help": ["-m", "augury", "rank", "--help"],
    "import torch": ["-c", "import torch"],
    "augury.rank": ["-c", "import augury; augury.rank"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds, no full installation")
    add_out(parser)
    arguments = parser.parse_args()
    rounds = 3 if arguments.quick else 15
    about = environment(torch.device("cpu"))
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        python = new_environment(Path(folder) / "linked")
        found: dict[str, Any] = {
            "wheel_bytes": wheel.stat().st_size,
            "install_s": installation(python, wheel, "--no-deps"),
        }
        link_dependencies(Path(folder) / "linked")
        found["starts"] = starts(python, Path(folder), rounds)
        if not arguments.quick:
            full = new_environment(Path(folder) / "full")
            options = ("--no-cache-dir", "-c", str(ROOT / "constraints.txt"))
            found["install_with_dependencies_s"] = installation(full, wheel, *options)
            packages = Path(folder) / "full"
            found["installed_bytes"] = sum(
                f.stat().st_size for f in packages.rglob("*") if f.is_file() and not f.is_symlink()
            )
    show(found)
    save(arguments.out, "start", {"environment": about, "rounds": rounds, **found})


def build(folder: Path) -> Path:
    command = [sys.executable, "-m", "build", "--quiet", "--wheel", "--outdir", str(folder)]
    subprocess.run([*command, str(ROOT)], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def new_environment(folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


def installation(python: Path, wheel: Path, *options: str) -> float:
    began = time.perf_counter()
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, *options, wheel], check=True)
    return time.perf_counter() - began


def link_dependencies(folder: Path) -> None:
    """Put the dependencies of this environment beside the wheel, which was installed by itself."""
    (target,) = folder.glob("lib/python*/site-packages")
    for each in Path(sysconfig.get_path("purelib")).iterdir():
        if "augury" not in each.name.lower() and not (target / each.name).exists():
            (target / each.name).symlink_to(each)


def starts(python: Path, folder: Path, rounds: int) -> dict[str, dict[str, float]]:
    """Return the median times of each command, over Python's own."""
    wall: dict[str, list[float]] = {name: [] for name in STARTS}
    cpu: dict[str, list[float]] = {name: [] for name in STARTS}
    for turn in range(rounds + 1):
        for name, command in STARTS.items():
            before, began = used(), time.perf_counter()
            subprocess.run(
                [python, *command], check=True, cwd=folder, env={}, stdout=subprocess.DEVNULL
            )
            if turn:  # the first one reads the files from the disk and compiles them
                wall[name].append(time.perf_counter() - began)
                cpu[name].append(used() - before)
    own_wall, own_cpu = statistics.median(wall["python"]), statistics.median(cpu["python"])
    return {
        name: {
            "wall_s": statistics.median(wall[name]),
            "over_python_wall_s": statistics.median(wall[name]) - own_wall,
            "over_python_cpu_s": statistics.median(cpu[name]) - own_cpu,
            "spread_wall_s": statistics.pstdev(wall[name]),
        }
        for name in STARTS
    }


def used() -> float:
    """Return the CPU seconds of all children so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def show(found: dict[str, Any]) -> None:
    print(f"wheel: {found['wheel_bytes'] / 1e6:.2f} MB, installed in {found['install_s']:.1f} s")
    if "install_with_dependencies_s" in found:
        print(
            f"with all dependencies: {found['install_with_dependencies_s']:.0f} s, "
            f"{found['installed_bytes'] / 1e6:,.0f} MB"
        )
    for name, times in found["starts"].items():
        print(
            f"{name}: {times['wall_s']:.3f} s; {times['over_python_wall_s']:.3f} s over Python's "
            f"own start ({times['over_python_cpu_s']:.3f} s of CPU time)"
        )


if __name__ == "__main__":
    main()
