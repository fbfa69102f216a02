"""The phone language model: counts, merged histories, probabilities that sum to one."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from decoder.sequence_training.chain.phone_lm import PhoneLmOptions, estimate_phone_lm
from readers.errors import ConfigError, GraphError


def sequences(count=60, phones=4, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(1, phones + 1, size=rng.integers(1, 9)).tolist() for _ in range(count)]


def test_states_sum_to_one_and_lead_to_their_histories():
    model = estimate_phone_lm(sequences(), PhoneLmOptions(num_extra_states=7))
    for history, successors, end in zip(model.histories, model.successors, model.final):
        assert math.isclose(sum(p for _, p in successors.values()) + end, 1.0)
        for phone, (state, _) in successors.items():
            found = model.histories[state]
            assert (*history, phone)[-len(found) :] == found
            assert len(found) >= min(2, len(history) + 1)


def test_without_merging_it_is_the_relative_frequency_of_ngrams():
    data = sequences()
    model = estimate_phone_lm(data)
    ngrams, histories = Counter(), Counter()
    for phones in data:
        padded = [0, *phones, 0]
        for i in range(1, len(padded)):
            history = tuple(padded[max(0, i - 3) : i])
            ngrams[(*history, padded[i])] += 1
            histories[history] += 1
    for phones in data[:20]:
        padded, expected = [0, *phones, 0], 1.0
        for i in range(1, len(padded)):
            history = tuple(padded[max(0, i - 3) : i])
            expected *= ngrams[(*history, padded[i])] / histories[history]
        assert math.isclose(model.probability(phones), expected)
    entropy = -sum(count * math.log(count / histories[ngram[:-1]]) for ngram, count in ngrams.items())
    assert math.isclose(model.perplexity, math.exp(entropy / sum(ngrams.values())))


@pytest.mark.parametrize("extra", [0, 5, 20])
def test_number_of_states_is_limited(extra):
    data = sequences(200)
    model = estimate_phone_lm(data, PhoneLmOptions(num_extra_states=extra))
    bigrams = {tuple([0, *phones][i : i + 2]) for phones in data for i in range(len(phones))}
    assert model.num_states <= len(bigrams) + 1 + extra  # and the beginning
    if extra == 0:
        assert all(len(history) <= 2 for history in model.histories)


def test_the_cheapest_history_is_merged_first():
    # After 2 3, the phone is 1 in any context; after 4 3, it depends on the phone before.
    data = [[1, 2, 3, 1], [5, 2, 3, 1], [1, 4, 3, 1], [5, 4, 3, 2]] * 5
    full = estimate_phone_lm(data)
    merged = estimate_phone_lm(data, PhoneLmOptions(num_extra_states=2))
    kept = {history for history in merged.histories if len(history) == 3}
    assert {(1, 4, 3), (5, 4, 3)} & kept
    assert not {(1, 2, 3), (5, 2, 3)} & kept
    assert merged.num_states < full.num_states
    assert merged.perplexity >= full.perplexity


def test_mass_of_all_sequences_is_one():
    model = estimate_phone_lm([[1, 2], [2], [1, 1, 2]], PhoneLmOptions(num_extra_states=0))
    total = sum(model.probability(phones) for size in range(12) for phones in itertools.product((1, 2), repeat=size))
    assert math.isclose(total, 1.0, rel_tol=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": 1}, "order is 1; expected 2 to 10"),
        ({"order": 3, "unpruned_order": 4}, "unpruned_order is 4; expected at most order, 3"),
        ({"num_extra_states": -1}, "num_extra_states is -1; expected at least 0"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(ConfigError, match=message):
        PhoneLmOptions(**options)


def test_no_phones():
    with pytest.raises(GraphError, match="no phones in the data"):
        estimate_phone_lm([[], []])
