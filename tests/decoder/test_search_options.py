"""What the options of the search do, on graphs small enough to count by hand; faults and unfinished searches."""

import math

import numpy as np
import pytest

from decoder._token_store import TOKEN, add, find, keep_best_tokens, more_tokens, smallest
from decoder.language_model import LanguageModel
from decoder.search import ROOM, Decoder, SearchOptions
from readers.errors import ConfigError, GraphError, ShapeError
from tests.decoder import graphs
from tests.decoder.test_search import UNPRUNED, path_words, random_case

UNIGRAM = [{("<s>",): (-99, 0), ("</s>",): (-1, 0), ("x",): (-0.5, 0), ("y",): (-1.5, 0)}]


def make_decoder(arcs, finals, transitions=None, lookahead=None, lm=None, **options):
    graph = graphs.make_acceptor(arcs, finals)
    from decoder.image import precompile

    options = {**UNPRUNED, "lm_lookahead": False, **options}  # what it does: test_lm_ahead.py
    return Decoder(precompile(graph, transitions, lookahead), lm, SearchOptions(**options))


def scores_of(rows):
    """(K, T) log-likelihoods from a list of rows."""
    return np.asfortranarray(rows, dtype=np.float32)


def two_words(**options):
    """x is [a_s2] x [b_s2], y is [a_s2] y [c_s2], then [sil[2]] and the end; states in the order a, b, c, sil."""
    arcs = [
        (0, 1, "[a_s2]", 0.0),
        (1, 2, "x", 0.0),
        (1, 3, "y", 0.0),
        (2, 4, "[b_s2]", 0.0),
        (3, 4, "[c_s2]", 0.0),
        (4, 5, "[sil[2]]", 0.0),
    ]
    lm = LanguageModel.from_arpa(graphs.make_arpa(["<s>", "</s>", "x", "y"], UNIGRAM))
    return make_decoder(arcs, {5: 0.0}, None, {"x": 1.0, "y": 1.0}, lm, **options)


def test_cost_of_a_path_by_hand():
    transitions = {"a_s2": (-0.5, -1.0), "b_s2": (-0.25, -2.0)}
    arcs = [(0, 1, "[a_s2]", 0.125), (1, 2, "x", 0.25), (2, 3, "[b_s2]", 0.5)]
    lm = LanguageModel.from_arpa(graphs.make_arpa(["<s>", "</s>", "x", "y"], UNIGRAM))
    decoder = make_decoder(
        *(arcs, {3: 4.0}, transitions, {"x": 0.75}, lm), acweight=0.5, lm_scale=2.0, word_penalty=3.0
    )
    result = decoder.decode(scores_of([[-1, -2, -9], [-9, -9, -4]]))
    acoustic = 0.5 * (1 + 2 + 4)
    states = (0.125 + 0.5 + 1.0) + (0.5 + 2.0)  # arc, one stay, leave; arc, leave
    word = 0.25 + 2.0 * 0.5 * math.log(10) - 0.75 + 3.0
    end = 4.0 + 2.0 * 1.0 * math.log(10)
    assert result.cost == pytest.approx(acoustic + states + word + end, abs=1e-6)
    assert [(w.word, w.start, w.end) for w in result.words] == [("x", 0, 3)]
    assert result.words[0].cost == pytest.approx(acoustic + states + word, abs=1e-6)
    np.testing.assert_array_equal(result.path.acoustic, [-3, 0, -4, 0])


def test_without_a_language_model_the_look_ahead_stays():
    arcs = [(0, 1, "[a_s2]", 0.125), (1, 2, "x", 0.25), (2, 3, "[b_s2]", 0.5)]
    decoder = make_decoder(arcs, {3: 4.0}, None, {"x": 0.75}, None)
    assert decoder.decode(scores_of([[0, 0], [0, 0]])).cost == 0.125 + 0.25 + 0.5 + 4.0


