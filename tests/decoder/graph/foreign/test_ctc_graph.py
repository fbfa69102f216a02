"""The graph of CTC outputs: decoding against all paths written out, spelling, and bad dictionaries."""

from itertools import groupby, product

import numpy as np
import pytest

from decoder.graph.compiled_graph import precompile
from decoder.graph.foreign.ctc import build_ctc_graph, output_rows, spell, token_models
from decoder.graph.options import GraphOptions
from decoder.lm.estimation import estimate
from decoder.lm.language_model import LanguageModel
from decoder.search.decoder import Decoder, SearchOptions
from readers.errors import GraphError
from readers.htk.dictionary import Pronunciation
from readers.tables.ctc_tokens import CtcTokens

TOKENS = CtcTokens(("a", "-", "b"), "-")
SPACED = CtcTokens(("a", "-", "|"), "-", "|")
SENTENCES = [["A", "AB"], ["AA", "B", "A"], ["B", "B"], ["A", "A", "AB"]]
SPELLINGS = {"A": "a", "AB": "ab", "AA": "aa", "B": "b", "ABBA": "abba"}
WIDE = SearchOptions(
    acweight=1.0, beam=np.inf, word_end_beam_frac=1.0, sil_cost=0.0, silence=("-",), lattice_beam=1000.0
)


def models(tokens, words):
    dictionary = [Pronunciation(word, None, None, tuple(SPELLINGS[word])) for word in words]
    arpa = estimate([[word for word in line if word in words] for line in SENTENCES], 2, "kn", words)
    lm = LanguageModel.from_arpa(arpa)
    graph = build_ctc_graph(tokens, dictionary, lm)
    phones = token_models(tokens)
    compiled = precompile(graph.acceptor, phones.transitions, graph.lookahead, phones.states)
    return lm, Decoder(compiled, lm, WIDE, output_rows(tokens))


def lm_cost(lm, words):
    state, cost = lm.start_state, 0.0
    for word in [*words, "</s>"]:
        step_cost, state = lm.step(state, lm.word_id(word))
        cost += step_cost
    return cost


def sentences_of(text, words, delimiter=""):
    """All divisions of a text into words; delimiters stand between words, and perhaps at the ends."""
    if delimiter:
        parts = text.removeprefix(delimiter).removesuffix(delimiter).split(delimiter)
        spelled = {SPELLINGS[word]: word for word in words}
        return [[spelled[part] for part in parts]] if all(part in spelled for part in parts) else []
    if not text:
        return [[]]
    return [
        [word, *rest]
        for word in words
        if text.startswith(SPELLINGS[word])
        for rest in sentences_of(text[len(SPELLINGS[word]) :], words)
    ]


def enumerated(scores, tokens, words, lm):
    """Least cost of each sentence, over all rows to the power of the frames."""
    best = {}
    blank = tokens.names.index(tokens.blank)
    for path in product(range(len(tokens.names)), repeat=scores.shape[1]):
        text = "".join(tokens.names[row] for row, _ in groupby(path) if row != blank)
        acoustic = -float(scores[path, range(len(path))].sum(dtype=np.float64))
        for sentence in filter(None, sentences_of(text, words, tokens.delimiter)):
            cost = acoustic + lm_cost(lm, sentence)
            best[tuple(sentence)] = min(best.get(tuple(sentence), np.inf), cost)
    return best


