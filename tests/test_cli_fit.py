"""`augury fit` and `augury predict` as a person meets them."""

from __future__ import annotations

import csv

import numpy as np
from refusal import said_in_one_line as refused
from sklearn.datasets import load_digits


def test_fit_then_predict(run, tmp_path):
    code, out, err = run(
        "fit", "digits", "-a", "rotation(10)", "--features", 256, "--holdout", 0.2, "--out", "m"
    )
    assert (code, err) == (0, "")
    assert "1,438 examples of image data" in out
    accuracy = float(out.split("accuracy ")[1].split("%")[0])
    assert accuracy > 93
    assert "359 examples left out" in out
    assert out.endswith("wrote m\n")
    code, out, err = run("predict", "m", "digits", "--out", "p.csv")
    assert (code, err) == (0, "")
    assert "on 1,797 examples of digits" in out
    with open(tmp_path / "p.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 1797
    right = np.mean([row["label"] == row["predicted"] for row in rows])
    assert f"accuracy {right:.2%}" in out
    assert all(0 <= float(row["probability"]) <= 1 for row in rows)


def test_examples_without_labels_are_predicted(run, tmp_path):
    images = (load_digits().images * 255 / 16).astype(np.uint8)
    np.savez(tmp_path / "train.npz", x=images, y=load_digits().target)
    np.savez(tmp_path / "new.npz", images[:3])
    assert run("fit", "train.npz", "--features", 128, "--out", "m")[0] == 0
    code, out, _ = run("predict", "m", "new.npz")
    assert code == 0
    assert [line.split(",")[0] for line in out.splitlines()] == ["predicted", "0", "1", "2"]


def table(path, seed, rows=300, shift=0.0, real=False):
    rng = np.random.default_rng(seed)
    x = (
        rng.normal(size=(rows, 3)) * [1, 100, 0.01]
        + [0, 5000, 0]
        + shift * np.array([1, 100, 0.01])
    )
    score = x[:, 0] + (x[:, 1] - 5000) / 100
    label = score if real else np.where(score > 0, "yes", "no")
    lines = ["a,b,c,label"] + [
        f"{a},{b},{c},{y}" for (a, b, c), y in zip(x.tolist(), label, strict=True)
    ]
    path.write_text("\n".join(lines))


def test_a_tables_columns_are_scaled_as_the_models_were(run, tmp_path):
    table(tmp_path / "train.csv", 0)
    table(tmp_path / "new.csv", 1, shift=2.0)  # scaled by its own mean, half would be wrong
    options = ("--label", "label", "--features", 256)
    assert run("fit", "train.csv", "-a", "jitter(0.1)", *options, "--out", "m")[0] == 0
    code, out, err = run("predict", "m", "new.csv", "--label", "label")
    assert (code, err) == (0, "")
    assert float(out.split("accuracy ")[1].split("%")[0]) > 93


def test_a_real_target_is_regressed(run, tmp_path):
    table(tmp_path / "train.csv", 0, real=True)
    table(tmp_path / "new.csv", 1, real=True)
    assert run("fit", "train.csv", "--label", "label", "--features", 256, "--out", "m")[0] == 0
    code, out, _ = run("predict", "m", "new.csv", "--label", "label", "--out", "p.csv")
    assert code == 0
    assert float(out.split("R² ")[1].split(" ")[0]) > 0.9
    assert (tmp_path / "p.csv").read_text().startswith("label,predicted\n")


def test_bad_input_is_one_line(run, tmp_path):
    small = ("--features", 64)
    refused(run("fit", "digits", "-a", "rotate", *small, "--out", "m"), "rotate")
    refused(run("fit", "digits", *small, "--out", "no/m"), "no/m", "does not exist")
    refused(run("fit", "digits", *small, "--out", "m", "--holdout", 1.5), "--holdout")
    refused(run("fit", "digits", *small, "--out", "m", "--gamma", "wide"), "--gamma", "wide")
    refused(run("fit", "digits", "--features", 10**9, "--memory", 1, "--out", "m"), "would fit")
    refused(run("predict", "m", "digits"), "no model file m")
    assert run("fit", "digits", *small, "--out", "m")[0] == 0
    whole = (tmp_path / "m").read_bytes()
    (tmp_path / "cut").write_bytes(whole[: len(whole) // 2])
    refused(run("predict", "cut", "digits"), "cut", "damaged or cut short")
    (tmp_path / "changed").write_bytes(whole.replace(b"identity", b"invert--"))
    refused(run("predict", "changed", "digits"), "changed after it was written")
    np.savez(tmp_path / "wide.npz", x=np.zeros((4, 9, 9), np.uint8), y=[0, 1, 0, 1])
    refused(run("predict", "m", "wide.npz"), "(1, 8, 8)", "(1, 9, 9)")
    np.savez(tmp_path / "flat.npz", np.random.default_rng(0).normal(size=(4, 64)))
    refused(run("predict", "m", "flat.npz"), "takes images")
    np.savez(tmp_path / "dark.npz", x=np.full((4, 8, 8), 3.5), y=[0, 1, 0, 1])
    refused(run("predict", "m", "dark.npz"), "scale of the pixels")
    table(tmp_path / "t.csv", 0)
    assert run("fit", "t.csv", "--label", "label", *small, "--out", "t")[0] == 0
    np.savez(tmp_path / "two.npz", np.zeros((4, 2)))
    refused(run("predict", "t", "two.npz"), "3 columns", "has 2")
