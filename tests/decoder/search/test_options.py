"""What the options of the search do, on graphs small enough to count by hand."""

import math

import numpy as np
import pytest

from decoder.graph.compiled_graph import precompile
from decoder.lm.language_model import LanguageModel
from decoder.search.decoder import Decoder, SearchOptions
from readers.errors import GraphError
from tests.decoder import graphs
from tests.decoder.search.test_decoder import UNPRUNED, random_case
from tests.decoder.search.test_search_stream import spoken

UNIGRAM = [{("<s>",): (-99, 0), ("</s>",): (-1, 0), ("x",): (-0.5, 0), ("y",): (-1.5, 0)}]


def make_decoder(arcs, finals, transitions=None, lookahead=None, lm=None, **options):
    graph = graphs.make_acceptor(arcs, finals)
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
    assert [(w.text, w.start, w.end) for w in result.words] == [("x", 0, 3)]
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


@pytest.mark.parametrize(("outside", "inside"), [(1, 2), (2, 1)])
def test_silence_after_words_that_several_arcs_end_is_charged_whatever_the_numbers_of_states(outside, inside):
    arcs = [(0, outside, "[a_s2]", 0.0), (0, inside, "[sil_s2]", 5.0)]
    arcs += [(outside, 3, "X", 0.0), (inside, 3, "X", 0.0), (3, 4, "[sil_s2]", 0.0)]
    decoder = make_decoder(arcs, {4: 0.0}, sil_cost=7.0)
    assert decoder.decode(np.zeros((len(decoder.graph.states), 2), np.float32)).cost == 7.0


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
    assert [(w.text, w.start, w.end) for w in decoder.decode(scores).words] == [("x", 2, 8), ("y", 9, 12)]


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


@pytest.mark.parametrize(
    ("options", "made"),
    [
        ({"beam": 3.0, "acweight": 0.5, "lattice_beam": 2.0}, set()),
        ({"lattice_beam": None}, {"positions", "states"}),
        ({"sil_cost": 4.0}, {"arcs"}),
        ({"silence": ("a",)}, {"arcs"}),
        ({"lm_lookahead": True}, {"arcs"}),
        ({"lm_scale": 3.0}, {"words"}),
        ({"word_penalty": 3.0}, {"words"}),
    ],
)
def test_decoders_share_the_records_that_their_options_leave_equal(options, made):
    decoder = two_words(lattice_beam=1.0)
    other, alone = decoder.with_options(**options), two_words(**({"lattice_beam": 1.0} | options))
    pairs = {name: (getattr(decoder._arrays, name), getattr(other._arrays, name)) for name in other._arrays._fields[:4]}
    assert {name for name, (first, second) in pairs.items() if first is not second} == made
    for name, (_, records) in pairs.items():
        np.testing.assert_array_equal(records, getattr(alone._arrays, name))
    assert decoder.with_options(**options)._arrays.words is other._arrays.words


def one_word(**options):
    """<s>, x or y, </s>, with silence at both ends."""
    arcs = [(0, 1, "[sil[2]]", 0.0), (1, 2, "x", 0.0), (1, 3, "y", 0.0)]
    arcs += [(2, 4, "[x_s2]", 0.0), (3, 4, "[y_s2]", 0.0), (4, 5, "[sil[2]]", 0.0)]
    graph = precompile(graphs.make_acceptor(arcs, {5: 0.0}), None, None)
    return Decoder(graph, None, SearchOptions(acweight=1.0, sil_cost=0.0, **options))


SAID = ["sil[2]"] * 3 + ["x_s2"] * 4 + ["sil[2]"] * 6 + ["y_s2"] * 4 + ["sil[2]"] * 3


def test_the_words_of_both_sentences_are_found_in_files():
    decoder = one_word(new_sentence=1.0, lattice_beam=5.0)
    result = decoder.decode(spoken(decoder, SAID))
    assert [(word.text, word.start, word.end) for word in result.words] == [("x", 3, 7), ("y", 13, 17)]
    assert result.cost == 1.0
    assert -2 in result.lattice.word


def test_without_the_option_an_utterance_is_one_sentence():
    decoder = one_word()
    assert len(decoder.decode(spoken(decoder, SAID)).text) == 1
