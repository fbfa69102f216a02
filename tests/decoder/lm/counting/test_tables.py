"""Counts of n-grams in parts of a text, against dictionaries of counts."""

import itertools
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoder.lm.counting.tables import NgramCounter, count_part
from readers.errors import GraphError

SENTENCES = st.lists(st.lists(st.sampled_from("cabd"), max_size=5), min_size=1, max_size=8)


def counted(parts, order, *options):
    counter = NgramCounter(order, *options)
    for part in parts:
        counter.add(count_part(part, order))
    return counter.result()


def assert_equal(found, expected):
    assert found[0] == expected[0]
    for one, other in zip(found[1], expected[1], strict=True):
        for name in ("words", "prefix", "suffix", "count", "preceded"):
            values = getattr(one, name)
            assert values.dtype == getattr(other, name).dtype
            assert np.array_equal(values, getattr(other, name)), name


@given(SENTENCES, st.integers(1, 4), st.lists(st.integers(0, 8), max_size=4), st.booleans())
def test_counts_are_those_of_a_dictionary_however_the_text_is_divided(sentences, order, cuts, is_closed):
    options = (["b", "d", "a"], "?") if is_closed else ()
    bounds = [0, *sorted(min(cut, len(sentences)) for cut in cuts), len(sentences)]
    words, counts = found = counted([sentences[a:b] for a, b in itertools.pairwise(bounds)], order, *options)
    assert_equal(found, counted([sentences], order, *options))
    seen = sorted({word for sentence in sentences for word in sentence})
    assert words == (["<s>", "</s>", "?", "b", "d", "a"] if is_closed else ["<s>", "</s>", *seen])
    ids = {word: i for i, word in enumerate(words)}
    times, before = Counter(), defaultdict(set)
    for sentence in sentences:
        tokens = [0, *(ids.get(word, 2) for word in sentence), 1]
        for k in range(1, order + 1):
            for i in range(len(tokens) - k + 1):
                times[tuple(tokens[i : i + k])] += 1
                if i and k < order:
                    before[tuple(tokens[i : i + k])].add(tokens[i - 1])
    lower = {(): 0}
    for k, table in enumerate(counts, 1):
        ngrams = [tuple(row) for row in table.words.tolist()]
        assert ngrams == sorted(ngram for ngram in times if len(ngram) == k)
        assert table.count.tolist() == [times[ngram] for ngram in ngrams]
        assert table.preceded.tolist() == [len(before[ngram]) for ngram in ngrams]
        assert table.prefix.tolist() == [lower[ngram[:-1]] for ngram in ngrams]
        assert table.suffix.tolist() == [lower[ngram[1:]] if k > 1 else 0 for ngram in ngrams]
        lower = {ngram: i for i, ngram in enumerate(ngrams)}


def test_waiting_parts_are_merged_only_when_they_are_as_large_as_the_result(monkeypatch):
    counter, merges = NgramCounter(2), []
    merge = counter._merge
    monkeypatch.setattr(counter, "_merge", lambda *place: (merges.append(len(counter._waiting)), merge(*place)))
    for _ in range(40):
        counter.add(count_part([["a", "b", "c"]], 2))
    counter.result()
    assert merges == [1, *[2] * 19, 1]


def test_words_outside_the_vocabulary_come_in_the_order_of_the_text():
    counter = NgramCounter(2, ["a"])
    for part in ([["a", "y", "x"]], [["x", "a", "b"], ["y", "c"]]):
        counter.add(count_part(part, 2))
    assert counter.missing == ["y", "x", "b", "c"]
    with pytest.raises(GraphError, match="words outside the vocabulary: y, x, b, c; expected every word"):
        counter.result()


def test_an_empty_text_has_no_model():
    with pytest.raises(GraphError, match="no sentences"):
        counted([[]], 2)
