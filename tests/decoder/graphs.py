"""Random little graphs and language models for the tests of the search, and hand-made ones."""

import dataclasses
import itertools
import struct
import zlib

import numpy as np

from decoder.graph.compiled_graph import precompile
from decoder.lm.language_model import LanguageModel, LMArrays
from readers.language.arpa import Arpa, ArpaOrder
from readers.language.att import Acceptor


def make_acceptor(arcs, finals, start=0):
    symbols = ["<eps>", *dict.fromkeys(label for _, _, label, _ in arcs)]
    return Acceptor(
        source=np.array([arc[0] for arc in arcs], np.int32),
        target=np.array([arc[1] for arc in arcs], np.int32),
        label=np.array([symbols.index(arc[2]) for arc in arcs], np.int32),
        cost=np.array([arc[3] for arc in arcs], np.float32),
        final=np.array(list(finals), np.int32),
        final_cost=np.array(list(finals.values()), np.float32),
        start=start,
        symbols=symbols,
    )


def compiled(graph, **options):
    """A reference Graph, compiled."""
    return precompile(
        make_acceptor(graph.arcs, graph.finals, graph.start), graph.transitions, graph.lookahead, **options
    )


def make_arpa(vocabulary, orders):
    """orders: per order a dict from word tuple to (log10 probability, log10 back-off)."""
    ids = {word: i for i, word in enumerate(vocabulary)}
    made = []
    for k, ngrams in enumerate(orders, start=1):
        rows = np.array([[ids[w] for w in words] for words in ngrams], dtype=np.int32).reshape(-1, k)
        values = np.array(list(ngrams.values()), dtype=np.float64).reshape(-1, 2)
        made.append(ArpaOrder(rows, values[:, 0].copy(), values[:, 1].copy()))
    return Arpa(list(vocabulary), made)


def random_orders(rng, words, order, with_end=True):
    """n-gram tables with holes: about half of the longer n-grams are listed."""
    vocabulary = ["<s>", *(["</s>"] if with_end else []), *words]
    orders = []
    for k in range(1, order + 1):
        ngrams = [ngram for ngram in itertools.product(vocabulary, repeat=k) if k == 1 or rng.random() < 0.5]
        orders.append({tuple(n): (-float(2 * rng.random() + 0.01), -float(rng.random())) for n in ngrams})
    return vocabulary, orders


def integer_bigram(rng, words):
    """(LanguageModel, cost function) with whole-numbered costs, so that ties occur and sums are exact."""
    vocabulary = ["<s>", "</s>", *words]
    size = len(vocabulary)
    table = rng.integers(0, 4, size=(size + 1, size)).astype(np.float32)  # row 0: no history, row i+1: after word i
    arrays = LMArrays(
        first_arc=np.arange(0, (size + 1) * size + 1, size).astype(np.int64),
        word=np.tile(np.arange(size, dtype=np.int32), size + 1),
        cost=table.ravel(),
        next_state=np.tile(np.arange(1, size + 1, dtype=np.int32), size + 1),
        backoff_cost=np.zeros(size + 1, np.float32),
        backoff_state=np.zeros(size + 1, np.int32),
    )

    def cost(before, word):
        if word == "<s>":
            return 0.0
        before = [w for w in before if w != "<s>"] or ["<s>"]
        return float(table[vocabulary.index(before[-1]) + 1, vocabulary.index(word)])

    return LanguageModel(arrays, vocabulary, 2, 1), cost


def random_graph(rng, reference, integers=False, marks=None, own_states=False):
    """A reference.Graph of 3 to 6 states.  Word arcs go to higher states, so they form no circle.

    marks: whether <s> and </s> stand in the graph; None leaves it to chance.  own_states: every emitting arc has an HMM
    state of its own and none is a loop, so that the HMM states of a path tell the path.
    """
    num_states = int(rng.integers(3, 7))
    hmm = ["a_s2", "a_s3", "b_s2", "c", "sil[2]"][: int(rng.integers(2, 6))]
    words = ["x", "y", "z"][: int(rng.integers(1, 4))]

    def price():
        return float(rng.integers(0, 4)) if integers else float(np.float32(2 * rng.random()))

    arcs = {}
    for source in range(num_states):
        for _ in range(int(rng.integers(1, 4))):
            target, label = int(rng.integers(num_states)), f"[{rng.choice(hmm)}]"
            if own_states:
                target, label = (source + 1 + target) % num_states, f"[m{len(arcs)}_s2]"
            if source != target or not own_states:
                arcs[source, target, label] = price()
        if source < num_states - 1 and rng.random() < 0.7:
            arcs[source, int(rng.integers(source + 1, num_states)), str(rng.choice(words))] = price()
    if rng.random() < 0.5 if marks is None else marks:
        arcs = {(s + 1, t + 1, label): cost for (s, t, label), cost in arcs.items()}
        arcs[0, 1, "<s>"] = price()
        arcs[num_states, num_states + 1, "</s>"] = price()
        finals = {num_states + 1: price()}
    else:
        finals = {int(s): price() for s in rng.choice(num_states, size=2, replace=False)}
    if own_states:
        hmm = [label[1:-1] for _, _, label in arcs if label[0] == "["]
    transitions = {}
    for name in hmm:
        stay = rng.uniform(0.1, 0.9)
        transitions[name] = (
            (-float(rng.integers(0, 3)), -float(rng.integers(0, 3)))
            if integers
            else (float(np.float32(np.log(stay))), float(np.float32(np.log(1 - stay))))
        )
    lookahead = {word: float(rng.integers(0, 3)) if integers else float(np.float32(rng.random())) for word in words}
    return reference.Graph(
        [(s, t, label, cost) for (s, t, label), cost in arcs.items()],
        finals,
        0,
        transitions,
        lookahead | {"<s>": 0.0, "</s>": price()},
    )


def with_an_hmm_state(rng, graph):
    """The graph with an arc with an HMM state before or after all others, so that no sentence is empty."""
    label = f"[{rng.choice(list(graph.transitions))}]"
    if rng.random() < 0.5:
        arcs = [(0, 1, label, 0.0), *((s + 1, t + 1, *rest) for s, t, *rest in graph.arcs)]
        return dataclasses.replace(graph, arcs=arcs, finals={state + 1: cost for state, cost in graph.finals.items()})
    first, final = max(graph.finals), max(max(arc[:2]) for arc in graph.arcs) + 1
    arcs = [*graph.arcs, (first, final, label, 0.0)]
    return dataclasses.replace(graph, arcs=arcs, finals={final: graph.finals[first]})


def random_scores(rng, graph, num_frames, integers=False):
    """(K, T) float32 in Fortran order, rows in the order of graph.transitions."""
    shape = (len(graph.transitions), num_frames)
    values = -rng.integers(0, 5, size=shape) if integers else rng.normal(scale=2.0, size=shape)
    return np.asfortranarray(values, dtype=np.float32)


def as_frames(scores, graph):
    """The same as the reference takes them."""
    return [dict(zip(graph.transitions, map(float, column))) for column in scores.T]


def sealed(raw):
    """The bytes of a mapped file of less than 4 MiB with the checksum that they should have."""
    return bytes(raw[:-4]) + struct.pack("<I", zlib.crc32(raw[:-4]))
