"""The augmentation job: the same copies in any order, with any number of threads, after any interruption."""

import re
from pathlib import Path

import numpy as np
import pytest

from features.augmentation import Augmentation, Recording, augment_recordings, mean_power
from features.augmentation.copies import CopyMaker, generator, load
from readers.audio.audio_file import read_audio, write_flac, write_wav
from readers.errors import ConfigError, FormatError

RATE = 8000


@pytest.fixture
def recordings(tmp_path) -> tuple[Recording, ...]:
    rng = np.random.default_rng(1)
    made = []
    for number in range(6):
        path = tmp_path / "in" / f"utt{number}.wav"
        write_wav(path, 1000 * rng.standard_normal(2000 + 300 * number), RATE)
        made.append(Recording(f"utt{number}", path, speaker=f"speaker{number // 2}"))
    return tuple(made)


@pytest.fixture
def settings(tmp_path, recordings) -> Augmentation:
    rng = np.random.default_rng(2)
    write_wav(tmp_path / "long.wav", 100 * rng.standard_normal(30000), RATE)
    write_wav(tmp_path / "short.wav", 100 * rng.standard_normal(900), 16000)
    response = np.zeros(400)
    response[40], response[200] = 10000, 3000
    write_wav(tmp_path / "room.wav", response, 16000)
    long, short, room = (Recording(name, tmp_path / f"{name}.wav") for name in ("long", "short", "room"))
    return Augmentation(
        speeds=(0.9, 1.1), noises=(long, short), foreground=(short,), interval=0.05, talkers=recordings,
        num_talkers=(2, 3), responses=(room,), snr=(5, 15), copies=2, seed=3,
    )  # fmt: skip


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.glob("audio/*"))}


def test_names_are_those_of_kaldi(settings):
    assert [copy.prefix for copy in settings.plan()] == [
        *("sp0.9-", "sp1.1-", "noise1-", "noise2-", "fg1-", "fg2-", "babble1-", "babble2-", "rvb1-", "rvb2-"),
    ]
    assert [copy.prefix for copy in Augmentation(volume=(0.5, 2), copies=2).plan()] == ["vol1-", "vol2-"]


def test_neither_order_nor_threads_matter(tmp_path, recordings, settings):
    made, report = augment_recordings(recordings, settings, tmp_path / "a", workers=1)
    augment_recordings(recordings[::-1], settings, tmp_path / "b", workers=4)
    found = contents(tmp_path / "a")
    assert len(found) == report.num_done == 60
    assert found == contents(tmp_path / "b")
    assert [one.name for one in made[:2]] == ["sp0.9-utt0", "sp1.1-utt0"]
    for one in made:
        samples, rate = read_audio(one.path)
        assert (len(samples), rate) == (one.num_samples[1], RATE)
        expected = one.num_samples[0] / one.copy.speed
        assert one.num_samples[1] == pytest.approx(expected, abs=1)
    different = [found[f"noise{k}-utt0.flac"] for k in (1, 2)]
    assert different[0] != different[1]


def test_copies_of_the_world_take_babble_for_themselves(tmp_path, recordings):
    settings = Augmentation(world=3, talkers=recordings, num_talkers=(2, 3))
    assert [copy.prefix for copy in settings.plan()] == ["world1-", "world2-", "world3-"]
    made, report = augment_recordings(recordings, settings, tmp_path / "a", workers=1)
    augment_recordings(recordings, settings, tmp_path / "b", workers=4)
    assert (report.num_done, len(made)) == (18, 18)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert all(one.num_samples[0] == one.num_samples[1] for one in made)


def test_an_interrupted_run_continues_to_the_same_bits(tmp_path, recordings, settings):
    augment_recordings(recordings, settings, tmp_path / "a")
    expected = contents(tmp_path / "a")
    files = sorted((tmp_path / "a" / "audio").iterdir())
    for path in files[::2]:
        path.unlink()
    kept = {path: path.stat().st_mtime_ns for path in files[1::2]}
    made, report = augment_recordings(recordings, settings, tmp_path / "a")
    assert contents(tmp_path / "a") == expected
    assert (made, report) == augment_recordings(recordings, settings, tmp_path / "a")  # nothing is left to do
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert [one.num_samples for one in made] == [(one.num_samples[0], len(read_audio(one.path)[0])) for one in made]


