"""Hotwords on the command line and of Recognizer."""

import math
import pickle
import re

import pytest

from decoder import Recognizer
from decoder.g2p import G2P
from readers.errors import ConfigError, GraphError
from readers.htk.dictionary import Pronunciation
from recipes.cli.argon.command import main as argon
from recipes.cli.main import main

CERTAIN = 20.0  # outweighs what was said, and the beam: some paths are unfinished


@pytest.fixture(scope="module")
def recognizer(packed):
    return Recognizer.load(packed / "digits.argo")


def test_a_large_bonus_changes_the_words_and_none_changes_nothing(recognizer, packed):
    plain = recognizer.transcribe(packed / "speech.wav")
    hot = recognizer.with_hotwords({"BA": CERTAIN})
    assert plain.text == "AB C"
    assert "BA" in hot.transcribe(packed / "speech.wav").text.split()
    zero = recognizer.with_hotwords(["BA", "CAB AB"], 0.0).transcribe(packed / "speech.wav")
    assert zero == plain
    assert [word.confidence for word in zero.words] == [word.confidence for word in plain.words]
    assert hot.stream(16000).decoder._search_lm.second is not None
    assert recognizer.decoder._search_lm.second is None


def test_a_grammar_may_have_hotwords(recognizer, packed):
    grammar = recognizer.with_grammar(["AB C", "BA C"])
    assert grammar.transcribe(packed / "speech.wav").text == "AB C"
    hot = grammar.with_hotwords({"BA": CERTAIN}).transcribe(packed / "speech.wav")
    assert hot.text.split()[0] == "BA"
    assert hot.grammar_score < grammar.transcribe(packed / "speech.wav").grammar_score


def test_a_grammar_keeps_the_hotwords_that_it_has(recognizer, packed):
    before = recognizer.with_hotwords({"BA": CERTAIN, "BA CAB": 1.0}).with_grammar(["AB C", "BA C"])
    after = recognizer.with_grammar(["AB C", "BA C"]).with_hotwords({"BA": CERTAIN})
    assert before.decoder._phrases == after.decoder._phrases == {("BA",): CERTAIN}
    assert before.transcribe(packed / "speech.wav") == after.transcribe(packed / "speech.wav")
    assert recognizer.with_hotwords(["CAB"]).with_grammar(["AB C"]).decoder._search_lm.second is None


@pytest.fixture(scope="module")
def g2p(tmp_path_factory):
    """A model whose letters are the phones."""
    words = ("AB", "BA", "CAB", "C", "ABC", "CBA", "BAC", "ACB")
    path = tmp_path_factory.mktemp("g2p") / "m.g2p"
    G2P.train([Pronunciation(word, None, None, tuple(word.lower())) for word in words], 2, passes=3).save(path)
    return path


def test_words_that_the_graph_lacks_are_guessed(recognizer, packed, g2p):
    with pytest.raises(GraphError, match="hotwords: ABC not in"):
        recognizer.with_hotwords({"ABC": CERTAIN})
    faults = []
    hot = recognizer.with_hotwords({"ABC": CERTAIN, "AXB": 1.0}, on_fault=faults.append, g2p=g2p)
    assert [(entry.word, entry.phones) for entry in hot.guessed] == [("ABC", ("a", "b", "c"))]
    assert len(faults) == 1
    assert "hotwords: AXB not in" in str(faults[0])
    assert hot.transcribe(packed / "speech.wav").text == "ABC"
    copy = pickle.loads(pickle.dumps(hot))
    assert (copy.transcribe(packed / "speech.wav").text, copy.guessed) == ("ABC", hot.guessed)
    assert recognizer.with_hotwords({"BA": 1.0}, g2p=g2p).guessed == ()
    with pytest.raises(ConfigError, match="guessed hotwords with a grammar, whose words are given"):
        recognizer.with_grammar(["AB C"]).with_hotwords(["ABC"], g2p=g2p)


def test_a_graph_with_guessed_words_finds_the_others_as_before(recognizer, packed, g2p):
    hot = recognizer.with_hotwords({"CCC": -9.0}, g2p=g2p)
    assert "CCC" in hot.decoder.graph.words
    before, after = (one.transcribe(packed / "speech.wav") for one in (recognizer, hot))
    assert [(one.text, one.start, one.end) for one in after.words] == [(w.text, w.start, w.end) for w in before.words]


def test_transcribe_guesses_the_words_of_a_file(packed, g2p, tmp_path, capsys):
    (tmp_path / "hot").write_text(f"ABC :{CERTAIN}\n")
    command = ["transcribe", str(packed / "digits.argo"), str(packed / "speech.wav"), "--g2p", str(g2p)]
    assert main([*command, "--hotwords", str(tmp_path / "hot")]) < 2
    shown = capsys.readouterr()
    assert (shown.out, "guessed: ABC: a b c" in shown.err) == ("ABC\n", True)
    assert main(command) == 2
    assert "--g2p is given without --hotwords or --words; expected words that it can guess" in capsys.readouterr().err
    (tmp_path / "menu.json").write_text('["AB C"]')
    assert main([*command, "--hotwords", str(tmp_path / "hot"), "--grammar", str(tmp_path / "menu.json")]) == 2
    assert "--g2p is given with a grammar, whose words are given" in capsys.readouterr().err


def test_transcribe_reads_a_file(packed, tmp_path, capsys):
    (tmp_path / "hot").write_text(f"BA :{CERTAIN}\nC\n")
    files = [str(packed / "digits.argo"), str(packed / "speech.wav")]
    assert main(["transcribe", *files, "--hotwords", str(tmp_path / "hot")]) < 2
    assert "BA" in capsys.readouterr().out.split()


