"""HCLG graphs of Kaldi: words, costs and times equal those of the best path of transition-ids."""

import dataclasses

import numpy as np
import pytest

from decoder.graph.foreign.kaldi_graph import kaldi_graph
from decoder.graph.graph_file import FORMAT, load_graph, save_graph
from decoder.search.decoder import Decoder
from decoder.search.options import SearchOptions
from readers.errors import ArgonautError, FormatError, GraphError
from readers.kaldi.fst import read_fst
from readers.kaldi.hmm.phones import read_word_boundary
from readers.kaldi.objects import KaldiObjects
from readers.kaldi.transition_model import read_transition_model
from tests.decoder.graph.foreign.static_graphs import BOUNDARIES, PHONES, WORDS, cheapest_path, spans, static_graph
from tests.readers.kaldi.models import Writer, put_transitions

MODEL = read_transition_model(KaldiObjects("final.mdl", put_transitions(Writer(True), len(PHONES), old=True).content))
OPTIONS = SearchOptions(acweight=0.5, beam=1e9, word_end_beam_frac=1.0, sil_cost=0.0, silence=("SIL",))


@pytest.fixture(params=range(5))
def rng(request):
    return np.random.default_rng(request.param)


def test_words_costs_and_times_are_those_of_the_best_path(tmp_path, rng):
    (tmp_path / "HCLG.fst").write_bytes(static_graph(rng))
    fst = read_fst(tmp_path / "HCLG.fst")
    compiled, rows = kaldi_graph(fst, MODEL, PHONES, WORDS, "HCLG.fst", BOUNDARIES)
    save_graph(compiled, tmp_path / "graph.dg")
    decoder = Decoder(load_graph(tmp_path / "graph.dg"), None, OPTIONS, rows)
    for num_frames in range(1, 12):
        scores = -rng.uniform(0, 9, (MODEL.num_pdfs, num_frames)).astype("f4")
        words, cost, ids = cheapest_path(fst, MODEL, scores, 0.5)
        result = decoder.decode(np.asfortranarray(scores))
        assert tuple(result.text) == words
        assert result.cost == pytest.approx(cost, abs=1e-4)
        assert [(word.start, word.end) for word in result.words] == spans(ids, MODEL)
        assert [word.text for word in result.words] == result.text


def test_word_boundaries_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "HCLG.fst"
    path.write_bytes(static_graph(np.random.default_rng(0)))
    fst = read_fst(path)
    with pytest.raises(GraphError, match=r"HCLG\.fst: phone b_S has no word boundary; expected one for each phone"):
        kaldi_graph(fst, MODEL, PHONES, WORDS, "HCLG.fst", {n: kind for n, kind in BOUNDARIES.items() if n < 9})
    graph, _ = kaldi_graph(fst, MODEL, PHONES, WORDS, "HCLG.fst", BOUNDARIES)
    save_graph(graph, tmp_path / "graph.dg")
    start, sections = FORMAT.read(tmp_path / "graph.dg")
    FORMAT.write(tmp_path / "graph.dg", start, {**sections, "word_boundary": np.zeros(3, np.uint8)})
    with pytest.raises(FormatError, match=r"graph\.dg: 3 word boundaries; expected 9, one per model"):
        load_graph(tmp_path / "graph.dg")
    save_graph(dataclasses.replace(graph, word_boundary=np.full(9, 5, np.uint8)), tmp_path / "graph.dg")
    with pytest.raises(GraphError, match=r"word_boundary from 5 to 5; expected 0 to 4"):
        load_graph(tmp_path / "graph.dg")


@pytest.mark.parametrize(("name", "lines"), [("word_boundary.int", "1 nonword\n5 singleton\n"),
                                             ("word_boundary.txt", "SIL nonword\r\n1 singleton\r\n")])  # fmt: skip
def test_word_boundaries_are_read_by_number_and_by_name(tmp_path, name, lines):
    (tmp_path / name).write_text(lines)
    assert read_word_boundary(tmp_path / name, {"SIL": 1, "1": 5}) == {1: "nonword", 5: "singleton"}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("1 nonword\n2 first\n", r"w\.int:2: '2 first'; expected a phone and nonword, begin, end, internal, singleton"),
        ("1\n", r"w\.int:1: '1'; expected a phone and nonword"),
        ("x begin\n", r"w\.int:1: phone 'x' is not in phones\.txt; expected one of its phones"),
        ("1 begin\n1 end\n", r"w\.int:2: phone 1 again; expected each phone once"),
    ],
)
def test_damaged_word_boundaries_are_refused(tmp_path, lines, message):
    (tmp_path / "w.int").write_text(lines)
    with pytest.raises(ArgonautError, match=message):
        read_word_boundary(tmp_path / "w.int", {"SIL": 1})