def test_other_settings_or_files_replace_the_copies(tmp_path, recordings, settings):
    augment_recordings(recordings, settings, tmp_path / "a")
    before = contents(tmp_path / "a")
    other = Augmentation(noises=settings.noises, snr=(5, 15), copies=2, seed=4)
    augment_recordings(recordings, other, tmp_path / "a")
    after = contents(tmp_path / "a")
    assert after["noise1-utt0.flac"] != before["noise1-utt0.flac"]
    write_wav(settings.noises[0].path, np.arange(4000) % 100, RATE)
    write_wav(settings.noises[1].path, np.arange(4000) % 100, RATE)
    augment_recordings(recordings, other, tmp_path / "a")
    assert contents(tmp_path / "a")["noise1-utt0.flac"] != after["noise1-utt0.flac"]


@pytest.mark.parametrize("kind", ["noise", "babble"])
def test_the_ratio_of_a_copy_is_in_the_range(recordings, settings, kind):
    maker = CopyMaker(settings)
    ratios = []
    for recording in recordings:
        samples, rate = read_audio(recording.path)
        for copy in settings.plan():
            if copy.kind == kind:
                made = maker.make(copy, recording, samples, rate)
                ratios.append(10 * np.log10(mean_power(samples) / mean_power(made.astype(float) - samples)))
    assert min(ratios) >= 5 - 1e-3
    assert max(ratios) <= 15 + 1e-3
    assert max(ratios) - min(ratios) > 3


def test_foreground_noises_have_pauses(tmp_path, recordings):
    write_wav(tmp_path / "click.wav", np.full(100, 500), RATE)
    click = Recording("click", tmp_path / "click.wav")
    settings = Augmentation(foreground=(click,), interval=0.05, snr=(10, 10))
    samples, rate = read_audio(recordings[5].path)
    made = CopyMaker(settings).make(next(settings.plan()), recordings[5], samples, rate)
    added = np.flatnonzero(np.abs(made - samples) > 1)
    assert np.all(np.isin(np.diff(added), [1, 401]))  # 400 samples, 0.05 seconds, lie between two clicks
    scale = np.sqrt(mean_power(samples) / 10)
    np.testing.assert_allclose((made - samples)[added], scale, rtol=1e-3)


def test_babble_has_no_voice_of_the_speaker(recordings):
    settings = Augmentation(talkers=recordings[:2], num_talkers=(1, 1))
    samples, rate = read_audio(recordings[0].path)
    with pytest.raises(ValueError, match="0 recordings of other speakers to make babble of; expected at least 1"):
        CopyMaker(settings).make(next(settings.plan()), recordings[0], samples, rate)


def test_babble_is_drawn_from_all_other_speakers(tmp_path):
    talkers = []
    for number in range(8):  # every voice is a sine of its own
        write_wav(tmp_path / f"t{number}.wav", 5000 * np.sin(2 * np.pi * (number + 3) / 80 * np.arange(800)), RATE)
        talkers.append(Recording(f"t{number}", tmp_path / f"t{number}.wav", speaker=f"s{number // 3}"))
    samples, rate = read_audio(talkers[4].path)
    settings = Augmentation(talkers=tuple(talkers), num_talkers=(2, 3), snr=(0, 0), copies=60)
    counts = np.zeros(8, int)
    for copy in settings.plan():
        added = CopyMaker(settings).make(copy, talkers[4], samples, rate) - samples
        spectrum = np.abs(np.fft.rfft(added))[30:110:10]
        heard = spectrum > 0.5 * spectrum.max()
        assert heard.sum() in (2, 3)
        counts += heard
    assert (counts > 0).tolist() == [True] * 3 + [False] * 3 + [True] * 2


def test_the_volume_of_all_copies_is_in_the_range(recordings):
    settings = Augmentation(volume=(0.25, 0.5), copies=9)
    samples, rate = read_audio(recordings[0].path)
    factors = [
        float(np.sqrt(mean_power(CopyMaker(settings).make(copy, recordings[0], samples, rate)) / mean_power(samples)))
        for copy in settings.plan()
    ]
    assert 0.25 <= min(factors) < max(factors) <= 0.5


def test_draws_depend_on_seed_prefix_and_name():
    draws = {generator(*key).integers(2**62) for key in [(0, "a", "b"), (1, "a", "b"), (0, "c", "b"), (0, "a", "d")]}
    assert len(draws) == 4


def test_what_cannot_be_made_is_named(tmp_path, recordings):
    write_wav(tmp_path / "silent.wav", np.zeros(500), RATE)
    silent = Recording("silent", tmp_path / "silent.wav")
    missing = Recording("missing", tmp_path / "missing.wav")
    beyond = Recording("beyond", recordings[0].path, 0, 99999)
    settings = Augmentation(noises=(silent,))
    _, report = augment_recordings([recordings[0], silent, missing, beyond], settings, tmp_path / "out")
    assert [(name, re.sub(re.escape(f"{tmp_path}/"), "", reason)) for name, _, reason in report.lost] == [
        ("noise1-utt0", "silent.wav: the noise is silent; expected noise, because a signal-to-noise ratio is wanted"),
        ("noise1-silent", "silent: silent; expected speech, because noise is added in proportion to it"),
        ("noise1-missing", "missing.wav: No such file or directory"),
        ("noise1-beyond", "in/utt0.wav: samples [0,99999] of 2000; expected a part of the file"),
    ]


