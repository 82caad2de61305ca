"""The page about policies: what they gained, beside recipes, and what their parts add."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from augury._base.text import listed

RESULTS = Path(__file__).parent / "results" / "policy"
RIVALS = {
    "trivial_augment(1)": "TrivialAugment",
    "trivial_augment(2)": "2 stacked",
    "trivial_augment(3)": "3 stacked",
    "trivial_augment(4)": "4 stacked",
    "(identity | trivial_augment(1)) ** 2": "UniformAugment",
    "rand_augment(2,9)": "RandAugment(2,9)",
    "horizontal_flip >> translation(0.125)": "flip and crop",
}
CLEAR = 0.5  # points: what a part must really add or cost to count
Found = dict[str, Any]


def read(folder: Path = RESULTS) -> list[Found]:
    """Return all results: training from scratch first, by network, and small sets first."""
    found = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    own = {"cnn": 0, "resnet": 1}
    return sorted(found, key=lambda f: (own.get(f["network"], 2), f["source"], f["examples"]))


def gains(found: Found) -> dict[str, float]:
    """Return real gains over no augmentation for the same epochs, by spec."""
    base = np.mean(found["accuracy"]["identity"])
    return {spec: float(np.mean(v) - base) for spec, v in found["accuracy"].items()}


def error(found: Found, spec: str | None = None) -> float:
    """Return the standard error of the gain of the choice over a rival, or over all on average.

    It has two parts: how far training runs with other seeds differ, pooled over policies, and how
    far test images do.
    """
    runs = np.array([v for s, v in found["accuracy"].items() if not s.startswith("without")])
    seeds = 2 * runs.var(1, ddof=1).mean() / runs.shape[1]
    sampling = found.get("sampling_error", {})
    over = [sampling[s] for s in ([spec] if spec else RIVALS) if s in sampling]
    return float(np.sqrt(seeds + np.mean(np.square(over or [0.0]))))


def on_gpu(found: Found) -> bool:
    """Return whether a policy was searched for on a GPU, with the planned network."""
    return "cuda" in found["search_environment"]["machine"]


def table(results: list[Found]) -> list[str]:
    """Return real gains over no augmentation, in Markdown."""
    columns = ["chosen", *RIVALS.values(), "error", "forecast"]
    lines = [
        "| source | network | examples | epochs | " + " | ".join(columns) + " |",
        "| --- | --- |" + " ---: |" * (2 + len(columns)),
    ]
    values = []
    for found in results:
        real = gains(found)
        forecast = next(row["gain"] for row in found["rows"] if row["role"] == "chosen")
        rivals = [real.get(spec, np.nan) for spec in RIVALS]
        row = [real[found["policy"]], *rivals, error(found), forecast]
        values.append(row)
        cells = [f"{v:+.1f}" if np.isfinite(v) else "" for v in row]
        cells[-2] = f"{row[-2]:.1f}"
        lines.append(
            f"| {found['source']} | {found['network']} | {found['examples']:,} | "
            f"{found['epochs']} | {' | '.join(cells)} |"
        )
    means = [f"{v:+.1f}" if np.isfinite(v) else "" for v in np.mean(values, axis=0)]
    means[-2] = ""
    return [*lines, f"| **mean** | | | | {' | '.join(means)} |"]


def longer_table(results: list[Found], stage: str) -> list[str]:
    """Return gains of recipes that trained longer, beside that of the choice, in Markdown."""
    columns = ["longer", "chosen", *RIVALS.values()]
    lines = [
        "| source | network | examples | epochs | " + " | ".join(columns) + " |",
        "| --- | --- |" + " ---: |" * (2 + len(columns)),
    ]
    values = []
    for found in results:
        base = np.mean(found["accuracy"]["identity"])
        row = [gains(found)[found["policy"]]]
        row += [float(np.mean(found[stage]["accuracy"][spec]) - base) for spec in RIVALS]
        values.append(row)
        lines.append(
            f"| {found['source']} | {found['network']} | {found['examples']:,} | "
            f"{found['epochs']} | {found[stage]['epochs']} | "
            f"{' | '.join(f'{v:+.1f}' for v in row)} |"
        )
    chosen, *means = np.mean(values, axis=0)
    shown = " | ".join(f"{v:+.1f}" for v in (chosen, *means))
    each = {name: mean - chosen for name, mean in zip(RIVALS.values(), means, strict=True)}
    behind = [f"{name} by {lost:.1f} points" for name, lost in each.items() if round(lost, 1) > 0]
    words = "On average, no recipe beats the chosen policy."
    if behind:
        words = f"On average, the chosen policy is beaten by {listed(behind)}."
    lost, where = max(
        (rival - row[0], f"{name} on {found['source']} ({found['network']})")
        for row, found in zip(values, results, strict=True)
        for name, rival in zip(RIVALS.values(), row[1:], strict=True)
    )
    if lost > 0:
        words += f" Its largest single loss is {lost:.1f} points, against {where}."
    return [*lines, f"| **mean** | | | | | {shown} |", "", _wrapped(words)]


def choices(results: list[Found]) -> list[str]:
    """Return what was chosen, and how long that took."""
    lines = ["| source | network | policy | search |", "| --- | --- | --- | ---: |"]
    for found in results:
        spec = found["policy"].replace("|", "\\|")
        where = f"{found['source']} | {found['network']}"
        shared = ", GPU shared" if found.get("shared") else ""
        lines.append(f"| {where} | `{spec}` | {found['search_seconds']:.0f} s{shared} |")
    return lines


def contributions(results: list[Found]) -> list[tuple[Found, str, float, float, float]]:
    """Return the parts of policies: with forecast and real contributions, and their error.

    The error is how far means over seeds differ, pooled over the policies of a result.
    """
    parts = []
    for found in results:
        forecast = next(row["gain"] for row in found["rows"] if row["role"] == "chosen")
        rows = [row for row in found["rows"] if row["role"] == "part"]
        if len(rows) < 2:  # nothing is left without the only part
            continue
        names = [found["policy"], *(f"without {row['part']}" for row in rows)]
        known = [found.get("accuracy", {}), found.get("parts", {})]
        runs = np.array([[v for each in known for v in each.get(name, ())] for name in names])
        error = float(np.sqrt(2 * runs.var(1, ddof=1).mean() / runs.shape[1]))
        whole, *others = runs.mean(1)
        parts += [
            (found, row["part"], forecast - row["gain"], float(whole - mean), error)
            for row, mean in zip(rows, others, strict=True)
        ]
    return parts


def parts_table(results: list[Found]) -> tuple[list[str], int, int]:
    """Return the parts that really add or cost over half a point, how many, and right signs."""
    lines = [
        "| source | examples | part | forecast | real | error | seeds |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    clear = agree = 0
    for found, part, forecast, real, error in contributions(results):
        if abs(real) > CLEAR:
            clear += 1
            agree += int(np.sign(real) == np.sign(forecast))
            shown = part.replace("|", "\\|")
            known = [found.get("accuracy", {}), found.get("parts", {})]
            seeds = sum(len(each.get(found["policy"], ())) for each in known)
            lines.append(
                f"| {found['source']} | {found['examples']:,} | `{shown}` | {forecast:+.1f} | "
                f"{real:+.1f} | {error:.1f} | {seeds} |"
            )
    return lines, clear, agree


def ahead(results: list[Found]) -> str:
    """Return how far the choice is ahead of the recipes, and where it is not, in sentences."""
    real = [gains(found) for found in results]
    names = ("trivial_augment(1)", "rand_augment(2,9)", "horizontal_flip >> translation(0.125)")
    mean = [
        np.mean([r[found["policy"]] - r[name] for r, found in zip(real, results, strict=True)])
        for name in names
    ]
    behind = []
    for found, r in zip(results, real, strict=True):
        best = max((spec for spec in (*RIVALS, "identity") if spec in r), key=lambda spec: r[spec])
        lost = r[best] - r[found["policy"]]
        if lost > 0.3:
            name = RIVALS.get(best, "no augmentation")
            behind.append(
                f"{name} by {lost:.1f} ± {error(found, best):.1f} points on {found['source']} "
                f"({found['network']}, {found['examples']:,} examples)"
            )
    said = "In no row of the table was an alternative better by more than 0.3 points."
    if behind:
        said = (
            f"In {len(behind)} of the {len(results)} rows of the table, an alternative was better "
            f"by more than 0.3 points: {listed(behind)}; ± is the standard error."
        )
    return (
        f"On average, the chosen policy gains {mean[0]:+.1f} points over TrivialAugment, "
        f"{mean[1]:+.1f} over RandAugment(2,9) and {mean[2]:+.1f} over flip and crop. {said}"
    )


_LONGER = """\
In the time that the search takes, the recipes could have been trained for more epochs. The next
table shows the gains of the chosen policy for the planned number of epochs, and the gains of the
recipes after longer training: by as many epochs as an ordinary PyTorch loop completes in that time
(one network, views computed on the GPU batch by batch, about 15 ms per step):"""
_LONGEST = """\
The same comparison with augury's own training loop, which replays recorded steps and trains a
network of this size several times faster:"""
_OLDER = (
    "The policies for {} were found by an earlier version of the search, which had no separate "
    "round for the contenders and did not compare with TrivialAugment × 4 and UniformAugment."
)
_NOT_LONGER = "Not measured: training the recipes longer, by the time that the search takes."


def page() -> str:
    """Return the page of the docs."""
    everything = read()
    trained = [found for found in everything if "accuracy" in found]
    results = [found for found in trained if on_gpu(found)]
    small = [found for found in trained if not on_gpu(found)]
    lines, clear, agree = parts_table(everything)
    words = (Path(__file__).parent / "policy_page.md").read_text()
    filled: dict[str, Any] = {
        "table": "\n".join(table(results)), "choices": "\n".join(choices(results)),
        "small": "\n".join(table(small)), "small_choices": "\n".join(choices(small)),
        "small_ahead": _wrapped(ahead(small)),
    }  # fmt: skip
    longer = []
    for stage, said in (("longer", _LONGER), ("longest", _LONGEST)):
        if those := [found for found in results if stage in found]:
            longer += [said, "\n".join(longer_table(those, stage))]
    filled["longer_words"] = "\n\n".join(longer or [_NOT_LONGER])
    older = [found["source"] for found in results if "note" in found]
    filled["older"] = _wrapped(_OLDER.format(", ".join(older))) + "\n\n" if older else ""
    kills = json.loads((RESULTS.parent / "policy_kills.json").read_text())
    clock = json.loads((RESULTS.parent / "policy_time.json").read_text())
    filled |= {name: clock[name]["seconds"] for name in ("gpu", "cpu")}
    return words.format(
        **filled, parts="\n".join(lines), clear=clear, agree=agree, same=kills["same"],
        ahead=_wrapped(ahead(results)), kills=len(kills["kills"]), row=kills["in_a_row"]["kills"],
        kept=sum(kill["rounds_kept"] > 0 for kill in kills["kills"]),
    )  # fmt: skip


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 102, break_long_words=False, break_on_hyphens=False)
