"""Recordings: what is read, in what form, and what is refused."""

from __future__ import annotations

import builtins
import struct
import sys
import wave
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import soundfile
from refusal import refused

from augury.data import Preparation, as_dataset, describe, load, load_new, load_noise
from augury.data.clips import clip_starts, fit_length, resample
from augury.data.readers.recordings import open_recording

RATE = 8000


def tone(hertz: float, seconds: float = 0.5, rate: int = RATE) -> np.ndarray:
    return 0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)


def save_all(root: Path, *, suffix: str = ".wav", seconds: float = 0.5, each: int = 4) -> Path:
    """Write low and high tones of three speakers."""
    for label, hertz in (("high", 900), ("low", 300)):
        for k in range(each):
            path = root / label / f"{'abc'[k % 3]}_{k}{suffix}"
            path.parent.mkdir(exist_ok=True, parents=True)
            soundfile.write(path, tone(hertz + k, seconds), RATE)
    return root


def write_wav(path: Path, raw: bytes, code: int, bits: int, channels: int = 1) -> Path:
    """Write a WAV file by hand, with a chunk before the samples that nobody knows."""
    width = channels * bits // 8
    form = struct.pack("<HHIIHH", code, channels, RATE, RATE * width, width, bits)
    chunks = b"".join(
        name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)
        for name, body in ((b"fmt ", form), (b"odd ", b"abc"), (b"data", raw))
    )
    path.write_bytes(b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks)
    return path


@pytest.mark.parametrize("suffix", [".wav", ".flac", ".ogg", ".mp3", ".WAV"])
def test_formats(suffix, tmp_path):
    data = load(save_all(tmp_path, suffix=suffix))
    assert data.kind == "sound"
    assert data.classes == ("high", "low")
    assert data.rate == RATE
    assert data.shape[0] == 1
    assert abs(data.shape[1] - 4000) <= 1200  # MP3 pads
    spectrum = np.abs(np.fft.rfft(data.x[:, 0].numpy()))
    peaks = spectrum.argmax(1) * RATE / data.shape[1]
    np.testing.assert_allclose(peaks, [900, 901, 902, 903, 300, 301, 302, 303], atol=4)
    assert float(data.x.square().mean()) == pytest.approx(1, abs=1e-4)
    assert describe(data)["rate"] == RATE


@pytest.mark.parametrize(
    ("code", "bits", "dtype", "scale"),
    [(1, 8, "<u1", 128), (1, 16, "<i2", 2**15), (1, 32, "<i4", 2**31), (3, 32, "<f4", 1),
     (3, 64, "<f8", 1), (0xFFFE, 16, "<i2", 2**15)],
)  # fmt: skip
def test_wav_is_what_soundfile_reads(code, bits, dtype, scale, tmp_path):
    values = tone(440, 0.1) * scale + (128 if bits == 8 else 0)
    path = write_wav(
        tmp_path / "a.wav", values.astype(dtype).tobytes(), 1 if code > 3 else code, bits
    )
    if code > 3:
        soundfile.write(path, tone(440, 0.1), RATE, format="WAVEX", subtype="PCM_16")
    recording = open_recording(path)
    assert recording.wav is not None
    expected, rate = soundfile.read(path, dtype="float32")
    assert rate == recording.rate
    np.testing.assert_allclose(recording.read(0, 800), expected, atol=1e-7)
    np.testing.assert_allclose(recording.read(100, 50), expected[100:150], atol=1e-7)


def test_wav_of_24_bits_and_two_channels(tmp_path):
    path = tmp_path / "a.wav"
    both = np.stack([tone(440, 0.1), -0.2 * tone(300, 0.1)], axis=1)
    soundfile.write(path, both, RATE, subtype="PCM_24")
    np.testing.assert_allclose(open_recording(path).read(0, 800), both.mean(1), atol=1e-6)


def test_mixed_rates_lengths_and_channels(tmp_path):
    save_all(tmp_path)
    soundfile.write(tmp_path / "low" / "z.wav", tone(300, 1.2, 44100), 44100)
    both = np.stack([tone(900, 0.25)] * 2, axis=1)
    soundfile.write(tmp_path / "high" / "z.wav", both, RATE)
    data = load(tmp_path)
    assert data.rate == RATE
    notes = "|".join(data.notes)
    assert "recordings of 2 different sample rates, 8,000 Hz (9) and 44,100 Hz (1), were" in notes
    assert "resampled to 8,000 Hz; choose another rate with --rate" in notes
    assert "channels were averaged to one (1 of 10 recordings)" in notes
    assert "1 of 10 were cut and" in notes
    padded = data.x[4, 0].numpy()
    silent = np.flatnonzero(np.abs(padded) > 1e-3)
    assert len(padded) - 1 - silent[-1] == pytest.approx(silent[0], abs=3)  # as much on both sides
    fixed = load(tmp_path, rate=16000, seconds=0.25)
    assert fixed.shape == (1, 4000)
    assert not any("choose another" in note for note in fixed.notes)