def test_language_model_decides_between_words_that_sound_alike():
    scores = np.zeros((4, 6), np.float32, order="F")
    assert two_words().decode(scores).text == ["x"]
    scores[2, 2:4] = 3.0  # [c_s2] sounds better, by more than x is likelier than y
    assert two_words().decode(scores).text == ["y"]
    assert two_words(lm_scale=5.0).decode(scores).text == ["x"]


def test_sentence_end_word_takes_the_place_of_the_end_probability():
    lm = LanguageModel.from_arpa(graphs.make_arpa(["<s>", "</s>", "x", "y"], UNIGRAM))
    arcs = [(0, 1, "[a_s2]", 0.0), (1, 2, "x", 0.0), (2, 3, "[b_s2]", 0.0)]
    marked = [(0, 1, "<s>", 0.0), *((s + 1, t + 1, name, c) for s, t, name, c in arcs), (4, 5, "</s>", 0.0)]
    scores = np.zeros((2, 4), np.float32, order="F")
    plain = make_decoder(arcs, {3: 0.0}, lm=lm, word_penalty=1.0).decode(scores)
    with_marks = make_decoder(marked, {5: 0.0}, lm=lm, word_penalty=1.0).decode(scores)
    assert plain.cost == pytest.approx(1.5 * math.log(10) + 1.0, abs=1e-6)
    assert with_marks.cost == pytest.approx(plain.cost, abs=1e-9)
    assert with_marks.text == ["x"]
    after_end = [*marked, (5, 6, "x", 0.0)]
    assert make_decoder(after_end, {6: 0.0}, lm=lm).decode(scores).reason == "no token reached a final state"


def test_silence_cost_is_charged_once_on_entering_silence():
    scores = np.zeros((4, 9), np.float32, order="F")
    assert two_words(sil_cost=2.5).decode(scores).cost - two_words().decode(scores).cost == pytest.approx(2.5)
    inside = [(0, 1, "[sil_s2]", 0.0), (1, 2, "[sil_s3]", 0.0), (2, 3, "[sil_s4]", 0.0), (2, 1, "[sil_s2]", 0.0)]
    decoder = make_decoder(inside, {3: 0.0}, sil_cost=2.5)
    assert decoder.decode(np.zeros((3, 8), np.float32)).cost == 2.5
    through_a_word = [(0, 1, "[sil_s2]", 0.0), (1, 2, "<s>", 0.0), (2, 3, "[sil_s3]", 0.0), (3, 4, "[a_s2]", 0.0)]
    back_again = [*through_a_word, (4, 5, "[sil_s2]", 0.0)]
    assert make_decoder(through_a_word, {4: 0.0}, sil_cost=2.5).decode(np.zeros((3, 8), np.float32)).cost == 2.5
    assert make_decoder(back_again, {5: 0.0}, sil_cost=2.5).decode(np.zeros((3, 8), np.float32)).cost == 5.0
    from_the_start = make_decoder([(0, 0, "[sil_s2]", 0.0)], {0: 0.0}, sil_cost=2.5)
    assert from_the_start.decode(np.zeros((1, 1), np.float32)).cost == 2.5
    after_either = [(0, 1, "[a_s2]", 0.0), (0, 1, "[sil_s2]", 0.0), (1, 2, "[sil_s2]", 0.0)]
    scores = scores_of([[0, -9], [-9, 0]])  # [a], then silence
    assert make_decoder(after_either, {2: 0.0}, sil_cost=2.5).decode(scores).cost == 2.5


def test_silence_models_are_those_of_the_sentence_start_or_as_named():
    arcs = [(0, 1, "[h#_s2]", 0.0), (1, 2, "<s>", 0.0), (2, 3, "[aa_s2]", 0.0), (3, 4, "[sp_s2]", 0.0)]
    decoder = make_decoder(arcs, {4: 0.0})
    names = np.array(decoder.graph.models)
    assert set(names[decoder.silence]) == {"h#", "sp"}
    named = decoder.with_options(silence=("aa",))
    assert set(names[named.silence]) == {"aa"}
    with pytest.raises(GraphError, match="no silence model 'zz'"):
        decoder.with_options(silence=("zz",))


