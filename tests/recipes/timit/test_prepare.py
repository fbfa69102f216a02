"""TIMIT's layout and labels: sets, state times, and what a broken file costs."""

from itertools import pairwise

import numpy as np
import pytest

from readers.common.environment import available_cores
from readers.errors import FormatError
from readers.htk.frame_labels import frame_labels
from readers.htk.mlf import read_mlf
from readers.htk.scp import ScpEntry, write_scp
from readers.tables.timit import Segment, write_segments
from recipes.timit import corpus, prepare
from recipes.timit.run import Recipe, RecipeOptions


def write_corpus(root, names, segments=((0, 3200, "h#"), (3200, 4800, "ix"), (4800, 8000, "h#"))):
    for name in names:
        path = root / f"{name}.WAV"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        write_segments(path.with_suffix(".PHN"), [Segment(*segment) for segment in segments])


def test_find_sets_of_the_disc_uses_the_published_speakers(tmp_path):
    write_corpus(
        tmp_path,
        ["TRAIN/DR1/FCJF0/SA1", "TRAIN/DR1/FCJF0/SI1027", "TEST/DR1/FELC0/SX36", "TEST/DR1/FAKS0/SI943",
         "TEST/DR1/FDAC1/SA2", "TEST/DR1/MREB9/SX1"],
    )  # fmt: skip
    sets = corpus.find_sets(tmp_path)
    assert [u.name for u in sets["train"]] == ["train-dr1-fcjf0-si1027"]
    assert [u.name for u in sets["dev"]] == ["test-dr1-faks0-si943"]
    assert [u.name for u in sets["test"]] == ["test-dr1-felc0-sx36"]


@pytest.mark.parametrize("name", ["SI943.WAV", "si943.wav"])
def test_words_are_those_of_the_wrd_file_beside_the_audio(tmp_path, name):
    audio = tmp_path / name
    words = audio.with_suffix(".WRD" if name.isupper() else ".wrd")
    write_segments(words, [Segment(0, 10, "new"), Segment(10, 30, "york")])
    phones = audio.with_suffix(".PHN" if name.isupper() else ".phn")
    assert corpus.Utterance("test-dr1-faks0-si943", "faks0", audio, phones).words == ["new", "york"]


def test_find_sets_of_another_corpus_halves_the_test_speakers(tmp_path):
    write_corpus(tmp_path, ["TRAIN/DR1/AAAA0/SX1", "TEST/DR1/BBBB0/SX1", "TEST/DR1/CCCC0/SX2"])
    sets = corpus.find_sets(tmp_path)
    assert [u.speaker for u in sets["test"]] == ["bbbb0"]
    assert [u.speaker for u in sets["dev"]] == ["cccc0"]


def test_find_sets_faults(tmp_path):
    with pytest.raises(FormatError, match="no TRAIN directory"):
        corpus.find_sets(tmp_path)
    with pytest.raises(FormatError, match="no TRAIN directory"):
        corpus.find_sets(tmp_path / "missing")
    write_corpus(tmp_path, ["TRAIN/DR1/AAAA0/SX1"])
    (tmp_path / "TRAIN/DR1/AAAA0/SX1.PHN").unlink()
    with pytest.raises(FormatError, match=r"SX1.PHN: missing"):
        corpus.find_sets(tmp_path)


def test_published_sets_have_24_and_50_speakers():
    core = corpus.read_speakers(corpus.DATA / "core_test_speakers.txt")
    dev = corpus.read_speakers(corpus.DATA / "dev_speakers.txt")
    assert (len(core), len(dev), len(core & dev)) == (24, 50, 0)


def test_phone_set_has_61_phones_and_the_state_tables_183_states(tmp_path):
    assert len(prepare.phone_set()) == 61
    prepare.write_state_tables(tmp_path)
    assert len((tmp_path / "states.list").read_text().split()) == 183


@pytest.mark.parametrize("seed", range(5))
def test_state_labels_tile_the_utterance_and_keep_the_phones_frames(seed):
    rng = np.random.default_rng(seed)
    bounds = np.concatenate(([0], np.cumsum(rng.integers(1, 4000, 12))))
    segments = [Segment(int(a), int(b), f"p{i}") for i, (a, b) in enumerate(pairwise(bounds))]
    num_frames = (int(bounds[-1]) - 400) // 160 + 1
    labels = prepare.state_labels(segments, num_frames)
    states = {s.name + suffix: i for i, s in enumerate(segments) for suffix in prepare.STATE_SUFFIXES}
    phone_of_frame = frame_labels(labels, states, "here")
    centres = np.arange(num_frames) * 160 + 200
    assert phone_of_frame.tolist() == (np.searchsorted(bounds, centres, side="right") - 1).tolist()


def test_state_labels_of_nine_frames_give_three_to_each_state():
    labels = prepare.state_labels([Segment(0, 1680, "aa")], 9)
    assert [(label.start, label.end, label.name) for label in labels] == [
        (0, 300000, "aa_s2"),
        (300000, 600000, "aa_s3"),
        (600000, 900000, "aa_s4"),
    ]


def test_write_labels_a_broken_file_loses_only_its_own_utterance(tmp_path):
    write_corpus(tmp_path, ["TRAIN/DR1/AAAA0/SX1", "TRAIN/DR1/AAAA0/SX2", "TRAIN/DR1/AAAA0/SX3", "TEST/DR1/B/SX1"])
    (tmp_path / "TRAIN/DR1/AAAA0/SX2.PHN").write_text("0 3200 h#\n3200 4000 qq\n")
    utterances = corpus.find_sets(tmp_path)["train"]
    names = [utterance.name for utterance in utterances]
    write_scp(tmp_path / "scp", [ScpEntry(f"{name}.fbank", f"{name}.fbank", 0, 47) for name in names[:2]])
    report = prepare.write_labels(utterances, tmp_path / "scp", tmp_path / "states.mlf", tmp_path / "phones.mlf")
    assert report.num_done == 1
    assert [(name, outcome) for name, outcome, _ in report.lost] == [(names[1], "failed"), (names[2], "skipped")]
    assert "phone 'qq'; expected one of TIMIT's 61" in report.lost[0][2]
    assert read_mlf(tmp_path / "states.mlf")[names[0]][-1].end == 48 * 100000
    assert [label.name for label in read_mlf(tmp_path / "phones.mlf")[names[0]]] == ["h#", "ix", "h#"]


@pytest.mark.parametrize(("workers", "expected"), [(None, available_cores()), (3, 3)])
def test_as_many_workers_as_given_else_one_per_core(tmp_path, workers, expected):
    assert Recipe(RecipeOptions(out=tmp_path, workers=workers)).workers == expected
