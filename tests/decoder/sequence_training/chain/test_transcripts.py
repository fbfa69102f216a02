"""Numerators from transcripts hold every pronunciation, silence and alignment, and nothing else."""

import itertools

import numpy as np
import pytest

from decoder.sequence_training.chain.denominator import build_denominator
from decoder.sequence_training.chain.outputs import monophone_outputs
from decoder.sequence_training.chain.phone_lm import estimate_phone_lm
from decoder.sequence_training.chain.transcripts import Lexicon, SilenceOptions, transcript_numerator
from readers.errors import ConfigError, GraphError
from readers.htk.dictionary import Pronunciation
from tests.decoder.sequence_training.chain.graphs import (
    SEQUENCES,
    label_sequences,
    tied_outputs,
    weights_of_graph,
)
from tests.decoder.sequence_training.chain.test_numerators import source_of, weights_of_numerator

MONO = monophone_outputs(["sil", "a", "b"])
DICTIONARY = [
    Pronunciation("A", None, None, ("a",)),
    Pronunciation("A", None, None, ("b",)),
    Pronunciation("AB", None, None, ("a", "b", "sil")),
    Pronunciation("AA", None, None, ("a", "a")),
    Pronunciation("<s>", None, None, ("sil",)),
]
OUTPUTS = {
    "monophones": lambda: MONO,
    "left": tied_outputs,
    "both": lambda: tied_outputs(right=True),
    "shared": lambda: tied_outputs(right=True, merged=True),
}


def phone_strings(words):
    """All strings of phone numbers of a transcript."""
    prons = {"A": [(2,), (3,)], "AB": [(2, 3)], "AA": [(2, 2)]}
    for choices in itertools.product(*(prons[word] for word in words)):
        for present in itertools.product((False, True), repeat=len(words) + 1):
            phones = [1] * present[0]
            for pron, followed in zip(choices, present[1:]):
                phones += [*pron, *[1] * followed]
            if phones:
                yield tuple(phones)


@pytest.mark.parametrize("words", [["A"], ["A", "AB"], ["AA", "A"], []])
@pytest.mark.parametrize("kind", OUTPUTS)
def test_equals_the_sum_over_pronunciations_silences_and_alignments(tmp_path, kind, words):
    outputs, num_frames = OUTPUTS[kind](), 5
    denominator = build_denominator(estimate_phone_lm(SEQUENCES), outputs)
    numerator = transcript_numerator(words, Lexicon(DICTIONARY, outputs), outputs, 14, num_frames)
    source = source_of(tmp_path, denominator, outputs, [("u", numerator)])
    allowed = set()
    for phones in set(phone_strings(words)) or {(1,)}:
        padded = [0, *phones, 0]
        contexts = [tuple(padded[i : i + 3]) for i in range(len(phones))]
        allowed.update(label_sequences(contexts, outputs, num_frames))
    mass = weights_of_graph(denominator, num_frames, denominator.initial)
    expected = {labels: mass[labels] for labels in allowed if labels in mass}
    assert expected
    supervision = source.supervision("u", 0, num_frames)
    found = weights_of_numerator(supervision.numerator, num_frames)
    assert found.keys() == expected.keys()
    for labels, value in expected.items():
        assert found[labels] == pytest.approx(value, rel=1e-5)


def test_samples_of_phones():
    lexicon, rng = Lexicon(DICTIONARY, MONO), np.random.default_rng(0)
    found = {tuple(lexicon.sample(["<s>", "A", "sil", "AB"], SilenceOptions(), rng)) for _ in range(500)}
    assert found == set(phone_strings(["A", "AB"]))
    always, never = SilenceOptions(1.0, 1.0), SilenceOptions(0.0, 0.0)
    assert lexicon.sample(["AB", "AA"], always, rng) == [1, 2, 3, 1, 2, 2, 1]
    assert lexicon.sample(["AB", "AA"], never, rng) == [2, 3, 2, 2]
    assert lexicon.sample([], never, rng) == [1]


def test_what_cannot_be_a_numerator():
    lexicon = Lexicon(DICTIONARY, MONO)
    with pytest.raises(GraphError, match="words not in the dictionary: B, C; expected words of it"):
        transcript_numerator(["A", "B", "C", "B"], lexicon, MONO, 30, 10)
    with pytest.raises(GraphError, match="a transcript of 5 phones or more in 12 frames, 4 outputs; expected"):
        transcript_numerator(["AB", "AA", "A"], lexicon, MONO, 12, 4)
    transcript_numerator(["AB", "AA", "A"], lexicon, MONO, 15, 5)
    with pytest.raises(GraphError, match="phone 'c': no outputs; expected one of 3 phones"):
        Lexicon([Pronunciation("C", None, None, ("c",))], MONO)
    with pytest.raises(ConfigError, match="between is 2; expected 0 to 1"):
        SilenceOptions(0.5, 2)
