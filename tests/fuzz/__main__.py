"""Run the fuzzer: ``python -m tests.fuzz --what files --count 3000 --seed 0``."""

from __future__ import annotations

import argparse
import sys

from .harness import survey

TARGETS = {what: f"fuzz.{what}:case" for what in ("files", "models", "specs")}


def main() -> int:
    """Run one target, print its table, and return 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description="Read mutated input; report what came of it.")
    parser.add_argument("--what", choices=sorted(TARGETS), required=True)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    chosen = parser.parse_args()
    found = survey(TARGETS[chosen.what], chosen.count, chosen.seed, first=chosen.first)
    print(found.table())
    return 1 if found.failures else 0


if __name__ == "__main__":
    sys.exit(main())
