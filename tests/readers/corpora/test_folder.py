"""Folders of recordings with transcripts."""

import os
import shutil
from pathlib import Path

import pytest

from readers.corpora import import_corpus, read_corpus, write_corpus
from readers.corpora.words import WordForms
from readers.errors import ConfigError, FormatError
from tests.readers.corpora.conftest import expected, rows, tone


def test_a_folder_is_imported_and_read_back(folder, tmp_path):
    corpus = import_corpus("folder", folder)
    assert rows(corpus) == expected(folder)
    assert corpus.report.summary() == "utterances: 3 done, 0 skipped, 0 failed"
    write_corpus(corpus, tmp_path / "out")
    assert read_corpus(tmp_path / "out") == corpus


def test_lab_is_preferred_to_txt_and_hidden_files_are_ignored(folder):
    (folder / "anna/anna-1.txt").write_text("other words")
    (folder / "anna/._anna-1.wav").write_text("not audio")
    (folder / "README.txt").write_text("about the corpus")
    assert rows(import_corpus("folder", folder)) == expected(folder)


def test_names_of_documents_may_be_those_of_recordings(folder):
    (folder / "bob/bob-1.wav").rename(folder / "bob/notes.wav")
    (folder / "bob/bob-1.lab").rename(folder / "bob/notes.txt")
    (folder / "report.txt").write_text("of an import into this folder")
    corpus = import_corpus("folder", folder)
    assert [(one.name, one.words) for one in corpus.utterances][-1] == ("notes", ("don't",))
    assert corpus.report.lost == []


def test_audio_without_transcript_and_the_reverse(folder):
    (folder / "bob/bob-1.lab").rename(folder / "bob/bob-9.lab")
    corpus = import_corpus("folder", folder)
    assert [one.words for one in corpus.utterances][-1] is None
    assert corpus.report.lost == [
        ("bob-9", "skipped", f"{folder}/bob/bob-9.lab: a transcript without a recording; expected one beside it")
    ]


def test_formats_that_cannot_be_read_are_named(folder):
    (folder / "bob/bob-1.mp4").write_text("a film with the same sound")
    (folder / "bob/bob-2.M4A").write_text("x")
    (folder / "bob/bob-2.txt").write_text("words")
    corpus = import_corpus("folder", folder)
    assert rows(corpus) == expected(folder)
    assert corpus.report.lost == [
        ("bob-2", "skipped", f"{folder}/bob/bob-2.M4A: .M4A cannot be read; convert it to WAV")
    ]


def test_equal_file_names_in_two_folders(folder):
    tone(folder / "bob/anna-1.wav", 800)
    names = {(one.name, one.speaker) for one in import_corpus("folder", folder).utterances}
    assert names == {("anna_anna-1", "anna"), ("bob_anna-1", "bob"), ("anna-2", "anna"), ("bob-1", "bob")}


def test_names_that_lists_cannot_hold(tmp_path):
    tone(tmp_path / "Anna B/take 1=x.v2.wav", 800)
    (tmp_path / "Anna B/take 1=x.v2.txt").write_text("a")
    corpus = import_corpus("folder", tmp_path)
    assert rows(corpus) == [("take_1_x_v2", "Anna_B", ("a",), tmp_path / "Anna B/take 1=x.v2.wav")]
    write_corpus(corpus, tmp_path / "out")
    assert read_corpus(tmp_path / "out") == corpus


def test_the_speaker_from_the_file_name(folder):
    assert [one.speaker for one in import_corpus("folder", folder, speaker_characters=3).utterances] == [
        "ann", "ann", "bob",
    ]  # fmt: skip


def test_links_to_folders_above_are_followed_once(folder):
    (folder / "anna/loop").symlink_to(folder)
    assert rows(import_corpus("folder", folder)) == expected(folder)