def test_words_begin_after_silence_and_end_with_their_last_phone():
    arcs = [
        *((0, 1, "[sil[2]]", 0.0), (1, 2, "[a_s2]", 0.0), (2, 3, "[a_s3]", 0.0), (3, 4, "x", 0.0)),
        *((4, 5, "[b_s2]", 0.0), (5, 6, "[b_s3]", 0.0), (6, 7, "[sil[2]]", 0.0)),
        *((7, 8, "[c_s2]", 0.0), (8, 9, "y", 0.0), (9, 10, "[c_s3]", 0.0)),  # one phone: the label stands inside it
    ]
    states = ["sil", "a2", "a3", "b2", "b3", "c2", "c3"]
    spoken = "sil sil a2 a3 a3 b2 b3 b3 sil c2 c3 c3".split()
    rows = {"[sil[2]]": "sil", "[a_s2]": "a2", "[a_s3]": "a3", "[b_s2]": "b2", "[b_s3]": "b3"}
    decoder = make_decoder(arcs, {10: 0.0})
    order = [rows.get(f"[{name}]", name.replace("_s", "")) for name in decoder.graph.states]
    assert sorted(order) == sorted(states)
    scores = scores_of([[0.0 if name == s else -50.0 for s in spoken] for name in order])
    assert [(w.word, w.start, w.end) for w in decoder.decode(scores).words] == [("x", 2, 8), ("y", 9, 12)]


@pytest.mark.parametrize("seed", range(60))
def test_a_wider_beam_never_finds_less_than_half_of_it(seed):
    case = random_case(seed)
    costs = []
    for beam in (0.5, 2.0, 8.0, 1000.0):
        result = case.decoder.with_options(beam=beam).decode(case.scores)
        costs.append(result.cost)
        assert result.cost == math.inf or result.path.cost.sum() == pytest.approx(result.cost, abs=1e-9)
    best = case.best[1].cost if case.expected else math.inf
    assert all(cost >= best - 1e-5 for cost in costs)
    assert costs[-1] == pytest.approx(best, abs=1e-5)


def test_wide_defaults_lose_nothing_on_easy_utterances():
    rng = np.random.default_rng(5)
    for _ in range(20):
        scores = np.asfortranarray(rng.normal(scale=3.0, size=(4, 30)), dtype=np.float32)
        exact, default = two_words(acweight=0.0667), two_words(**SearchOptions().__dict__ | {"sil_cost": 0.0})
        assert default.decode(scores).cost == exact.decode(scores).cost
        assert default.decode(scores).text == exact.decode(scores).text


def chain_of(names):
    return [(i, i + 1, f"[{name}]", 0.0) for i, name in enumerate(names)]


def test_beam_is_measured_from_the_best_token():
    # Two ways from the start: u costs 3 more in the first frame, but only u leads to the end.
    arcs = [(0, 1, "[v]", 0.0), (0, 2, "[u]", 3.0), (2, 3, "[e]", 0.0), (1, 1, "[v]", 0.0)]
    scores = np.zeros((3, 3), np.float32, order="F")
    assert make_decoder(arcs, {3: 0.0}, beam=3.0).decode(scores).reason == ""
    assert make_decoder(arcs, {3: 0.0}, beam=2.99).decode(scores).reason == "no token reached a final state"


def test_max_tokens_keeps_the_best():
    arcs = [(0, 1, "[v]", 0.0), (0, 2, "[u]", 3.0), (2, 3, "[e]", 0.0), (0, 4, "[w]", 4.0)]
    scores = np.zeros((4, 3), np.float32, order="F")
    assert make_decoder(arcs, {3: 0.0}, max_tokens=2).decode(scores).reason == ""
    assert make_decoder(arcs, {3: 0.0}, max_tokens=1).decode(scores).reason == "no token reached a final state"