def test_long_recordings_give_several_clips_in_one_group(tmp_path):
    save_all(tmp_path, seconds=2.0)
    data = load(tmp_path, seconds=0.5)
    assert len(data) == 8 * 4
    assert data.groups is not None
    assert data.groups.tolist() == np.repeat(np.arange(8), 4).tolist()
    assert len(load(tmp_path, seconds=0.5, max_examples=16)) == 16
    assert load(tmp_path, seconds=2.0).groups is None
    own = load(tmp_path, seconds=0.5, group="/(.)_")
    assert own.groups is not None
    assert set(own.groups.tolist()) == {0, 1, 2}


def test_clips_are_spread_over_a_recording():
    assert clip_starts(1.0, 2.0) == [0.0]
    assert clip_starts(3.0, 2.0) == [0.5]
    assert clip_starts(4.0, 2.0) == [0.0, 2.0]
    many = clip_starts(36_000.0, 5.0)
    assert len(many) == 10
    assert many[0] == 0
    assert many[-1] == 35_995
    assert clip_starts(36_000.0, 5.0, most=1) == [17_997.5]


def test_a_recording_of_ten_hours_is_not_loaded_whole(tmp_path, monkeypatch):
    save_all(tmp_path)
    long = tmp_path / "low" / "long.wav"
    with wave.open(str(long), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(b"\0\0")
    frames = 10 * 3600 * RATE
    with open(long, "r+b") as file:  # a sparse file: 576 MB that take no room
        file.seek(40)
        file.write(struct.pack("<I", 2 * frames))
        file.truncate(44 + 2 * frames)
    read: list[int] = []
    original = open_recording(long).wav.__class__.read

    def counting(self, path, start, count):
        read.append(count)
        return original(self, path, start, count)

    monkeypatch.setattr("augury.data.readers.wav.Wav.read", counting)
    data = load(tmp_path)
    assert sum(read) < 20 * 5 * RATE
    assert len(data) == 8 + 10
    assert any("at most 10 of each" in note for note in data.notes)
    assert any("to 36,000 s became" in note for note in data.notes)


def damaged(kind: str, path: Path) -> None:
    good = (path.parent.parent / "low" / "a_0.wav").read_bytes()
    if kind == "empty file":
        path.write_bytes(b"")
    elif kind == "no samples":
        soundfile.write(path, np.zeros(0), RATE)
    elif kind == "no sound":
        path.write_bytes(b"this is a text about sound, not a recording of it")
    elif kind == "cut short":
        path.write_bytes(good[:-1000])
    elif kind == "cut in its header":
        path.write_bytes(good[:30])
    elif kind == "NaN":
        write_wav(path, np.full(800, np.nan, "<f4").tobytes(), 3, 32)
    elif kind == "no rate":
        path.write_bytes(good[:24] + b"\0\0\0\0" + good[28:])


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("empty file", "the file is empty"),
        ("no samples", "it is empty: it has no samples"),
        ("no sound", "it is not a WAV file"),
        ("cut short", "it is cut short: 3,500 of 4,000 samples"),
        ("cut in its header", "its header is cut short"),
        ("NaN", "it has samples that are NaN or infinite"),
        ("no rate", "its sample rate is 0 Hz"),
    ],
)
def test_a_bad_recording_is_named_and_can_be_skipped(kind, reason, tmp_path):
    save_all(tmp_path)
    damaged(kind, tmp_path / "high" / "bad.wav")
    line = f"cannot read the recording high/bad.wav|: {reason}; repair or remove it|--skip-bad"
    refused(line, load, tmp_path)
    data = load(tmp_path, skip_bad=True)
    assert len(data) == data.total == 8
    assert "1 recording could not be read and was left out: high/bad.wav" in data.notes


def test_bad_flac_and_nothing_good(tmp_path):
    save_all(tmp_path, suffix=".flac", each=2)
    for path in tmp_path.rglob("*.flac"):
        path.write_bytes(b"fLaC" + bytes(50))
    refused(
        "cannot read the recording high/a_0.flac|: File contains data in an|; repair",
        load,
        tmp_path,
    )
    refused("none of the 4 recordings in", load, tmp_path, skip_bad=True)


