"""Folders of recordings with transcripts."""

import os

import pytest

from readers.corpora import import_corpus, read_corpus, write_corpus
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


def test_audio_without_transcript_and_the_reverse(folder):
    (folder / "bob/bob-1.lab").rename(folder / "bob/bob-9.lab")
    corpus = import_corpus("folder", folder)
    assert [one.words for one in corpus.utterances][-1] is None
    assert corpus.report.lost == [
        ("bob-9", "skipped", f"{folder}/bob/bob-9.lab: a transcript without a recording; expected one beside it")
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
    with pytest.raises(ConfigError, match="kind of corpus 'x'; expected folder, kaldi"):
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
