"""Which parts of which words may stand for a cut-off word, and what is a loop over all phones."""

import numpy as np
import pytest

from decoder.alignment.aligner import Aligner
from decoder.alignment.annotated import labels_of, with_annotations, words_to_pronounce
from decoder.graph import PhoneModels
from decoder.graph.transcript import TranscriptGraphs
from readers.corpora.annotations import Annotations
from readers.htk.dictionary import Pronunciation, SilenceProbabilities

DICTIONARY = {
    "WANT": ["w o n t", "w o n"],
    "WON": ["w u n"],
    "W": ["d u"],
    "I": ["a"],
    "GOING": ["g o i n"],
    "[N]": ["n"],
}
ENTRIES = [Pronunciation(word, None, None, tuple(p.split())) for word, all in DICTIONARY.items() for p in all]
PHONES = sorted({phone for entry in ENTRIES for phone in entry.phones})
GRAPHS = TranscriptGraphs(PhoneModels({phone: (phone,) for phone in [*PHONES, "sil"]}), ENTRIES)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("wan- want", ["w o n t", "w o n", "w o", "w"]),  # the written part has no pronunciation
        ("w- want", ["w o n t", "w o n", "w o", "w"]),
        ("w- going", ["d u", "d"]),
        ("won- want", ["w u n", "w u", "w"]),
        ("going -ing", ["g o i n", "o i n", "i n", "n"]),
        ("i -going", ["g o i n", "o i n", "i n", "n"]),
        ("<cutoff> going", ["g o i n", "g o i", "g o", "g"]),
        ("<cutoff-going> want", ["g o i n", "g o i", "g o", "g"]),
        ("<cutoff-i> want", ["a"]),
    ],
)
def test_parts_of_cut_off_words(text, parts):
    words = text.split()
    labels = labels_of(words, DICTIONARY, "upper", Annotations())
    (label,) = [label for label in labels if label.kind]
    graphs = with_annotations(GRAPHS, labels, 1.0)
    assert [" ".join(phones) for phones, _, _ in graphs.words[label.name]] == parts
    assert not graphs.loops


def test_added_words_have_no_probabilities_of_silence_and_do_not_replace_others():
    silence = SilenceProbabilities(0.3, 1.2, 0.8)
    entries = [entry._replace(silence=silence) for entry in ENTRIES]
    graphs = TranscriptGraphs(PhoneModels({phone: (phone,) for phone in [*PHONES, "sil"]}), entries)
    added = [Pronunciation("WON", None, None, ("w", "o")), Pronunciation("NEW", None, None, ("n", "u"))]
    extended = graphs.with_words(added)
    assert [phones for phones, _, _ in extended.words["WON"]] == [("w", "u", "n"), ("w", "o")]
    scores = np.zeros((len(PHONES) + 1, 6), np.float32)
    words = Aligner(extended).align(["NEW", "WON"], scores).words
    assert [unit.output for unit, _ in words if unit.output] == ["NEW", "WON"]
    assert extended.silences == graphs.silences
    assert extended.free_phones == graphs.free_phones
    assert extended.models.all_free_phones is graphs.models.all_free_phones


def test_what_has_no_pronunciation_is_a_loop():
    words = ["<cutoff>", "[n]", "[x]", "huh", "uh-", "<cutoff>", "[y]", "<cutoff-hm>", "i"]
    labels = labels_of(words, DICTIONARY, "upper", Annotations())
    assert [label.kind for label in labels] == [
        "cutoff",
        None,
        "noise",
        None,
        "cutoff",
        "cutoff",
        "noise",
        "cutoff",
        None,
    ]
    assert words_to_pronounce(labels) == ["[N]", "HUH", "UH", "HM", "I"]
    graphs = with_annotations(GRAPHS, labels, 3.0)
    assert graphs.loops == {"[x]", "HUH", "uh-|UH", "<cutoff>", "[y]", "<cutoff-hm>|HM"}
    assert (graphs.frame_cost, GRAPHS.loops) == (3.0, frozenset())
    assert with_annotations(GRAPHS, labels_of(["i"], DICTIONARY, "upper", Annotations()), 1.0) is GRAPHS
    # Frames of w, g and silence, where [x] takes the first two without the silence that is cheaper outside of it.
    scores = np.full((len(PHONES) + 1, 6), -9.0, np.float32)
    scores[[*map(PHONES.index, "wwg"), *[len(PHONES)] * 2, PHONES.index("a")], range(6)] = 0.0
    found = Aligner(graphs).align(["[x]", "I"], scores)
    assert [(unit.model, span.start, span.end) for unit, span in found.phones] == [
        ("spn", 0, 3),
        ("sil", 3, 5),
        ("a", 5, 6),
    ]
    assert [(unit.output, span.start, span.end) for unit, span in found.words] == [("[x]", 0, 3), ("I", 5, 6)]
