"""Graphs of models that may be left before their last state, such as those of the chain topology."""

import itertools
import math

import numpy as np
import pytest

from decoder.grammars import GrammarOptions, build_grammar_graph
from decoder.graph import GraphOptions, PhoneModels, build_triphone_graph, distil
from decoder.graph.compiled_graph import precompile
from decoder.lm.language_model import LanguageModel
from decoder.search.decoder import Decoder, SearchOptions
from decoder.sequence_training.chain import chain_models
from readers.htk.dictionary import Pronunciation
from readers.language.grammars.network import WordArc, WordNetwork
from tests.decoder.graph.test_monophone import grid, unigrams
from tests.decoder.graph.test_triphone import arpa_cost, joints, least_paths, walks, with_lm
from tests.decoder.graphs import make_arpa, random_orders
from tests.decoder.sequence_training.chain.graphs import tied_outputs

MARKS = ("<s>", "</s>")
HALF = math.log(0.5)
DICTIONARY = [
    Pronunciation("<s>", "", None, ("sil",)),
    Pronunciation("</s>", "", None, ("sil",)),
    Pronunciation("A", None, None, ("a",)),
    Pronunciation("AB", None, None, ("a", "b")),
    Pronunciation("BAB", None, None, ("b", "a", "b")),
    Pronunciation("BAB", None, 0.5, ("b",)),
]


def random_models(rng, context):
    """Models of one to three states, some of which may be left early."""
    states, topology = {}, {}
    for phone in ("a", "b", "sil"):
        count = int(rng.integers(1, 4))
        names = [phone] if not context or phone == "sil" else [
            f"{left}-{phone}+{right}" for left, right in itertools.product(("a", "b", "sil"), repeat=2)
        ]  # fmt: skip
        for name in names:
            variant = f"_{rng.integers(2)}" if name != phone else ""
            states[name] = tuple(f"{phone}_s{k}{variant}" for k in range(2, 2 + count))
            ways = [(0, 1, 0.0), (count, count + 1, 0.0)]
            for i in range(1, count):
                leave = float(rng.choice([0.0, 0.25, 0.5]))
                ways.append((i, i + 1, math.log1p(-leave)))
                if leave:
                    ways.append((i, count + 1, math.log(leave)))
            if len(ways) > count + 1:
                topology[name] = tuple(ways)
    return PhoneModels(states, None, topology)


def spelled_out(models, lm_cost, options, max_words):
    """Label sequence -> least cost of all sentences, from the definitions of words, models and silences."""
    entries = [entry for entry in DICTIONARY if entry.word not in MARKS]
    paths = {}
    starts, ends = (walks(models, "sil", 9, mark) for mark in MARKS)
    for count in range(max_words + 1):
        for said in itertools.product(entries, repeat=count):
            for gaps in itertools.product(joints(models, options, 9), repeat=max(0, count - 1)):
                cost = sum(gap[2] for gap in gaps) + lm_cost([entry.word for entry in said])
                cost += sum(grid(-math.log(entry.probability or 1.0)) for entry in said)
                for middle, more in _spoken(models, said, gaps):
                    for (first, before), (last, after) in itertools.product(starts, ends):
                        labels = (*first, *middle, *last)
                        paths[labels] = min(cost + more + before + after, paths.get(labels, math.inf))
    return paths


def _spoken(models, said, gaps):
    phones = ["sil"]
    for entry, gap in itertools.zip_longest(said, gaps):
        phones += [*entry.phones, *(["sil"] if gap is not None and gap[0] == "sil" else [])]
    phones.append("sil")
    at, parts = 1, []
    for i, entry in enumerate(said):
        for k, phone in enumerate(entry.phones):
            name = phone if phone in models.states else f"{phones[at - 1]}-{phone}+{phones[at + 1]}"
            ways = walks(models, name, 9)
            if k == len(entry.phones) - 1:
                # The label is before the last state of a word of one phone that cannot be left early.
                before = -1 if k == 0 and not models.early_exits(name) else -9
                ways = [((*labels[:before], entry.word, *labels[before:]), cost) for labels, cost in ways]
            parts.append(ways)
            at += 1
        if i < len(gaps):
            parts.append([(gaps[i][1], 0.0)])
            at += gaps[i][0] == "sil"
    for choice in itertools.product(*parts):
        yield tuple(itertools.chain.from_iterable(labels for labels, _ in choice)), sum(cost for _, cost in choice)


@pytest.mark.parametrize("seed", range(24))
def test_paths_equal_those_spelled_out_from_the_definitions(seed):
    rng = np.random.default_rng(seed)
    models = random_models(rng, context=seed % 2 == 0)
    options = GraphOptions(silence="sil", optional_silence=seed % 3 > 0, silence_probability=0.3 if seed % 5 else None)
    vocabulary, orders = random_orders(rng, ["A", "AB", "BAB"], 1 + seed % 2)
    arpa = make_arpa(vocabulary, orders)
    graph = build_triphone_graph(models, DICTIONARY, arpa, options)
    expected = spelled_out(models, lambda words: arpa_cost(orders, words), options, 2)
    assert with_lm(least_paths(graph.acceptor, 2, 60), graph, LanguageModel.from_arpa(arpa)) == {
        labels: pytest.approx(cost, abs=1e-4) for labels, cost in expected.items()
    }


