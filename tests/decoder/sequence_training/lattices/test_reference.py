"""Numerators: the scores of a forced alignment or of labels, divided as those of the arcs of a lattice are."""

from types import SimpleNamespace

import numpy as np
import pytest

from decoder.alignment.aligner import Aligner
from decoder.graph import GraphOptions
from decoder.graph.transcript import TranscriptGraphs
from decoder.lm.language_model import LanguageModel
from decoder.sequence_training.lattices.expansion import StateTable, expand
from decoder.sequence_training.lattices.reference import (
    aligned_reference,
    find_reference,
    labelled_reference,
    lm_scores,
)
from readers.errors import FormatError, GraphError
from readers.htk.mlf import Label
from readers.sources.lattices.state_lattice import StatePath
from tests.decoder import graphs
from tests.decoder.alignment.test_aligner import DICTIONARY, monophones, scores_for
from tests.decoder.lattices.search_paths import best_path
from tests.decoder.sequence_training.lattices.test_expansion import CASES

PHONES = ["a", "b", "c", "sil"]


def language_model(rng, words=("X", "Y", "Z")):
    return LanguageModel.from_arpa(graphs.make_arpa(*graphs.random_orders(rng, list(words), 2)))


def table(models):
    """What a reference needs of a StateTable."""
    stay, leave = -np.array(list(models.transitions.values())).T
    states = list(models.transitions)
    return SimpleNamespace(
        phones=PHONES,
        silence=np.array([False, False, False, True]),
        is_spoken=lambda label: label != "sil",
        number={name: i for i, name in enumerate(states)},
        senone=np.arange(len(states), dtype=np.int32),
        phone=np.array([PHONES.index(name.split("_")[0]) for name in states], np.int32),
        transition_costs=lambda state, count: (count - 1) * stay[state] + leave[state],
    )


@pytest.mark.parametrize("seed", range(20))
def test_scores_of_an_alignment_add_up_to_its_cost(seed):
    rng = np.random.default_rng(seed)
    models, lm = monophones(rng), language_model(rng)
    options = GraphOptions(silence_probability=float(rng.uniform(0.1, 0.9)))
    graphs_of = TranscriptGraphs(models, DICTIONARY, options=options)
    words = [str(word) for word in rng.choice(["X", "Y", "Z"], int(rng.integers(1, 4)))]
    scores = scores_for(models, int(rng.integers(12, 20)), rng)
    alignment = Aligner(graphs_of, 0.7).align(words, scores)
    found = aligned_reference(alignment, words, lm, table(models))
    senones = found.of_frames(found.senone)
    assert len(senones) == scores.shape[1]
    acoustic = 0.7 * scores[senones, np.arange(len(senones))].sum(dtype=np.float64)
    ln_p = lm_scores(lm, words).sum()
    assert -alignment.total == pytest.approx(acoustic + sum(found.scores) - ln_p, abs=1e-4)
    transition = 0.0
    for position, count in zip(alignment.position.tolist(), (found.end - found.start).tolist()):
        stay, leave = models.transitions[alignment.graph.state[position]]
        transition += (count - 1) * stay + leave
    assert found.transition.sum() == pytest.approx(transition, abs=1e-9)
    assert found.starts_word.sum() == len(words) == len(found.words)
    assert np.flatnonzero(found.starts_word).tolist() == [span.first for _, span in alignment.words]
    assert [PHONES[p] for p in found.phone] == [alignment.graph.state[i].split("_")[0] for i in alignment.position]


def test_words_without_a_probability_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(GraphError, match="word 'W' has no probability in the language model"):
        lm_scores(language_model(rng), ["X", "W"])


def labels(*parts):
    """Labels of (state, frames, higher levels)."""
    found, begin = [], 0
    for name, count, *aux in parts:
        found.append(Label(begin * 100_000, (begin + count) * 100_000, name, None, tuple((one, None) for one in aux)))
        begin += count
    return found


def test_labels_by_hand():
    rng = np.random.default_rng(1)
    models, lm = monophones(rng), language_model(rng)
    given = labels(("sil_s2", 2, "sil"), ("b_s2", 3, "b", "X"), ("b_s3", 1), ("sil_s3", 0), ("c_s2", 2, "c", "Y"))
    found = labelled_reference(given, "x", 100_000, ["sil", "X", "Y"], lm, table(models))
    states = list(models.transitions)
    assert [states[i] for i in found.of_frames(found.senone)] == ["sil_s2"] * 2 + ["b_s2"] * 3 + ["b_s3"] + ["c_s2"] * 2
    log = models.transitions
    expected = [(2, "sil_s2"), (3, "b_s2"), (1, "b_s3"), (2, "c_s2")]
    assert found.transition == pytest.approx([(n - 1) * log[name][0] + log[name][1] for n, name in expected])
    assert found.starts_word.tolist() == [False, True, False, True]
    assert found.words == ("X", "Y")
    assert found.scores[0] == pytest.approx(lm_scores(lm, ["X", "Y"]).sum())
    without = labelled_reference(labels(("b_s2", 3), ("b_s3", 1)), "x", 100_000, ["X"], lm, table(models))
    assert without.starts_word.sum() == 1
    with pytest.raises(FormatError, match="x: states q_s2 are not in the graph; expected its states"):
        labelled_reference(labels(("q_s2", 3)), "x", 100_000, ["X"], lm, table(models))


@pytest.mark.parametrize("seed", list(CASES)[:10])
def test_other_words_on_the_same_states_are_another_path(seed):
    case, lattice = CASES[seed]
    known = StateTable(case.decoder)
    _, shares = expand(lattice, case.decoder, known, case.scores)
    links = best_path(lattice)[1]
    steps = np.array([step for link in links for step in lattice.states[link]])
    words = [lattice.word[link] for link in links]
    words = [case.decoder.graph.words[word] for word in words if word >= 0 and known.is_word[word]]
    ones = np.ones(len(steps))

    def find(words):
        states = (steps[:, 1], steps[:, 2], known.senone[steps[:, 0]], known.phone[steps[:, 0]])
        return find_reference(
            lattice, shares, case.decoder, known, StatePath(*states, ones, ones, ones > 0, tuple(words))
        )

    assert find(words) is not None
    assert find([*words, "nothing"]) is None
    if words:
        assert find([*words[:-1], "nothing"]) is None