def word_beam_decoder(**options):
    """[a] then word x (cost 4) then [b], beside [a] [c] that goes nowhere."""
    arcs = [(0, 1, "[a]", 0.0), (1, 2, "x", 4.0), (2, 3, "[b]", 0.0), (1, 4, "[c]", 0.0)]
    return make_decoder(arcs, {3: 0.0}, beam=10.0, **options)


def test_word_end_beam_is_a_part_of_the_beam():
    scores = np.zeros((3, 4), np.float32, order="F")
    assert word_beam_decoder(word_end_beam_frac=0.4).decode(scores).text == ["x"]
    assert word_beam_decoder(word_end_beam_frac=0.399).decode(scores).reason == "no token reached a final state"


def test_word_end_beam_holds_where_the_look_ahead_was_too_high_for_other_histories():
    # x costs 5 after <s> and 1 after x, and the graph has charged 5: nothing is left to add here, 4 to give back there.
    orders = [
        {("<s>",): (-99, 0), ("</s>",): (-1, 0), ("x",): (-5 / math.log(10), 0)},
        {("<s>", "x"): (-5 / math.log(10), 0), ("x", "x"): (-1 / math.log(10), 0)},
    ]
    lm = LanguageModel.from_arpa(graphs.make_arpa(["<s>", "</s>", "x"], orders))
    arcs = [(0, 1, "[a]", 0.0), (1, 2, "x", 4.0), (2, 3, "[b]", 0.0), (1, 4, "[c]", 0.0), (3, 1, "[a]", 0.0)]
    decoder = make_decoder(arcs, {3: 0.0}, None, {"x": 5.0}, lm, beam=10.0)
    scores = np.zeros((3, 4), np.float32, order="F")
    assert decoder.with_options(word_end_beam_frac=0.41).decode(scores).text == ["x"]
    assert decoder.with_options(word_end_beam_frac=0.3).decode(scores).reason == "no token reached a final state"
    twice = [(0, 1, "[a]", 0.0), (1, 2, "x", 0.0), (2, 3, "[b]", 0.0), (3, 4, "x", 4.0), (4, 5, "[c]", 0.0)]
    decoder = make_decoder(twice, {5: 0.0}, None, {"x": 5.0}, lm, beam=10.0, word_end_beam_frac=0.05)
    assert decoder.decode(np.zeros((3, 4), np.float32)).text == ["x", "x"]


def test_of_equal_paths_the_first_stays():
    arcs = [
        (0, 1, "[a]", 0.0),
        (1, 2, "y", 0.0),
        (1, 2, "x", 0.0),
        (2, 3, "[b]", 0.0),
    ]  # arcs in order of symbols: y, x
    assert make_decoder(arcs, {3: 0.0}).decode(np.zeros((2, 2), np.float32)).text == ["y"]
    # Both ways reach [c] with the second frame and the same cost: over the arc first in order of its target.
    arcs = [(0, 1, "[a]", 1.0), (0, 2, "[b]", 1.0), (1, 3, "[c]", 0.0), (2, 3, "[c]", 0.0)]
    decoder = make_decoder(arcs, {3: 0.0})
    assert decoder.graph.arrays.position_exit[decoder.decode(np.zeros((3, 2), np.float32)).path.label[0]] == 1
    # Staying comes before entering anew.
    arcs = [(0, 1, "[a]", 0.0), (1, 1, "[a]", 0.0)]
    path = make_decoder(arcs, {1: 0.0}).decode(np.zeros((1, 3), np.float32)).path
    assert path.label.tolist() == [0, -1]


def test_after_the_last_frame_nothing_is_pruned():
    arcs = [(0, 1, "[a]", 0.0), (1, 2, "x", 20.0), (0, 3, "[b]", 0.0)]
    result = make_decoder(arcs, {2: 0.0}, beam=10.0, word_end_beam_frac=0.1).decode(np.zeros((2, 3), np.float32))
    assert (result.reason, result.text, result.cost) == ("", ["x"], 20.0)