@pytest.fixture(scope="module")
def chain():
    outputs = tied_outputs(right=True)
    donor, names = chain_models(outputs)
    return outputs, distil(donor, names, outputs.trees, ("a", "b", "sil"))


def test_models_of_the_chain_topology(chain):
    outputs, models = chain
    assert models.states["a-b+a"] == tuple(outputs.names[i] for i in outputs.outputs(2, 3, 2))
    assert models.states["sil"] == ("sil_s2", "sil_s3")
    assert all(models.early_exits(name) == ((HALF, HALF),) for name in models.states)
    assert all(
        models.transitions[state] == (pytest.approx((HALF, HALF)) if "_s3" in state else (-math.inf, 0.0))
        for state in models.senones
    )


def frame_cost(labels, scores, rows):
    """The least cost of an alignment of a path in the chain topology, transitions within paths left out."""
    states = [label[1:-1] for label in labels if label.startswith("[")]
    best = np.full((len(states), scores.shape[1]), np.inf)
    best[0, 0] = -scores[rows[states[0]], 0]
    for t in range(1, scores.shape[1]):
        for i, state in enumerate(states):
            stay = best[i, t - 1] - HALF if "_s3" in state else np.inf
            enter = best[i - 1, t - 1] + (-HALF if "_s3" in states[i - 1] else 0.0) if i else np.inf
            best[i, t] = min(stay, enter) - scores[rows[state], t]
    return best[-1, -1] + (-HALF if "_s3" in states[-1] else 0.0)


@pytest.mark.parametrize("seed", range(6))
def test_decoding_finds_the_best_path_of_the_topology(chain, seed):
    outputs, models = chain
    options = GraphOptions(silence="sil", optional_silence=True)
    probabilities = {"A": -1.0, "AB": -0.5, "BAB": -2.0}
    arpa = unigrams(probabilities)
    graph = build_triphone_graph(models, DICTIONARY, arpa, options)
    rows = {name: i for i, name in enumerate(outputs.names)}
    compiled = precompile(graph.acceptor, models.transitions, graph.lookahead, models.states, graph.outputs)
    wide = SearchOptions(acweight=1.0, beam=1e6, word_end_beam_frac=1.0, sil_cost=0.0)
    lm = LanguageModel.from_arpa(arpa)
    decoder = Decoder(compiled, lm, wide, rows)
    scores = np.random.default_rng(seed).normal(scale=2.0, size=(len(rows), 5)).astype(np.float32)
    result = decoder.decode(np.asfortranarray(scores))
    paths = with_lm(least_paths(graph.acceptor, 3, 5 + 5), graph, lm)  # three words, for at most three phones
    best = min(cost + frame_cost(labels, scores, rows) for labels, cost in paths.items())
    assert result.cost == pytest.approx(best, abs=1e-3)
    visited = [compiled.states[compiled.arrays.position_state[p]] for p in result.path.label if p >= 0]
    spans = [(e - b) for p, b, e in zip(result.path.label, result.path.start, result.path.end) if p >= 0]
    assert all(span == 1 for state, span in zip(visited, spans) if "_s2" in state)
    assert all(before[:3] == state[:3] for before, state in itertools.pairwise(visited) if "_s3" in state)


def test_a_loop_of_phones_may_leave_them_early(chain):
    _, models = chain
    graph = build_grammar_graph(
        WordNetwork(2, [WordArc(0, 1, "[unk]")], "test"), models, DICTIONARY, GraphOptions(silence="sil"),
        GrammarOptions(unknown_cost=0.0),
    )  # fmt: skip
    lengths = {
        sum(label.startswith("[") for label in labels)
        for labels in least_paths(graph.acceptor, 1, 7)
        if "<unk>" in labels and not any("sil_s3" in label for label in labels)
    }
    assert {3, 4} <= lengths  # silence, one phone of one or two frames, silence


def test_grammars_of_models_in_the_chain_topology(chain):
    _, models = chain
    graph = build_grammar_graph(
        WordNetwork(2, [WordArc(0, 1, "A")], "test"), models, DICTIONARY, GraphOptions(silence="sil")
    )
    found = {tuple(label for label in labels if label != "A") for labels in least_paths(graph.acceptor, 1, 9)}
    short = {tuple(label for label in labels if "sil" not in label and label not in MARKS) for labels in found}
    assert short == {("[a_s2_3]",), ("[a_s2_3]", "[a_s3_3]")}


def test_topologies_that_are_no_early_exits():
    for ways, exits in (
        (((0, 1, 0.0), (1, 2, 0.0), (2, 3, 0.0), (3, 4, 0.0)), ((0.0, -math.inf),) * 2),
        (((0, 1, 0.0), (1, 2, HALF), (1, 4, HALF), (2, 3, 0.0), (3, 4, 0.0)), ((HALF, HALF), (0.0, -math.inf))),
        (((0, 1, 0.0), (1, 3, 0.0), (2, 3, 0.0), (3, 4, 0.0)), None),
        (((0, 1, HALF), (0, 4, HALF), (1, 2, 0.0), (2, 3, 0.0), (3, 4, 0.0)), None),
        (((0, 1, 0.0), (1, 2, 0.0), (2, 1, HALF), (2, 3, HALF), (3, 4, 0.0)), None),
    ):
        assert PhoneModels({"a": ("x", "y", "z")}, None, {"a": ways}).early_exits("a") == exits