def test_linked_files_keep_their_names(folder, tmp_path):
    other = tmp_path / "linked/carol"
    other.mkdir(parents=True)
    (other / "c.wav").symlink_to(folder / "anna/anna-1.wav")
    assert [(one.name, one.speaker, one.audio) for one in import_corpus("folder", tmp_path / "linked").utterances] == [
        ("c", "carol", other / "c.wav")
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ("Hello", "world", "don't", "'tis", "[noise]", "self-made", "50%")),
        ({"case": "upper"}, ("HELLO", "WORLD", "DON'T", "'TIS", "[NOISE]", "SELF-MADE", "50%")),
        (
            {"punctuation": "keep", "case": "lower"},
            ("“hello,", "'world'!", "don’t", "'tis", "[noise]", "--", "self-made", "50%"),
        ),
        ({"known": {"world!"}}, ("Hello", "world", "don't", "'tis", "[noise]", "self-made", "50%")),
        ({"known": {"'world'!"}}, ("Hello", "'world'!", "don't", "'tis", "[noise]", "self-made", "50%")),
    ],
)  # fmt: skip
def test_words(options, words, tmp_path):
    tone(tmp_path / "s/a.wav", 800)
    (tmp_path / "s/a.txt").write_text("“Hello, 'world'!\ndon’t\t'tis [noise] -- self-made 50%\n")
    assert import_corpus("folder", tmp_path, **options).utterances[0].words == words


@pytest.mark.parametrize(
    ("text", "known", "words"),
    [
        ("yes—no... well--maybe", (), "yes no well maybe"),
        ("''quoted'' (aside) rock 'n' roll's", (), "quoted aside rock n roll's"),
        ("(two words) ¿qué? «sí»", (), "two words qué sí"),
        ("(one-two), (breath) one-two", ("one", "two", "(breath)"), "one two (breath) one two"),
        ("one-two one-two-three - -one", ("one", "two", "one-two"), "one-two one-two-three one"),
        ("cafe\u0301", (), "caf\u00e9"),
        ("cafe\u0301", ("cafe\u0301",), "caf\u00e9"),
        ("it’s Mr. Smith.", ("it’s", "Mr."), "it’s Mr. Smith"),
        ("A.M. U.S.A., AT&T @home", (), "A.M U.S.A AT&T @home"),
        ("- … ' ''", (), ""),
        ("e\u2011mail co\u00adop \ufeffone.\u200btwo \u200e-", (), "e-mail coop one two"),
        ("'one two' 'tis 'twas", ("one", "two", "tis", "'tis"), "one two 'tis 'twas"),
        ("so [door slam]then <unk>. {x} [] a < b", (), "so [door_slam] then <unk> {x} a b"),
        ("the <<fm>brother> [this is it] went", ("<<fm>brother>", "is"), "the <<fm>brother> [this_is_it] went"),
        ("<rAdp {w>mrhm. <n [a <rAdp b]", ("<rAdp", "{w>mrhm.", "<n"), "<rAdp {w>mrhm. <n a <rAdp b"),
        ("<<fm>brother> {w>mrhm", (), "<fm> brother w>mrhm"),
        ("x[1] <a> [b] (c)d", ("x[1]", "<a>", "(c)d"), "x[1] <a> [b] (c)d"),
    ],
)
def test_punctuation(text, known, words):
    assert WordForms(known=known).split(text) == tuple(words.split())


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda f: (f / "bob-1.wav").write_bytes(b""), "{f}/bob-1.wav: empty file; expected audio"),
        (lambda f: (f / "bob-1.wav").write_text("text\n" * 99), "{f}/bob-1.wav: no audio of a known format"),
        (lambda f: ((f / "bob-1.wav").unlink(), (f / "bob-1.wav").symlink_to("bob-1.wav")), "{f}/bob-1.wav: Too many"),
        (lambda f: ((f / "bob-1.wav").unlink(), os.mkfifo(f / "bob-1.wav")), "{f}/bob-1.wav: a pipe or device"),
        (lambda f: ((f / "bob-1.wav").unlink(), (f / "bob-1.wav").symlink_to("/")), "{f}/bob-1.wav: Is a directory"),
        (lambda f: ((f / "bob-1.lab").unlink(), (f / "bob-1.lab").symlink_to("/")), "{f}/bob-1.lab: Is a directory"),
        (lambda f: (f / "bob-1.lab").write_bytes(b"gr\xf6\xdfer"), "{f}/bob-1.lab:1: byte 0xf6 is not UTF-8"),
        (lambda f: (f / "bob-1.lab").write_bytes(b"a\0b"), "{f}/bob-1.lab:1: byte 0x00 is not text"),
        (lambda f: (f / "bob-1.lab").write_bytes(b"a " * (1 << 22)), "{f}/bob-1.lab: 8388608 bytes; expected"),
    ],
)  # fmt: skip
def test_broken_files_are_named_and_the_others_imported(break_it, message, folder):
    break_it(folder / "bob")
    corpus = import_corpus("folder", folder)
    assert rows(corpus) == expected(folder)[:2]
    ((name, outcome, reason),) = corpus.report.lost
    assert (name, outcome) == ("bob-1", "failed")
    assert reason.startswith(message.format(f=folder / "bob"))
    assert "\n" not in reason


