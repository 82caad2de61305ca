"""The command line as a person meets it: real processes where it matters, in-process elsewhere."""

from __future__ import annotations

import json
import os
import re
import resource
import struct
import subprocess
import sys
import time
import zlib
from importlib import import_module

import numpy as np
import pytest
from PIL import Image
from refusal import said_in_one_line as refused

from augury import AuguryError

PROGRAM = [sys.executable, "-m", "augury"]


FAST = ("--score", "alignment", "--max-examples", "200")


def test_rank_prints_a_table_and_writes_its_files(run, tmp_path):
    code, out, err = run(
        "rank", "digits", "-a", "rotation(10)", "-a", "flips >> noise(0.1)", *FAST,
        "--json", "out.json", "--report", "out.html",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "rotation(10)" in out
    assert "200 of 1,797 examples" in out
    data = json.loads((tmp_path / "out.json").read_text())
    assert {row["augmentation"] for row in data["rows"]} == {"rotation(10)", "flips >> noise(0.1)"}
    assert data["command"].startswith("augury rank digits -a 'rotation(10)'")
    assert (tmp_path / "out.html").read_text().startswith("<!doctype html>")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.html", "out.json"]


def test_specs_from_a_file_and_a_markdown_report(run, tmp_path):
    (tmp_path / "specs.txt").write_text("rotation(10)  # mild\n\nblur(0.5,2.0)\n")
    code, _, err = run(
        "rank",
        "digits",
        "--from-file",
        "specs.txt",
        *FAST,
        "--report",
        "r.md",
        "--json",
        "r.json",
    )
    assert (code, err) == (0, "")
    rows = json.loads((tmp_path / "r.json").read_text())["rows"]
    assert {row["augmentation"] for row in rows} == {"rotation(10)", "blur(0.5,2.0)"}
    assert "rotation(10)" in (tmp_path / "r.md").read_text()


def test_version_help_and_families(run):
    assert run("--version")[1].startswith("augury 0.")
    code, out, _ = run("augmentations")
    assert code == 0
    assert "scaling(low=0.9, high=1.1)" in out
    assert "chain(" in out or "sampled(" in out
    code, out, _ = run("rank", "--help")
    assert code == 0
    assert "--max-examples" in out


def png(path, shade, size=(8, 8)):
    Image.new("RGB", size, (shade, 40, 90)).save(path)


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "pictures"
    for name, shade in (("cat", 20), ("dog", 200)):
        (root / name).mkdir(parents=True)
        for k in range(12):
            png(root / name / f"{k}.png", shade + k)
    return root


class TestBadInput:
    def test_missing_file(self, run):
        refused(run("rank", "nowhere.npz"), "there is no file or directory nowhere.npz")

    def test_unknown_name(self, run):
        refused(run("rank", "digit"), "digits")

    def test_empty_folder(self, run, tmp_path):
        (tmp_path / "empty").mkdir()
        refused(run("rank", "empty"), "empty")

    def test_corrupt_image_is_named_and_can_be_skipped(self, run, folder):
        (folder / "cat" / "3.png").write_bytes(b"not a picture")
        refused(run("rank", folder, *FAST), "3.png", "--skip-bad")
        code, out, _ = run("rank", folder, "-a", "rotation(5)", *FAST, "--skip-bad")
        assert code == 0
        assert "3.png" in out

    def test_huge_image(self, run, folder):
        def chunk(kind, body):
            return (
                struct.pack(">I", len(body))
                + kind
                + body
                + struct.pack(">I", zlib.crc32(kind + body))
            )

        header = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 0, 0, 0, 0)
        body = (
            chunk(b"IHDR", header)
            + chunk(b"IDAT", zlib.compress(b"\0" * 100))
            + chunk(b"IEND", b"")
        )
        (folder / "dog" / "big.png").write_bytes(b"\x89PNG\r\n\x1a\n" + body)
        refused(run("rank", folder, *FAST), "big.png", "50,000")

    def test_npz_with_a_pickle(self, run, tmp_path):
        np.savez(tmp_path / "p.npz", x=np.array([{"a": 1}], dtype=object), y=np.array([0]))
        refused(run("rank", "p.npz"), "p.npz", "pickle")

    def save(self, tmp_path, x, y):
        np.savez(tmp_path / "d.npz", x=x, y=y)

    def test_labels_of_the_wrong_length(self, run, tmp_path):
        self.save(tmp_path, np.zeros((6, 8, 8), np.uint8), np.arange(5) % 2)
        refused(run("rank", "d.npz"), "6", "5")

    def test_one_class_only(self, run, tmp_path):
        self.save(tmp_path, np.zeros((6, 8, 8), np.uint8), np.zeros(6, int))
        refused(run("rank", "d.npz"), "belongs to the class")

    def test_a_class_with_one_example(self, run, tmp_path):
        self.save(tmp_path, np.zeros((6, 8, 8), np.uint8), np.array([0, 0, 0, 1, 1, 2]))
        refused(run("rank", "d.npz"), "2", "one example")

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_values_that_are_no_numbers(self, run, tmp_path, value):
        x = np.random.default_rng(0).random((6, 8, 8))
        x[4, 2, 2] = value
        self.save(tmp_path, x, np.arange(6) % 2)
        refused(run("rank", "d.npz"), "4")

    def test_mixed_sizes(self, run, folder):
        png(folder / "cat" / "wide.png", 9, (20, 8))
        code, out, _ = run("rank", folder, "-a", "horizontal_flip", *FAST)
        assert code == 0
        assert "resized to 8 × 8 pixels; choose another side with --size" in " ".join(out.split())
        code, _, _ = run("rank", folder, "-a", "rotation(5)", *FAST, "--size", "12")
        assert code == 0

    def test_unknown_spec(self, run):
        refused(run("rank", "digits", "-a", "rotatoin(3)"), "did you mean rotation")

    def test_device_without_cuda(self, run):
        import torch

        if torch.cuda.is_available():
            pytest.skip("this machine has CUDA")
        refused(run("rank", "digits", "--device", "cuda"), "finds no CUDA device")

    def test_unwritable_paths_are_said_before_the_work(self, run, tmp_path):
        refused(run("rank", "digits", "--json", "no/such/folder.json"), "does not exist")
        refused(run("rank", "digits", "--json", tmp_path), "it is a directory")
        refused(run("rank", "digits", "--report", "page.pdf"), "must end in .html or .md")
        if os.geteuid() != 0:  # root may write anywhere
            (tmp_path / "shut").mkdir(mode=0o500)
            refused(run("rank", "digits", "--json", "shut/a.json"), "Permission denied")
        refused(run("rank", "digits", "--json", "/proc/a.json"), "cannot write /proc/a.json")

    def test_empty_list_of_specs(self, run, tmp_path):
        (tmp_path / "none.txt").write_text("# nothing\n")
        refused(run("rank", "digits", "--from-file", "none.txt"), "contains no augmentation")
        refused(run("rank", "digits", "--from-file", "gone.txt"), "No such file")

    def test_a_bad_spec_is_found_by_its_line(self, run, tmp_path):
        """A byte order mark, which Windows editors write, is no part of the first spec."""
        text = "\ufeffrotation(15)\r\n\r\n# a comment\r\nrotatoin(15)\r\n"
        (tmp_path / "specs.txt").write_bytes(text.encode())
        refused(
            run("rank", "digits", "--from-file", "specs.txt"),
            "specs.txt, line 4: cannot read the augmentation 'rotatoin(15)'",
        )

    def test_a_budget_and_an_effort_exclude_each_other(self, run):
        refused(run("rank", "digits", "--budget", "60", "--effort", "3"), "either budget or effort")

    def test_table_without_label(self, run, tmp_path):
        (tmp_path / "t.csv").write_text("a,b,kind\n1,2,x\n3,4,y\n" * 4)
        refused(run("rank", "t.csv"), "--label", "kind")
        code, out, _ = run("rank", "t.csv", "--label", "kind", "--score", "alignment")
        assert code == 0
        assert "vector data" in out

    def test_negative_examples(self, run):
        refused(
            run("rank", "digits", "--max-examples", "-3"),
            "'--max-examples'",
            "0",
        )


