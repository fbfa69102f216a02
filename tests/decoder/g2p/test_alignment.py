"""The division of phones among letters: EM against a plain computation and against all divisions."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoder.g2p.alignment import align

WORDS = st.lists(
    st.tuples(st.text("abc", min_size=1, max_size=4), st.lists(st.sampled_from("XYZ"), max_size=6).map(tuple)).filter(
        lambda word: len(word[1]) <= 2 * len(word[0])
    ),
    min_size=1,
    max_size=6,
)


def divisions(letters, phones, most):
    """All sequences of graphones of a word."""
    for lengths in itertools.product(range(most + 1), repeat=len(letters)):
        if sum(lengths) == len(phones):
            ends = list(itertools.accumulate(lengths))
            yield [(x, tuple(phones[b - n : b])) for x, b, n in zip(letters, ends, lengths)]


def plain_em(words, most, passes):
    """(probability of each graphone, log-likelihoods) by enumeration."""
    paths = [list(divisions(*word, most)) for word in words]
    graphones = {graphone for word in paths for path in word for graphone in path}
    probability, found = dict.fromkeys(graphones, 1 / len(graphones)), []
    for _ in range(passes):
        counts, total = Counter(), 0.0
        for word in paths:
            weights = [math.prod(probability[graphone] for graphone in path) for path in word]
            total += math.log(sum(weights))
            for path, weight in zip(word, weights):
                for graphone in path:
                    counts[graphone] += weight / sum(weights)
        found.append(total)
        probability = {graphone: counts[graphone] / sum(counts.values()) for graphone in graphones}
    return probability, found


@settings(deadline=None, max_examples=40)
@given(words=WORDS, most=st.sampled_from((2, 3)))
def test_em_equals_a_sum_over_all_divisions(words, most):
    expected, likelihoods = plain_em(words, most, 4)
    found = align(words, most, passes=4, threads=2)
    assert np.allclose(found.log_likelihoods, likelihoods, rtol=1e-9, atol=1e-9)
    got = {tuple(graphone): p for graphone, p in zip(found.graphones, found.probability)}
    assert got.keys() == expected.keys()
    assert all(got[graphone] == pytest.approx(p, abs=1e-9) for graphone, p in expected.items())


@settings(deadline=None, max_examples=40)
@given(words=WORDS)
def test_each_word_gets_its_most_probable_division(words):
    found = align(words, 2, passes=3, threads=1)
    probability = {tuple(graphone): p for graphone, p in zip(found.graphones, found.probability)}
    for (letters, phones), path in zip(words, found.words):
        chosen = [found.graphones[graphone] for graphone in path]
        assert "".join(one.letter for one in chosen) == letters
        assert sum((one.phones for one in chosen), ()) == phones
        best = max(math.prod(probability[one] for one in way) for way in divisions(letters, phones, 2))
        assert math.prod(probability[tuple(one)] for one in chosen) == pytest.approx(best)


@settings(deadline=None, max_examples=40)
@given(words=WORDS)
def test_likelihood_never_falls(words):
    found = align(words, 2, passes=8, threads=1).log_likelihoods
    assert all(after >= before - 1e-9 * abs(before) for before, after in itertools.pairwise(found))


def test_sums_of_long_words_stay_in_range():
    words = [("ab" * 50, ("X", "Y") * 50)] * 3 + [("a", ("X",))] * 500
    found = align(words, 2, passes=15, threads=1)
    assert np.isfinite(found.log_likelihoods).all()
    assert [found.graphones[graphone] for graphone in found.words[0]] == [("a", ("X",)), ("b", ("Y",))] * 50


def test_the_number_of_threads_does_not_change_the_result():
    words = [("abca"[: 1 + n % 4], ("X", "Y", "Z", "X")[: 1 + n % 4]) for n in range(100)]
    one, two = (align(words, 2, passes=5, threads=threads) for threads in (1, 3))
    assert one.probability.tobytes() == two.probability.tobytes()
    assert one.log_likelihoods == two.log_likelihoods


def test_more_graphones_than_the_table_holds_at_first():
    rng = np.random.default_rng(1)
    letters, phones = [chr(ord("A") + n) for n in range(58)], [f"P{n}" for n in range(50)]
    words = [("".join(rng.choice(letters, 3)), tuple(rng.choice(phones, 3))) for _ in range(500)]
    expected, likelihoods = plain_em(words, 2, 3)
    found = align(words, 2, passes=3, threads=2)
    assert len(found.graphones) > 2048
    assert np.allclose(found.log_likelihoods, likelihoods)
    got = {tuple(graphone): p for graphone, p in zip(found.graphones, found.probability)}
    assert got == pytest.approx(expected)