def test_slack_saves_a_token_from_what_the_language_model_added():
    # x costs 0.5 ln 10 = 1.15 (LM); [a] stays possible, so that the best token never pays it.
    lm = LanguageModel.from_arpa(graphs.make_arpa(["<s>", "</s>", "x", "y"], UNIGRAM))
    arcs = [(0, 1, "[a]", 0.0), (1, 2, "x", 0.0), (2, 3, "[b]", 0.0), (1, 4, "[c]", 0.0)]
    scores = np.zeros((3, 4), np.float32, order="F")

    def decode(decay, num_frames=3):
        # [b] is bad in the second frame alone, so x must be crossed before it and outlive the beam for a while.
        rows = np.zeros((3, num_frames), np.float32, order="F")
        rows[0, 2:] = -50.0
        rows[2, 2:] = 0.0
        return make_decoder(arcs, {3: 0.0}, lm=lm, beam=1.0, slack_decay=decay).decode(rows)

    assert scores.shape == (3, 4)
    assert decode(0.0).reason == "no token reached a final state"
    assert decode(0.9).text == ["x"]
    # 1.15 * (1 - 0.9^n) exceeds the beam of 1 after 20 frames: the slack is used up.
    assert decode(0.9, 15).text == ["x"]
    assert decode(0.9, 30).reason == "no token reached a final state"


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
    assert (result.reason, result.text) == ("every token died in frame 3: all their scores are -inf", [])
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
        ({"beam": -1.0}, "beam: -1.0; expected at least 0"),
        ({"beam": math.nan}, "beam: nan"),
        ({"max_tokens": 0}, "max_tokens: 0; expected 1 to 2.14748e.09"),
        ({"acweight": math.inf}, "acweight: inf"),
        ({"slack_decay": 1.0}, "slack_decay: 1.0"),
        ({"lattice_beam": -0.1}, "lattice_beam"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        SearchOptions(**options)


def test_unknown_option_lists_the_known_ones():
    with pytest.raises(ConfigError, match="search option beem: not known; expected one of acweight, beam"):
        two_words().with_options(beem=1.0)


def test_with_options_shares_the_graph_and_changes_only_what_is_named():
    decoder = two_words(word_penalty=1.0)
    other = decoder.with_options(acweight=0.5)
    assert other.graph is decoder.graph
    assert (other.options.acweight, other.options.word_penalty, decoder.options.acweight) == (0.5, 1.0, 1.0)


def test_cntkmap_sends_states_to_rows():
    arcs = chain_of(["a", "b"])
    from decoder.image import precompile

    graph = precompile(graphs.make_acceptor(arcs, {2: 0.0}), {"a": (-1, -1), "b": (-1, -1), "idle": (-1, -1)})
    scores = scores_of([[9, 9], [9, 9], [-1, -3], [-2, -5]])
    options = SearchOptions(**UNPRUNED)
    decoder = Decoder(graph, options=options, cntkmap={"b": 2, "a": 3})
    assert decoder.decode(scores).cost == 2 + 3 + 1 + 1
    decoder.check_outputs(4)
    with pytest.raises(GraphError, match=r"model\.dnn: 3 outputs, but state \[a\] of graph has index 3; expected at"):
        decoder.check_outputs(3, "model.dnn")
    with pytest.raises(GraphError, match=r"graph: state \[b\] has no index in the cntkmap"):
        Decoder(graph, options=options, cntkmap={"a": 0})
    with pytest.raises(GraphError, match=r"cntkmap: state \[zz\] and 1 more not in graph"):
        Decoder(graph, options=options, cntkmap={"a": 0, "b": 1, "zz": 2, "yy": 3})
    Decoder(graph, options=options, cntkmap={"a": 0, "b": 1, "idle": 2})  # a state of the model set, on no arc


def test_words_without_a_probability_are_named():
    lm = LanguageModel.from_arpa(
        graphs.make_arpa(["<s>", "</s>", "x"], [{k: v for k, v in UNIGRAM[0].items() if k != ("y",)}])
    )
    with pytest.raises(GraphError, match="1 words are not in the language model: y"):
        make_decoder([(0, 1, "y", 0.0), (1, 2, "[a]", 0.0)], {2: 0.0}, lm=lm)


@pytest.mark.parametrize("seed", range(20))
def test_selection_equals_sorting(seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 10, size=int(rng.integers(1, 40))).astype(float)
    for count in range(1, values.size + 1):
        assert smallest(values.copy(), count) == np.sort(values)[count - 1]


def test_the_kept_tokens_are_the_best_and_of_equals_the_first():
    tokens = np.zeros(6, TOKEN)
    tokens["cost"], tokens["slack"] = [5, 3, 4, 3, 3, 9], [0, 0, 1, 0, 0, 8]
    assert keep_best_tokens(tokens, 6, 6, 3) == 1
    assert tokens["cost"].tolist() == [math.inf, 3, 4, math.inf, math.inf, 9]


def test_tokens_are_found_after_their_tables_have_grown():
    tokens, table, stamp = np.zeros(4, TOKEN), np.zeros(8, np.int64), np.int64(3)
    keys = np.arange(4, dtype=np.int64) << 32 | 7
    for i, key in enumerate(keys):
        slot = find(table, stamp, tokens, key)
        assert slot < 0
        add(table, stamp, tokens, i, ~slot, key, np.float32(i))
        assert find(table, stamp, tokens, key) == i
    tokens["cost"] = [1, 2, 3, 4]
    tokens, table = more_tokens(tokens, 4, 5, table, stamp)
    assert (tokens.shape, table.shape) == ((8,), (16,))
    assert [find(table, stamp, tokens, key) for key in keys] == [0, 1, 2, 3]
    assert tokens["cost"][:4].tolist() == [1, 2, 3, 4]
    assert tokens["ahead"][:4].tolist() == [0, 1, 2, 3]
    assert find(table, stamp, tokens, np.int64(99)) < 0


@pytest.mark.parametrize("lattice_beam", [None, 1.0])
def test_results_do_not_depend_on_the_first_size_of_the_tables(lattice_beam):
    """More tokens, steps and arrivals than there is room for at first, in a graph where every state leads to all."""
    rng = np.random.default_rng(1)
    names = [f"m{i}_s2" for i in range(40)]
    arcs = [(0, i + 1, f"[{name}]", float(rng.random())) for i, name in enumerate(names)]
    arcs += [(i + 1, j + 1, f"[{b}]", float(rng.random())) for i in range(40) for j, b in enumerate(names) if i != j]
    arcs += [(i + 1, 41 + i % 7, f"w{i % 7}", float(rng.random())) for i in range(40)]
    arcs += [(41 + i, 48, f"[{names[0]}]", 0.0) for i in range(7)]
    arcs += [(48, 1 + i, f"[{names[i]}]", 0.0) for i in range(40)]
    vocabulary, orders = graphs.random_orders(rng, [f"w{i}" for i in range(7)], 3)
    lm = LanguageModel.from_arpa(graphs.make_arpa(vocabulary, orders))
    decoder = make_decoder(arcs, {48: 0.0}, lm=lm, lattice_beam=lattice_beam)
    scores = np.asfortranarray(rng.normal(size=(40, 60)), dtype=np.float32)
    result = decoder.decode(scores)
    assert result.tokens_per_frame > ROOM
    assert result.path.cost.sum() == pytest.approx(result.cost, abs=1e-6)
    for room in (1, 16, 65536):
        decoder._limits = decoder._limits._replace(room=room)
        same = decoder.decode(scores)
        assert (same.cost, same.tokens_per_frame) == (result.cost, result.tokens_per_frame)
        np.testing.assert_array_equal(same.path.label, result.path.label)
        if lattice_beam:
            np.testing.assert_array_equal(same.lattice.cost, result.lattice.cost)
            assert same.lattice.best_path()[0] == pytest.approx(result.cost, abs=1e-6)
