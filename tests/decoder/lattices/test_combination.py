"""The union of lattices: posteriors of its paths, times, segments and faults."""

import numpy as np
import pytest

from decoder.lattices.combination import combine
from decoder.lattices.consensus import consensus
from decoder.lattices.posteriors import posteriors
from decoder.lattices.times import silence_words, word_begins
from readers.errors import ArgonautError, GraphError
from readers.htk.slf import read_slf, write_slf
from readers.results.lattice import NULL_WORD
from tests.decoder.lattices.small_lattices import lattice_of, paths, random_lattice, spoken, with_segments


def probabilities(lattice):
    """Word sequence -> posterior, by enumeration of all paths."""
    found, scores = {}, []
    for path, score in paths(lattice):
        words = tuple(spoken(lattice, path))
        found[words] = np.logaddexp(found.get(words, -np.inf), score)
        scores.append(score)
    total = np.logaddexp.reduce(scores)
    return {words: float(np.exp(score - total)) for words, score in found.items()}


@pytest.mark.parametrize("weights", [None, (3.0, 1.0, 0.5)])
@pytest.mark.parametrize("seed", range(4))
def test_paths_have_their_share_of_the_probability(seed, weights):
    second = random_lattice(seed + 10, nodes=5, scales={"lm_scale": 0.5, "acoustic_scale": 2.0})
    lattices = [random_lattice(seed), second, random_lattice(seed + 20, words="bcd")]
    shares = np.array(weights or (1.0, 1.0, 1.0)) / sum(weights or (1.0, 1.0, 1.0))
    expected = {}
    for lattice, share in zip(lattices, shares):
        for words, probability in probabilities(lattice).items():
            expected[words] = expected.get(words, 0.0) + share * probability
    union = combine(lattices, weights)
    assert probabilities(union) == pytest.approx(expected, rel=1e-9)
    assert posteriors(union).total == pytest.approx(0.0, abs=1e-9)
    assert len(list(paths(union))) == sum(len(list(paths(lattice))) for lattice in lattices)


def test_the_same_lattice_twice_is_that_lattice():
    lattice = random_lattice(5)
    once, twice = consensus(lattice), consensus(combine([lattice, lattice]))
    assert [w.text for w in twice.words] == [w.text for w in once.words]
    assert [w.confidence for w in twice.words] == pytest.approx([w.confidence for w in once.words])
    assert [w.start for w in twice.words] == pytest.approx([w.start for w in once.words])
    assert twice.expected_errors == pytest.approx(once.expected_errors)


def test_systems_that_agree_outvote_another():
    first, second, third = (lattice_of([(0, 1, "a", -1.0, 0.0), (0, 1, b, -1.0, 0.0)]) for b in "bbc")
    assert [word.text for word in consensus(combine([first, second, third])).words] == ["a"]
    sure = lattice_of([(0, 1, "b", -1.0, 0.0)])
    assert [word.text for word in consensus(combine([first, second, sure])).words] == ["b"]


def test_words_begin_after_the_silence_of_their_own_system():
    """`2` is a state of silence in the first lattice, of speech in the second."""
    segments = (("2", 0.25, None), ("7", 0.25, None))
    links = [(0, 1, "a", -1.0, 0.0), (1, 2, "b", -1.0, 0.0)]
    first, second = (
        with_segments(lattice_of(links, silence={"sil": [label]}), [segments, others])
        for label, others in (("2", segments[:1] * 2), ("9", None))
    )
    union = combine([first, second])
    begins = dict(zip(zip(union.word, union.time[union.start]), word_begins(union)))
    assert union.word == [NULL_WORD, "a", "b", NULL_WORD, NULL_WORD, "a", "b", NULL_WORD]
    assert list(word_begins(union)[[1, 5, 6]]) == [0.25, 0.0, 0.5], begins
    rows = union.segments.rows()
    assert rows[1:3] == [(("sil", 0.25, None), ("speech", 0.25, None)), (("sil", 0.5, None),)]
    assert rows[5:7] == [(("speech", 0.5, None),), ()]
    assert silence_words(first) == {"b"}
    assert "b" not in silence_words(union), "the second system has it as speech"


def test_a_file_of_the_union_has_the_same_content(tmp_path):
    lattices = [random_lattice(seed, utterance="u1", header={"lmname": "words.arpa"}) for seed in (1, 2)]
    union = combine(lattices)
    write_slf(tmp_path / "u1.lat", union, 17)
    found = read_slf(tmp_path / "u1.lat")
    assert (found.utterance, found.header) == ("u1", union.header)
    assert found.header["lmname"] == "words.arpa"
    assert probabilities(found) == pytest.approx(probabilities(union))


def test_impossible_links_remain_impossible():
    first = lattice_of([(0, 1, "a", -1.0, 0.0), (0, 1, "b", -np.inf, 0.0), (0, 1, "c", -1.0, -np.inf)])
    union = combine([first, first])
    assert probabilities(union) == {("a",): 1.0, ("b",): 0.0, ("c",): 0.0}
    assert not np.isnan([union.acoustic, union.lm]).any()


def test_unknown_times_remain_unknown():
    first = with_segments(lattice_of([(0, 1, "a", -1.0, 0.0)], times=[np.nan, np.nan]), [[("2", 0.25, None)]])
    union = combine([first, first])
    assert np.isnan(union.time[1:]).all()
    assert union.segments.rows() == [()] * 6


def test_weights_that_do_not_fit():
    lattice = random_lattice(0)
    for weights in ([1.0], [1.0, 0.0], [1.0, -1.0], [1.0, float("nan")], [1.0, float("inf")]):
        with pytest.raises(ArgonautError, match=r"^weights .*: for 2 lattices; expected a number above 0 for each$"):
            combine([lattice, lattice], weights)
    with pytest.raises(ArgonautError, match="for 0 lattices"):
        combine([])


def test_a_lattice_without_a_path_is_named():
    broken = lattice_of([(0, 1, "a", -np.inf, 0.0)], path="u1.lat")
    with pytest.raises(GraphError, match=r"^u1\.lat: no path from start to end"):
        combine([random_lattice(0), broken])
