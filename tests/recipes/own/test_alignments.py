"""Recipe own from a list of audio files and the alignments of another tool, without a flat start."""

import re
from pathlib import Path

import numpy as np
import pytest

from readers.audio.audio_file import write_wav
from readers.common.report import RunReport
from readers.corpora.importing import import_corpus
from readers.errors import ArgonautError, FormatError
from readers.htk.dictionary import Pronunciation
from readers.htk.frame_labels import read_state_list
from readers.htk.mlf import Label, read_mlf, write_mlf
from readers.htk.scp import ScpEntry, write_scp
from recipes.cli.main import main
from recipes.own.alignments import states_of, write_alignment
from tests.recipes.systems.small_system import RATE, TICKS_PER_FRAME, WORDS, speak

NUM_SPEAKERS, PER_SPEAKER = 8, 6
KNOWN = ("a", "b")
ENTRIES = [Pronunciation("AB", None, None, KNOWN)]


def labels(text: str) -> list[Label]:
    """`name:frames` of labels in a row."""
    ends = np.cumsum([int(word.partition(":")[2]) for word in text.split()])
    times = zip([0, *ends[:-1].tolist()], ends.tolist())
    return [
        Label(start * TICKS_PER_FRAME, end * TICKS_PER_FRAME, word.partition(":")[0])
        for word, (start, end) in zip(text.split(), times)
    ]


def states(text: str, num_frames: int) -> str:
    found = states_of(labels(text), "here", KNOWN, ("sil", "sp"), num_frames)
    return " ".join(f"{phone}{state}:{end - first}" for (phone, state), first, end in found)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a_s2_1:2 a_s3_1:3 a_s4_1:1 sil[2]:4", "a2:2 a3:3 a4:1 sil2:4"),
        ("sil-a+b[2]:2 a+b[3]:3 sp[2]:1 sp[3]:1 b[2]:3", "a2:2 a3:3 sil3:2 b2:3"),  # the short pause is one visit
        ("a:6 b:2 sil:3 sp:3", "a2:2 a3:2 a4:2 b2:1 b4:1 sil2:2 sil3:2 sil4:2"),  # phones: three states
        ("a[2]:8", "a2:10"),  # the features have two frames more: those of another window
        ("a[2]:8 b[2]:4", "a2:8 b2:2"),
    ],
)
def test_labels_become_states_of_monophones(given, expected):
    assert states(given, sum(int(n) for n in re.findall(r":(\d+)", expected))) == expected


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ("a[2]:5 pau[2]:5", "here: phone 'pau'; expected those of the dictionary, or sil, sp; name phones of silence"),
        ("a[2]:5 a[9]:5", "here: state 9 of a; expected 2 to 4"),
        ("a[2]:16", "here: 16 frames of 10 ms; expected 10, as the audio has"),
    ],
)
def test_alignments_that_cannot_be_used_are_refused(given, fault):
    with pytest.raises(ArgonautError, match=re.escape(fault)):
        states(given, 10)


