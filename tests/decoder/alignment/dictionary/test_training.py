"""The whole way: align, estimate a dictionary's probabilities by the command, align and build a graph with them."""

import math

import numpy as np
import pytest

from decoder.alignment.aligner import Aligner
from decoder.graph import GraphOptions, PhoneModels, build_monophone_graph
from decoder.graph.transcript import TranscriptGraphs
from decoder.results.outputs import alignment_labels
from readers.dictionaries import read_any_dictionary
from readers.htk.dictionary import Pronunciation, write_dictionary
from readers.htk.mlf import write_mlf
from recipes.cli.main import main
from tests.decoder.graph.test_monophone import acceptor_paths, unigrams

MODELS = PhoneModels({phone: (f"{phone}[2]",) for phone in ("a", "e", "b", "sil")})
DICTIONARY = [
    Pronunciation("<s>", "", None, ("sil",)),
    Pronunciation("</s>", "", None, ("sil",)),
    Pronunciation("A", None, None, ("a", "b")),
    Pronunciation("A", None, None, ("e", "b")),
    Pronunciation("B", None, None, ("b",)),
]
ROWS = {"a": 0, "e": 1, "b": 2, "sil": 3}
# What was said: E is the frequent variant, always after silence; A B is never divided by silence.
SAID = [("sil e b b sil", "A B"), ("sil e b b b sil e b sil", "A B A")] * 3 + [("a b b", "A B")]


def scores(phones, contrast=8.0):
    """Scores of three frames of each phone."""
    return np.array(
        [[0.0 if name == phone else -contrast for phone in phones for _ in range(3)] for name in ROWS], "f4"
    )


def align(dictionary, words, matrix):
    return Aligner(TranscriptGraphs(MODELS, dictionary, {f"{phone}[2]": row for phone, row in ROWS.items()})).align(
        words.split(), matrix
    )


@pytest.fixture
def trained(tmp_path):
    write_dictionary(tmp_path / "words.dict", DICTIONARY)
    alignments = [align(DICTIONARY, words, scores(phones.split())) for phones, words in SAID]
    labels = ((f"*/{i}.lab", alignment_labels(a, "state", 100_000)) for i, a in enumerate(alignments))
    write_mlf(tmp_path / "aligned.mlf", labels)
    out = tmp_path / "trained"
    assert main(["g2p", "probabilities", f"{tmp_path}/words.dict", f"{tmp_path}/aligned.mlf", "-o", f"{out}"]) == 0
    return out


def test_only_listed_utterances_are_counted(trained, tmp_path):
    (tmp_path / "some.scp").write_text("".join(f"{tmp_path}/{name}.fea\n" for name in (0, 6)))
    files = (f"{tmp_path}/words.dict", f"{tmp_path}/aligned.mlf", "-o", f"{tmp_path}/some")
    assert main(["g2p", "probabilities", *files, "--infiles", f"{tmp_path}/some.scp"]) == 0
    entries = read_any_dictionary(tmp_path / "some" / "mfa.dict")
    assert [entry.probability for entry in entries if entry.word == "A"] == [1.0, 1.0]  # once each


def test_a_list_tells_which_utterances_have_no_alignment(trained, tmp_path, capsys):
    files = (f"{tmp_path}/words.dict", f"{tmp_path}/aligned.mlf", "-o", f"{tmp_path}/some")
    (tmp_path / "some.scp").write_text("x/0.fea\ny/other.fea\n")
    capsys.readouterr()
    assert main(["g2p", "probabilities", *files, "--infiles", f"{tmp_path}/some.scp"]) == 0
    assert "some.scp: 1 utterance without alignment, such as other" in capsys.readouterr().err
    (tmp_path / "some.scp").write_text("y/other.fea\n")
    assert main(["g2p", "probabilities", *files, "--infiles", f"{tmp_path}/some.scp"]) == 2
    assert "some.scp: no utterance of the alignments" in capsys.readouterr().err


