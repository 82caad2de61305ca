"""The page of the documentation that is made from committed results."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def pages():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import pages

        yield pages
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def test_the_committed_page_is_what_the_results_give(pages):
    """Run ``python benchmarks/pages.py`` after a change of results or words."""
    assert (ROOT / "docs" / "reproduced.md").read_text(encoding="utf-8") == pages.page()
    assert (ROOT / "docs" / "checks.md").read_text(encoding="utf-8") == pages.checks.page()


def test_the_page_of_policies_is_what_the_results_give(pages):
    """Run ``python benchmarks/policy.py page`` after a change of results or words."""
    import policy

    text = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8")
    assert text == policy.page()
    assert "by 0.0 points" not in text
    kills = json.loads((ROOT / "benchmarks" / "results" / "policy_kills.json").read_text())["kills"]
    began = sum(kill["rounds_kept"] == 0 for kill in kills)
    said = f"Only {len(kills) - began} of the {len(kills)} had finished a round before"
    assert said in " ".join(text.split())


def test_the_comparison_of_methods_shows_what_the_results_give(pages):
    import _policy_page as policies

    page = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8").replace("−", "-")
    names = {
        "cifar10": "CIFAR-10",
        "eurosat": "EuroSAT",
        "fashion": "Fashion-MNIST",
        "mnist": "MNIST",
    }
    rivals = ["trivial_augment(1)", "rand_augment(2,9)", "horizontal_flip >> translation(0.125)"]
    rows = []
    for found in policies.read():
        if found["network"] != "cnn" or not policies.on_gpu(found):
            continue
        real = policies.gains(found)
        others = [real[spec] for spec in rivals]
        rows.append([real[found["policy"]], *others, real[found["policy"]] - max(others)])
        name = names.get(found["source"], found["source"])
        line = rf"\| {name}, {found['examples']:,}(?: images)? \| {_points(rows[-1])} \|"
        assert re.search(line, page), line
    means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    assert len(rows) == 7
    assert re.search(rf"\| mean \| {_points(means)} \|", page)


def _points(values):
    """Return a pattern for the cells of a row: points with a sign, and 0.0 without."""
    words = (f"{value:+.1f}" for value in values)
    return r" \| ".join("0.0" if float(word) == 0 else re.escape(word) for word in words)


NAMES = {
    "full": "all eight views",
    "none": "the original images",
    "1 random view": "one random view per step",
    "4 views": "four views of the rule",
    "2 views": "two views of the rule",
    "layer 0, 4 groups": "averages at the input of 4 groups",
    "layer 0, order 1": "one average at the input",
    "layer 0, order 2": "averages at the input, second order",
    "layer 1, order 2": "averages after the first layer, second order",
    "layer 2, order 2": "averages after the second layer, second order",
    "layer 3, order 2": "averages after the third layer, second order",
    "layer 4, order 2": "averages after the fourth layer, second order",
}


def test_the_page_on_networks_shows_every_second_order(pages):
    """Its table is written by hand: each row has the numbers of the page that is made."""

    def share(percent):
        return " ± ".join(f"{float(part) / 100:.2f}".replace("-", "−") for part in percent)

    _, _, fewer = pages.page().partition("## Averaging at a layer, with fewer images")
    found = {name: [] for name in NAMES}
    below = {"full": [], "none": []}  # of the run of some rows
    for line in fewer.partition("\n## ")[0].splitlines():
        name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        if name.endswith(", in the run of the rows below"):
            below[name.split(",")[0]].append(cells[0])
        if name in NAMES and "not measured" not in line:
            kept = cells[1].replace("−", "-").removesuffix(" %").split(" ± ")
            whole = len(kept) == 1
            found[name] += [cells[0], str(int(kept[0]) // 100) if whole else share(kept)]
            found[name].append("1" if name == "full" else cells[3])
    text = (ROOT / "docs" / "networks.md").read_text(encoding="utf-8")
    for name, words in NAMES.items():
        row, *_ = [line for line in text.splitlines() if line.startswith(f"| {words} |")]
        shown = [cell.strip() for cell in row.strip("|").split("|")][1:]
        assert [cell for cell in shown if cell not in ("", "not measured")] == found[name]
    four, (full, none) = found["4 views"], (below[name] for name in ("full", "none"))
    words = " ".join(text.split())
    said = f"reached {four[0][:5]} % on MNIST ({none[0][:5]} % without"
    assert said in words
    assert f"and {four[3][:5]} % on CIFAR-10 ({none[1][:5]} %)" in words
    assert f"reached {full[0][:5]} % and {full[1][:5]} %" in words
    assert f"all eight views reached {full[0]} and {full[1]}, and the" in words
    assert f"original images {none[0]} and {none[1]};" in words


def test_the_page_of_checks_shows_every_result_that_there_is(pages, tmp_path):
    shares = [{"case": "shuffled labels", "score": score, "runs": 50, "candidates": 250,
               "sure": 0.02, "probably": 0.1} for score in ("trial", "ridge")]  # fmt: skip
    run = {"data": "mnist", "seconds": 9.0, "kept": True, "spearman": 0.5, "covered": 0.95,
           "decided": 0.2, "spearman_whole": 0.7, "level": 3, "wrong": 1,
           "probably": 0.4}  # fmt: skip
    survivor = {"line": 7, "before": "a | b", "after": "a & b", "reason": "both are equal"}
    modules = {"src/augury/forecasting/rank.py": {"survived": [survivor]}}
    fuzzed = {"what": "specs", "count": 5000, "read": 900, "refused": 4099, "failed": 1,
              "peak_mib": 3}  # fmt: skip
    runs = [run | {"budget": budget} for budget in (10, None)]
    for name, found in (
        ("no_effect", {"most": 0.05, "shares": shares}),
        ("budgets", {"runs": runs}),
        ("fuzz", {"seed": 3, "seconds_each": 20, "gib_each": 2, "targets": [fuzzed]}),
        ("mutation_forecasting", {"mutants": 200, "killed": 180, "modules": modules}),
    ):
        (tmp_path / f"{name}.json").write_text(json.dumps(found), encoding="utf-8")
    page = pages.checks.page(tmp_path)
    assert "| shuffled labels | 2 % (10 %) | 2 % (10 %) |" in page
    assert "1 of 1 runs kept their budget" in page
    assert "| mnist | 10 s | 9 s | 3 | 0.50 | 0.70 | 95 % | 20 % (1) | 40 % |" in page
    assert "| mnist | none |  | 3 | 0.50 |  | 95 % | 20 % (1) | 40 % |" in page
    assert "| rank.py:7 | `a \\| b` | `a & b` | both are equal |" in page
    assert "| forecasting | 200 | 180 (90 %) |" in page
    assert "| specs | 5,000 | 900 | 4,099 | 1 | 3 MiB |" in page
    assert pages.budgets.draw({"runs": runs}).axes


def test_the_headline_counts_the_papers_claims_apart(pages):
    assert "**Of the paper's 34 claims, " in pages.page()
    assert " Of 15 checks of our own, " in pages.page()


def test_every_table_of_averaging_has_the_usual_practice(pages):
    tables = re.split(r"methods of training[^*]*\*\*", pages.page())[1:]
    rows = [table.split("\n\n")[1] for table in tables]
    assert len(rows) >= 5
    assert all("| 1 random view | " in table for table in rows)
    assert "to be measured" not in pages.page()
    assert "fewer images only" not in pages.page()
    (cores,) = (part for part in pages.page().split("\n## ") if "on two cores" in part[:60])
    assert "not measured" not in cores


def test_a_section_at_other_settings_names_its_machine_and_shows_what_was_computed(pages):
    parts = pages.page().split("\n## ")
    (cpu,) = (part for part in parts if part.startswith("Table 1 in closed form on a CPU"))
    assert "Computed on x86\\_64, cpu" in cpu
    assert "not computed" not in cpu
    for name in ("MNIST", "CIFAR-10", "Mammograms"):
        assert f"| {name}: the same number of random views and nodes | " in cpu
        assert f"| {name}: the exact objective on the nodes that are needed | " in cpu
    assert "†" not in cpu
    assert "‡" not in cpu


def test_every_figure_that_the_documentation_shows_is_drawn(pages, tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "FIGURES", tmp_path)
    monkeypatch.setattr(pages, "_save", lambda make, path: path.touch())
    pages.draw()
    for page in (ROOT / "docs").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        shown = {part.split(")")[0] for part in text.split("](figures/")[1:]}
        assert shown <= {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.svg")}


def test_every_committed_result_says_where_it_comes_from():
    for path in (ROOT / "benchmarks" / "results").rglob("*.json"):
        text = path.read_text(encoding="utf-8")
        assert "/tmp/" not in text, path  # a command should be one that can be repeated
        found = json.loads(text)
        places = [value for key, value in found.items() if key.endswith("environment")] or [found]
        assert all({"commit", "machine"} <= set(place) for place in places), path
