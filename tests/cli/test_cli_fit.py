"""`augury fit` and `augury predict` as a person meets them."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from refusal import said_in_one_line as refused
from sklearn.datasets import load_digits
from sklearn.metrics import label_ranking_average_precision_score

from augury.data import Preparation
from augury.kernel import (
    AugmentedFourierFeatures,
    AugmentedKernelClassifier,
    about_model,
)

DIGITS: Any = load_digits()
IMAGES = (DIGITS.images * 255 / 16).astype(np.uint8)
SMALL = ("--n-components", 64)


def test_fit_then_predict(run, tmp_path):
    code, out, err = run(
        "fit", "digits", "-a", "rotation(10)", "--n-components", 256, "--holdout", 0.2, "--out", "m"
    )
    assert (code, err) == (0, "")
    assert "1,438 examples of image data" in out
    accuracy = float(out.split("accuracy ")[1].split("%")[0])
    assert accuracy > 93
    assert "359 held-out examples" in out
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


def test_copies_of_held_out_images_are_not_fitted(run, tmp_path):
    """Labels are by chance, so who knows them has seen a copy."""
    rng = np.random.default_rng(0)
    x, y = rng.random((60, 8, 8)), np.arange(60) % 2
    order = rng.permutation(240)
    np.savez(tmp_path / "copies.npz", x=np.tile(x, (4, 1, 1))[order], y=np.tile(y, 4)[order])
    given = ("fit", "copies.npz", "--out", "m", "--n-components", 512, "--gamma", 3)
    code, out, _ = run(*given, "--holdout", 0.5)
    assert code == 0
    assert "180 of 240 examples are copies and were left out" in out
    assert "30 held-out examples" in out
    assert float(out.split("accuracy ")[1].split("%")[0]) < 90
    code, out, _ = run(*given)
    assert code == 0
    assert "240 examples" in out


def test_examples_without_labels_are_predicted(run, tmp_path):
    np.savez(tmp_path / "train.npz", x=IMAGES, y=DIGITS.target)
    np.savez(tmp_path / "new.npz", IMAGES[:3])
    assert run("fit", "train.npz", "--n-components", 128, "--out", "m")[0] == 0
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
    options = ("--label", "label", "--n-components", 256)
    assert run("fit", "train.csv", "-a", "jitter(0.1)", *options, "--out", "m")[0] == 0
    assert accuracy_of(run("predict", "m", "new.csv", "--label", "label")) > 93


def test_a_real_target_is_regressed(run, tmp_path):
    table(tmp_path / "train.csv", 0, real=True)
    table(tmp_path / "new.csv", 1, real=True)
    assert run("fit", "train.csv", "--label", "label", "--n-components", 256, "--out", "m")[0] == 0
    code, out, _ = run("predict", "m", "new.csv", "--label", "label", "--out", "p.csv")
    assert code == 0
    assert float(out.split("R² ")[1].split(" ")[0]) > 0.9
    assert (tmp_path / "p.csv").read_text().startswith("label,predicted\n")


def test_whole_numbers_are_regressed_if_asked(run, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    frame = pd.DataFrame(x, columns=["a", "b"]).assign(count=np.round(3 * x[:, 0] + 20).astype(int))
    frame.to_csv(tmp_path / "t.csv", index=False)
    options = ("--label", "count", "--n-components", 256)
    assert run("fit", "t.csv", *options, "--task", "regression", "--out", "m")[0] == 0
    code, _, err = run("predict", "m", "t.csv")
    assert code == 0
    assert float(err.split("R² ")[1].split(" ")[0]) > 0.9


def test_images_with_a_number_to_predict(run, tmp_path):
    for i in range(60):
        Image.fromarray(IMAGES[i]).save(tmp_path / f"{i}.png")
    frame = pd.DataFrame({"file": [f"{i}.png" for i in range(60)]})
    frame.assign(ink=[IMAGES[i].mean() + 0.25 for i in range(60)]).to_csv(
        tmp_path / "t.csv", index=False
    )
    assert run("fit", "t.csv", "--n-components", 256, "--out", "m")[0] == 0
    code, out, err = run("predict", "m", "t.csv", "--label", "ink")
    assert code == 0
    assert out.startswith("file,label,predicted\n0.png,")
    assert float(err.split("R² ")[1].split(" ")[0]) > 0.5


def accuracy_of(result):
    code, out, err = result
    assert (code, "accuracy" in out) == (0, False)
    assert out.splitlines()[0].endswith("predicted,probability")
    return float(err.split("accuracy ")[1].split("%")[0])


def test_a_table_model_loaded_in_python_says_what_it_takes(run, tmp_path):
    table(tmp_path / "train.csv", 0)
    assert run("fit", "train.csv", "--label", "label", *SMALL, "--out", "m")[0] == 0
    with pytest.warns(UserWarning, match=r"from_dict.*transform.*augury predict") as caught:
        model = AugmentedKernelClassifier.load(tmp_path / "m")
    assert "\n" not in str(caught[0].message)
    prepared = Preparation.from_dict(about_model(tmp_path / "m")["preparation"])
    rows = pd.read_csv(tmp_path / "train.csv")
    assert model.score(prepared.transform(rows[["a", "b", "c"]]), rows["label"]) > 0.93


def test_a_tables_columns_are_found_by_name(run, tmp_path):
    rng = np.random.default_rng(0)
    colour = rng.choice(["blue", "green", "red"], 200)
    frame = pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(5, 9, 200), "colour": colour})
    frame["label"] = np.where((frame["a"] > 0) ^ (colour == "red"), "yes", "no")
    frame.to_csv(tmp_path / "train.csv", index=False)
    options = ("--label", "label", "--n-components", 512)
    assert run("fit", "train.csv", *options, "--out", "m")[0] == 0
    expected = accuracy_of(run("predict", "m", "train.csv"))
    assert expected > 93
    frame[frame.columns[::-1]].assign(more=1).to_csv(tmp_path / "new.csv", index=False)
    result = run("predict", "m", "new.csv")
    assert accuracy_of(result) == expected
    assert "does not use were left out: more" in result[2]
    frame[frame["colour"] == "red"].to_csv(tmp_path / "new.csv", index=False)
    assert accuracy_of(run("predict", "m", "new.csv")) > 93
    frame.replace({"colour": {"blue": "pink"}}).to_csv(tmp_path / "new.csv", index=False)
    assert (
        "words of colour that are unknown to the model: pink" in run("predict", "m", "new.csv")[2]
    )
    frame.assign(b=np.nan).to_csv(tmp_path / "new.csv", index=False)
    assert "became the model's mean: b (200)" in run("predict", "m", "new.csv")[2]
    frame.drop(columns="a").to_csv(tmp_path / "new.csv", index=False)
    refused(run("predict", "m", "new.csv"), "lacks 1 of the 3 columns", ": a;")
    frame.assign(a="far").to_csv(tmp_path / "new.csv", index=False)
    refused(run("predict", "m", "new.csv"), "column 'a'", "except for 200 cells", "'far' in row 1")


@pytest.mark.parametrize("labels", [None, "missing", "one"])
def test_new_rows_need_no_labels(run, tmp_path, labels):
    table(tmp_path / "train.csv", 0)
    assert run("fit", "train.csv", "--label", "label", *SMALL, "--out", "m")[0] == 0
    rows = pd.read_csv(tmp_path / "train.csv").head(2 if labels != "one" else 1)
    if labels is None:
        rows = rows.drop(columns="label")
    elif labels == "missing":
        rows["label"] = np.nan
    rows.to_csv(tmp_path / "new.csv", index=False)
    code, out, err = run("predict", "m", "new.csv")
    assert code == 0
    if labels == "one":
        assert "on 1 example of" in err
    else:
        assert out.startswith("predicted,")
        assert len(out.splitlines()) == 3
        assert ("labels are missing" in err) == (labels == "missing")


def test_the_test_part_of_an_archive_is_predicted(run, tmp_path):
    x, y = DIGITS.images, DIGITS.target
    parts = {"x_train": x[:1000], "y_train": y[:1000], "x_test": x[1000:1100]}
    np.savez(tmp_path / "d.npz", **parts, y_test=y[1000:1100])
    assert run("fit", "d.npz", "--n-components", 256, "--out", "m")[0] == 0
    result = run("predict", "m", "d.npz")
    assert accuracy_of(result) > 85
    assert "x_test and y_test were used and x_train and y_train not" in result[2]
    assert "on 100 examples" in result[2]
    np.savez(tmp_path / "e.npz", **parts)
    code, out, err = run("predict", "m", "e.npz")
    assert (code, len(out.splitlines())) == (0, 101)
    assert "x_test was used" in err
    np.savez(tmp_path / "few.npz", x=np.minimum(x[:3], 12), y=y[:3])  # not scaled by its own span
    assert accuracy_of(run("predict", "m", "few.npz")) == 100
    np.savez(tmp_path / "bytes.npz", x=IMAGES[:3], y=y[:3])
    refused(run("predict", "m", "bytes.npz"), "scale of the pixels", "0 to 255", "0 to 16")


def test_folders_of_new_images(run, tmp_path):
    for i, digit in enumerate(DIGITS.target[:200]):
        folder = tmp_path / "photos" / str(digit)
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(IMAGES[i]).resize((12, 12)).save(folder / f"{i}.png")
    (tmp_path / "photos" / "0" / "bad.png").write_bytes(b"no image")
    options = ("--size", 8, "--n-components", 256)
    refused(run("fit", "photos", *options, "--out", "m"), "bad.png", "--skip-bad")
    code, out, _ = run("fit", "photos", *options, "--skip-bad", "--out", "m")
    assert code == 0
    assert "left out: 0/bad.png" in out
    refused(run("predict", "m", "photos"), "bad.png", "--skip-bad")
    result = run("predict", "m", "photos", "--skip-bad")
    assert accuracy_of(result) > 90
    rows = list(csv.DictReader(result[1].splitlines()))
    assert list(rows[0]) == ["file", "label", "predicted", "probability"]
    assert len(rows) == 200  # without the bad one
    for row in rows:
        number = int(row["file"].removeprefix(row["label"] + "/").removesuffix(".png"))
        assert row["label"] == str(DIGITS.target[number])
    (tmp_path / "loose").mkdir()
    for i in range(3):
        Image.fromarray(IMAGES[i]).save(tmp_path / "loose" / f"{i}.png")
    (tmp_path / "loose" / "0bad.png").write_bytes(b"no image")
    code, out, _ = run("predict", "m", "loose", "--skip-bad")
    assert code == 0
    assert [line.rpartition(",")[0] for line in out.splitlines()] == [
        *("file,predicted", "0.png,0", "1.png,1", "2.png,2")
    ]
    np.savez(tmp_path / "d.npz", x=IMAGES[:100], y=DIGITS.target[:100])
    assert accuracy_of(run("predict", "m", "d.npz")) > 80  # the model's size is for folders only


def test_a_model_saved_from_python_takes_values_as_they_are(run, tmp_path):
    x, y = DIGITS.images, DIGITS.target
    model = AugmentedKernelClassifier(n_components=256).fit(x.reshape(-1, 64), y)
    model.save(tmp_path / "m")
    np.savez(tmp_path / "d.npz", x=x[:300], y=y[:300])
    result = run("predict", "m", "d.npz")
    assert accuracy_of(result) == pytest.approx(
        100 * model.score(x[:300].reshape(-1, 64), y[:300]), abs=0.01
    )
    assert "values were used as is" in result[2]
    pd.DataFrame(x.reshape(-1, 64)).assign(y=y).to_csv(tmp_path / "d.csv", index=False)
    assert accuracy_of(run("predict", "m", "d.csv", "--label", "y")) > 93
    refused(run("predict", "m", "d.csv"), "(64,)", "(65,)", "--label")


def test_bad_input_is_one_line(run, tmp_path):
    refused(run("fit", "digits", "-a", "rotate", *SMALL, "--out", "m"), "rotate")
    refused(run("fit", "digits", *SMALL, "--out", "no/m"), "no/m", "does not exist")
    refused(run("fit", "digits", *SMALL, "--out", "m", "--holdout", 1.5), "--holdout")
    refused(run("fit", "digits", *SMALL, "--out", "m", "--gamma", "wide"), "--gamma", "wide")
    refused(run("fit", "digits", "--n-components", 10**9, "--memory", 1, "--out", "m"), "would fit")
    refused(run("fit", "digits", *SMALL, "--out", "m", "--holdout", 0.9999), "--holdout", "fit")
    refused(run("fit", "digits", *SMALL, "--out", "m", "--n-views", 10**7), "n_views", "4,096")
    refused(run("fit", "digits", *SMALL, "--out", "m", "--memory", 0), "memory")
    refused(run("fit", "digits", *SMALL, "--out", "m", "--ridge", "1e300"), "ridge")
    refused(run("predict", "m", "digits"), "no model file m")
    assert run("fit", "digits", *SMALL, "--out", "m")[0] == 0
    whole = (tmp_path / "m").read_bytes()
    (tmp_path / "cut").write_bytes(whole[: len(whole) // 2])
    refused(run("predict", "cut", "digits"), "cut", "damaged or cut short")
    (tmp_path / "changed").write_bytes(whole.replace(b"identity", b"invert--"))
    refused(run("predict", "changed", "digits"), "changed after it was written")
    np.savez(tmp_path / "wide.npz", x=np.zeros((4, 9, 9), np.uint8), y=[0, 1, 0, 1])
    refused(run("predict", "m", "wide.npz"), "(1, 8, 8)", "(1, 9, 9)")
    np.savez(tmp_path / "flat.npz", np.random.default_rng(0).normal(size=(4, 64)))
    refused(run("predict", "m", "flat.npz"), "expects image data")
    np.savez(tmp_path / "dark.npz", x=np.full((4, 8, 8), 3.5), y=[0, 1, 0, 1])
    refused(run("predict", "m", "dark.npz"), "scale of the pixels")
    wide = np.random.default_rng(0).uniform(0, 255, (40, 8, 8))
    np.savez(tmp_path / "floats.npz", x=wide, y=np.arange(40) % 2)
    assert run("fit", "floats.npz", *SMALL, "--out", "f")[0] == 0
    np.savez(tmp_path / "signed.npz", x=wide / 127.5 - 1, y=np.arange(40) % 2)
    refused(run("predict", "f", "signed.npz"), "scale of the pixels", "254")
    table(tmp_path / "t.csv", 0)
    numbers = ("--label", "b", "--loss", "logistic")
    refused(run("fit", "t.csv", *numbers, *SMALL, "--out", "n"), "--loss", "logistic")
    assert run("fit", "t.csv", "--label", "label", *SMALL, "--out", "t")[0] == 0
    np.savez(tmp_path / "two.npz", np.zeros((4, 2)))
    refused(run("predict", "t", "two.npz"), "3 columns", "has 2")


def test_a_device_or_a_column_that_overflows_is_refused(run, tmp_path):
    refused(run("fit", "digits", *SMALL, "--out", "/dev/full"), "/dev/full", "device")
    rows = [f"{value},{k % 2}" for k, value in enumerate((1e307, -1e307, 1e306, 2e307))]
    (tmp_path / "large.csv").write_text("\n".join(["a,label", *rows]))
    result = run("fit", "large.csv", "--label", "label", *SMALL, "--out", "m")
    refused(result, "column 1", "2e+307")
    assert not (tmp_path / "m").exists()


def test_a_link_leads_to_the_file_that_is_written(run, tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert run("fit", "digits", *SMALL, "--out", "link")[0] == 0
    assert (tmp_path / "link").is_symlink()
    assert about_model(tmp_path / "real")


def test_features_alone_predict_nothing(run, tmp_path):
    AugmentedFourierFeatures("rotation(5)", n_components=64).fit(IMAGES[:50]).save(
        tmp_path / "step"
    )
    refused(run("predict", "step", "digits"), "only features")


def test_two_augmentations_are_to_be_combined(run, tmp_path):
    result = run("fit", "digits", "-a", "flips", "-a", "rotation(10)", *SMALL, "--out", "m")
    refused(result, "one augmentation", "'flips >> rotation(10)'", "'flips | rotation(10)'")
    assert not (tmp_path / "m").exists()


def test_advice_is_for_the_command_line(run, tmp_path):
    table(tmp_path / "t.csv", 0)
    fit = ("fit", "t.csv", "--label", "label", *SMALL, "--out", "m")
    refused(run(*fit, "-a", "swap_noise(0.4)"), "only augury rank", "choose another family")
    result = run(*fit, "-a", "rotation(10)")
    refused(result, "rotation(10) works on image data", "choose an augmentation for vector data")
    assert "input_shape" not in result[2]
    result = run(*fit, "--kernel", "laplacian", "--sampling", "orthogonal")
    refused(result, "use iid sampling, or the gaussian or matern kernel")
    refused(run(*fit, "--gamma", "foo"), "a number or alignment or held-out or median, got 'foo'")
    refused(run(*fit, "--gamma", "gcv"), "a number or alignment or held-out or median, got 'gcv'")
    refused(run(*fit, "--ridge", "foo"), "--ridge must be a number or gcv, got 'foo'")
    for objective, averaged in {"exact": False, "first-order": True}.items():
        code, out, _ = run(*fit, "-a", "jitter(0.1)", "--n-views", 3, "--objective", objective)
        assert code == 0
        assert "transformed 3 times" in out
        assert ("features averaged" in out, "averaged over jitter" in out) == (averaged, averaged)


def test_the_only_class_is_named_in_plain_words():
    with pytest.raises(ValueError, match=r"only one class \(0\.0\)"):
        AugmentedKernelClassifier(n_components=8).fit(np.eye(4), np.zeros(4))


def test_labels_are_printed_beside_the_predictions(run):
    assert run("fit", "digits", *SMALL, "--out", "m")[0] == 0
    code, out, err = run("predict", "m", "digits")
    rows = list(csv.DictReader(out.splitlines()))
    assert (code, len(rows)) == (0, 1797)
    right = np.mean([row["label"] == row["predicted"] for row in rows])
    assert err.endswith(f"accuracy {right:.2%} on 1,797 examples of digits\n")


def test_several_labels_for_each_example(run, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 5))
    y = (x[:, :3] + 0.2 * rng.normal(size=(90, 3)) > 0).astype(int)
    np.savez(tmp_path / "d.npz", x=x, y=y)
    np.savez(tmp_path / "new.npz", x[:2])
    code, out, _ = run("fit", "d.npz", *SMALL, "--holdout", 0.3, "--out", "m")
    assert code == 0
    assert float(out.split("average precision ")[1].split("%")[0]) > 80
    code, out, err = run("predict", "m", "d.npz")
    assert code == 0
    rows = [[float(cell) for cell in line.split(",")] for line in out.splitlines()[1:]]
    labels, scores = np.split(np.array(rows), 2, axis=1)
    assert np.array_equal(labels, y)
    expected = label_ranking_average_precision_score(labels, scores)
    assert err.endswith(f"average precision {expected:.2%} on 90 examples of d.npz\n")
    code, out, _ = run("predict", "m", "new.npz")
    assert code == 0
    assert [line.count(",") for line in out.splitlines()] == [2, 2, 2]
    assert out.startswith("predicted_0,predicted_1,predicted_2\n")
    np.savez(tmp_path / "two.npz", x=x, y=y[:, :2])
    refused(run("predict", "m", "two.npz"), "predicts 3 labels", "shape (90, 2)", "leave them out")
    np.savez(tmp_path / "one.npz", x=x, y=y[:, 0])
    refused(run("predict", "m", "one.npz"), "predicts 3 labels", "shape (90,)")
    assert run("fit", "one.npz", "--task", "regression", *SMALL, "--out", "n")[0] == 0
    refused(run("predict", "n", "d.npz"), "predicts one value for each example", "shape (90, 3)")
