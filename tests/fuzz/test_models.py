"""Three hundred mutated model files: each loads or is refused in one line, within its limits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_mutated_model_files_load_or_are_refused_in_one_line():
    fuzzer = Path(__file__).with_name("models.py")
    done = subprocess.run(
        [sys.executable, str(fuzzer), "--cases", "300"], capture_output=True, text=True, check=False
    )
    found = json.loads(done.stdout or "{}")
    assert not found.get("defects"), found["defects"]
    assert done.returncode == 0, done.stderr[-2000:]
    assert found["cases"] == 300
    assert found["loaded"] > 10  # what was changed is not always wrong
    assert found["refused"] > 100


def test_the_harness_tells_what_goes_wrong(tmp_path):
    """In a process of its own: this one may have used autograd, which cannot be forked."""
    code = """
import json, os, pathlib, sys
sys.path.insert(0, sys.argv[1])
import harness
harness.SECONDS = 1

def use(path):
    what = path.read_bytes()
    if what == b"raise": raise KeyError("x")
    if what == b"die": os._exit(1)
    if what == b"hang":
        while True: pass
    if what == b"memory": bytearray(3 * 2**30)
    return "fine"

words = [b"fine", b"raise", b"die", b"fine", b"hang", b"fine", b"memory", b"fine"]
print(json.dumps(harness.survey(use, list(enumerate(words)), pathlib.Path(sys.argv[2]))))
"""
    folder = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", code, folder, str(tmp_path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = [word.split(" at ")[0] for _, word in json.loads(done.stdout)]
    assert found == [
        "fine", "KeyError", "died", "fine", "out of time", "fine", "MemoryError", "fine",
    ]  # fmt: skip
