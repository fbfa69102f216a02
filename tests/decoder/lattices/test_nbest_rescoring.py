"""Rescoring of n-best lists: sums by hand, the two ways of mixing, and what is refused."""

import numpy as np
import pytest

from decoder.lattices.nbest_rescoring import RescoringOptions, best_words, rescore, sentences_of
from decoder.lm.estimation import estimate
from decoder.lm.evaluation import mix_logs, sentence_logs
from decoder.lm.language_model import LanguageModel
from readers.errors import GraphError
from readers.results.nbest import Hypothesis

LISTS = {"u": [Hypothesis(("a", "b"), -10.0, -4.0), Hypothesis(("a",), -11.0, -3.0), Hypothesis((), -11.5, -3.0)]}
NEW = {("a", "b"): np.log([0.1, 0.1, 0.5]), ("a",): np.log([0.5, 0.5]), (): np.log([0.25])}
OLD = {("a", "b"): np.log([0.3, 0.3, 0.3]), ("a",): np.log([0.5, 0.1]), (): np.log([0.75])}


def test_logs_of_the_sentence_are_mixed_with_those_of_the_list():
    options = RescoringOptions(weight=0.75, lm_scale=2.0, word_penalty=0.5)
    found = rescore(LISTS, NEW, options)["u"]
    lm = [0.75 * np.log(0.005) - 1, 0.75 * np.log(0.25) - 0.75, 0.75 * np.log(0.25) - 0.75]
    assert [one.words for one in found] == [("a",), (), ("a", "b")]
    assert [one.lm for one in found] == pytest.approx([lm[1], lm[2], lm[0]])
    assert [one.acoustic for one in found] == [-11.0, -11.5, -10.0]
    scores = [-11 + 2 * lm[1] - 0.5, -11.5 + 2 * lm[2], -10 + 2 * lm[0] - 1]  # the first two are the same
    assert [options.score(one) for one in found] == pytest.approx(scores)
    assert best_words({"u": found}) == {"u": ("a",)}


def test_with_an_ngram_probabilities_are_mixed_word_by_word():
    found = rescore(LISTS, NEW, RescoringOptions(weight=0.25), OLD)["u"]
    lm = {one.words: one.lm for one in found}
    assert lm["a", "b"] == pytest.approx(np.log((0.025 + 0.225) ** 2 * (0.125 + 0.225)))
    assert lm["a",] == pytest.approx(np.log(0.5 * (0.125 + 0.075)))
    assert lm[()] == pytest.approx(np.log(0.0625 + 0.5625))


def test_each_sentence_has_its_own_scores():
    lists = {"u": [Hypothesis(("a", "a", "b"), -1.0, -5.0, (0, 1))]}
    assert sentences_of(lists) == [(), ("a",), ("a", "b")]
    expected = np.log(0.25) + np.log(0.25) + np.log(0.005)
    assert rescore(lists, NEW, RescoringOptions(weight=1.0))["u"][0].lm == pytest.approx(expected)
    mixed = rescore(lists, NEW, RescoringOptions(weight=0.25), OLD)["u"][0]
    alone = [np.log(0.0625 + 0.5625), np.log(0.5 * 0.2), np.log(0.25**2 * 0.35)]
    assert mixed.lm == pytest.approx(sum(alone))
    assert mixed.bounds == (0, 1)


def test_weight_0_keeps_the_scores_and_1_replaces_them():
    kept = rescore(LISTS, NEW, RescoringOptions(weight=0.0))
    assert kept == LISTS
    replaced = rescore(LISTS, NEW, RescoringOptions(weight=1.0), OLD)["u"]
    assert {one.words: one.lm for one in replaced} == pytest.approx({words: logs.sum() for words, logs in NEW.items()})


def test_mix_logs_keeps_what_is_impossible_for_one_model_possible():
    mixed = mix_logs(np.array([-np.inf, np.log(0.5)]), np.log([0.5, 0.25]), 0.5)
    np.testing.assert_allclose(np.exp(mixed), [0.25, 0.375])
    assert mix_logs(np.array([-1.0]), np.array([-np.inf]), 1.0).tolist() == [-1.0]


def test_sentence_logs_are_those_of_the_ngram():
    model = LanguageModel.from_arpa(estimate([["a", "b"], ["a"]], 2, "kn"))
    logs = sentence_logs(model, [["a", "b"]])[0]
    state, total = model.start_state, []
    for word in ("a", "b", "</s>"):
        cost, state = model.step(state, model.word_id(word))
        total.append(-cost)
    assert logs.tolist() == total
    with pytest.raises(GraphError, match="no word 'c'; expected every word of the lists, or <unk>"):
        sentence_logs(model, [["a"], ["a", "c"]])


@pytest.mark.parametrize("values", [{"weight": 1.5}, {"weight": -0.1}, {"weight": float("nan")}])
def test_weights_that_are_none_are_refused(values):
    with pytest.raises(GraphError, match="expected 0 to 1"):
        RescoringOptions(**values)


@pytest.mark.parametrize("values", [{"lm_scale": -1.0}, {"lm_scale": float("inf")}, {"word_penalty": float("nan")}])
def test_scales_that_are_none_are_refused(values):
    with pytest.raises(GraphError, match="expected finite numbers"):
        RescoringOptions(**values)


def test_hypotheses_that_are_impossible_in_the_model_are_left_out():
    new = NEW | {("a",): np.array([-np.inf, 0.0])}
    assert [one.words for one in rescore(LISTS, new, RescoringOptions(weight=1.0))["u"]] == [(), ("a", "b")]
    impossible = {words: np.full(len(words) + 1, -np.inf) for words in NEW}
    with pytest.raises(GraphError, match="u: no hypothesis is possible in the new language model"):
        rescore(LISTS, impossible, RescoringOptions(weight=1.0))