def test_no_copy_takes_the_place_of_an_input(tmp_path):
    path = tmp_path / "audio" / "sp0.9-a.flac"
    write_flac(path, np.arange(4000) % 100, RATE)
    before = path.read_bytes()
    (tmp_path / "link").symlink_to(tmp_path)
    inside, a = Recording("b", tmp_path / "link" / "audio" / path.name), Recording("a", tmp_path / "a.wav")
    for recordings, noises in (((a, inside), ()), ((a,), (inside,))):
        settings = Augmentation(speeds=(0.9,), noises=noises)
        with pytest.raises(FileExistsError, match="is an input and would be overwritten"):
            augment_recordings(recordings, settings, tmp_path)
    same = Recording("sp0.9-a", path)
    with pytest.raises(FormatError, match=r"^sp0.9-a: a recording and a copy of a have this name; expected a source"):
        augment_recordings([a, same], Augmentation(speeds=(0.9,)), tmp_path / "out")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "no copies; expected speeds, a volume, world, or a list of noises, talkers or responses"),
        ({"speeds": (1.0,)}, "speeds is 1; expected 0.5 to 2, but not 1"),
        ({"speeds": (0.4,)}, "speeds is 0.4; expected 0.5 to 2, but not 1"),
        ({"speeds": (0.9, 0.9)}, "speeds is 0.9, 0.9 (to 6 digits); expected each once"),
        ({"speeds": (0.9, 0.90000001)}, "speeds is 0.9, 0.9 (to 6 digits); expected each once"),
        ({"volume": (0, 1)}, "volume is 0; expected above 0, at most 100"),
        ({"volume": (2, 1)}, "volume is 2:1; expected a number, or two, the lower first"),
        ({"snr": (20, 5), "speeds": (0.9,)}, "snr is 20:5; expected a number, or two, the lower first"),
        ({"snr": (1, 2, 3), "speeds": (0.9,)}, "snr is 1:2:3; expected a number, or two, the lower first"),
        ({"snr": (float("nan"), 5), "speeds": (0.9,)}, "snr is nan; expected a finite number, -100 to 100 dB"),
        ({"num_talkers": (0, 5), "speeds": (0.9,)}, "num_talkers is 0; expected at least 1"),
        ({"copies": 0, "speeds": (0.9,)}, "copies is 0; expected 1 to 10000"),
        ({"interval": -1.0, "speeds": (0.9,)}, "interval is -1; expected 0 to 3600 seconds"),
        ({"interval": 1e300, "speeds": (0.9,)}, "interval is 1e+300; expected 0 to 3600 seconds"),
        ({"copies": 10**12, "speeds": (0.9,)}, "copies is 1000000000000; expected 1 to 10000"),
        ({"seed": -1, "speeds": (0.9,)}, "seed is -1; expected at least 0"),
    ],
)
def test_settings_out_of_range_are_refused(options, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        Augmentation(**options)


@pytest.mark.parametrize("cut", [1, 1000])
def test_a_copy_that_was_cut_short_is_made_again(tmp_path, recordings, cut):
    settings = Augmentation(speeds=(0.9,))
    made, report = augment_recordings(recordings, settings, tmp_path)
    expected = contents(tmp_path)
    path = tmp_path / "audio" / "sp0.9-utt2.flac"
    path.write_bytes(path.read_bytes()[:-cut])
    assert augment_recordings(recordings, settings, tmp_path) == (made, report)
    assert contents(tmp_path) == expected


def test_a_part_of_a_recording_is_all_that_is_kept(tmp_path):
    samples = 1000 * np.random.default_rng(1).standard_normal(8000)
    write_wav(tmp_path / "long.wav", samples, RATE)
    whole, _ = load(Recording("long", tmp_path / "long.wav"))
    part, _ = load(Recording("part", tmp_path / "long.wav", 1000, 1999))
    np.testing.assert_array_equal(part, whole[1000:2000])
    assert part.base is None or part.base.nbytes == part.nbytes
    with pytest.raises(FormatError, match=r"long.wav: samples \[7000,8000\] of 8000; expected a part of"):
        load(Recording("part", tmp_path / "long.wav", 7000, 8000))
