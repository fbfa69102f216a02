"""A graph with added words against one that is compiled with all words."""

import itertools

import numpy as np
import pytest

from decoder.graph import GraphOptions, PhoneModels, build_monophone_graph, build_triphone_graph, has_context
from decoder.graph.compiled_graph import precompile
from decoder.graph.cross_word.new_words import add_words
from decoder.lm.estimation import estimate
from decoder.lm.language_model import LanguageModel
from decoder.search.decoder import Decoder, SearchOptions
from readers.errors import GraphError
from readers.htk.dictionary import Pronunciation

PHONES = ("a", "b", "c")
MARKS = [Pronunciation(mark, "", None, ("sil",)) for mark in ("<s>", "</s>")]
EXHAUSTIVE = SearchOptions(acweight=1.0, beam=500.0, word_end_beam_frac=1.0, sil_cost=0.0, max_tokens=10**6)


def random_models(rng, context):
    """Models of one to three states, those of triphones clustered; sp shares the middle of silence, or is not there."""
    states = {"sil": ("sil_s2", "sil_s3", "sil_s4")}
    for phone in PHONES:
        length = int(rng.integers(1, 4))
        names = [phone]
        if context:
            names = [f"{left}-{phone}+{right}" for left, right in itertools.product((*PHONES, "sil"), repeat=2)]
        for name in names:
            states[name] = tuple(f"{phone}_s{k}_{rng.integers(3) if context else 0}" for k in range(2, 2 + length))
    if context and rng.random() < 0.5:
        states["sp"] = ("sil_s3",)
    transitions = dict.fromkeys((state for names in states.values() for state in names), (-0.5, -1.0))
    return PhoneModels(states, transitions)


def entry(word, phones, probability=None):
    return Pronunciation(word, None, probability, tuple(map(str, phones)))


def random_words(rng, name, count):
    return [entry(f"{name}{i}", rng.choice(PHONES, size=rng.integers(1, 5))) for i in range(count)]


def compiled(models, dictionary, lm, options):
    if has_context(models):
        built = build_triphone_graph(models, [*MARKS, *dictionary], lm, options)
    else:
        built = build_monophone_graph(models.states, models.transitions, [*MARKS, *dictionary], lm, options)
    return precompile(built.acceptor, models.transitions, built.lookahead, models.states, built.outputs)


def language_model(rng, dictionary):
    names = list(dict.fromkeys(entry.word for entry in dictionary))
    sentences = [list(map(str, rng.choice(names, size=3))) for _ in range(6)]
    return LanguageModel.from_arpa(estimate([*sentences, *([name] for name in names)], 2, "kn", names))


def every_pair():
    """Words of two phones, with which every new word begins and ends."""
    return [entry(f"P{a}{b}", (a, b)) for a, b in itertools.product(PHONES, repeat=2)]


@pytest.mark.parametrize("seed", range(6))
def test_added_words_are_found_as_in_a_graph_of_all_words(seed):
    rng = np.random.default_rng(seed)
    models = random_models(rng, context=seed % 4 > 0)
    before = [*every_pair(), *random_words(rng, "O", 3)]
    added = random_words(rng, "N", 3)
    added.append(entry("N0", rng.choice(PHONES, size=2), 0.5))
    lm = language_model(rng, [*before, *added])
    options = GraphOptions(
        silence="sil",
        optional_silence=bool(rng.random() < 0.8),
        silence_probability=None if rng.random() < 0.5 else 0.3,
        drop_missing=True,
    )
    anew = compiled(models, [*before, *added], lm, options)
    # How silence was treated is not known when words are added.
    extended = add_words(
        compiled(models, before, lm, options), models, [*MARKS, *before], added, lm, GraphOptions(silence="sil")
    )
    rows = {state: row for row, state in enumerate(models.senones)}
    expected, decoder = (Decoder(graph, lm, EXHAUSTIVE, rows) for graph in (anew, extended))
    said = set()
    for length in (12, 20, 28):
        scores = 4 * rng.normal(size=(len(rows), length)).astype(np.float32)
        result, other = decoder.decode(scores), expected.decode(scores)
        assert result.cost == pytest.approx(other.cost, abs=1e-3)
        assert result.text == other.text
        said |= set(result.text)
    assert said


def test_a_phone_may_stand_where_no_word_of_the_graph_has_it():
    rng = np.random.default_rng(0)
    models = random_models(rng, context=True)
    before = [entry("AB", "ab"), entry("BA", "ba"), entry("ACB", "acb")]
    added = [entry("CAC", "cac"), entry("C", "c")]
    lm = language_model(rng, [*before, *added])
    options = GraphOptions(silence="sil", drop_missing=True)
    graph = add_words(compiled(models, before, lm, options), models, [*MARKS, *before], added, lm, options)
    decoder = Decoder(graph, lm, EXHAUSTIVE, {state: row for row, state in enumerate(models.senones)})
    for words, phones in ((["AB", "CAC", "BA"], "abcacba"), (["C", "CAC"], "ccac")):
        names = ["sil", *phones, "sil"]
        triphones = [
            "sil" if name == "sil" else f"{names[i - 1]}-{name}+{names[i + 1]}" for i, name in enumerate(names)
        ]
        path = [list(models.senones).index(state) for name in triphones for state in models.states[name]]
        scores = np.full((len(models.senones), 2 * len(path)), -60.0, np.float32)
        scores[np.repeat(path, 2), np.arange(2 * len(path))] = 0.0
        assert sum(word in decoder.decode(scores).text for word in words) == len(words)


def test_other_pronunciations_are_added_to_a_word_of_the_graph():
    rng = np.random.default_rng(1)
    models = random_models(rng, context=False)
    lm = language_model(rng, every_pair())
    options = GraphOptions(silence="sil", drop_missing=True)
    graph = compiled(models, every_pair(), lm, options)
    extended = add_words(graph, models, [*MARKS, *every_pair()], [entry("Pab", "abcab")], lm, options)
    assert list(extended.words) == list(graph.words)
    assert extended.num_states > graph.num_states


def test_a_graph_of_another_dictionary_is_refused():
    rng = np.random.default_rng(2)
    models = random_models(rng, context=True)
    lm = language_model(rng, [*every_pair(), entry("NEW", "abc")])
    options = GraphOptions(silence="sil", drop_missing=True)
    graph = compiled(models, every_pair(), lm, options)
    others = [other._replace(phones=other.phones[::-1]) for other in every_pair()]
    with pytest.raises(GraphError, match="does not have the paths of its dictionary"):
        add_words(graph, models, [*MARKS, *others], [entry("NEW", "abc")], lm, options)
    extended = add_words(graph, models, [*MARKS, *every_pair()], [entry("NEW", "abc")], lm, options)
    with pytest.raises(GraphError, match="expected a deterministic graph"):
        add_words(extended, models, [*MARKS, *every_pair()], [entry("NEW", "abc")], lm, options)