def test_argon_reads_a_file(small_system, tmp_path, capsys):
    graph, (wav, *_) = small_system / "graph", sorted(small_system.rglob("*.wav"))
    (tmp_path / "list").write_text(f"{wav}\n")
    (tmp_path / "hot").write_text("BA\n")
    command = [
        *("-graph", graph / "graph.dg", "-lm", small_system / "lm.arpa", "-am", small_system / "model/net"),
        *("-cntkmap", graph / "cntkmap", "-infiles", tmp_path / "list", "--features", small_system / "hcopy.config"),
        *("-acweight", "0.5", "-outmlf", tmp_path / "out.mlf", "--hotwords", tmp_path / "hot"),
    ]
    assert argon([str(word) for word in [*command, "--hotwords-score", CERTAIN]]) < 2
    assert "BA" in (tmp_path / "out.mlf").read_text()
    assert argon([str(word) for word in [*command, "--hotwords-score", "nan"]]) == 2
    assert "command line: --hotwords-score is nan; expected a finite number, -1000 to 1000" in capsys.readouterr().err
    assert argon([str(word) for word in [*command[:-2], "--hotwords-score", "1"]]) == 2
    assert "--hotwords-score is given without --hotwords; expected both" in capsys.readouterr().err
    without_lm = [*command[:2], *command[4:]]
    assert argon([str(word) for word in [*without_lm, "-alignmlf", tmp_path / "hot"]]) == 2
    assert "--hotwords is given with -alignmlf" in capsys.readouterr().err


def test_unknown_words_are_left_out_of_a_list(packed, tmp_path, capsys):
    (tmp_path / "hot").write_text(f"SMITH AB :2\nBA :{CERTAIN}\nJONES\n")
    command = ["transcribe", *(str(packed / name) for name in ("digits.argo", "speech.wav"))]
    command += ["--hotwords", str(tmp_path / "hot")]
    message = f"{tmp_path / 'hot'}:1: SMITH, JONES not in "
    assert main(command) < 2
    shown = capsys.readouterr()
    assert "BA" in shown.out.split()
    assert f"left out of the hotwords: {message}" in shown.err
    assert main([*command, "--hotwords-strict"]) == 2
    assert f"error: {message}" in capsys.readouterr().err
    (tmp_path / "hot").write_text("SMITH\n")
    assert main(command) == 2
    assert f"error: {tmp_path / 'hot'}:1: SMITH not in " in capsys.readouterr().err


def test_unknown_words_are_named_with_the_file(recognizer, tmp_path):
    (tmp_path / "hot").write_text("AB\nSMITH AB :2\n")
    with pytest.raises(GraphError, match=re.escape(f"{tmp_path / 'hot'}:2: SMITH not in ")):
        recognizer.with_hotwords(tmp_path / "hot")
    with pytest.raises(ConfigError, match="hotwords: AB: score inf"):
        recognizer.with_hotwords(["AB"], float("inf"))


def test_words_are_added_to_the_graph(recognizer, packed, g2p, tmp_path, monkeypatch):
    monkeypatch.setattr("decoder.recognizer.assembly.graph_of_words", None)  # it is not built anew
    (tmp_path / "words").write_text("# names\nABC a b c\nAB\nAXB\n")
    faults = []
    extended = recognizer.with_words(tmp_path / "words", g2p, faults.append)
    assert [str(fault) for fault in faults] == [
        f"{tmp_path}/words: no pronunciation of AXB; expected it after the word"
    ]
    assert (extended.guessed, "ABC" in extended.decoder.graph.words) == ((), True)
    more = extended.with_hotwords({"ABC": CERTAIN}).with_words(["CBA"], g2p)
    assert [entry.phones for entry in more.guessed] == [("c", "b", "a")]
    assert more.transcribe(packed / "speech.wav").text == "ABC"
    copy = pickle.loads(pickle.dumps(more))
    assert copy.transcribe(packed / "speech.wav").text == "ABC"
    assert recognizer.with_words({"BBB": "b b b"}).transcribe(packed / "speech.wav").text == "AB C"
    with pytest.raises(ConfigError, match="words: XYZ: no phone x; expected a, b, c"):
        recognizer.with_words({"XYZ": "x y z"})
    with pytest.raises(ConfigError, match="new words with a grammar"):
        recognizer.with_grammar(["AB C"]).with_words(["ABC"], g2p)
    with pytest.raises(GraphError, match="words: no pronunciation of AXB"):
        recognizer.with_words(["AXB"], g2p)


def test_new_words_share_the_probability_of_one(recognizer, packed):
    """The path of a word of four new ones costs ln 4 more than that of the only one."""
    costs = []
    for words in ({"ABC": "a b c"}, {"ABC": "a b c", "BBB": "b b b", "CCC": "c c c", "AAA": "a a a"}):
        extended = recognizer.with_words(words).with_options(word_penalty=0.0)
        audio = extended._audio.open(packed / "speech.wav", None)
        result = extended.with_hotwords({"ABC": 10.0}).decoder.decode(extended._audio.scores(audio, audio.whole())[0])
        assert set(result.text) == {"ABC"}
        costs.append(result.cost)
    assert costs[1] - costs[0] == pytest.approx(len(result.text) * math.log(4), abs=1e-3)


def test_transcribe_adds_the_words_of_a_file(packed, tmp_path, capsys):
    (tmp_path / "words").write_text("ABC a b c\n")
    (tmp_path / "hot").write_text(f"ABC :{CERTAIN}\n")
    command = [
        "transcribe",
        str(packed / "digits.argo"),
        str(packed / "speech.wav"),
        "--words",
        str(tmp_path / "words"),
    ]
    assert main([*command, "--hotwords", str(tmp_path / "hot")]) < 2
    assert capsys.readouterr().out == "ABC\n"