def test_one_utterance_without_alignment_is_reported_all_are_refused(tmp_path):
    write_mlf(tmp_path / "a.mlf", [("corpus/1/u1.lab", labels("sil[2]:5 a[2]:5"))])
    write_scp(tmp_path / "scp", [ScpEntry(f"u{n}.fb", f"f/u{n}.fb", 0, 9) for n in (1, 2)])
    report = write_alignment(tmp_path / "a.mlf", ENTRIES, ("sil", "sp"), tmp_path / "scp", tmp_path)
    assert (report.num_done, [name for name, *_ in report.lost]) == (1, ["u2"])
    assert read_state_list(tmp_path / "states.list") == ["a_s2", "sil_s2"]
    assert read_mlf(tmp_path / "states.mlf").lookup("u1.lab")[1] == Label(500_000, 1_000_000, "a_s2")
    write_scp(tmp_path / "scp", [ScpEntry("u2.fb", "f/u2.fb", 0, 9)])
    with pytest.raises(ArgonautError, match=r"none of 1 alignments can be used; first error: .*no alignment of u2"):
        write_alignment(tmp_path / "a.mlf", ENTRIES, ("sil",), tmp_path / "scp", tmp_path)
    write_mlf(tmp_path / "a.mlf", [("*/u2.lab", labels("a[2]:10"))])
    with pytest.raises(ArgonautError, match="no sil; expected phones of silence; name them with --silence"):
        write_alignment(tmp_path / "a.mlf", ENTRIES, ("sil",), tmp_path / "scp", tmp_path)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A directory with recordings, an SCP of them, and their alignment as HVite writes it, with words and phones."""
    root = tmp_path_factory.mktemp("own")
    rng, entries, lines = np.random.default_rng(0), [], []
    for speaker in range(NUM_SPEAKERS):
        (root / "audio" / f"speaker{speaker}").mkdir(parents=True)
        for number in range(PER_SPEAKER):
            words = [list(WORDS)[i] for i in rng.integers(0, len(WORDS), 4)]
            samples, given = speak(words, rng)
            name = f"s{speaker}-{number}"
            write_wav(root / "audio" / f"speaker{speaker}" / f"{name}.wav", samples, RATE)
            lines.append(f"audio/speaker{speaker}/{name}.wav mfc/{name}.mfc\n")
            entries.append((f"corpus/{name}.lab", with_words(given, words)))
    (root / "audio.scp").write_text("".join(lines))
    write_mlf(root / "states.mlf", entries)
    words = "".join(f"{word} {' '.join(phones)} sp\n" for word, phones in WORDS.items())
    (root / "words.dict").write_text(f"SENT-START [] sil\nSENT-END [] sil\n{words}")
    return root


def with_words(given: list[Label], words: list[str]) -> list[Label]:
    """Add the phone of each first state, and the word of each first phone, as HTK does."""
    first = iter(words)
    left = 0
    out = []
    for label in given:
        phone, _, state = label.name.partition("_s")
        aux = ((phone, -1.0),) if state == "2" else ()
        if aux and phone == "sil":
            aux = (*aux, ("SENT-START" if not out else "SENT-END", None))
        elif aux and not left:
            word = next(first)
            left, aux = len(WORDS[word]), (*aux, (word, None))
        left -= bool(aux and phone != "sil")
        out.append(label._replace(score=-1.0, aux=aux))
    return out


def test_words_of_a_list_are_those_of_its_alignment(place, monkeypatch):
    monkeypatch.chdir(place)
    corpus = import_corpus("htk", "audio.scp", words="states.mlf")
    assert len(corpus.utterances) == NUM_SPEAKERS * PER_SPEAKER
    assert {u.speaker for u in corpus.utterances} == {f"speaker{n}" for n in range(NUM_SPEAKERS)}
    assert all(len(u.words) == 4 and set(u.words) <= set(WORDS) for u in corpus.utterances)
    corpus = import_corpus("htk", "audio.scp", speaker_characters=2)
    assert (corpus.utterances[0].words, corpus.utterances[0].speaker) == (None, "s0")
    assert isinstance(corpus.report, RunReport)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("0 9 sil_s2|9 20 a_s2|20 30 b_s3_17", None),
        ("0 9 s2 -1 sil|9 20 s2 -1 a|20 30 s3", None),
        ("0 9 sil[2] -1 sil|9 20 l-a+b[2] -1 l-a+b", None),
        ("0 9 sil[2] -1 SENT-START|9 20 a[2] -1 AB|20 30 b[2]", ("AB",)),  # HVite -f
        ("0 9 s2 -1 sil|9 20 s2 -1 a -1 AB|20 30 s2 -1 b", ("AB",)),  # HVite -f -m
        ("0 9 sil|9 20 a -1 AB|20 30 b", ("AB",)),
        ("0 9 S2|9 20 AB", ("S2", "AB")),
    ],
)
def test_states_are_not_words(place, tmp_path, monkeypatch, rows, words):
    monkeypatch.chdir(place)
    body = rows.replace("|", "\n")
    (tmp_path / "a.mlf").write_text(f'#!MLF!#\n"*/s0-0.lab"\n{body}\n.\n')
    if words is None:
        with pytest.raises(
            ArgonautError, match=r"a.mlf: an alignment of states, such as '\S+', without words; expected"
        ):
            import_corpus("htk", "audio.scp", words=tmp_path / "a.mlf")
    else:
        found = {one.name: one.words for one in import_corpus("htk", "audio.scp", words=tmp_path / "a.mlf").utterances}
        assert found["s0-0"] == words


@pytest.mark.parametrize("line", ["s=audio/speaker0/s0-0.wav[0,9999999]", "audio/none.wav[1,2]"])
def test_parts_that_are_not_there_are_reported(place, tmp_path, monkeypatch, line):
    monkeypatch.chdir(place)
    (tmp_path / "list.scp").write_text(f"{line}\nb=audio/speaker0/s0-1.wav[0,7999]\n")
    corpus = import_corpus("htk", tmp_path / "list.scp")
    assert [(u.name, u.end) for u in corpus.utterances] == [("b", 0.5)]
    assert len(corpus.report.lost) == 1


def test_words_belong_to_a_list(tmp_path):
    with pytest.raises(ArgonautError, match="words of a corpus of kind folder; expected kind htk"):
        import_corpus("folder", tmp_path, words="a.mlf")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda text: text.replace("a_s", "ah_s").replace("b_s", "bh_s").replace("c_s", "ch_s"), "phone '[abc]h'"),
        (lambda text: text.replace("sil_s", "pau_s"), "phone 'pau'; expected those of the dictionary"),
        (lambda text: re.sub(r"(?m)^(\d+) (\d+) ", lambda row: f"{row[1]}0 {row[2]}0 ", text), "frames of 10 ms"),
        (lambda text: text.replace("corpus/s", "corpus/t"), "no alignment of s"),
    ],
)
def test_faults_of_given_alignments_are_found_before_features_are_computed(
    place, tmp_path, monkeypatch, capfd, change, fault
):
    monkeypatch.chdir(place)
    (tmp_path / "states.mlf").write_text(change(Path("states.mlf").read_text()))
    write_mlf(
        tmp_path / "words.mlf", ((key, [Label(None, None, w) for w in ("AB",)]) for key in read_mlf("states.mlf"))
    )
    given = ("--data", "audio.scp", "--alignments", tmp_path / "states.mlf", "--words", tmp_path / "words.mlf")
    arguments = (*given, "--dict", "words.dict", "--min-minutes", "0.5", "--out", tmp_path / "exp", "--to", "lists")
    assert main(["recipe", "own", *map(str, arguments)]) == 2
    assert re.search(
        rf"states.mlf.*: none of \d+ alignments can be used; first error: .*{fault}", capfd.readouterr().err
    )
    assert not (tmp_path / "exp" / "words.dict").exists()


def test_one_fault_of_given_alignments_is_reported_before_features_are_computed(place, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(place)
    (tmp_path / "states.mlf").write_text(Path("states.mlf").read_text().replace("corpus/s0-0", "corpus/t"))
    write_mlf(
        tmp_path / "words.mlf", ((key, [Label(None, None, w) for w in ("AB",)]) for key in read_mlf("states.mlf"))
    )
    given = ("--data", "audio.scp", "--alignments", tmp_path / "states.mlf", "--words", tmp_path / "words.mlf")
    speakers = ("--dev-speakers", "speaker1", "--test-speakers", "speaker2")
    arguments = (*given, *speakers, "--dict", "words.dict", "--min-minutes", "0.5", "--out", tmp_path / "exp")
    main(["recipe", "own", *map(str, arguments), "--to", "lists"])
    assert "no alignment of s0-0; expected one of each utterance" in capfd.readouterr().err
    assert (tmp_path / "exp" / "words.dict").exists()


@pytest.mark.slow
def test_recordings_with_alignments_become_a_recogniser_without_a_flat_start(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    given = ("--data", "audio.scp", "--alignments", "states.mlf", "--dict", "words.dict", "--min-minutes", "0.5")
    small = ("--set", "Hidden=48*1", "--set", "Epochs=4", "--workers", "1")
    assert main(["recipe", "own", *given, *small, "--out", "exp", "--to", "score"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert not any("flatstart" in line for line in shown)
    assert "alignments: 42 done, 0 skipped, 0 failed" in shown
    assert float(shown[-1].split()[1].rstrip("%")) < 20
    assert set(read_state_list("exp/flat/states.list")) == {f"{p}_s{n}" for p in ("a", "b", "c", "sil") for n in (2, 3)}
    phones = {line.split()[-1] for line in Path("exp/words.dict").read_text().splitlines()}
    assert phones == {"b", "a", "c"}  # without the short pause


@pytest.mark.parametrize("num_frames", [0, 3, 100])
def test_an_alignment_without_labels_is_a_fault(num_frames):
    with pytest.raises(FormatError, match=f"here: no labels; expected those of {num_frames} frames"):
        states_of([], "here", KNOWN, ("sil", "sp"), num_frames)


@pytest.mark.parametrize("first", ["*", "/corpus"])
def test_words_of_speakers_whose_files_have_the_same_names(first, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    base = tmp_path if first == "/corpus" else "*"
    entries = "".join(f'"{base}/{name}.lab"\n{word}\n.\n' for name, word in (("s1/u", "ONE"), ("s2/u", "TWO")))
    (tmp_path / "words.mlf").write_text("#!MLF!#\n" + entries)
    for speaker in ("s1", "s2"):
        (tmp_path / speaker).mkdir()
        write_wav(tmp_path / speaker / "u.wav", np.zeros(8000), 16000)
    (tmp_path / "one.scp").write_text("s1/u.wav\n")
    (tmp_path / "both.scp").write_text("s1/u.wav\ns2/u.wav\n")
    (tmp_path / "named.scp").write_text("s2/u=s2/u.wav\n")
    found = {
        name: [each.words for each in import_corpus("htk", f"{name}.scp", words="words.mlf").utterances]
        for name in ("one", "both", "named")
    }
    assert found == {"one": [("ONE",)], "both": [("ONE",), ("TWO",)], "named": [("TWO",)]}