def test_the_command_counts_what_was_said(trained):
    entries = read_any_dictionary(trained / "mfa.dict")
    assert [(entry.phones, entry.probability) for entry in entries if entry.word == "A"] == [
        (("a", "b"), 0.2), (("e", "b"), 1.0),
    ]  # fmt: skip
    silences = {entry.phones: entry.silence for entry in entries if entry.word == "A"}
    assert silences["e", "b"].after < 0.5
    assert silences["e", "b"].from_silence > 1 > silences["e", "b"].from_speech
    assert silences["a", "b"].from_silence < 1 < silences["a", "b"].from_speech
    kaldi = read_any_dictionary(trained / "lexiconp_silprob.txt")
    assert [entry.silence for entry in kaldi] == [entry.silence for entry in entries]


def test_doubtful_audio_takes_the_frequent_variant_and_pause(trained):
    matrix = scores("sil a b b sil".split())
    matrix[1] = matrix[0] - 0.3  # a and e nearly alike
    plain, informed = (
        align(entries, "A B", matrix) for entries in (DICTIONARY, read_any_dictionary(trained / "mfa.dict"))
    )
    assert [unit.phones for unit, _ in plain.words] == [("a", "b"), ("b",)]
    assert [unit.phones for unit, _ in informed.words] == [("e", "b"), ("b",)]


def test_the_decoding_graph_charges_the_trained_costs(trained):
    entries = read_any_dictionary(trained / "lexiconp_silprob.txt")
    states = {phone: list(names) for phone, names in MODELS.states.items()}
    lm = unigrams({"A": -0.5, "B": -0.5})
    graph = build_monophone_graph(states, None, entries, lm, GraphOptions(silence="sil"))
    said = {(entry.word, entry.phones): entry for entry in entries}
    e, b = said["A", ("e", "b")], said["B", ("b",)]
    start, end = (said[mark, ()].silence for mark in ("<s>", "</s>"))
    factors = [
        start.after, e.silence.from_silence, e.probability, 1 - e.silence.after, b.silence.from_speech, b.probability,
        b.silence.after, end.from_silence,
    ]  # fmt: skip
    path = ("<s>", "[sil[2]]", "[e[2]]", "A", "[b[2]]", "B", "[b[2]]", "</s>", "[sil[2]]")
    lm_cost = 0.5 * 3 * math.log(10)
    cost = acceptor_paths(graph.acceptor, 2, 12)[path]
    assert cost == pytest.approx(lm_cost - math.log(math.prod(factors)), abs=11 / 1024)


def test_pronunciations_that_the_dictionary_lacks_are_reported(trained, capsys):
    here = trained.parent
    write_dictionary(here / "other.dict", [entry for entry in DICTIONARY if entry.phones != ("a", "b")])
    run = ["g2p", "probabilities", f"{here}/other.dict", f"{here}/aligned.mlf", "-o", f"{here}/other"]
    assert main(run) == 1
    assert "words: 16 done, 1 skipped, 0 failed" in capsys.readouterr().out
    assert "a b, 1 times: not a pronunciation of the dictionary" in (here / "other" / "report").read_text()
    write_dictionary(here / "foreign.dict", [Pronunciation("X", None, None, ("x",))])
    run = ["g2p", "probabilities", f"{here}/foreign.dict", f"{here}/aligned.mlf", "-o", f"{here}/foreign"]
    assert main(run) == 2
    assert "no pronunciation of " in capsys.readouterr().err
    assert not (here / "foreign" / "mfa.dict").exists()


def test_the_dictionary_in_the_form_of_htk_has_all_but_silence(trained):
    entries = read_any_dictionary(trained / "htk.dict", "htk")
    assert entries[:2] == DICTIONARY[:2]
    assert [(entry.word, entry.probability) for entry in entries[2:]] == [("A", 0.2), ("A", 1.0), ("B", 1.0)]
