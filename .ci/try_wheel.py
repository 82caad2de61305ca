"""Install a wheel in a new environment, beside the dependencies of this one, and use it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

wheel = Path(sys.argv[1]).resolve()
with tempfile.TemporaryDirectory() as folder:
    venv.create(folder, with_pip=True)
    bin_folder = Path(folder) / "bin"
    (target,) = Path(folder).glob("lib/python*/site-packages")
    install = [bin_folder / "python", "-m", "pip", "install", "--quiet", "--no-deps", wheel]
    subprocess.run(install, check=True)
    # The dependencies are big and already here; the editable install of augury is not among them.
    here = Path(sysconfig.get_path("purelib"))
    for each in here.iterdir():
        if "augury" not in each.name.lower() and not (target / each.name).exists():
            (target / each.name).symlink_to(each)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    for command in (
        ["--version"],
        ["rank", "digits", "-a", "rotation(10)", "--score", "ridge", "--report", "page.html"],
        ["reproduce", "--help"],
    ):
        done = subprocess.run(
            [bin_folder / "augury", *command], cwd=folder, env=environment, text=True,
            capture_output=True,
        )  # fmt: skip
        print(f"$ augury {' '.join(command)}\n{done.stdout}{done.stderr}", end="")
        done.check_returncode()
    where = [bin_folder / "python", "-c", "import augury; print(augury.__file__)"]
    found = subprocess.run(where, cwd=folder, env=environment, text=True, capture_output=True)
    if not Path(found.stdout.strip()).is_relative_to(folder):
        sys.exit(f"augury was imported from {found.stdout.strip()}, not from the wheel")
size = wheel.stat().st_size
print(f"{wheel.name}: {size / 1e6:.2f} MB")
