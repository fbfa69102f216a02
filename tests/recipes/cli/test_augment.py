"""`argonaut augment`: copies whose features fit their alignments, lists for the next commands, clear faults."""

import json
import re

import numpy as np
import pytest
import soundfile

from readers.audio.audio_file import read_audio, write_wav
from readers.common.files import held
from readers.corpora import read_corpus
from readers.htk.frame_labels import frame_labels
from readers.htk.mlf import read_mlf
from readers.htk.parameter_file import read_htk_header
from readers.htk.scp import read_pairs, read_scp
from recipes.cli.main import main
from tests.recipes.systems.small_system import HCOPY, RATE, STATES

NAMES = ("utt00", "utt01", "utt02")
AUGMENT = ("augment", "corpus", "--out", "aug", "-j", 2)


@pytest.fixture
def corpus(user):
    """A user with a corpus of three utterances, a noise and an impulse response."""
    user.write("corpus/audio.scp", "".join(f"{name}=audio/{name}.wav\n" for name in NAMES))
    user.write("corpus/words.mlf", "#!MLF!#\n" + "".join(f'"*/{name}.lab"\nAB\nC\n.\n' for name in NAMES))
    user.write("corpus/speakers", "utt00 ann\nutt01 bob\nutt02 ann\n")
    rng = np.random.default_rng(0)
    write_wav(user.root / "noise.wav", 500 * rng.standard_normal(3000), RATE)
    write_wav(user.root / "room.wav", np.r_[np.zeros(30), 9000, 3000 * rng.standard_normal(200).clip(-1, 1)], RATE)
    user.write("noises", "noise.wav\n")
    user.write("rooms", "room.wav\n")
    return user


def test_features_of_copies_have_the_frames_of_their_labels(corpus):
    outcome = corpus.run(
        *AUGMENT, "--speed", "0.9,1.1", "--noise", "noises", "--reverb", "rooms", "-C", "hcopy.config",
        "--states", "train.mlf",
    )  # fmt: skip
    assert (outcome.status, outcome.out) == (0, ["copies: 12 done, 0 skipped, 0 failed"])
    assert main(["hcopy", "-C", "hcopy.config", "-S", "aug/hcopy.list", "-j", "1"]) == 0
    alignment, ids = read_mlf("aug/states.mlf"), {state: number for number, state in enumerate(STATES)}
    frames = {}
    for _, target in read_pairs("aug/hcopy.list"):
        name = target.rsplit("/", 1)[-1].removesuffix(".fbank")
        frames[name] = len(frame_labels(alignment[name], ids, name))
        assert frames[name] == read_htk_header(target).num_frames
    prefixes = ("", "sp0.9-", "sp1.1-", "noise1-", "rvb1-")
    assert sorted(frames) == sorted(prefix + name for prefix in prefixes for name in NAMES)
    assert frames["sp1.1-utt00"] < frames["utt00"] == frames["noise1-utt00"] < frames["sp0.9-utt00"]


def test_lists_are_those_of_a_corpus(corpus):
    corpus.run(*AUGMENT, "--speed", "0.9", "--noise", "noises")
    assert [entry.key for entry in read_scp("aug/audio.scp")] == [
        *NAMES, *(prefix + name for name in NAMES for prefix in ("sp0.9-", "noise1-")),
    ]  # fmt: skip
    words = read_mlf("aug/words.mlf")
    assert len(words) == 9
    assert [label.name for label in words["sp0.9-utt02"]] == ["AB", "C"]
    speakers = dict(line.split() for line in (corpus.root / "aug/speakers").read_text().splitlines())
    assert [speakers[name] for name in ("utt01", "sp0.9-utt01", "noise1-utt01")] == ["bob", "sp0.9-bob", "bob"]
    copy = next(one for one in read_corpus("aug").utterances if one.name == "sp0.9-utt02")
    assert (copy.speaker, copy.words, f"{copy.audio}") == ("sp0.9-ann", ("AB", "C"), "aug/audio/sp0.9-utt02.flac")
    corpus.run(*AUGMENT, "--speed", "0.9", "--copies-only")
    assert [entry.key for entry in read_scp("aug/audio.scp")] == [f"sp0.9-{name}" for name in NAMES]
    again = ("augment", "aug", "--out", "twice", "-j", 1, "--noise", "noises", "--copies-only")
    assert corpus.run(*again).status == 0
    assert [entry.key for entry in read_scp("twice/audio.scp")] == [f"noise1-sp0.9-{name}" for name in NAMES]