def test_wrong_sources(tmp_path):
    with pytest.raises(ConfigError, match="kind of corpus 'x'; expected folder, kaldi, lhotse, htk, table"):
        import_corpus("x", tmp_path)
    with pytest.raises(FormatError, match=r"no utterances; expected recordings with \.lab"):
        import_corpus("folder", tmp_path)
    with pytest.raises(FileNotFoundError):
        import_corpus("folder", tmp_path / "missing")
    (tmp_path / "file").write_text("x")
    with pytest.raises(FormatError, match="a file; expected a folder of recordings"):
        import_corpus("folder", tmp_path / "file")
    for options in ({"case": "Upper"}, {"punctuation": "no"}, {"speaker_characters": -1}):
        with pytest.raises(ConfigError):
            import_corpus("folder", tmp_path, **options)


def textgrid(path, tiers, end=1.0, points=()):
    """Write a TextGrid in the short form; tiers: name -> (start, end, text) of each interval."""
    lines = ['File type = "ooTextFile"\nObject class = "TextGrid"\n', "0", f"{end}", "<exists>", f"{len(tiers)}"]
    for name, intervals in tiers.items():
        kind = "TextTier" if name in points else "IntervalTier"
        lines += [f'"{kind}"', f'"{name}"', "0", f"{end}", f"{len(intervals)}"]
        for start, stop, text in intervals:
            lines += [f"{start}", *([] if name in points else [f"{stop}"]), f'"{text}"']
    path.write_text("\n".join(lines) + "\n", encoding="utf-16")


@pytest.mark.parametrize(
    ("tiers", "expected"),
    [
        ({"Ann": [(0, 1, "one two")]}, [("a", "Ann", "one two", 0.0, None)]),
        (
            {"Ann": [(0, 0.25, "one"), (0.25, 0.5, " "), (0.5, 1, "two")]},
            [("a-0000000-0000250", "Ann", "one", 0.0, 0.25), ("a-0000500-0001000", "Ann", "two", 0.5, None)],
        ),
        (
            {"Bob": [(0.5, 1, "hi")], "Ann": [(0, 0.75, "one")], "notes": [(0, 1, "x")], "bell": [(0.5, 0.5, "x")]},
            [("a-Ann-0000000-0000750", "Ann", "one", 0.0, 0.75), ("a-Bob-0000500-0001000", "Bob", "hi", 0.5, None)],
        ),
        ({"utterances": [(0.25, 0.5, "one")]}, [("a", "s", "one", 0.25, 0.5)]),
        (
            {"utterance": [(0, 0.5, "one two")], "words": [(0, 0.25, "one"), (0.25, 0.5, "two")]},
            [("a", "s", "one two", 0.0, 0.5)],
        ),
        ({"words": [(0, 0.5, "one"), (0.5, 0.75, "two")], "phones": [(0, 1, "w")]}, [("a", "s", "one two", 0.0, None)]),
        (
            {"Ann - words": [(0.25, 0.5, "one")], "Ann - phones": [(0, 1, "w")], "Bob - words": [(0.5, 0.75, "two")]},
            [("a-Ann-0000250-0000500", "Ann", "one", 0.25, 0.5), ("a-Bob-0000500-0000750", "Bob", "two", 0.5, 0.75)],
        ),
    ],
)  # fmt: skip
def test_textgrids(tiers, expected, tmp_path):
    tone(tmp_path / "c/s/a.wav", 8000)
    textgrid(tmp_path / "c/s/a.TextGrid", tiers, points=("bell",))
    corpus = import_corpus("folder", tmp_path / "c")
    found = [(one.name, one.speaker, " ".join(one.words), one.start, one.end) for one in corpus.utterances]
    assert found == expected
    assert corpus.report.exit_status == 0
    write_corpus(corpus, tmp_path / "out")
    assert read_corpus(tmp_path / "out") == corpus


