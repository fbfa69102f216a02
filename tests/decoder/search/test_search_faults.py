"""Searches that end without a final token, and scores, options and maps that do not fit."""

import math

import numpy as np
import pytest

from decoder.graph.compiled_graph import precompile
from decoder.lm.language_model import LanguageModel
from decoder.search.decoder import Decoder, SearchOptions
from readers.errors import ConfigError, GraphError, ShapeError
from tests.decoder import graphs
from tests.decoder.search.test_decoder import UNPRUNED, path_words, random_case
from tests.decoder.search.test_options import UNIGRAM, chain_of, make_decoder, scores_of, two_words


def test_unfinished_search_has_a_reason_and_on_request_the_best_path():
    decoder = two_words()
    scores = np.zeros((4, 2), np.float32, order="F")
    result = decoder.decode(scores)
    assert (result.reason, result.text, result.cost) == ("no token reached a final state", [], math.inf)
    partial = decoder.with_options(partial=True).decode(scores)
    assert partial.reason == "no token reached a final state"
    assert path_words(partial, decoder) in (("x",), ())
    assert partial.path.cost.sum() == pytest.approx(partial.cost)
    assert partial.path.end.max() == 2


@pytest.mark.parametrize("seed", range(30))
def test_the_best_unfinished_path_adds_up(seed):
    case = random_case(seed)
    decoder = case.decoder.with_options(partial=True, beam=1.0)
    result = decoder.decode(case.scores)
    assert result.path.cost.sum() == pytest.approx(result.cost, abs=1e-9)
    assert result.path.end[result.path.label >= 0].max() == case.scores.shape[1]


def test_no_frames_and_dead_frames_are_results():
    decoder = two_words()
    assert decoder.decode(np.zeros((4, 0), np.float32)).reason == "no token reached a final state"
    scores = np.zeros((4, 5), np.float32, order="F")
    scores[:, 3] = -np.inf
    result = decoder.decode(scores)
    assert (result.reason, result.text) == ("every token died in frame 3: no state in reach has a score above -inf", [])
    empty_is_final = make_decoder([(0, 1, "[a]", 0.0)], {0: 2.0, 1: 0.0}).decode(np.zeros((1, 0), np.float32))
    assert (empty_is_final.reason, empty_is_final.cost, empty_is_final.words) == ("", 2.0, [])


def test_impossible_states_are_avoided():
    scores = np.zeros((4, 6), np.float32, order="F")
    scores[1] = -np.inf
    assert two_words().decode(scores).text == ["y"]


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.zeros((3, 5), np.float32), r"shape \(3, 5\); expected \(4 or more network outputs, frames\)"),
        (np.zeros(4, np.float32), r"shape \(4,\)"),
        (np.array([[0, 0], [0, 0], [0, np.nan], [0, 0]], np.float32), "NaN or .inf in frame 1"),
        (np.array([[np.inf, 0], [0, 0], [0, 0], [0, 0]], np.float32), "NaN or .inf in frame 0"),
    ],
)
def test_unusable_scores_are_refused(scores, message):
    with pytest.raises(ShapeError, match=message):
        two_words().decode(scores)


def test_scores_of_any_layout_give_the_same():
    scores = np.random.default_rng(0).normal(size=(4, 20))
    expected = two_words().decode(np.asfortranarray(scores, dtype=np.float32))
    read_only = np.asfortranarray(scores, dtype=np.float32)
    read_only.flags.writeable = False
    for same in (scores, np.ascontiguousarray(scores, dtype=np.float32), read_only, scores.astype(np.float32)[:, ::1]):
        result = two_words().decode(same)
        assert (result.cost, result.text) == (expected.cost, expected.text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": -1.0}, "beam is -1; expected at least 0"),
        ({"beam": math.nan}, "beam is nan"),
        ({"max_tokens": 0}, "max_tokens is 0; expected at least 1"),
        ({"acweight": math.inf}, "acweight is inf"),
        ({"slack_decay": 1.0}, "slack_decay is 1"),
        ({"lattice_beam": -0.1}, "lattice_beam"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        SearchOptions(**options)


def test_unknown_option_lists_the_known_ones():
    with pytest.raises(ConfigError, match="search option beem: unknown; expected one of acweight, beam"):
        two_words().with_options(beem=1.0)


def test_with_options_shares_the_graph_and_changes_only_what_is_named():
    decoder = two_words(word_penalty=1.0)
    other = decoder.with_options(acweight=0.5)
    assert other.graph is decoder.graph
    assert (other.options.acweight, other.options.word_penalty, decoder.options.acweight) == (0.5, 1.0, 1.0)


def test_cntkmap_sends_states_to_rows():
    arcs = chain_of(["a", "b"])

    graph = precompile(graphs.make_acceptor(arcs, {2: 0.0}), {"a": (-1, -1), "b": (-1, -1), "idle": (-1, -1)})
    scores = scores_of([[9, 9], [9, 9], [-1, -3], [-2, -5]])
    options = SearchOptions(**UNPRUNED)
    decoder = Decoder(graph, options=options, cntkmap={"b": 2, "a": 3})
    assert decoder.decode(scores).cost == 2 + 3 + 1 + 1
    decoder.check_outputs(4)
    with pytest.raises(GraphError, match=r"model\.dnn: 3 outputs, but state \[a\] of graph has index 3; expected at"):
        decoder.check_outputs(3, "model.dnn")
    largest = Decoder(graph, options=options, cntkmap={"a": 0, "b": 2**31 - 1})
    with pytest.raises(GraphError, match=r"has index 2147483647; expected at least 2147483648 outputs"):
        largest.check_outputs(3)
    with pytest.raises(GraphError, match=r"graph: state \[b\] has no index in the cntkmap"):
        Decoder(graph, options=options, cntkmap={"a": 0})
    with pytest.raises(GraphError, match=r"cntkmap: state \[zz\] and 1 more not in graph"):
        Decoder(graph, options=options, cntkmap={"a": 0, "b": 1, "zz": 2, "yy": 3})
    Decoder(graph, options=options, cntkmap={"a": 0, "b": 1, "idle": 2})  # a state of the model set, on no arc


def test_words_without_a_probability_are_named():
    lm = LanguageModel.from_arpa(
        graphs.make_arpa(["<s>", "</s>", "x"], [{k: v for k, v in UNIGRAM[0].items() if k != ("y",)}])
    )
    with pytest.raises(GraphError, match="1 word not in the language model: y"):
        make_decoder([(0, 1, "y", 0.0), (1, 2, "[a]", 0.0)], {2: 0.0}, lm=lm)
