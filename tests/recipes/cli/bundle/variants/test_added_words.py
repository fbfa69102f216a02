"""Words that are added to a recogniser: which they are, who else knows them, and what is said about them."""

import math

import pytest

from decoder import Recognizer
from decoder.recognizer import pack
from readers.audio.audio_file import read_audio
from readers.errors import FormatError, GraphError
from recipes.cli.main import main
from tests.recipes.cli.bundle.conftest import parts_of

CERTAIN = {"ABC": 20.0}


@pytest.fixture(scope="module")
def recognizer(packed):
    return Recognizer.load(packed / "digits.argo")


def test_a_word_that_differs_only_in_case_is_the_one_of_the_graph(recognizer):
    assert recognizer.with_words(["ab", "Cab"]).decoder is recognizer.decoder
    more = recognizer.with_words({"Cab": "c b", "cba": "c b a", "CBA": "c b b a"})
    assert [word for word in more.decoder.graph.words if word not in recognizer.decoder.graph.words] == ["cba", "CBA"]
    assert [entry.word for entry in more._entries] == ["CAB", "cba", "CBA"]
    again = more.with_words({"Cab": "c b", "cba": "c b a"})  # what it has
    assert again.decoder is more.decoder


@pytest.mark.slow
def test_the_words_of_a_class_share_the_probability_of_its_word(recognizer, packed, tmp_path):
    costs = {}
    for weight in (1, 3):
        (tmp_path / "words").write_text(f"BBC 2 b b c\n[C]\nABC {weight} a b c\nBBB {4 - weight} b b b\n")
        extended = recognizer.with_words(tmp_path / "words").with_hotwords(CERTAIN)
        word_id = extended.decoder.lm.word_id
        assert word_id("ABC") == word_id("BBB") == word_id("C")
        assert word_id("BBC") not in (word_id("C"), -1)
        audio = read_audio(packed / "speech.wav")
        result = extended.decoder.decode(extended.front_end.score(*audio))
        assert result.text == ["ABC"]
        costs[weight] = result.cost
    assert costs[1] - costs[3] == pytest.approx(math.log(3), abs=1e-4)
    in_python = recognizer.with_words({"ABC": "3 a b c", "BBB": ""}, on_fault=[].append, word_class="C")
    assert in_python.decoder.lm.word_id("ABC") == word_id("C")
    again = in_python.with_words({"abc": "b b b", "BBC": "b b c"})  # which keeps its class
    assert again.decoder.lm.word_id("ABC") == word_id("C") != again.decoder.lm.word_id("BBC")
    moved = again.with_words(["BBC"], word_class="C")  # no more than a class
    assert moved.decoder.lm.word_id("BBC") == word_id("C")
    with pytest.raises(GraphError, match="no word 'XYZ', the class of 'ABC'; expected one of its words"):
        recognizer.with_words({"ABC": "a b c"}, word_class="XYZ")


@pytest.mark.slow
def test_what_aligns_knows_the_added_words(recognizer, packed):
    extended = recognizer.with_words({"ABC": "a b c", "AB": "b b"})
    aligned = extended.align(packed / "speech.wav", "abc")
    assert [phone.text for phone in aligned.phones if phone.confidence is not None] == ["a", "b", "c"]
    aligned = extended.align(packed / "speech.wav", "AB C")
    assert [phone.text for phone in aligned.phones if phone.confidence is not None] == ["a", "b", "c"]
    assert extended.with_grammar(["ABC"]).transcribe(packed / "speech.wav").accepted
    with pytest.raises(GraphError, match="ABC"):
        recognizer.with_grammar(["ABC"])


@pytest.mark.slow
def test_a_graph_without_places_is_built_anew_and_this_is_said(small_system, packed, tmp_path, capsys):
    lines = [line.split() for line in (small_system / "dict").read_text().splitlines()]
    swapped = {"a": "b", "b": "a"}
    turned = [[word, *(swapped.get(phone, phone) for phone in phones)] for word, *phones in lines]
    (tmp_path / "dict").write_text("".join(f"{' '.join(line)}\n" for line in turned))
    pack(parts_of(small_system, dictionary=tmp_path / "dict"), tmp_path / "turned.argo")
    (tmp_path / "words").write_text("ABC a b c\n")
    (tmp_path / "hot").write_text("ABC :20\n")
    command = ["transcribe", str(tmp_path / "turned.argo"), str(packed / "speech.wav")]
    assert main([*command, "--words", str(tmp_path / "words"), "--hotwords", str(tmp_path / "hot")]) < 2
    shown = capsys.readouterr()
    assert shown.out == "ABC\n"
    assert "does not have the paths of its dictionary; expected those of both; the graph is built anew" in shown.err
    assert Recognizer.load(packed / "digits.argo").with_words({"ABC": "a b c"}).notes == ()


def test_faults_of_words_are_no_reason_to_build_the_graph_anew(recognizer, tmp_path, monkeypatch):
    monkeypatch.setattr("decoder.recognizer.assembly.graph_of_words", lambda *arguments: pytest.fail("built anew"))
    (tmp_path / "words").write_text("ABC a b c\n[ABC] a b c\n")
    with pytest.raises(GraphError, match=r"words: dictionary word '\[ABC\]': reserved"):
        recognizer.with_words(tmp_path / "words", on_fault=pytest.fail)


def test_an_empty_list_is_refused(recognizer, packed, tmp_path, capsys):
    (tmp_path / "list").write_text("# names\n\n")
    for option in ("--words", "--hotwords"):
        command = ["transcribe", str(packed / "digits.argo"), str(packed / "speech.wav"), option]
        assert main([*command, str(tmp_path / "list")]) == 2
        assert f"error: {tmp_path / 'list'}: no " in capsys.readouterr().err
    with pytest.raises(FormatError, match="no words; expected one per line"):
        recognizer.with_words(tmp_path / "list")
    assert recognizer.with_words([]).decoder is recognizer.decoder