class TestNothingHalfWritten:
    def test_full_disk(self, run, tmp_path):
        """A tmpfs of 16 KiB where we may mount one, else a limit on the size of files."""
        disk = tmp_path / "small"
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(disk)]
        root = os.geteuid() == 0
        mounted = root and subprocess.run(mount, capture_output=True).returncode == 0
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        old = disk / "page.html"
        try:
            old.write_text("the page before")
            if not mounted:
                resource.setrlimit(resource.RLIMIT_FSIZE, (16384, before[1]))
            result = run("rank", "digits", "-a", "rotation(5)", *FAST, "--report", old)
            refused(result, f"error: cannot write {old}: ")
            assert old.read_text() == "the page before"
            assert [p.name for p in disk.iterdir()] == ["page.html"]
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            if mounted:
                subprocess.run(["umount", str(disk)], check=True)


def test_usage_errors_are_one_line(run):
    refused(run("rank", "digits", "--score", "magic"), "'--score': 'magic'", "'kernel-ridge'")
    refused(run("rank", "digits", "--seed", "-1"), "'--seed'")
    refused(run("rank"), "DATA")
    refused(run("rnk", "digits"), "No such command 'rnk'", "rank")
    refused(run("rank", "digits", "--augmentations", "x"), "--augmentations")
    for command in ("rank", "policy"):  # more would run for days
        refused(run(command, "digits", "--epochs", 100_000), "--epochs", "10000")


