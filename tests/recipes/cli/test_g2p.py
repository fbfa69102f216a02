"""`argonaut g2p`: training, application and test from files to files, and what is wrong with their inputs."""

import re

import pytest

from decoder.g2p import complete_dictionary
from decoder.g2p.model import G2P
from readers.htk.dictionary import Pronunciation, read_dictionary, write_dictionary
from recipes.cli.main import main
from tests.decoder.g2p.words import entries


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A directory with a dictionary, a list of words and a model; it becomes the current one."""
    monkeypatch.chdir(tmp_path)
    write_dictionary("words.dict", entries(60))
    (tmp_path / "list").write_text("xotu\n\nbame\nxotu\n")
    assert main(["g2p", "train", "words.dict", "-o", "m.g2p", "--order", "3"]) == 0
    return tmp_path


def test_training_with_words_held_out(place, capsys):
    with (place / "words.dict").open("a") as file:
        file.write("<s> [] sil\nw D AH B AH L Y UW\n")
    assert main(["g2p", "train", "words.dict", "-o", "new/h.g2p", "--hold-out", "7", "--threads", "1"]) == 0
    rates, closing = capsys.readouterr().out.splitlines()[-2:]
    assert re.fullmatch(r"phone error rate [\d.]+ %, word error rate [\d.]+ % \(\d+ words, \d+ phones\)", rates)
    counts = r"7-gram, \d+ words, \d+ pronunciations, \d+ phones, 2 left out"
    assert re.fullmatch(rf"new/h\.g2p: {counts}, see new/h\.g2p\.report", closing)
    report = (place / "new/h.g2p.report").read_text()
    assert "<s>\tskipped\tno word of the language\n" in report
    assert "w\tskipped\t7 phones; expected at most 5 for each of 1 letters\n" in report
    model = G2P.load(place / "new/h.g2p")
    assert model.about["error rates"] == rates
    assert model.about["dictionary"] == "words.dict"
    assert "sil" not in model.phones


@pytest.mark.slow
def test_training_of_a_network(place, capsys):
    write_dictionary("more.dict", entries(130))
    network = ("--order", "3", "--network", "--cells", "2", "--epochs", "1")
    assert main(["g2p", "train", "more.dict", "-o", "n.g2p", *network]) == 0
    assert "n.g2p: 3-gram and a network of 2 cells, " in capsys.readouterr().out
    assert not (place / "n.g2p.unfinished").exists()
    assert main(["info", "n.g2p"]) == 0
    assert "2 layers of 2 cells in both directions" in capsys.readouterr().out
    assert main(["g2p", "train", "words.dict", "-o", "few.g2p", *network]) == 2
    assert "words.dict: " in (fault := capsys.readouterr().err)
    assert "expected 100 or more to train a network" in fault
    assert not (place / "few.g2p").exists()


def test_pronunciations_are_printed_or_written(place, capsys):
    assert main(["g2p", "apply", "m.g2p", "xotu", "--words", "list", "-n", "2"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "words: 2 done, 0 skipped, 0 failed\n"
    assert main(["g2p", "apply", "m.g2p", "xotu", "bame", "-n", "2", "-o", "new/guessed.dict"]) == 0
    assert capsys.readouterr().out == "words: 2 done, 0 skipped, 0 failed\n"
    assert (place / "new/guessed.dict").read_text() == printed.out
    found = read_dictionary("new/guessed.dict")
    assert next(entry.word for entry in found) == "xotu"
    model = G2P.load("m.g2p")
    assert [(entry.phones, entry.probability) for entry in found if entry.word == "bame"] == [
        (phones, round(p, 6)) for phones, p in model.pronunciations("bame", 2)
    ]


def test_words_with_unknown_letters_are_reported(place, capsys):
    assert main(["g2p", "apply", "m.g2p", "xotu", "café"]) == 1
    printed = capsys.readouterr()
    assert printed.out.startswith("xotu ")
    assert "failed: café: letters 'c', 'f' are not in the model\n" in printed.err
    assert main(["g2p", "apply", "m.g2p", "café", "-o", "none.dict"]) == 2
    assert "letters 'c', 'f'" in capsys.readouterr().err
    assert not (place / "none.dict").exists()


def test_words_may_follow_an_option(place, capsys):
    assert main(["g2p", "apply", "m.g2p", "-n", "2", "bame"]) == 0
    found = capsys.readouterr().out
    assert main(["g2p", "apply", "m.g2p", "bame", "-n", "2"]) == 0
    assert capsys.readouterr().out == found


def test_letters_of_all_languages_can_be_read(place, capsys):
    words = ("αβ", "caf\u00e9", "سلام", "한국", "ab\u00a0")
    model = G2P.train([Pronunciation(word, None, None, ("x", "y", "ə")) for word in words], 2)
    model.save("all.g2p")
    assert main(["g2p", "apply", "all.g2p", *words]) == 0
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()[:4]] == list(words[:4])
    assert printed.splitlines()[4].startswith('"ab\\302\\240"')
    guesses = complete_dictionary([], words, model)
    guesses.write("guessed.dict")
    assert sorted((place / "guessed.dict").read_text(encoding="utf-8").splitlines()) == sorted(printed.splitlines())
    assert {entry.word for entry in read_dictionary("guessed.dict")} == set(words)


def test_a_model_is_measured_on_a_dictionary(place, capsys):
    assert main(["g2p", "test", "m.g2p", "words.dict"]) == 0
    assert re.fullmatch(r"phone error rate .* \(\d+ words, \d+ phones\)\n", capsys.readouterr().out)


def test_info_shows_a_model(place, capsys):
    assert main(["info", "m.g2p"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("m.g2p: pronunciation model\n  order          3\n")
    assert "dictionary     words.dict" in shown


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["train", "words.dict", "-o", "x.g2p", "--order", "0"], "--order is 0; expected 1 to 20"),
        (["train", "words.dict", "-o", "x.g2p", "--hold-out", "1"], "words.dict: every word number 1 of "),
        (["train", "words.dict", "-o", "x.g2p", "--threads", "0"], "--threads is 0; expected at least 1"),
        (["train", "words.dict", "-o", "x.g2p", "-j", "0"], "--threads is 0; expected at least 1"),
        (["train", "words.dict", "-o", "words.dict"], "words.dict: is an input and would be overwritten"),
        (["train", "marks", "-o", "x.g2p"], "^error: marks: no words to train on"),
        (["apply", "m.g2p"], "WORD is missing or empty; expected words to pronounce, or --words FILE"),
        (["apply", "m.g2p", "--words", "empty"], "empty: no words; expected one per line"),
        (["apply", "m.g2p", "--words", "words.dict"], r"words.dict:1: .*; expected one word a line"),
        (["apply", "m.g2p", "ba", "-n", "0"], "--number is 0; expected 1 to 1000"),
        (["apply", "words.dict", "ba"], "words.dict: begins with .*; expected a pronunciation model"),
        (["test", "m.g2p", "marks"], "^error: marks: no words to measure the model on; expected words of letters"),
        (["test", "words.dict", "words.dict"], "words.dict: begins with .*; expected a pronunciation model"),
    ],
)
def test_faults(place, capsys, given, message):
    (place / "marks").write_text("<s> sil\n")
    (place / "empty").write_text("\n")
    before = {path: path.read_bytes() for path in place.iterdir()}
    assert main(["g2p", *given]) == 2
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) == 1
    assert re.search(message, shown[0])
    assert {path: path.read_bytes() for path in place.iterdir()} == before


@pytest.mark.parametrize("action", ["train", "apply", "test"])
def test_actions_refer_to_the_examples(capsys, action):
    with pytest.raises(SystemExit):
        main(["g2p", action, "--help"])
    assert "`argonaut g2p --help` shows worked examples" in " ".join(capsys.readouterr().out.split())
