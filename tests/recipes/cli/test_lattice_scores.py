"""Scores in lattices that `argon` wrote, against every path scored from scratch.

A path is its HMM states, frame by frame, and its words; its score follows from them with the network's outputs, the
transitions and the language model, without graph and search.
"""

from itertools import pairwise

import numpy as np
import pytest

from acoustic.scoring.scorer import AcousticScorer
from decoder.lattices.nbest import nbest_paths
from decoder.lattices.posteriors import posteriors
from decoder.lm.language_model import LanguageModel
from readers.htk.parameter_file import read_htk
from readers.htk.slf import read_slf
from readers.language.arpa import read_arpa
from readers.results.lattice import NULL_WORD
from readers.tables.hmm_tables import read_cntkmap, read_transitions
from tests.recipes.systems.small_system import NUM_TEST, NUM_TRAIN

OPTIONS = {"-acweight": 0.3, "--lm-scale": 1.7, "--word-penalty": 0.4, "-sil-cost": 0.9}
SEARCH = ("-beam", 1000, "-word_end_beam_frac", 1, "--lattice-beam", 25)


@pytest.fixture
def lattices(user):
    """(lattice, log-likelihoods (K, T)) of every test utterance."""
    options = [word for pair in OPTIONS.items() for word in pair]
    assert user.decode(*options, *SEARCH, "-lattice-prefix", "lat/t").status == 0
    scorer = AcousticScorer("model/net", "ScaledLogLikelihood", 3)
    names = [f"utt{NUM_TRAIN + k:02}" for k in range(NUM_TEST)]
    scores = [scorer.score(read_htk(f"feat/{name}.fb").frames) for name in names]
    return [(read_slf(f"lat/t{k}.lat"), one) for k, one in enumerate(scores, 1)]


def frames_of(lattice, links):
    """(state, frames) of every stay in a state on a path."""
    rows = lattice.segments.rows()
    segments = [segment for link in links for segment in rows[link]]
    return [(state, round(duration * 100)) for state, duration, _ in segments]


def acoustic_from_scratch(stays, words, scores):
    """Scaled log-likelihoods, transitions, silences entered and word penalties; all that is no language model."""
    rows, transitions = read_cntkmap("graph/cntkmap"), read_transitions("graph/transitions")
    total, frame = 0.0, 0
    for state, length in stays:
        total += OPTIONS["-acweight"] * float(scores[rows[state], frame : frame + length].sum(dtype=np.float64))
        stay, leave = transitions[state][:2]
        total += (length - 1) * stay + leave
        frame += length
    assert frame == scores.shape[1]
    assert stays[0][0] == "sil_s2"
    states = [state for state, _ in stays]
    entries = 1 + sum(state == "sil_s2" for _, state in pairwise(states))
    return total - OPTIONS["-sil-cost"] * entries - OPTIONS["--word-penalty"] * len(words)


def test_nbest_scores_are_those_of_each_path_from_scratch(lattices):
    model = LanguageModel.from_arpa(read_arpa("lm.arpa"))
    seen = 0
    for lattice, scores in lattices:
        found = nbest_paths(lattice, 50)
        totals = [one.acoustic + OPTIONS["--lm-scale"] * one.lm for one, _ in found]
        assert totals == sorted(totals, reverse=True)
        for one, links in found:
            assert one.words == tuple(lattice.word[link] for link in links if lattice.word[link] != NULL_WORD)
            assert one.lm == pytest.approx(-model.sentence_costs([one.words])[0].sum(), abs=1e-4)
            expected = acoustic_from_scratch(frames_of(lattice, links), one.words, scores)
            assert one.acoustic == pytest.approx(expected, abs=1e-3)
            seen += 1
    assert seen > 5 * NUM_TEST


def test_posteriors_sum_to_one_in_every_frame(lattices):
    for lattice, scores in lattices:
        probability = np.exp(posteriors(lattice).link)
        for frame in range(scores.shape[1]):
            time = (frame + 0.5) / 100
            crossing = (lattice.time[lattice.start] < time) & (lattice.time[lattice.end] > time)
            assert probability[crossing].sum() == pytest.approx(1.0, abs=1e-9)
