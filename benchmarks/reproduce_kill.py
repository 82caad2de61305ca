"""Kill `augury reproduce --quick` at ten random moments; the page must come out the same.

    python benchmarks/reproduce_kill.py [WHAT]… [--kills N] [--seed N]

One run goes through; another is killed (SIGKILL) again and again, at moments drawn evenly from the
time that is left, and then let through. All numbers but measured times must be equal, and so must
the pages made of them.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from test_reproduce_kill import timeless

from augury_paper import make_page


def start(what: list[str], out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "augury", "reproduce", *what, "--quick", "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    chance = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        whole, killed = Path(folder, "whole"), Path(folder, "killed")
        begun = time.perf_counter()
        rc = start(args.what, whole).wait()
        took = time.perf_counter() - begun
        print(f"a whole run: {took:.0f} s", flush=True)
        moments = []
        for k in range(args.kills):
            run = start(args.what, killed)
            moment = chance.uniform(0, 2 * took / args.kills)
            try:
                run.wait(moment)
            except subprocess.TimeoutExpired:
                run.kill()
                run.wait()
            moments.append(moment)
            cells = len(list(killed.rglob("cells/*/*.json")))
            print(f"kill {k + 1} after {moment:.1f} s: {cells} cells kept", flush=True)
        rc += start(args.what, killed).wait()
        results = [
            timeless(json.loads((out / "results.json").read_text())) for out in (whole, killed)
        ]
        same = results[0] == results[1] and make_page(results[0]) == make_page(results[1])
    print(f"kills={len(moments)} cells={len(results[0]['cells'])} same={same} failures={rc}")
    sys.exit(not same or rc != 0)


if __name__ == "__main__":
    main()
