"""Goodness of pronunciation against its definition, frame by frame."""

import math

import numpy as np
import pytest

from decoder.alignment.aligner import Aligner
from decoder.alignment.goodness import BLOCK, LEAST, PhoneGoodness
from decoder.graph.transcript import TranscriptGraphs
from readers.htk.trees import phone_of
from tests.decoder.alignment.test_aligner import DICTIONARY, monophones, scores_for, triphones


def plain_posteriors(models, rows, frame, scale=1.0):
    """Phone -> ln posterior of one frame."""
    of_phone = {}
    for model, states in models.states.items():
        of_phone.setdefault(phone_of(model), set()).update(rows[state] for state in states)
    likelihood = {phone: sum(math.exp(scale * frame[row]) for row in rows) for phone, rows in of_phone.items()}
    return {phone: math.log(one / sum(likelihood.values())) for phone, one in likelihood.items()}


@pytest.mark.parametrize(("make", "scale"), [(monophones, 1.0), (triphones, 1.0), (monophones, 0.3)])
def test_goodness_is_that_of_the_definition(make, scale):
    rng = np.random.default_rng(4)
    models = make(rng)
    graphs = TranscriptGraphs(models, DICTIONARY)
    scores = 3 * scores_for(models, 17, rng)
    alignment, goodness = Aligner(graphs).align(["X", "Y"], scores), PhoneGoodness(graphs, scale)
    frames = [plain_posteriors(models, graphs.rows, frame, scale) for frame in scores.T.astype(float)]
    posteriors = goodness.log_posteriors(scores)
    for phone, row in goodness.phones.items():
        np.testing.assert_allclose(posteriors[row], [frame[phone] for frame in frames], rtol=1e-6)
    found = goodness.of(alignment, scores)
    assert len(found) == len(alignment.phones) > 3
    for (unit, span), good in zip(alignment.phones, found, strict=True):
        inside = frames[span.start : span.end]
        expected = sum(frame[phone_of(unit.model)] - max(frame.values()) for frame in inside) / len(inside)
        assert good == pytest.approx(expected, abs=1e-6)
    assert found.max() <= 0 > found.min()


def test_long_utterances_are_computed_in_blocks():
    rng = np.random.default_rng(5)
    models = monophones(rng)
    goodness = PhoneGoodness(TranscriptGraphs(models, DICTIONARY))
    scores = scores_for(models, BLOCK + 50, rng)
    whole, last = goodness.log_posteriors(scores), goodness.log_posteriors(scores[:, BLOCK - 7 :])
    np.testing.assert_array_equal(whole[:, BLOCK - 7 :], last)


def test_impossible_phones_have_a_finite_goodness():
    rng = np.random.default_rng(6)
    models = monophones(rng)
    graphs = TranscriptGraphs(models, DICTIONARY)
    scores = np.full((graphs.num_rows, 12), -1e10, np.float32)
    scores[graphs.rows["b_s2"]] = 0.0
    found = PhoneGoodness(graphs).of(Aligner(graphs).align(["Y"], scores), scores)
    assert found.min() == LEAST
    assert math.exp(found.min()) > 0
