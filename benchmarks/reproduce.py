"""The paper's experiments with a chosen device and settings, as one result that can be committed.

    python benchmarks/reproduce.py [EXPERIMENT]… [--settings paper|fewer|cpu|cores|quick]
        [--device cuda] [--dataset mnist] [--only closed]… [--trials N] [--data FOLDER]
        [--keep FOLDER] [--out FOLDER] [--name NAME]

The experiments are those of `augury reproduce`, in `augury_paper`: this runs their cells, prints
what each claim comes to, and writes all numbers with the commit, the versions and the machine.
`python benchmarks/pages.py` makes docs/reproduced.md of those in benchmarks/results/reproduce/.

Settings: `paper` is the paper's appendix; `fewer` has 10,000 images and twenty trials, for
averaging at a layer; `cores` has 1,000 images and five trials, for averaging at a layer on two
cores; `cpu` has 10,000 images and three trials, for Table 1 in closed form on a CPU, where
scikit-learn's pair can be measured too; `quick` is a look that takes minutes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import replace
from pathlib import Path

from _result import BUILD, environment, save

from augury._base.devices import resolve_device
from augury_paper import EXPERIMENTS, reproduce, run
from augury_paper.settings import NAMED


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("experiments", nargs="*", default=None, metavar="EXPERIMENT")
    parser.add_argument("--settings", choices=list(NAMED), default="paper")
    parser.add_argument("--quick", action="store_true", help="the same as --settings quick")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dataset", action="append", help="may be repeated; all by default")
    parser.add_argument("--only", action="append", help="cells whose name contains this, or these")
    parser.add_argument("--trials", type=int)
    parser.add_argument("--data", type=Path, help="folder with the data sets")
    parser.add_argument("--keep", type=Path, help="for finished cells: a stopped run is resumed")
    parser.add_argument("--out", type=Path, default=BUILD / "reproduce")
    parser.add_argument("--name", help="of the result; by default that of the settings")
    options = parser.parse_args()
    named = "quick" if options.quick else options.settings
    settings = NAMED[named]
    settings = replace(
        settings,
        trials=options.trials or settings.trials,
        datasets=tuple(options.dataset or settings.datasets),
    )
    device = resolve_device(options.device)
    result = {"environment": environment(device)}
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        outcome = reproduce(
            options.experiments or EXPERIMENTS,
            out=folder,
            settings=settings,
            data=options.data,
            device=options.device,
            only=options.only or (),
            say=lambda line: print(line, flush=True),
        )
        result |= json.loads((folder / "results.json").read_text(encoding="utf-8"))
    for section in run.sections(result):
        for claim in section.claims:
            if claim.verdict != "could not be checked":
                print(f"{claim.words}: {claim.ours} (paper: {claim.paper}): {claim.verdict}")
        for table in section.tables:
            print(f"\n{table.title}\n{' | '.join(table.columns)}")
            for row in table.rows:
                print(" | ".join(row))
    save(options.out, options.name or named, result)
    if outcome.failed:
        raise SystemExit(f"{len(outcome.failed)} cells failed")


if __name__ == "__main__":
    main()
