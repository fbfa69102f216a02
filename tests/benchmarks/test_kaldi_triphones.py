"""The peer's graph of cross-word triphones: its steps on small graphs, and the same best paths as ours."""

import numpy as np
import pytest

from decoder.graph.openfst import ArcArrays, from_openfst, to_openfst

kaldifst = pytest.importorskip("kaldifst")

from benchmarks.kaldi_triphones import (  # noqa: E402
    build_triphone_hclg,
    hmm_transducer,
    with_self_loops,
    without_lone_epsilons,
)


def transducer(arcs, final, start=0):
    """arcs: (source, target, in, out, cost)."""
    source, target, label, output, cost = map(np.array, zip(*arcs))
    cost = cost.astype(np.float32)
    return ArcArrays(source, target, label, cost, np.array(final, np.float32), start, output).sorted()


def rows(arrays):
    return set(zip(*(c.tolist() for c in (arrays.source, arrays.target, arrays.label, arrays.output, arrays.cost))))


def test_transducers_go_through_openfst_with_both_labels():
    arrays = transducer([(0, 1, 1, 7, 0.5), (1, 2, 0, 8, 1.0), (0, 2, 2, 0, 0.25)], [np.inf, np.inf, 0.0])
    back = from_openfst(to_openfst(arrays), transducer=True)
    assert rows(back) == rows(arrays)
    assert from_openfst(to_openfst(arrays)).output is None
    fst = to_openfst(arrays)
    kaldifst.arcsort(fst, "olabel")
    swapped = kaldifst.compose(fst, to_openfst(transducer([(0, 1, 7, 3, 0.0), (1, 2, 8, 4, 0.0)], [np.inf, np.inf, 0])))
    kaldifst.connect(swapped)
    assert rows(from_openfst(swapped, transducer=True)) == {(0, 1, 1, 3, 0.5), (1, 2, 0, 4, 1.0)}


def test_chains_of_lone_epsilons_are_passed_over():
    inf = np.inf
    arcs = [(0, 1, 1, 1, 1.0), (1, 2, 0, 0, 0.5), (2, 3, 0, 0, 0.25), (3, 4, 2, 0, 0.0), (0, 4, 0, 0, 4.0)]
    found = without_lone_epsilons(transducer(arcs, [inf, inf, inf, inf, 0.0]))
    assert (0, 3, 1, 1, 1.75) in rows(found)
    assert (0, 4, 0, 0, 4.0) in rows(found)  # the start keeps its arcs
    stays = transducer([(0, 1, 1, 1, 1.0), (1, 2, 0, 0, 0.5), (2, 2, 1, 0, 0.0)], [inf, 0.0, 0.0])
    assert rows(without_lone_epsilons(stays)) == rows(stays)  # one that is final


def test_labels_loop_where_they_were_read_and_are_paid_for_on_leaving():
    arcs = [(0, 1, 1, 5, 0.0), (0, 1, 2, 6, 1.0), (1, 2, 0, 0, 0.5)]
    stay, go = np.array([0.0, 10.0, 20.0]), np.array([0.0, 0.1, 0.2])
    found = with_self_loops(transducer(arcs, [np.inf, np.inf, 0.0]), stay, go)
    assert found.num_states == 4  # the middle state twice
    loops = {(label, cost) for s, t, label, out, cost in rows(found) if s == t}
    assert loops == {(1, 10.0), (2, 20.0)}
    ends = {(label, round(cost, 3)) for s, t, label, out, cost in rows(found) if label == 0}
    assert ends == {(0, 0.6), (0, 0.7)}


def test_models_have_any_topology():
    back = ((0, 1, 0.0), (1, 2, -0.5), (2, 1, -1.0), (2, 3, -2.0))
    arrays = from_openfst(hmm_transducer([((7, 8), back), ((9,), ((0, 1, 0.0), (1, 2, 0.0)))], 9, 1), transducer=True)
    # Into a state with its label; 1 and 2 lead on, 2 leaves by an epsilon, and the only state of the other at once.
    assert rows(arrays) == {
        (0, 1, 7, 1, 0),
        (1, 2, 8, 0, 0.5),
        (2, 1, 7, 0, 1),
        (2, 0, 0, 0, 2),
        (0, 0, 9, 2, 0),
        (0, 0, 10, 3, 0),
    }


def test_a_label_that_does_not_repeat_has_no_loop():
    arrays = with_self_loops(transducer([(0, 1, 1, 5, 0.0)], [np.inf, 0.0]), np.array([0, np.inf]), np.array([0, 0.1]))
    assert [(s, t) for s, t, *_ in rows(arrays)] == [(0, 1)]


@pytest.mark.slow
def test_both_searches_find_the_same_paths_at_the_same_cost(tmp_path):
    kaldi_decoder = pytest.importorskip("kaldi_decoder")
    from benchmarks.experiment import main as experiment
    from benchmarks.stress_task import Task
    from decoder.graph import PhoneModels
    from readers.htk.dictionary import read_dictionary

    assert experiment("stress", ["--size", "tiny", "--utterances", "2", "--out", str(tmp_path), "--to", "speech"]) == 0
    task = Task(tmp_path)
    wide = {"beam": 25.0, "word_end_beam_frac": 10.0, "max_tokens": 10**6}
    decoder = task.decoder().with_options(acweight=0.1, sil_cost=0.25, word_penalty=0.5, lm_scale=1.5, **wide)
    models = PhoneModels.load(tmp_path / "hmms")
    hclg = build_triphone_hclg(decoder, read_dictionary(tmp_path / "words.dict"), models, 0.15)
    for scores in task.scores().values():
        peer = kaldi_decoder.FasterDecoder(hclg, kaldi_decoder.FasterDecoderOptions(beam=25))
        peer.decode(kaldi_decoder.DecodableCtc(np.ascontiguousarray(0.1 * scores.T)))
        _, lattice = peer.get_best_path()
        _, _, labels, weight = kaldifst.get_linear_symbol_sequence(lattice)
        mine = decoder.decode(scores)
        assert mine.text == [decoder.graph.words[label - 1] for label in labels]
        assert mine.cost == pytest.approx(weight.value1 + weight.value2, abs=0.02)  # costs of graphs are rounded
