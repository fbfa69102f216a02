"""The directory of a corpus: what is written is read back."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from readers.audio.header import AudioHeader
from readers.common.text import canonical
from readers.corpora import KINDS, Corpus, Utterance, feature_pairs, import_corpus, read_corpus, write_corpus
from readers.corpora.corpus import by_name, usable_name
from readers.errors import FormatError
from tests.readers.corpora.conftest import RATE, tone

HEADER = AudioHeader(RATE, 2, 50000)


@st.composite
def utterances(draw):
    """An utterance of /audio.wav, which has 50000 samples in two channels."""
    characters = st.characters(codec="utf-8", exclude_categories=("C", "Z"))
    text = st.text(characters, min_size=1, max_size=6).map(canonical)
    name, speaker = usable_name(draw(text), ""), usable_name(draw(text), "")
    words = draw(st.none() | st.lists(text, max_size=3).map(tuple))
    recording = draw(st.just("") | text.map(lambda name: usable_name(name, "")))
    if draw(st.booleans()):
        return Utterance(name, speaker, words, Path("/audio.wav"), recording=recording)
    first = draw(st.integers(0, 49999))
    stop = draw(st.integers(first + 1, 50000))
    end = None if stop == 50000 else stop / RATE
    place = first / RATE, end, draw(st.sampled_from([None, 0, 1]))
    return Utterance(name, speaker, words, Path("/audio.wav"), *place, recording)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(found=st.lists(utterances(), min_size=1, max_size=4, unique_by=lambda one: one.name))
def test_a_corpus_is_read_back(found, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("readers.corpora.corpus.read_audio_header", lambda path: HEADER)
        corpus = Corpus(by_name(found))
        write_corpus(corpus, tmp_path)
        assert read_corpus(tmp_path) == corpus


def test_parts_and_channels_are_lines_of_audio_scp(tmp_path):
    path = tone(tmp_path / "a.wav", 8000, channels=2)
    parts = (Utterance("a-1", "s", ("x",), path, 0.0, 0.5, 0), Utterance("a-2", "s", (), path, 0.5, None, 1))
    corpus = Corpus((*parts, Utterance("b", "t", None, path)))
    write_corpus(corpus, tmp_path / "out")
    assert (tmp_path / "out/audio.scp").read_text() == f"a-1={path}[0,3999,0]\na-2={path}[4000,7999,1]\nb={path}\n"
    assert (tmp_path / "out/words.mlf").read_text() == '#!MLF!#\n"*/a-1.lab"\nx\n.\n"*/a-2.lab"\n.\n'
    assert (tmp_path / "out/speakers").read_text() == "a-1 s\na-2 s\nb t\n"
    assert feature_pairs(tmp_path / "out", "feat", "mfc")[0] == (f"{path}[0,3999,0]", "feat/a-1.mfc")
    again = read_corpus(tmp_path / "out")
    assert again == corpus
    assert [again.seconds(one) for one in again.utterances] == [0.5, 0.5, 1.0]
    assert list(again.speakers) == ["s", "t"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("audio.scp", "", "no entries; expected at least one utterance"),
        ("audio.scp", "anna-1=a.wav\nanna-1=b.wav\n", "audio.scp:2: utterance 'anna-1' is repeated"),
        ("audio.scp", "x=a.wav\n", "audio.scp:1: no speaker of 'x' in"),
        ("audio.scp", "anna-1={audio}/anna/anna-1.wav[0,4000]\n", "expected a part of the 4000 samples and 1 channels"),
        ("audio.scp", "anna-1={audio}/anna/anna-1.wav[0,9,1]\n", "expected a part of the 4000 samples and 1 channels"),
        ("speakers", "anna-1\n", "speakers:1: 'anna-1'; expected `name speaker`"),
        ("recordings", "anna-1\n", "recordings:1: 'anna-1'; expected `name recording`"),
        ("speakers", "anna-1 a\nanna-1 b\n", "speakers:2: 'anna-1 b'; expected `name speaker`, each name once"),
    ],
)
def test_broken_directories(name, content, message, folder, tmp_path):
    write_corpus(import_corpus("folder", folder), tmp_path / "out")
    (tmp_path / "out" / name).write_text(content.format(audio=folder))
    with pytest.raises(FormatError) as fault:
        read_corpus(tmp_path / "out")
    assert message in str(fault.value)


def test_every_kind_gives_the_same_corpus(folder, kaldi, lhotse, table, table_tsv):
    sources = {"folder": folder, "kaldi": kaldi, "lhotse": lhotse, "table": table}
    corpora = [import_corpus(kind, source) for kind, source in sources.items()]
    assert len(corpora[0].utterances) == 3
    for corpus in (*corpora, import_corpus("table", table_tsv)):
        unnamed = tuple(replace(one, recording="") for one in corpus.utterances)
        assert unnamed == corpora[0].utterances
    for kind in (1, 2):
        assert all(one.recording == one.audio.stem for one in corpora[kind].utterances)
    assert {*sources, "htk"} == set(KINDS)  # htk: see tests/recipes/own/test_alignments.py