def test_a_list_of_parts_of_files_is_a_source_too(corpus):
    corpus.write("parts", "one.x=audio/utt00.wav[0,7999]\naudio/utt01.wav\n")
    outcome = corpus.run("augment", "parts", "--out", "aug", "--volume", "0.5", "-C", "hcopy.config", "-j", 1)
    assert outcome.out == ["copies: 2 done, 0 skipped, 0 failed"]
    lines = (corpus.root / "aug/audio.scp").read_text().splitlines()
    assert lines == [
        *("one=audio/utt00.wav[0,7999]", "utt01=audio/utt01.wav"),
        *("vol1-one=aug/audio/vol1-one.flac", "vol1-utt01=aug/audio/vol1-utt01.flac"),
    ]
    assert read_pairs("aug/hcopy.list")[0] == ("audio/utt00.wav[0,7999]", "aug/features/one.fbank")


def test_one_of_several_channels_is_augmented(corpus):
    left, right = (read_audio(f"audio/{name}.wav")[0][:8000] for name in NAMES[:2])
    soundfile.write(corpus.root / "both.wav", np.stack([left, right], axis=1).astype(np.int16), RATE)
    corpus.write("list", "both.wav\naudio/utt02.wav\n")
    arguments = ("augment", "list", "--volume", "0.5", "-j", 1, "-C", "hcopy.config")
    outcome = corpus.run(*arguments, "--out", "none")
    assert outcome.out == ["copies: 1 done, 0 skipped, 1 failed"]
    for channel, expected in (("1", right), ("mix", (left + right) / 2)):
        outcome = corpus.run(*arguments, "--out", channel, "--channel", channel)
        assert outcome.out == ["copies: 2 done, 0 skipped, 0 failed"]
        np.testing.assert_allclose(read_audio(f"{channel}/audio/vol1-both.flac")[0], expected / 2, atol=0.51)
    assert (corpus.root / "1/audio.scp").read_text().splitlines()[:2] == [
        *("both=both.wav[0,7999,1]", "utt02=audio/utt02.wav"),
    ]
    assert corpus.run("hcopy", "-C", "hcopy.config", "-S", "1/hcopy.list", "-j", 1).status == 0
    assert corpus.run("hcopy", "-C", "hcopy.config", "-S", "mix/hcopy.list", "-j", 1, "--channel", "mix").status == 0


def test_a_copy_without_alignment_is_left_out(corpus):
    text = (corpus.root / "train.mlf").read_text()
    corpus.write("part.mlf", re.sub(r'"\*/utt01.lab"\n.*?\n\.\n', "", text, flags=re.DOTALL))
    outcome = corpus.run(*AUGMENT, "--noise", "noises", "--states", "part.mlf")
    assert (outcome.status, outcome.out) == (1, ["copies: 2 done, 0 skipped, 1 failed"])
    assert (
        "noise1-utt01\tfailed\tno alignment; expected an entry */utt01.lab" in (corpus.root / "aug/report").read_text()
    )
    assert "noise1-utt01" not in {entry.key for entry in read_scp("aug/audio.scp")}


