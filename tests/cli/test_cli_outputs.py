"""Files that a command writes: never over an input or another output, and before it prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from refusal import refused, said_in_one_line

from augury._base.files import check_writable
from augury.cli.interrupted import Interrupted, resumable
from augury.cli.output import check_outputs


def test_no_output_is_an_input_or_another_output(tmp_path):
    data, other = tmp_path / "x.npz", tmp_path / "y.json"
    data.write_bytes(b"data")
    (tmp_path / "link.html").symlink_to(other)
    refused(f"--json would replace {data}, an input", check_outputs, data, None, json=data)
    report = tmp_path / "link.html"
    refused("--json and --report are both", check_outputs, data, json=other, report=report)
    check_outputs(data, None, "digits", json=other, report=None)
    assert data.read_bytes() == b"data"


def test_a_link_to_a_pipe_is_no_file(tmp_path):
    """As ``/dev/stdout`` is in a pipeline: what it leads to has no name of its own."""
    reader, writer = os.pipe()
    try:
        link = tmp_path / "out.json"
        link.symlink_to(f"/proc/self/fd/{writer}")
        if not link.exists():
            link.unlink()
            os.mkfifo(link)
        refused(f"cannot write {link}: it is a device or a pipe", check_writable, link)
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("command", ["export", "rank"])
def test_a_full_disk_behind_the_output_is_one_line_and_files_are_written(command, tmp_path):
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(0).random((20, 6, 6)), y=np.arange(20) % 2)
    asked = {
        "export": "export rotation(10)",
        "rank": "rank x.npz --effort 0 --epochs 1 -a flips --json r.json",
    }
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "augury", *asked[command].split()], cwd=tmp_path, stdout=full,
            stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if line.startswith("error")]
    assert lines == ["error: cannot write to standard output: No space left on device"]
    assert "Traceback" not in done.stderr
    assert (tmp_path / "r.json").exists() is (command == "rank")


def test_an_interrupt_names_the_journal_that_has_what_was_done(tmp_path):
    def said(journal):
        with pytest.raises(Interrupted) as caught, resumable(journal):
            raise KeyboardInterrupt
        return str(caught.value)

    with pytest.raises(KeyboardInterrupt), resumable(None):
        raise KeyboardInterrupt
    kept, jobs = tmp_path / "kept", tmp_path / "kept.jobs"
    assert said(kept) == f"nothing was finished, so {kept} has nothing to resume"
    jobs.mkdir()
    (jobs / "journal.json").write_text("{}")
    assert "nothing was finished" in said(jobs)
    (jobs / "1.safetensors").write_text("done")
    for journal in (jobs, kept):  # that of a round under way is beside the policy's file
        assert f"finished is saved in {jobs}; run the same command" in said(journal)
    kept.write_text("rounds")
    assert f"finished is saved in {kept}; run the same command" in said(kept)


def test_where_a_command_prints_is_no_file_for_its_result(tmp_path):
    """The JSON would replace what was printed, and the command would end as if all were well."""
    out = tmp_path / "printed.txt"
    program = "from augury.cli.main import main; main()"
    asked = ["rank", "digits", "-a", "flips", "--effort", "0", "--epochs", "1", "--json"]
    with out.open("w") as printed:
        done = subprocess.run(
            [sys.executable, "-c", program, *asked, "/dev/stdout"],
            stdout=printed, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert "--json cannot be written to standard output; name a file" in done.stderr
    assert out.read_text() == ""


def test_a_dash_is_standard_output_and_no_file(run, tmp_path):
    code = run("export", "rotation(10)")
    assert run("export", "rotation(10)", "--out", "-") == code
    fit = ("fit", "digits", "--n-components", 8, "--out")
    said_in_one_line(run(*fit, "-"), "--out cannot be written to standard output; name a file")
    for command in ("rank", "policy"):
        for name in ("--json", "--report"):
            result = run(command, "digits", name, "-")
            said_in_one_line(result, f"{name} cannot be written to standard output")
    said_in_one_line(run("policy", "digits", "--out", "-"), "--out needs --to")
    assert not list(tmp_path.iterdir())
    assert run(*fit, "m")[0] == 0
    np.savez(tmp_path / "new.npz", np.zeros((2, 8, 8)))
    printed = run("predict", "m", "new.npz")
    assert printed[1].startswith("predicted,")
    assert run("predict", "m", "new.npz", "--out", "-") == printed
    assert not (tmp_path / "-").exists()


def _asked(words, **options):
    env = {**os.environ, "OMP_NUM_THREADS": "1", **options.pop("env", {})}
    command = [sys.executable, "-m", "augury", *words.split()]
    return subprocess.run(command, env=env, capture_output=True, text=True, **options)


@pytest.mark.parametrize("words", ["--version", "augmentations"])
def test_a_closed_output_is_no_error(words):
    done = _asked(words, preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_of_no_width_loses_nothing():
    done = _asked("augmentations", env={"COLUMNS": "0"})
    assert done.returncode == 0
    assert "horizontal_flip" in done.stdout


def test_an_output_without_some_signs_keeps_the_minus():
    done = _asked("rank digits --effort 0 --epochs 1 -a flips", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    (line,) = re.findall(r"estimate: (.*) points \(95 % interval (.*) to .*\)", done.stdout)
    assert all(re.fullmatch(r"[+-]\d+\.\d+", number) for number in line)
