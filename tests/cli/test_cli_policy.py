"""`augury policy`: what is refused, and what is printed where nothing can be told."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from augury.cli.main import main
from augury.forecasting.policy import effort, space
from augury.forecasting.policy.policy import Policy


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Run `augury policy` on some digits, and return its status and what it printed."""
    digits: Any = load_digits()

    def run(*arguments: str, examples: int = 200) -> tuple[int, str, str]:
        x, y = (15 * digits.images[:examples]).astype(np.uint8), digits.target[:examples]
        np.savez(tmp_path / "digits.npz", x=x, y=y)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["augury", "policy", "digits.npz", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return run


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "nonsense"], "unknown format 'nonsense'"),
        (["--to", "audiomentations"], "audiomentations is for"),
        (["--out", "code.py"], "--out needs --to, the format of the code to write"),
        (["--always", "hue(0.1)", "--never", "colour"], "hue is in both always and never"),
        (["--always", "flips", "--never", "geometry"], "flips is in both always and never"),
        (["--never", "colors"], "never must name a family or a group of families, got 'colors'"),
        (["--always", "rotatoin(5)"], "did you mean rotation"),
        (["--rival", "nosuch:thing"], "cannot load nosuch:thing"),
        (["--budget", "2"], "a budget of 2 s is too short for one search; give at least"),
        (["--budget", "0"], "budget must be a positive number of seconds, got 0"),
        (["--journal", "no/such/folder.npz"], "the directory no/such does not exist"),
        (["--pretrained"], "only for your own network"),
    ],
)
def test_bad_input_is_one_line(arguments, message, command):
    status, _, error = command(*arguments)
    assert status == 2
    assert message in error
    assert error.strip().count("\n") == 0


def test_few_images_get_the_mild_default_and_no_figures(command):
    status, said, _ = command("--to", "torchvision", examples=20)
    assert status == 0
    assert "20 images are too few to tell policies apart" in " ".join(said.split())
    assert "Warning: there are only 20 examples" in said
    assert "v2.RandomAffine" in said
    assert "95 % interval" not in said
    assert "accuracy expected" not in said


def test_what_was_found_is_kept_if_its_code_cannot_be_written(command, tmp_path):
    status, said, error = command(
        "--always", "cutout(0.3)", "--to", "albumentations-json", "--out", "code.json",
        "--json", "found.json", "--report", "found.html", examples=20,
    )  # fmt: skip
    assert status == 2
    assert "cannot hold a function" in error
    assert error.strip().count("\n") == 0
    assert "wrote found.json" in said
    assert "cutout(0.3)" in Policy.from_json((tmp_path / "found.json").read_text()).spec
    assert not (tmp_path / "code.json").exists()


def test_parts_are_fixed_and_forbidden_and_a_pipeline_takes_part(command, monkeypatch, tmp_path):
    monkeypatch.setitem(effort.EFFORTS, "cpu", effort.Effort(64, 64, 64, 64, 2, 2))
    monkeypatch.setattr(space, "RIVALS", ("trivial_augment", "horizontal_flip"))
    (tmp_path / "own_brightness.py").write_text(
        "def brighter(image):\n    return image.clamp(0.2, 1)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    status, said, _ = command(
        "--epochs", "2", "--always", "translation(0.1)", "--never", "colour", "--never", "flips",
        "--rival", "own_brightness:brighter", "--json", "found.json",
    )  # fmt: skip
    assert status == 0
    found = Policy.from_json((tmp_path / "found.json").read_text())
    assert found.spec.startswith("translation(0.1)")
    forbidden = space.GROUPS["colour"] + space.GROUPS["flips"]
    assert not any(name in found.spec for name in forbidden)
    assert any("brighter" in row.spec for row in found.rivals)
    assert "chosen" in said