def test_a_second_run_keeps_the_copies(corpus):
    corpus.run(*AUGMENT, "--noise", "noises")
    before = {path: path.stat().st_mtime_ns for path in (corpus.root / "aug/audio").iterdir()}
    corpus.run(*AUGMENT, "--noise", "noises")
    assert {path: path.stat().st_mtime_ns for path in (corpus.root / "aug/audio").iterdir()} == before
    assert json.loads((corpus.root / "aug/augment.json").read_text())["settings"]["seed"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "augmentation: no copies; expected speeds, a volume, world, or a list of noises, talkers or responses"),
        (("--speed", "0.9,1"), "command line: --speed is 1; expected 0.5 to 2, but not 1"),
        (("--speed", "fast"), "argonaut augment: argument --speed: 'fast'; expected numbers separated by"),
        (("--snr", "5-20"), "argonaut augment: argument --snr: '5-20'; expected numbers separated by ':'"),
        (
            ("--snr", "20:5", "--noise", "noises"),
            "command line: --snr is 20:5; expected a number, or two,",
        ),
        (("--noise", "empty"), "empty: no entries; expected an audio file on each line"),
        (("--noise", "nowhere"), "nowhere: No such file or directory"),
        (("--noise", "feat"), "feat: no audio.scp; expected a directory that `argonaut import` wrote, or a list of"),
        (("--noise", "train.mlf"), "train.mlf:1: a master label file; expected lines path"),
        (("--babble", "twice"), "twice:2: utt00 is already at twice:1; expected every name once"),
        (
            ("--talkers", "1.5:2", "--babble", "corpus"),
            "argument --talkers: '1.5:2'; expected whole numbers",
        ),
        (("--talkers", "inf", "--babble", "corpus"), "argument --talkers: 'inf'; expected whole numbers"),
        (("--talkers", "nan", "--babble", "corpus"), "argument --talkers: 'nan'; expected whole numbers"),
        (("--noise", "aug/audio.scp"), "aug/audio.scp: is an input and would be overwritten; expected another path"),
        (("--speed", "0.9", "--babble", "aug"), "aug/audio.scp: is an input and would be overwritten"),
        (
            ("--speed", "0.9", "--states", "train.mlf"),
            "--states is given with --speed; expected --config too,",
        ),
        (("--volume", "2", "--states", "words.mlf"), "words.mlf: no alignment of any recording; expected an entry"),
        (("--speed", "0.9", "--channel", "left"), "--channel is 'left'; expected a number from 0, or mix"),
        (("--speed", "0.9", "-j", "0"), "command line: --workers is 0; expected at least 1"),
        (("--speed", "0.9", "-C", "net.cntk"), "net.cntk:"),
        (("--speed", "0.9", "--out", "train.mlf"), "train.mlf"),
        (("--speed", "0.9", "--out", "corpus"), "corpus/audio.scp"),
    ],
)
def test_bad_input_is_one_line(corpus, arguments, message):
    corpus.write("empty", "\n")
    corpus.write("twice", "audio/utt00.wav\nother/utt00.wav\n")
    corpus.write("aug/audio.scp", "audio/utt00.wav\n")
    outcome = corpus.run(*AUGMENT, *arguments)
    assert message in outcome.fault


@pytest.mark.parametrize("line", ["utt01", "utt00 bob"])
def test_a_bad_line_in_the_speakers_is_named(corpus, line):
    corpus.write("corpus/speakers", f"utt00 ann\n{line}\n")
    fault = f"corpus/speakers:2: {line!r}; expected `name speaker`, each name once"
    assert corpus.run(*AUGMENT, "--speed", "0.9").fault == fault


def test_two_runs_at_once_need_two_directories(corpus):
    with held("aug/augment.lock"):
        fault = corpus.run(*AUGMENT, "--speed", "0.9").fault
        assert re.fullmatch(r"aug: in use by process \d+ on .*; expected a directory of its own", fault)
        assert [path.name for path in (corpus.root / "aug").iterdir()] == ["augment.lock"]
    assert corpus.run(*AUGMENT, "--speed", "0.9").status == 0
    assert not (corpus.root / "aug/augment.lock").exists()


def test_a_range_may_begin_with_a_minus(corpus):
    corpus.run(*AUGMENT, "--noise", "noises", "--snr", "-5:10")
    assert json.loads((corpus.root / "aug/augment.json").read_text())["settings"]["snr"] == [-5, 10]


def test_frames_of_another_configuration_are_refused(corpus):
    corpus.write("other.config", HCOPY.replace("WINDOWSIZE = 250000", "WINDOWSIZE = 500000"))
    outcome = corpus.run(*AUGMENT, "--speed", "0.9", "-C", "other.config", "--states", "train.mlf")
    assert outcome.out == ["copies: 0 done, 0 skipped, 3 failed"]
    assert re.search(r"train.mlf:\d+: labels of \d+ frames; expected \d+, the frames of the audio", outcome.err[0])


def test_lists_of_an_earlier_run_are_removed(corpus):
    corpus.run(*AUGMENT, "--volume", "0.5:1", "--states", "train.mlf", "-C", "hcopy.config")
    assert (corpus.root / "aug" / "states.mlf").exists()
    corpus.run(*AUGMENT, "--volume", "0.5:1")
    assert sorted(path.name for path in (corpus.root / "aug").iterdir() if path.is_file()) == [
        "audio.scp", "augment.json", "report", "speakers", "words.mlf"
    ]  # fmt: skip
