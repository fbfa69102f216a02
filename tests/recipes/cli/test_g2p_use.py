"""`--g2p` of `argonaut graph` and `argon -alignmlf`: words that the dictionary lacks are guessed."""

import re

import pytest

from decoder.g2p import G2P
from decoder.graph.graph_file import load_graph
from readers.htk.dictionary import Pronunciation, read_dictionary
from readers.htk.mlf import read_mlf
from tests.recipes.cli.argon.test_align import align
from tests.recipes.systems.small_system import GRAPH, WORDS


@pytest.fixture
def lacking(user):
    """A user whose dictionary `few` lacks CAB and C, and who has a model of these words."""
    made = [Pronunciation(word, None, None, tuple(phones)) for word, phones in WORDS.items()]
    G2P.train(made, 2, passes=3).save("m.g2p")
    text = (user.root / "dict").read_text()
    user.write("few", "".join(f"{line}\n" for line in text.splitlines() if not line.startswith("C")))
    return user


def test_transcripts_with_words_that_the_dictionary_lacks(lacking):
    assert align(lacking, "-alignmlf", "words.mlf", "--dict", "dict").status == 0
    expected = list(read_mlf("aligned.mlf").items())
    outcome = align(lacking, "-alignmlf", "words.mlf", "--dict", "few", "--g2p", "m.g2p")
    assert outcome.status == 0, outcome.err
    assert "2 words guessed, see aligned.mlf.guessed.dict" in outcome.out
    assert list(read_mlf("aligned.mlf").items()) == expected
    guessed = read_dictionary("aligned.mlf.guessed.dict")
    assert {entry.word: "".join(entry.phones) for entry in guessed} == {"CAB": "cab", "C": "c"}
    assert all(0 < entry.probability <= 1 for entry in guessed)


def test_a_graph_of_a_language_model_with_words_that_the_dictionary_lacks(lacking):
    lacking.write("text", "AB CAB\nBA C4\n")
    assert lacking.run("lm", "estimate", "--text", "text", "--method", "wb", "-o", "lm.arpa").status == 0
    few = [word if word != "dict" else "few" for word in GRAPH]
    outcome = lacking.run("graph", *few, "--g2p", "m.g2p", "--out", "g2p")
    assert outcome.status == 0, outcome.err
    assert "1 word guessed, see g2p/guessed.dict" in outcome.out
    assert "not guessed: C4: letters '4' are not in the model; expected numbers as words" in outcome.out
    assert not [line for line in outcome.out if "<s>" in line]
    assert set(load_graph("g2p/graph.dg").words) == {"<s>", "</s>", "AB", "BA", "CAB"}


def test_a_graph_of_a_grammar(lacking):
    lacking.write("phrases.json", '["ab C", "BA", "[unk]"]')
    few = [word if word != "dict" else "few" for word in GRAPH[:-2]]
    outcome = lacking.run("graph", *few, "--grammar", "phrases.json", "--g2p", "m.g2p", "--out", "g2p")
    assert outcome.status == 0, outcome.err
    assert [entry.word for entry in read_dictionary("g2p/guessed.dict")] == ["C"]


def test_guesses_with_phones_that_the_dictionary_lacks(lacking):
    made = [Pronunciation(word, None, None, (*(f"{phone}0" for phone in WORDS[word]), "a")) for word in ("CAB", "C")]
    G2P.train(made, 2, passes=3).save("stress.g2p")
    outcome = align(lacking, "-alignmlf", "words.mlf", "--dict", "few", "--g2p", "stress.g2p")
    assert "phones of guesses that few lacks: a0 b0 c0" in outcome.out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            ("graph", *GRAPH[:4], *GRAPH[6:], "--g2p", "m.g2p", "--out", "g"),
            "--g2p is given without --dict; expected both",
        ),
        (
            ("graph", *GRAPH[:-2], "--loop", "--g2p", "m.g2p", "--out", "g"),
            "--g2p is given beside --loop",
        ),
        (("graph", *GRAPH, "--g2p", "dict", "--out", "g"), "dict: begins with .* expected a pronunciation model"),
        (
            ("argon", "-graph", "graph/graph.dg", "--dict", "dict", "--g2p", "m.g2p"),
            "--g2p is given without -alignmlf; expected transcripts",
        ),
    ],
)
def test_refused(lacking, command, message):
    assert re.search(message, lacking.run(*command).fault)
