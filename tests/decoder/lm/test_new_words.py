"""Words that are added to a language model."""

import numpy as np
import pytest

from decoder.lm.collection import interpolated
from decoder.lm.language_model import LanguageModel
from decoder.lm.new_words import with_rare_words
from readers.errors import GraphError
from tests.decoder import graphs


@pytest.mark.parametrize("seed", range(20))
def test_new_words_are_as_rare_as_the_rarest(seed):
    vocabulary, orders = graphs.random_orders(np.random.default_rng(seed), ["a", "b", "c"], 1 + seed % 3)
    model = LanguageModel.from_arpa(graphs.make_arpa(vocabulary, orders))
    larger = with_rare_words(model, ["x", "a", "y", "x"])
    assert list(larger.vocabulary) == [*model.vocabulary, "x", "y"]
    costs = [model.step(0, word)[0] for word in range(len(model.vocabulary))]
    rarest = max(cost for cost in costs if np.isfinite(cost))
    assert larger.step(0, larger.word_id("x")) == larger.step(0, larger.word_id("y")) == (rarest, 0)
    for state in range(model.num_states):
        for word in range(len(model.vocabulary)):
            assert larger.step(state, word) == model.step(state, word)
    longest = model.num_states - 1
    backed_off, state = 0.0, longest
    while state:
        backed_off += float(model.arrays.backoff_cost[state])
        state = int(model.arrays.backoff_state[state])
    assert larger.step(longest, larger.word_id("y")) == (pytest.approx(rarest + backed_off, abs=1e-5), 0)


def test_an_unknown_word_stands_for_new_ones_and_a_mixture_needs_it():
    rng = np.random.default_rng(1)
    models = [
        LanguageModel.from_arpa(graphs.make_arpa(*graphs.random_orders(rng, words, 2)))
        for words in (["a", "<unk>"], ["a", "b"], ["a", "c"])
    ]
    assert with_rare_words(models[0], ["x"]) is models[0]
    assert with_rare_words(models[1], ["b"]) is models[1]
    with pytest.raises(GraphError, match="a mixture without <UNK>; expected <UNK> for new words such as 'x'"):
        with_rare_words(interpolated(models[1:], [0.5, 0.5]), ["x"])