def test_no_command_shows_the_help(run):
    code, out, err = run()
    assert (code, err) == (0, "")
    assert "Rank augmentations on DATA before training." in out


def test_help_waits_for_no_heavy_import():
    script = (
        "import sys\n"
        "sys.argv = ['augury', '--help']\n"
        "from augury.cli.main import main\n"
        "try:\n"
        "    main()\n"
        "except SystemExit:\n"
        "    pass\n"
        "heavy = {'torch', 'numpy', 'pandas', 'matplotlib', 'sklearn', 'PIL', 'rich.console'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_choices_are_those_of_the_library():
    from typing import get_args

    from augury.cli import options
    from augury.features.frequencies import SAMPLINGS
    from augury.forecasting.rank import FEATURES
    from augury.forecasting.scores import SCORES

    assert set(get_args(options.Score)) == set(SCORES)
    assert set(get_args(options.FeatureMap)) == set(FEATURES)
    assert set(get_args(options.Sampling)) == set(SAMPLINGS)


def test_shell_completion_offers_choices():
    line = "augury rank digits --score "
    done = subprocess.run(
        PROGRAM, capture_output=True, text=True,
        env={**os.environ, "_AUGURY_COMPLETE": "complete_bash",
             "COMP_WORDS": line, "COMP_CWORD": "4"},
    )  # fmt: skip
    assert "kernel-ridge" in done.stdout.split(), (done.stdout, done.stderr)


@pytest.mark.parametrize("where", ["augury.cli.output", "typer", "torch"])
def test_an_interrupt_at_any_moment_says_one_line(tmp_path, where):
    """Libraries may turn an interrupt while they are imported into an error of their own."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {where!r}:\n"
        "            try:\n"
        "                os.kill(os.getpid(), signal.SIGINT)\n"
        "            except KeyboardInterrupt:\n"
        "                raise ImportError('failed') from None\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [*PROGRAM, "rank", "digits"], capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "interrupted: nothing was written\n")


def test_a_second_interrupt_does_not_silence_the_first(tmp_path):
    script = (
        "import os, signal, sys\n"
        "from augury.cli import main\n"
        "class Stream:\n"
        "    def write(self, text):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        return sys.__stderr__.write(text)\n"
        "    def flush(self): pass\n"
        "import augury.cli.app\n"
        "def app(**options):\n"
        "    sys.stderr = Stream()\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "augury.cli.app.app = app\n"
        "main.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "interrupted: nothing was written\n")


@pytest.mark.parametrize(
    ("options", "wanted"),
    [((), False), (("--report", "page.html"), None), (("--trends",), True)],
)
def test_trends_are_for_a_report(run, monkeypatch, options, wanted):
    asked = []

    def stop(*args, trends, **rest):
        asked.append(trends)
        raise AuguryError("enough")

    monkeypatch.setattr(import_module("augury.forecasting.rank"), "rank", stop)
    refused(run("rank", "digits", *options), "enough")
    assert asked == [wanted]


@pytest.mark.parametrize(
    ("command", "reader", "where", "name"),
    [
        ("rank", "augury.cli.reading", "augury.forecasting.rank", "rank"),
        ("policy", "augury.cli.policy", "augury.forecasting.policy", "search_policy"),
    ],
)
def test_a_budget_counts_from_the_start_of_the_command(
    run, monkeypatch, command, reader, where, name
):
    """The data are read, and libraries imported, within it."""
    module, asked = import_module(reader), []
    read = module.read

    def reading(*args, **options):
        asked.append(time.perf_counter())
        return read(*args, **options)

    def stop(*args, started, **rest):
        asked.append(started)
        raise AuguryError("enough")

    monkeypatch.setattr(module, "read", reading)
    monkeypatch.setattr(import_module(where), name, stop)
    begun = time.perf_counter()
    refused(run(command, "digits", "--budget", "60"), "enough")
    reads, started = asked
    assert begun <= started <= reads


def test_the_help_says_that_a_given_amount_of_work_has_no_trends(run):
    out = re.sub(r"[^\w-]+", " ", run("rank", "--help")[1])
    assert "if a report is written without --budget and --effort" in out


def test_what_combines_families_has_no_strength(run):
    said = "rotation(10) >> flips has no strength to sweep; families for image data"
    refused(run("rank", "digits", "--sweep", "-a", "rotation(10) >> flips"), said)