def test_without_soundfile_wav_is_read_and_the_rest_said(tmp_path, monkeypatch):
    save_all(tmp_path)
    expected = load(tmp_path).x
    original = builtins.__import__

    def missing(name, *args, **kwargs):
        if name == "soundfile":
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, "soundfile", raising=False)
    monkeypatch.setattr(builtins, "__import__", missing)
    assert load(tmp_path).x.equal(expected)
    (tmp_path / "low" / "x.flac").write_bytes(b"fLaC")
    line = "reading .flac recordings such as x.flac needs soundfile|pip install 'augury[sound]'"
    refused(line, load, tmp_path)
    refused(line, load, tmp_path, skip_bad=True)  # skipping them all would be no answer


def test_a_list_of_recordings(tmp_path):
    save_all(tmp_path)
    files = sorted(tmp_path.rglob("*.wav"))
    frame = pd.DataFrame({"path": [str(f.relative_to(tmp_path)) for f in files]})
    frame["word"] = [file.parent.name for file in files]
    frame["who"] = [file.name[0] for file in files]
    frame.to_csv(tmp_path / "list.csv", index=False)
    data = load(tmp_path / "list.csv", label="word", group="who")
    assert data.x.equal(load(tmp_path).x)
    assert data.groups is not None
    assert data.groups.tolist() == [0, 0, 1, 2] * 2


def test_new_recordings_are_read_as_those_of_the_model(tmp_path):
    data = load(save_all(tmp_path / "train"), seconds=0.3)
    assert data.preparation is not None
    like = Preparation.from_dict(data.preparation.to_dict())
    new = tmp_path / "new"
    new.mkdir()
    soundfile.write(new / "x.wav", tone(900, 3, 44100), 44100)
    found = load_new(new, like, shape=data.shape, real=False)
    assert found.x.shape == (1, 1, 2400)
    assert found.y is None
    refused(
        "its kind and its sample rate disagree",
        Preparation.from_dict,
        {**like.to_dict(), "rate": None},
    )


def test_arrays_of_sound():
    x, y = np.random.default_rng(0).normal(size=(6, 400)), [0, 1] * 3
    data = as_dataset(x, y, rate=8000)
    assert data.kind == "sound"
    assert data.shape == (1, 400)
    assert as_dataset(x[:, None].repeat(2, 1), y, rate=8000).x.equal(data.x)
    refused("sound needs its sample rate", as_dataset, x, y, kind="sound")
    refused(
        "a sample rate is only for sound, but this is vector",
        as_dataset,
        x,
        y,
        kind="vector",
        rate=8000,
    )
    refused("from 1,000 to 192,000 Hz, not 10", as_dataset, x, y, rate=10)
    refused("0.01 to 60 seconds long, not 0", load, "digits", seconds=0)


def test_resampling_keeps_the_tone_and_removes_what_cannot_be_held():
    low = resample(tone(440, 1, 44100).astype(np.float32), 44100, 8000)
    np.testing.assert_allclose(low[500:7500], tone(440, 1)[500:7500], atol=2e-3)
    high = resample(tone(10_000, 1, 44100).astype(np.float32), 44100, 8000)
    assert np.abs(high[100:-100]).max() < 5e-3
    assert fit_length(np.arange(5), 3).tolist() == [1, 2, 3]
    assert fit_length(np.arange(1, 4), 6).tolist() == [0, 1, 2, 3, 0, 0]


def test_mixed_folders_read_what_is_more(tmp_path):
    save_all(tmp_path)
    (tmp_path / "low" / "cover.png").write_bytes(b"")
    data = load(tmp_path)
    assert data.kind == "sound"
    assert "1 file was not read: 1 .png" in data.notes
    refused("a size is for images", load, tmp_path, size=8)


def test_recordings_of_noise(tmp_path):
    soundfile.write(tmp_path / "a.wav", 0.1 * tone(440, 0.5), RATE)
    (tmp_path / "deep").mkdir()
    soundfile.write(tmp_path / "deep" / "b.flac", tone(300, 1.0, 16000), 16000)
    soundfile.write(tmp_path / "silent.wav", np.zeros(100), RATE)
    wave_ = load_noise(tmp_path, RATE)
    assert wave_.shape == (4000 + 8000,)
    assert np.mean(wave_[:4000] ** 2) == pytest.approx(1, abs=1e-3)
    assert np.mean(wave_[4000:] ** 2) == pytest.approx(1, abs=1e-3)
    assert len(load_noise(tmp_path / "a.wav", RATE)) == 4000
    (tmp_path / "c.wav").write_bytes(b"no")
    refused("cannot read the recording c.wav", load_noise, tmp_path, RATE)
    assert len(load_noise(tmp_path, RATE, skip_bad=True)) == 12_000
    empty = tmp_path / "empty"
    empty.mkdir()
    refused("holds no recording that can be heard", load_noise, empty, RATE)
    refused("there is no file or directory", load_noise, tmp_path / "none", RATE)
