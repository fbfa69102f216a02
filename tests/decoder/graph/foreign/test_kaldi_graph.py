"""Kaldi's graphs and grammars: decoding equals the best path of their composition."""

import heapq

import numpy as np
import pytest

from decoder.graph.foreign.kaldi_graph import is_mark, kaldi_graph
from decoder.graph.foreign.kaldi_language_model import kaldi_language_model
from decoder.graph.graph_file import load_graph, save_graph
from decoder.search.decoder import Decoder
from decoder.search.options import SearchOptions
from readers.errors import GraphError
from readers.kaldi.fst import read_fst
from readers.kaldi.objects import KaldiObjects
from readers.kaldi.transition_model import read_transition_model
from tests.readers.kaldi.fst_files import ngram_file, vector_file
from tests.readers.kaldi.models import Writer, put_transitions
from tests.readers.kaldi.test_fst import HISTORIES, SYMBOLS

PHONES = {1: "x", 2: "y", 3: "SIL"}
WORDS = {**SYMBOLS, 3: "#0"}
# Of phone p, transition-id 2 p - 1 is the self-loop, with pdf 2 p - 1, and 2 p enters the state, with pdf 2 p - 2.
# State 3 is the end of a word; 7 is a disambiguation symbol.
GRAPH = [
    *((0, 2, 1, 0.5, 1), (0, 4, 0, 0.25, 2), (0, 7, 2, 0.125, 6), (0, 7, 3, 0.0, 0)),
    *((1, 1, 0, 0.75, 1), (1, 4, 0, 0.0, 3)),
    *((2, 3, 0, 0.5, 2), (2, 2, 2, 0.375, 4), (2, 2, 1, 0.25, 4)),
    *((3, 3, 0, 0.25, 3), (3, 7, 0, 0.0, 5), (3, 6, 0, 1.0, 7)),
    *((4, 1, 0, 0.5, 4), (4, 0, 0, 0.25, 5)),
    *((5, 7, 0, 0.0, 8),),
    *((6, 5, 0, 0.5, 6), (6, 6, 0, 0.25, 3)),  # entered without a transition-id
    *((7, 5, 0, 0.125, 7), (7, 0, 0, 0.5, 5)),
    *((8, 2, 1, 0.5, 1), (8, 4, 0, 0.25, 2)),
]
FINALS = [np.inf, np.inf, np.inf, 0.5, np.inf, 0.0, np.inf, np.inf, np.inf]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "HCLr.fst").write_bytes(vector_file(FINALS, GRAPH))
    (tmp_path / "Gr.fst").write_bytes(ngram_file(HISTORIES, SYMBOLS, (0,)))
    model = read_transition_model(KaldiObjects("final.mdl", put_transitions(Writer(True)).content))
    return read_fst(tmp_path / "HCLr.fst"), read_fst(tmp_path / "Gr.fst"), model


def best_path(graph, grammar, model, scores, acweight):
    """The words and the cost of the best path: a shortest path over (frame, graph state, history)."""
    arcs = [[] for _ in range(graph.num_states)]
    for arc in zip(graph.source, graph.input, graph.output, graph.cost.astype(float), graph.target):
        arcs[arc[0]].append(arc)
    steps = [[] for _ in range(grammar.num_states)]
    for step in zip(grammar.source, grammar.input, grammar.cost.astype(float), grammar.target):
        steps[step[0]].append(step)
    num_frames = scores.shape[1]
    heap = [(0.0, 0, int(graph.start), int(grammar.start), ())]
    done = set()
    while heap:
        cost, frame, state, history, words = heapq.heappop(heap)
        if state < 0:
            return list(words), cost
        if (frame, state, history) in done:
            continue
        done.add((frame, state, history))
        if frame == num_frames and np.isfinite(graph.final_cost[state]) and np.isfinite(grammar.final_cost[history]):
            total = cost + float(graph.final_cost[state]) + float(grammar.final_cost[history])
            heapq.heappush(heap, (total, frame, -1, 0, words))
        for _, label, step_cost, target in steps[history]:
            if label == 0:
                heapq.heappush(heap, (cost + step_cost, frame, state, int(target), words))
        for _, label, word, arc_cost, target in arcs[state]:
            total = cost + arc_cost
            emits = 0 < label <= model.num_transition_ids
            if emits and frame == num_frames:
                continue
            if emits:
                total += -acweight * scores[model.pdfs[label], frame]
            if word == 0:
                heapq.heappush(heap, (total, frame + emits, int(target), history, words))
            for _, listed, step_cost, after in steps[history]:
                if word and listed == word:
                    after_words = (*words, SYMBOLS[int(word)])
                    heapq.heappush(heap, (total + step_cost, frame + emits, int(target), int(after), after_words))
    return None, np.inf


