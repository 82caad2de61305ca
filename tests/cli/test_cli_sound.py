"""`augury rank` on recordings, from the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
import soundfile
from refusal import said_in_one_line

from augury.kernel import about_model


@pytest.fixture
def recordings(tmp_path):
    rng = np.random.default_rng(0)
    for label, hertz in (("high", 900), ("low", 300)):
        for who in "abc":
            for k in range(6):
                path = tmp_path / "recordings" / label / f"{who}_{k}.wav"
                path.parent.mkdir(parents=True, exist_ok=True)
                time = np.arange(1200) / 4000
                wave = np.sin(2 * np.pi * (hertz + rng.normal(0, 20)) * time)
                soundfile.write(path, 0.3 * wave + 0.05 * rng.normal(size=1200), 4000)
    soundfile.write(tmp_path / "noise.wav", rng.normal(size=4000) / 10, 4000)
    return tmp_path


def test_rank(run, recordings):
    code, out, err = run(
        "rank", "recordings", "--group", "/(.)_", "-a", "gain(6)", "-a", "pitch(2)",
        "--background", "noise.wav", "--epochs", 3, "--effort", 3, "--device", "cpu",
        "--report", "r.html", "--json", "r.json",
    )  # fmt: skip
    assert code == 0, err
    assert "36 examples of sound data, 2 classes" in out
    assert "examples belong to 3 groups" in out
    found = json.loads((recordings / "r.json").read_text())
    specs = {row["augmentation"] for row in found["rows"]}
    assert specs >= {"gain(6)", "pitch(2)", "background(noise.wav,5,15)"}
    page = (recordings / "r.html").read_text()
    assert page.count("<audio controls") == 5 * 2 * 4
    assert "data:audio/wav;base64," in page


def test_refusals(run, recordings):
    folder = recordings / "recordings"
    said_in_one_line(
        run("rank", folder, "--group", "(high|low)/"),
        "class 'high' comes from only one group",
    )
    (folder / "low" / "x.wav").write_bytes(b"")
    said_in_one_line(run("rank", folder), "low/x.wav", "the file is empty", "--skip-bad")
    said_in_one_line(
        run("rank", "digits", "--background", recordings / "noise.wav"),
        "--background is for sound",
    )


def test_fit_reads_clips_as_asked_and_predict_as_the_model(run, recordings):
    asked = ("--rate", 2000, "--seconds", 0.1)
    fit = ("fit", "recordings", *asked, "--n-components", 64, "--out", "m")
    assert run(*fit)[0] == 0
    kept = about_model(recordings / "m")["preparation"]
    assert (kept["rate"], kept["shape"]) == (2000, [1, 200])
    code, out, err = run("predict", "m", "recordings")
    assert code == 0
    rows = out.splitlines()
    assert len(rows) == 1 + 36  # one for each recording, though fitted to three clips of it
    assert rows[0] == "file,label,predicted,probability"
    assert rows[1].startswith("high/a_0.wav,high,")
    assert "resampled to 2,000 Hz" in err
    assert "clips of 0.1 s" in err


def test_shards_are_not_recordings(run, tmp_path):
    for k in range(2):
        x = np.random.default_rng(k).normal(size=(20, 3))
        np.savez(tmp_path / f"part-{k}.npz", x=x, y=np.arange(20) % 2)
    fit = ("fit", tmp_path, "--n-components", 8, "--out", tmp_path.parent / "m")
    said_in_one_line(run(*fit, "--rate", 2000), "--rate cannot be used with shards; remove it")
    said_in_one_line(
        run(*fit, "--group", "a", "--seconds", 2),
        "--group and --seconds cannot be used with shards; remove them",
    )
    ranked = ("rank", tmp_path, "--score", "alignment", "--max-examples", 0, "-a", "jitter(0.1)")
    said_in_one_line(run(*ranked, "--group", "a"), "--group cannot be used with shards; remove it")


def test_recordings_are_sound_whatever_is_asked(run, recordings):
    said_in_one_line(
        run("rank", "recordings", "--kind", "image", "-a", "flips"),
        "these are recordings, which are sound and not image data; remove kind",
    )
    said_in_one_line(
        run("rank", "recordings", "-a", "rotation(10)"), "this is series or sound data"
    )
