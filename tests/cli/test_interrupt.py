"""Ctrl-C at any moment ends in one line and exit code 130, and leaves no file.

While modules are imported that needs a process of its own; afterwards it is pressed in this one.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

# Sends SIGINT when a module is about to be imported.
PROGRAM = """
import os, signal, sys

moment = sys.argv[1]

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == moment:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
if moment == "parsing":
    from typer.core import TyperGroup

    TyperGroup.parse_args = lambda *args: os.kill(os.getpid(), signal.SIGINT)
from augury.cli.main import main
sys.argv = ["augury", *sys.argv[2:]]
main()
"""
MINE = """
import os, signal, threading

def press():
    os.kill(os.getpid(), signal.SIGINT)

def view(x):
    press()
    return x

def from_a_thread(x):
    thread = threading.Thread(target=press)
    thread.start()
    thread.join()
    return x

def network():
    press()
"""
RANK = ("rank", "digits", "--max-examples", "60", "--score", "alignment")
OUT = ("--json", "o.json", "--report", "o.html")
MOMENTS = {
    "the commands are imported": ("typer", *RANK, *OUT),
    "typer parses the command line": ("parsing", *RANK, *OUT),  # typer exits with 130, silently
    "numpy is imported": ("numpy", *RANK, *OUT),
    "torch is imported": ("torch", *RANK, *OUT),
    "torch's parts are imported": ("torch.nn", *RANK, *OUT),
    "the bar is shown": ("rich.progress", *RANK, *OUT),
    "the page is rendered": ("jinja2", *RANK, "-a", "rotation(5)", *OUT),
}
INSIDE = {
    "a user's augmentation runs": (*RANK, "-a", "sampled(mine:view)", *OUT),
    "a thread runs": (*RANK, "-a", "sampled(mine:from_a_thread)", *OUT),
    "a user's network is loaded": ("invariance", "mine:network", "digits", "-a", "flips", *OUT),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_interrupt_is_one_line(moment, tmp_path):
    command = [sys.executable, "-c", PROGRAM, *MOMENTS[moment]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    stopped(done.returncode, done.stderr)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("moment", INSIDE)
def test_an_interrupt_of_a_users_code_is_one_line(moment, run, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    try:
        code, _, err = run(*INSIDE[moment])
    except KeyboardInterrupt:
        pytest.fail("the interrupt went through the command line")
    stopped(code, err)
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["mine.py"]


# Presses Ctrl-C as a terminal does, to the whole group, while a local cluster starts.
CLUSTER = """
import os, signal, sys, threading, time

import distributed

delay, start = float(sys.argv[1]), distributed.LocalCluster.__init__

def press():
    time.sleep(delay)
    os.killpg(0, signal.SIGINT)

def begin(self, *args, **options):
    threading.Thread(target=press, daemon=True).start()
    start(self, *args, **options)

distributed.LocalCluster.__init__ = begin
from augury.cli.main import main
sys.argv = ["augury", *sys.argv[2:]]
if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("delay", [0.0, 0.3, 1.0])
def test_an_interrupt_while_a_cluster_starts_is_one_line(delay, tmp_path):
    command = [sys.executable, "-c", CLUSTER, str(delay), *RANK, "-a", "flips", *OUT]
    done = subprocess.run(
        [*command, "--cluster", "local:2"], cwd=tmp_path, capture_output=True, text=True,
        timeout=300, start_new_session=True,
    )  # fmt: skip
    lines = [line for line in done.stderr.splitlines() if not line.startswith("2 workers;")]
    stopped(done.returncode, "\n".join(lines))
    assert not [path for path in tmp_path.iterdir() if path.suffix in (".json", ".html")]


def stopped(code, err):
    assert err.strip() == "interrupted: nothing was written", err
    assert code == 130
