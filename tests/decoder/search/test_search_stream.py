"""A search in parts against the search of the whole, however it is cut, and what it tells on the way."""

import math

import numpy as np
import pytest

from decoder.search import search_stream as streaming
from decoder.search.decoder import Decoder, SearchOptions
from decoder.search.kernels.token_store import STEPS
from decoder.search.search_stream import SearchStream
from readers.errors import ShapeError
from tests.decoder import graphs
from tests.decoder.search.test_decoder import random_case

OPTIONS = (
    {},
    {"beam": 2.0, "word_end_beam_frac": 0.5, "slack_decay": 0.9},
    {"max_tokens": 3, "partial": True},
    {"beam": 3.0, "word_end_beam_frac": 1.5, "max_tokens": 5, "sil_cost": 0.5},
)


def in_parts(decoder, scores, rng, telling=True):
    """(result, partials) of a search of which the user asks now and then how far it is."""
    stream, partials, begin = SearchStream(decoder), [], 0
    while begin < scores.shape[1]:
        end = begin + int(rng.integers(0, 4))
        stream.push(scores[:, begin:end])
        begin = end
        if telling and rng.random() < 0.5:
            partials.append(stream.partial())
            silent = stream.silent()
            if stream.alive:
                assert len(silent) == partials[-1].num_frames
                assert partials[-1].silence == np.logical_and.accumulate(silent[::-1]).sum()
    return stream.finish(), partials


def assert_same(result, expected):
    assert (result.reason, result.num_frames) == (expected.reason, expected.num_frames)
    assert result.cost == expected.cost
    assert result.tokens_per_frame == expected.tokens_per_frame
    for name in ("label", "start", "end", "acoustic", "lm", "cost"):
        np.testing.assert_array_equal(getattr(result.path, name), getattr(expected.path, name), err_msg=name)
    assert result.words == expected.words


@pytest.mark.parametrize("seed", range(50))
@pytest.mark.parametrize("options", OPTIONS)
def test_a_search_in_parts_finds_what_the_search_of_the_whole_finds(seed, options, monkeypatch):
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(streaming, "COMPACT_EVERY", int(rng.integers(1, 4)))
    monkeypatch.setattr(streaming, "MAX_OPEN_STEPS", 2)
    case = random_case(seed, integers=seed % 3 == 0, sentences=seed % 5 < 2)
    scores = np.concatenate([case.scores, graphs.random_scores(rng, case.graph, 12, seed % 3 == 0)], axis=1)
    decoder = case.decoder.with_options(**options)
    expected = decoder.decode(scores)
    result, partials = in_parts(decoder, scores, rng, telling=seed % 4 > 0)
    assert_same(result, expected)
    for partial in partials:
        assert partial.stable == expected.text[: partial.num_stable] or expected.reason
        assert partial.stable + partial.unstable == [word.text for word in partial.words]


def three_words(**options):
    """Words of one phone and silence, in any order, over a beam that leaves one token at a time."""
    arcs = [(0, 1, "[sil[2]]", 0.0), (1, 0, "[sil[2]]", 1.0)]
    for number, word in enumerate("xyz"):
        state = 2 + number
        arcs += [(1, state, word, 0.0), (state, 1, f"[{word}_s2]", 0.0)]
    acceptor = graphs.make_acceptor(arcs, {1: 0.0})
    from decoder.graph.compiled_graph import precompile

    defaults = {"acweight": 1.0, "beam": 5.0, "word_end_beam_frac": 2.0, "sil_cost": 0.0}
    return Decoder(precompile(acceptor, None, None), None, SearchOptions(**{**defaults, **options}))


def spoken(decoder, states, clear=20.0):
    """(K, T) scores that say which state each frame is."""
    scores = np.full((len(decoder.graph.states), len(states)), -clear, np.float32, order="F")
    scores[[decoder.graph.states.index(state) for state in states], np.arange(len(states))] = 0.0
    return scores


def test_words_become_stable_one_after_the_other():
    decoder = three_words()
    states = ["sil[2]"] * 3 + ["x_s2"] * 4 + ["y_s2"] * 4 + ["sil[2]"] * 6
    scores, stream, seen = spoken(decoder, states), SearchStream(decoder), []
    for t in range(len(states)):
        stream.push(scores[:, t : t + 1])
        partial = stream.partial()
        seen.append((partial.num_frames, partial.stable + partial.unstable, partial.silence, partial.heard))
    assert seen[2] == (3, [], 3, False)
    assert seen[4] == (5, ["x"], 0, True)
    assert seen[10] == (11, ["x", "y"], 0, True)
    assert seen[16] == (17, ["x", "y"], 6, True)
    assert partial.num_stable == 2
    assert [(word.text, word.start, word.end) for word in partial.words] == [("x", 3, 7), ("y", 7, 11)]
    assert stream.finish().text == ["x", "y"]


def test_nothing_is_remembered_for_ever():
    decoder = three_words()
    rng = np.random.default_rng(0)
    stream, said = SearchStream(decoder), []
    for _ in range(300):
        word = str(rng.choice(["x", "y", "z"]))
        said.append(word)
        stream.push(spoken(decoder, ["sil[2]"] * 5 + [f"{word}_s2"] * 5))
    assert stream.partial().stable == said[: len(stream.partial().stable)]
    assert len(stream.partial().stable) >= 299
    assert int(stream._state.trace.counts[STEPS]) < 50
    assert sum(map(len, stream._scores)) < 3 * streaming.COMPACT_EVERY
    assert len(stream._stable.open.label) < 2 * streaming.MAX_OPEN_STEPS
    stream.push(spoken(decoder, ["sil[2]"] * 3))
    result = stream.finish()
    assert result.text == said
    assert result.num_frames == 3003


def test_a_search_without_frames_or_that_died_tells_so():
    decoder = three_words()
    assert_same(SearchStream(decoder).finish(), decoder.decode(np.zeros((4, 0), np.float32)))
    scores = spoken(decoder, ["sil[2]"] * 5 + ["x_s2"] * 5)
    scores[:, 7] = -math.inf
    stream = SearchStream(decoder)
    for part in np.split(scores, 5, axis=1):
        stream.push(part)
    assert stream.partial().num_frames == 7
    assert_same(stream.finish(), decoder.decode(scores))


def test_faults_are_named():
    stream = SearchStream(three_words())
    stream.push(np.zeros((4, 6), np.float32))
    with pytest.raises(ShapeError, match=r"NaN or .inf in frame 2; .* \(after 6 frames\)"):
        stream.push(np.array([[0, 0, np.nan]] * 4, np.float32))
    with pytest.raises(ShapeError, match=r"shape \(3, 2\); expected \(4 or more"):
        stream.push(np.zeros((3, 2), np.float32))


def test_the_caller_may_use_its_memory_again():
    decoder = three_words()
    scores = spoken(decoder, ["sil[2]"] * 3 + ["x_s2"] * 4)
    stream, part = SearchStream(decoder), np.empty((4, 1), np.float32, order="F")
    for t in range(scores.shape[1]):
        part[:] = scores[:, t : t + 1]
        stream.push(part)
        part[:] = np.nan
    assert_same(stream.finish(), decoder.decode(scores))
