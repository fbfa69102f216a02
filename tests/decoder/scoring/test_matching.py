"""Matching words of two sequences: the cost of the plain alignment, however the sequences are divided."""

import itertools

import numpy as np
import pytest

from decoder.scoring import matching
from decoder.scoring.edit_kernels import edit_costs
from decoder.scoring.edit_loop import fill_edit_costs
from decoder.scoring.error_counts import EditPenalties, align
from decoder.scoring.matching import matching_words
from decoder.scoring.words import MLFWords
from readers.htk.mlf import read_mlf

PENALTIES = EditPenalties(10, 7, 7)


def cost_of_pairs(words, guesses):
    return sum(
        7 if word is None or guess is None else 10 * (word != guess) for word, guess in align(words, guesses, PENALTIES)
    )


def cost_of_matches(words, guesses, found):
    """Between two matches nothing matches: as many substitutions as possible, the rest deletions or insertions."""
    kept = [i for i, j in enumerate(found) if j >= 0]
    places = [(-1, -1), *((i, int(found[i])) for i in kept), (len(words), len(guesses))]
    total = 0
    for (i, j), (k, m) in itertools.pairwise(places):
        left, right = k - i - 1, m - j - 1
        total += 10 * min(left, right) + 7 * abs(left - right)
    return total


@pytest.mark.parametrize("most", [1, 12, 1 << 20])
def test_the_matches_are_those_of_a_cheapest_alignment(monkeypatch, most):
    monkeypatch.setattr(matching, "MOST_PAIRS", most)
    rng = np.random.default_rng(most)
    for _ in range(60):
        words, guesses = ("".join(rng.choice(list("abc"), rng.integers(0, 14))) for _ in range(2))
        found = matching_words(words, guesses)
        kept = found[found >= 0]
        assert np.all(np.diff(kept) > 0)
        assert all(guesses[j] == words[i] for i, j in enumerate(found) if j >= 0)
        assert cost_of_matches(words, guesses, found) == cost_of_pairs(words, guesses)


def test_long_sequences_are_divided():
    rng = np.random.default_rng(5)
    words = [f"w{i}" for i in rng.integers(0, 300, 3000)]
    heard = [word for word in words if rng.random() > 0.1]
    found = matching_words(words, heard)
    assert np.count_nonzero(found >= 0) == len(heard)
    assert [words[i] for i in np.flatnonzero(found >= 0)] == heard


def test_the_compiled_costs_are_those_of_the_loop():
    rng = np.random.default_rng(2)
    for _ in range(20):
        words, guesses = (rng.integers(0, 3, rng.integers(0, 9)) for _ in range(2))
        costs = np.arange(len(guesses) + 1) * 3
        fill_edit_costs(words, guesses, 4, 5, 3, costs)
        assert edit_costs(words, guesses, 4, 5, 3).tolist() == costs.tolist()
        names = [str(word) for word in words], [str(guess) for guess in guesses]
        expected = sum(
            3 if word is None else 5 if guess is None else 4 * (word != guess)
            for word, guess in align(*names, EditPenalties(4, 5, 3))
        )
        assert costs[-1] == expected


def test_words_of_wildcards_can_be_applied_twice(tmp_path):
    (tmp_path / "a.mlf").write_text('#!MLF!#\n"*/one.*.lab"\nyes\n.\n"*/two.lab"\nno\n.\n')
    words = MLFWords(read_mlf(tmp_path / "a.mlf"), 0)
    once = words.applied_to({"one.left": [], "two": []})
    assert dict(once.applied_to({"one.left": [], "two": []})) == {"two": ["no"], "one.left": ["yes"]}