def test_speakers_of_textgrids_with_two_channels(tmp_path):
    tone(tmp_path / "s/a.wav", 8000, channels=2)
    textgrid(tmp_path / "s/a.TextGrid", {"Ann": [(0, 0.5, "one")], "Bob": [(0.5, 1, "two")]})
    corpus = import_corpus("folder", tmp_path)
    assert [(one.speaker, one.channel) for one in corpus.utterances] == [("Ann", 0), ("Bob", 1)]
    corpus = import_corpus("folder", tmp_path, speaker_characters=1)
    assert [(one.speaker, one.channel) for one in corpus.utterances] == [("a", None), ("a", None)]


@pytest.mark.parametrize(
    ("tiers", "message"),
    [
        ({"Ann": [(0, 1, " ")]}, "a.TextGrid: no interval with text; expected at least one"),
        ({"phones": [(0, 1, "w")]}, "a.TextGrid: no tier of utterances; expected a tier for each speaker"),
        ({"Ann": [(0.5, 0.25, "x")]}, "a.TextGrid:13: from 0.5 to 0.25 s in tier 'Ann'; expected intervals in order"),
        ({"Ann": [(2, 3, "x")]}, "a.TextGrid:13: from 2 to 3 s, but"),
        ({"Ann": [(0.5, 0.5, "x")]}, "a.TextGrid:13: from 0.5 to 0.5 s; expected times from 0, the start first"),
    ],
)
def test_broken_textgrids(tiers, message, tmp_path):
    tone(tmp_path / "s/a.wav", 8000)
    textgrid(tmp_path / "s/a.TextGrid", tiers)
    corpus = import_corpus("folder", tmp_path)
    ((name, _, reason),) = corpus.report.lost
    assert name == "a"
    assert message in reason


REAL = Path(__file__).parents[1] / "results/real.eaf"


@pytest.mark.parametrize(
    ("tiers", "expected"),
    [
        ((), [("Kate", "that's the oranje single", 1.0, 4.0)]),
        (("words",), [("s", "that's the", 1.0, 4.0)]),  # parts without times of their own
        (("K-Parts", "gesture"), [("K-Parts", "one two three", 1.0, 4.0), ("gesture", "<points>", 1.0, 4.0)]),
    ],
)
def test_elan_files(tiers, expected, tmp_path):
    tone(tmp_path / "c/s/a.wav", 48000)
    shutil.copy(REAL, tmp_path / "c/s/a.eaf")
    for source in (tmp_path / "c", tmp_path / "c/s/a.wav"):
        corpus = import_corpus("folder", source, tiers=tiers)
        utterances = [(one.speaker, " ".join(one.words), one.start, one.end) for one in corpus.utterances]
        assert utterances == expected
        assert corpus.report.exit_status == 0


def test_broken_elan_files_and_missing_tiers(tmp_path):
    tone(tmp_path / "s/a.wav", 48000)
    shutil.copy(REAL, tmp_path / "s/a.eaf")
    ((_, _, reason),) = import_corpus("folder", tmp_path, tiers=["orth", "text"]).report.lost
    assert "a.eaf: no tier orth or text; expected one of its tiers K-Spch, K-Parts, gloss, words, gesture" in reason
    (tmp_path / "s/a.eaf").write_text("<x/>")
    ((_, _, reason),) = import_corpus("folder", tmp_path).report.lost
    assert "a.eaf:1: element 'x'; expected an annotation file of ELAN" in reason
    with pytest.raises(ConfigError, match="tiers orth of a corpus of kind kaldi; expected kind folder"):
        import_corpus("kaldi", tmp_path, tiers=["orth"])


def test_lab_is_preferred_to_textgrid(folder):
    textgrid(folder / "anna/anna-1.TextGrid", {"Bob": [(0, 0.5, "other words")]})
    assert rows(import_corpus("folder", folder)) == expected(folder)
