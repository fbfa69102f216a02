"""The paired bootstrap against the exact distribution of a small example, and its edge cases."""

import itertools

import numpy as np
import pytest

from decoder.scoring import Score, ScoringResult, bootstrap, compare_systems, error_rate_interval
from readers.errors import ConfigError


def result(errors, words):
    scores = {f"u{n}": Score(hits=w - e, substitutions=e) for n, (e, w) in enumerate(zip(errors, words))}
    return ScoringResult(sum(scores.values(), Score()), scores)


def test_samples_have_the_distribution_of_all_draws():
    first, second, words = (2, 0, 1, 1), (1, 2, 1, 3), (4, 3, 5, 4)
    found = compare_systems(result(first, words), result(second, words))
    draws = np.array(list(itertools.product(range(4), repeat=4)))
    rates = 100 * (np.array(first) - second)[draws].sum(1) / np.array(words)[draws].sum(1)
    assert found.difference == pytest.approx(100 * (4 - 7) / 16)
    assert found.better == pytest.approx((rates < 0).mean() + (rates == 0).mean() / 2, abs=0.02)
    for bound, percent in ((found.low, 2.5), (found.high, 97.5)):
        assert np.mean(rates <= bound + 1e-9) >= percent / 100 - 0.02
        assert np.mean(rates < bound - 1e-9) <= percent / 100 + 0.02


def test_the_same_system_is_no_better_and_the_order_is_the_sign():
    one, other = result((1, 2, 0), (3, 4, 2)), result((2, 2, 2), (3, 4, 2))
    assert compare_systems(one, one) == bootstrap.Comparison(0.0, 0.0, 0.0, 0.5)
    there, back = compare_systems(one, other), compare_systems(other, one)
    assert (back.difference, back.low, back.high) == pytest.approx((-there.difference, -there.high, -there.low))
    assert back.better == pytest.approx(1 - there.better)
    assert there == compare_systems(one, other)
    assert there != compare_systems(one, other, seed=1)


def test_utterances_are_paired_by_name():
    one = result((1, 0), (2, 2))
    turned = ScoringResult(one.total, dict(reversed(one.utterances.items())))
    assert compare_systems(one, turned).better == 0.5
    assert compare_systems(one, turned).high == 0


@pytest.mark.parametrize("words", [(2,), (2, 3), (2, 2, 2)])
def test_other_references_are_refused(words):
    with pytest.raises(ConfigError, match="on different utterances"):
        compare_systems(result((1, 0), (2, 2)), result((0,) * len(words), words))


def test_references_without_words_are_refused():
    empty = result((0, 0), (0, 0))
    with pytest.raises(ConfigError, match="without words"):
        compare_systems(empty, empty)


def test_the_interval_of_a_rate_draws_speakers_not_utterances():
    """Two speakers of two equal utterances each: all draws are (x, x), (x, y), (y, x) and (y, y)."""
    scored = result((0, 0, 4, 4), (8, 8, 8, 8))
    speakers = {"u0": "x", "u1": "x", "u2": "y", "u3": "y"}
    assert error_rate_interval(scored, speakers.__getitem__) == (0.0, 50.0)
    utterances = error_rate_interval(scored, lambda name: name)
    assert 0 < utterances[1] - utterances[0] <= 50
    assert error_rate_interval(scored, lambda name: "one speaker") == (25.0, 25.0)
    assert scored.grouped(speakers.__getitem__) == {"x": Score(hits=16), "y": Score(hits=8, substitutions=8)}


def test_the_interval_of_references_without_words_is_refused():
    with pytest.raises(ConfigError, match="references without words"):
        error_rate_interval(result((0, 0), (0, 0)), lambda name: name)
