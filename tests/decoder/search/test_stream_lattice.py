"""Lattices of streams: those of the search of the whole, though the back pointers are pruned on the way."""

from dataclasses import fields

import numpy as np
import pytest

from decoder.search import search_stream as streaming
from decoder.search.kernels.token_store import ARRIVALS, STEPS
from decoder.search.search_stream import SearchStream
from tests.decoder import graphs
from tests.decoder.search.test_decoder import random_case
from tests.decoder.search.test_search_stream import OPTIONS, assert_same, spoken, three_words


def assert_same_lattice(lattice, expected):
    for one in fields(expected):
        np.testing.assert_array_equal(
            np.asarray(getattr(lattice, one.name), object), np.asarray(getattr(expected, one.name), object), one.name
        )


@pytest.mark.parametrize("seed", range(50))
@pytest.mark.parametrize("options", OPTIONS)
def test_a_stream_with_a_lattice_has_the_words_and_the_lattice_of_the_whole(seed, options, monkeypatch):
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(streaming, "COMPACT_EVERY", int(rng.integers(1, 4)))
    monkeypatch.setattr(streaming, "PRUNE_BEYOND", 2)
    case = random_case(seed, integers=seed % 3 == 0, sentences=seed % 5 < 2)
    scores = np.concatenate([case.scores, graphs.random_scores(rng, case.graph, 12, seed % 3 == 0)], axis=1)
    plain = case.decoder.with_options(**options, lattice_beam=None)
    decoder = plain.with_options(lattice_beam=float(rng.choice([0.0, 0.5, 2.0])))
    expected = decoder.decode(scores)
    # A search with a lattice has more tokens, in junctions: they count for max_tokens, and decide between equal costs.
    comparable = "max_tokens" not in options and seed % 3 > 0
    stream, other, begin = SearchStream(decoder), SearchStream(plain), 0
    while begin < scores.shape[1]:
        end = begin + int(rng.integers(0, 4))
        for one in (stream, other):
            one.push(scores[:, begin:end])
        begin = end
        if seed % 4 > 0:
            if comparable:
                assert stream.partial() == other.partial()
            confidences = stream.confidences()
            assert len(confidences) == len(stream.partial().words)
            assert all(one is None or 0 < one <= 1 for one in confidences)
            assert (None in confidences) <= (not stream.alive)
    result = stream.finish()
    assert_same(result, expected)
    if comparable:
        assert other.finish().words == result.words
    assert (result.lattice is None) == (expected.lattice is None)
    if expected.lattice is not None:
        assert_same_lattice(result.lattice, expected.lattice)


@pytest.mark.parametrize("seed", range(100))
def test_the_lattice_of_an_unfinished_utterance_does_not_depend_on_being_told_of_it(seed):
    rng = np.random.default_rng(seed)
    case = random_case(seed)
    decoder = case.decoder.with_options(partial=True, beam=float(rng.uniform(0.5, 3)), lattice_beam=20.0)
    expected, told, silent = decoder.decode(case.scores), SearchStream(decoder), SearchStream(decoder)
    for stream in (told, silent):
        stream.push(case.scores)
    told.partial()
    for result in (told.finish(), silent.finish()):
        assert (result.lattice is None) == (expected.lattice is None)
        if expected.lattice is not None:
            assert_same_lattice(result.lattice, expected.lattice)


def test_what_cannot_be_in_the_lattice_is_dropped():
    decoder = three_words(lattice_beam=4.0)
    stream, rng = SearchStream(decoder), np.random.default_rng(0)
    for _ in range(1000):
        word = str(rng.choice(["x", "y", "z"]))
        stream.push(spoken(decoder, ["sil[2]"] * 5 + [f"{word}_s2"] * 5))
    counts = stream._state.trace.counts
    assert counts[STEPS] < 3 * streaming.PRUNE_BEYOND
    assert counts[ARRIVALS] < 3 * streaming.PRUNE_BEYOND
    assert stream.finish().lattice.num_links < 5000


def test_words_that_sound_alike_have_low_confidences():
    decoder = three_words(lattice_beam=6.0, word_penalty=5.0)
    scores = spoken(decoder, ["sil[2]"] * 5 + ["x_s2"] * 5 + ["sil[2]"] * 5 + ["y_s2"] * 5 + ["sil[2]"] * 5)
    y, z = (decoder.graph.states.index(f"{word}_s2") for word in "yz")
    scores[z] = np.where(scores[y] == 0, -0.01, scores[z])
    stream = SearchStream(decoder)
    stream.push(scores)
    sure, doubtful = stream.confidences()
    assert sure > 0.99
    assert 0.45 < doubtful < 0.55
    stream.finish()
    assert stream.confidences() == [None, None]


def test_confidences_of_words_long_past_are_kept(monkeypatch):
    decoder = three_words(lattice_beam=6.0, word_penalty=5.0)
    y, z = (decoder.graph.states.index(f"{word}_s2") for word in "yz")
    part = spoken(decoder, ["sil[2]"] * 5 + ["x_s2"] * 5 + ["y_s2"] * 5)
    part[z] = np.where(part[y] == 0, -0.01, part[z])
    told = []
    for recent in (10**6, 20):
        monkeypatch.setattr(streaming, "RECENT", recent)
        stream = SearchStream(decoder)
        for _ in range(20):
            stream.push(part)
            stream.confidences()
        told.append(stream.confidences())
    assert len(told[0]) == 40
    np.testing.assert_allclose(told[1], told[0], atol=0.02)
    assert 0.4 < told[1][1] < 0.6 < 0.9 < told[1][2]