@pytest.mark.parametrize(
    ("tokens", "words", "num_frames"),
    [(TOKENS, ["A", "AB", "AA", "B"], 5), (TOKENS, ["ABBA", "A"], 6), (SPACED, ["A", "AA"], 6)],
    ids=["words", "inside", "delimiter"],
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_decoding_equals_all_paths(tokens, words, num_frames, seed):
    lm, decoder = models(tokens, words)
    rng = np.random.default_rng(seed)
    scores = np.log(rng.dirichlet(np.ones(3) / 2, num_frames).T + 1e-9).astype(np.float32, order="F")
    expected = enumerated(scores, tokens, words, lm)
    result = decoder.decode(scores)
    best = min(expected, key=expected.get)
    assert tuple(result.text) == best
    assert result.cost == pytest.approx(expected[best], rel=1e-5)
    # Paths that meet with the same history of the language model share what comes before.
    costs = lattice_costs(result.lattice, decoder.graph)
    assert min(costs, key=costs.get) == best
    assert costs[best] == pytest.approx(expected[best], rel=1e-5)
    assert all(cost >= expected[sentence] - 1e-4 for sentence, cost in costs.items())


def lattice_costs(lattice, graph):
    """Least cost of each sentence of a lattice."""
    costs = [{} for _ in lattice.time]
    costs[0] = {(): 0.0}
    for start, end, word, cost in zip(lattice.start, lattice.end, lattice.word, lattice.cost):
        for sentence, before in costs[start].items():
            longer = (*sentence, graph.words[word]) if word >= 0 else sentence
            costs[end][longer] = min(costs[end].get(longer, np.inf), before + cost)
    return costs[-1]


def test_times_are_those_of_the_tokens():
    _, decoder = models(TOKENS, ["A", "AB"])
    path = [1, 0, 1, 2, 2, 1, 0, 1, 1]  # - a - b b - a - -
    scores = np.full((3, len(path)), -20.0, np.float32, order="F")
    scores[path, range(len(path))] = 0
    words = decoder.decode(scores).words
    assert [(word.text, word.start, word.end) for word in words] == [("AB", 1, 5), ("A", 6, 7)]


@pytest.mark.parametrize(
    ("names", "word", "expected"),
    [
        ("a b c", "cab", ("c", "a", "b")),
        ("a b c ab", "CAB", ("c", "ab")),
        ("A B", "ab", ("A", "B")),
        ("\u2581 \u2581a a b ba aba", "abab", ("\u2581a", "ba", "b")),
        ("a b", "axe", None),
        ("a <unk>", "<unk>", None),
    ],
)
def test_words_are_spelled_with_few_tokens(names, word, expected):
    entries, without = spell(["<s>", word], CtcTokens((*names.split(), "-"), "-"))
    assert [entry.phones for entry in entries] == ([] if expected is None else [expected])
    assert without == ([] if expected else [(word, "has characters that are no tokens")])


def test_words_are_divided_by_a_unigram_model():
    rng = np.random.default_rng(2)
    names = ["a", "b", *(first + second for first in "ab" for second in ("a", "b", "ab", "ba", "bba"))]
    scores = dict(zip(names, np.log(rng.dirichlet(np.ones(len(names)))).tolist()))
    words = ["".join(letters) for letters in product("ab", repeat=7)]
    entries, _ = spell(words, CtcTokens((*names, "-"), "-", scores=tuple(scores.values())))

    def divisions(text):
        if not text:
            return [[]]
        ends = range(1, len(text) + 1)
        return [[text[:end], *rest] for end in ends if text[:end] in scores for rest in divisions(text[end:])]

    for entry in entries:
        best = max(sum(map(scores.get, parts)) for parts in divisions(entry.word))  # of several parts, often
        assert sum(map(scores.get, entry.phones)) == pytest.approx(best)
        assert "".join(entry.phones) == entry.word


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("ABRAB", "\u2581ab r ab"),  # "ab" is merged first, everywhere, then what it makes with its neighbours
        ("rara", "\u2581 ra ra"),
        ("brab", "\u2581 b r ab"),  # not "ra b": "ab" is the earlier merge
        ("ac", None),
    ],
)
def test_words_are_divided_by_byte_pair_encoding(word, expected):
    names = "<unk> ab ra \u2581ab \u2581 a b r".split()
    scores = (0.0, 0.0, -1.0, -2.0, -3.0, -4.0, -5.0, -6.0)
    entries, _ = spell([word], CtcTokens((*names, "-"), "-", scores=scores))
    assert [" ".join(entry.phones) for entry in entries] == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("phones", "message"),
    [
        (("a", "-"), "'A' has the blank '-'"),
        ((), "'A' has no tokens"),
        (("x",), "phones without a model: 'x' of A"),
    ],
)
def test_pronunciations_that_no_path_can_have(phones, message):
    lm = LanguageModel.from_arpa(estimate([["A"]], 1, "kn", ["A"]))
    with pytest.raises(GraphError, match=message):
        build_ctc_graph(TOKENS, [Pronunciation("A", None, None, phones)], lm, GraphOptions())