@pytest.mark.parametrize("seed", range(6))
def test_decoding_equals_the_best_path_of_the_composition(tmp_path, files, seed):
    fst, grammar, model = files
    compiled, rows = kaldi_graph(fst, model, PHONES, WORDS, "HCLr.fst")
    save_graph(compiled, tmp_path / "graph.dg")
    lm = kaldi_language_model(grammar, SYMBOLS, "Gr.fst")
    options = SearchOptions(acweight=0.5, beam=1e9, word_end_beam_frac=1.0, sil_cost=0.0, lattice_beam=5.0)
    decoder = Decoder(load_graph(tmp_path / "graph.dg"), lm, options, rows)
    rng = np.random.default_rng(seed)
    for num_frames in range(1, 12):
        scores = -rng.uniform(0, 9, (model.num_pdfs, num_frames)).astype("f4")  # costs rise, for the shortest path
        words, cost = best_path(fst, grammar, model, scores, 0.5)
        result = decoder.decode(np.asfortranarray(scores))
        assert (not result.reason) == np.isfinite(cost)
        if words is not None:
            assert result.text == words
            assert result.cost == pytest.approx(cost, abs=1e-4)
            assert result.path.cost.sum() == pytest.approx(cost, abs=1e-4)


def test_backing_off_is_taken_where_it_is_cheaper(files):
    lm = kaldi_language_model(files[1], SYMBOLS, "Gr.fst")
    assert lm.vocabulary == ["a", "b", "</s>"]
    after_b = lm.step(0, 1)[1]
    cost, state = lm.step(after_b, 0)
    assert cost == 0.5 + 1.0  # listed with 3.0
    assert state == lm.step(0, 0)[1]
    assert lm.step(lm.start_state, 0)[0] == 0.5
    assert lm.step(state, 2)[0] == 0.75


def test_graphs_that_are_none_of_a_recogniser_are_refused(tmp_path, files):
    fst, _, model = files
    with pytest.raises(GraphError, match=r"HCLr\.fst: word 2 has no name; expected one in the table of words"):
        kaldi_graph(fst, model, PHONES, {1: "a"}, "HCLr.fst")
    with pytest.raises(GraphError, match=r"HCLr\.fst: phone 3 of the model has no name"):
        kaldi_graph(fst, model, {1: "x", 2: "y"}, WORDS, "HCLr.fst")
    inside = {1: "internal", 2: "internal", 3: "nonword"}
    with pytest.raises(GraphError, match=r"HCLr\.fst: no phone begins a word; expected word boundaries of begin or"):
        kaldi_graph(fst, model, PHONES, WORDS, "HCLr.fst", inside)
    path = tmp_path / "HCLG.fst"
    path.write_bytes(vector_file([0.0, 0.0], [(0, 10_001_002, 0, 0.5, 1)]))
    with pytest.raises(GraphError, match=r"HCLG\.fst: label 10001002, of a subgrammar; expected a graph without"):
        kaldi_graph(read_fst(path), model, PHONES, WORDS, "HCLG.fst")
    path = tmp_path / "G.fst"
    path.write_bytes(vector_file([0.0, 0.0], [(0, 0, 0, 0.5, 1), (1, 0, 0, 0.5, 0)]))
    with pytest.raises(GraphError, match=r"G\.fst: 0 states without back-off"):
        kaldi_language_model(read_fst(path), SYMBOLS, "G.fst")
    path.write_bytes(vector_file([0.0, 0.0, 0.0], [(0, 0, 0, 0.5, 1), (1, 0, 0, 0.5, 0)]))
    with pytest.raises(GraphError, match=r"G\.fst: backing off does not end"):
        kaldi_language_model(read_fst(path), SYMBOLS, "G.fst")


def test_only_marks_of_kaldi_are_no_words():
    assert [is_mark(name) for name in ("#0", "#12", "#nonterm:city", "#", "#tag", "#1st")] == [True] * 3 + [False] * 3
