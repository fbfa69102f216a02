"""Error counts against hand alignments, and against an exhaustive search over all alignments."""

import itertools

import numpy as np
import pytest

from decoder.scoring import error_counts
from decoder.scoring import error_counts as scoring
from decoder.scoring import report as score_report
from decoder.scoring.error_counts import PENALTIES, Score, align, count, score
from readers.errors import ConfigError, FormatError
from tests.languages.targets import limited


def cost_of(pairs, penalties):
    edits = count(pairs)
    return (
        edits.substitutions * penalties.substitution
        + edits.deletions * penalties.deletion
        + edits.insertions * penalties.insertion
    )


def cheapest_by_enumeration(reference, hypothesis, penalties):
    """Choose which positions of both sides are paired, in every possible way."""
    best = float("inf")
    for size in range(min(len(reference), len(hypothesis)) + 1):
        for left in itertools.combinations(range(len(reference)), size):
            for right in itertools.combinations(range(len(hypothesis)), size):
                wrong = sum(reference[i] != hypothesis[j] for i, j in zip(left, right))
                cost = (
                    wrong * penalties.substitution
                    + (len(reference) - size) * penalties.deletion
                    + (len(hypothesis) - size) * penalties.insertion
                )
                best = min(best, cost)
    return best


def test_align_hand_example_pairs_words():
    pairs = align("A B C D".split(), "A X C D E".split())
    assert pairs == [("A", "A"), ("B", "X"), ("C", "C"), ("D", "D"), (None, "E")]


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("seed", range(15))
def test_align_random_sequences_cost_equals_enumeration(name, seed):
    rng = np.random.default_rng(seed)
    reference = list(rng.choice(list("abc"), rng.integers(0, 6)))
    hypothesis = list(rng.choice(list("abc"), rng.integers(0, 6)))
    pairs = align(reference, hypothesis, PENALTIES[name])
    assert [word for word, _ in pairs if word is not None] == reference
    assert [guess for _, guess in pairs if guess is not None] == hypothesis
    assert cost_of(pairs, PENALTIES[name]) == cheapest_by_enumeration(reference, hypothesis, PENALTIES[name])


def best_by_preference(reference, hypothesis, penalties):
    """All cheapest alignments, from their ends: a pair comes before a deletion, a deletion before an insertion."""
    if not reference and not hypothesis:
        return 0, ()
    found = []
    if reference and hypothesis:
        cost, rank = best_by_preference(reference[:-1], hypothesis[:-1], penalties)
        found.append((cost + penalties.substitution * (reference[-1] != hypothesis[-1]), (0, *rank)))
    if reference:
        cost, rank = best_by_preference(reference[:-1], hypothesis, penalties)
        found.append((cost + penalties.deletion, (1, *rank)))
    if hypothesis:
        cost, rank = best_by_preference(reference, hypothesis[:-1], penalties)
        found.append((cost + penalties.insertion, (2, *rank)))
    return min(found)


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("compiled_from", [-1, error_counts.COMPILED_FROM])
def test_of_equally_cheap_alignments_pairs_come_before_deletions_before_insertions(name, compiled_from, monkeypatch):
    monkeypatch.setattr(error_counts, "COMPILED_FROM", compiled_from)
    rng, some = np.random.default_rng(1), 0
    for _ in range(60):
        reference, hypothesis = (rng.choice(list("ab"), rng.integers(0, 5)).tolist() for _ in range(2))
        pairs = align(reference, hypothesis, PENALTIES[name])
        ranks = tuple(1 if guess is None else 2 if word is None else 0 for word, guess in pairs[::-1])
        assert ranks == best_by_preference(tuple(reference), tuple(hypothesis), PENALTIES[name])[1]
        some += 1 in ranks and 2 in ranks
    assert some or name != "htk"


def test_align_penalties_of_htk_and_kaldi_differ_where_they_should():
    # Three substitutions cost HTK 30; two deletions, a hit on h and two insertions cost 28.
    reference, hypothesis = "a b h".split(), "h c d".split()
    assert count(align(reference, hypothesis, PENALTIES["kaldi"])).num_errors == 3
    assert count(align(reference, hypothesis, PENALTIES["htk"])).num_errors == 4


def test_score_counts_add_up_over_utterances():
    results = score({"u1": "A B".split(), "u2": ["C"]}, {"u1": "A X".split(), "u2": ["C"]})
    assert results.total == Score(
        hits=2, substitutions=1, deletions=0, insertions=0, num_sentences=2, num_wrong_sentences=1
    )
    assert results.total.word_error_rate == pytest.approx(100 / 3)
    assert results.total.sentence_error_rate == 50


def test_score_missing_hypothesis_counts_as_deletions_and_is_named():
    results = score({"u1": "A B".split(), "u2": ["C"]}, {"u2": ["C"], "u3": ["D"]})
    assert results.missing == ["u1"]
    assert results.unexpected == ["u3"]
    assert results.total.deletions == 2


def test_score_names_meet_by_last_component_only_where_unambiguous():
    results = score({"An4/71/u1": ["A"], "x/u2": ["B"], "y/u2": ["C"]}, {"u1": ["A"], "u2": ["B"]})
    assert results.missing == ["x/u2", "y/u2"]
    assert results.total.hits == 1


def test_score_folds_and_drops_words():
    fold = {"ao": "aa", "q": None}
    results = score({"u": ["ao", "q", "t"]}, {"u": ["aa", "t"]}, fold=fold)
    assert results.total.num_errors == 0
    assert results.total.num_words == 2


def test_score_sentence_marks_are_no_words():
    assert score({"u": ["<s>", "A", "</s>"]}, {"u": ["A"]}).total == Score(hits=1, num_sentences=1)


def test_error_rate_of_insertions_against_an_empty_reference_is_infinite():
    assert score({"u": []}, {"u": ["A"]}).total.word_error_rate == float("inf")
    assert score({"u": []}, {"u": []}).total.word_error_rate == 0


def test_table_has_hresults_lines():
    results = score({"a-x": "A B".split(), "b-y": ["C"]}, {"a-x": "A X Y".split(), "b-y": ["C"]})
    text = score_report.table(results, "ref.mlf", "hyp.mlf", score_report.speaker_mask("*-%"))
    assert "SENT: %Correct=50.00 [H=1, S=1, N=2]" in text
    assert "WORD: %Corr=66.67, Acc=33.33 [H=2, D=0, S=1, I=1, N=3]" in text
    assert "x : %Corr= 50.00, Acc=  0.00 [H=1, D=0, S=1, I=1, N=2] WER 100.0% SER 100.0%" in text


@pytest.mark.parametrize(
    ("mask", "name", "speaker"),
    [("*-%%%%-?", "cen5-fjam-b", "fjam"), ("*-%*-?", "an1-fsaf2-b", "fsaf2"), ("%%%_*", "abc_17", "abc")],
)
def test_speaker_mask_takes_the_marked_characters(mask, name, speaker):
    assert score_report.speaker_mask(mask)(name) == speaker


def test_speaker_mask_faults_name_mask_and_utterance():
    with pytest.raises(ConfigError, match="has no '%'"):
        score_report.speaker_mask("*-?")
    with pytest.raises(ConfigError, match="'odd' does not fit the speaker mask '%%-"):
        score_report.speaker_mask("%%-*")("odd")


def test_aligned_errors_show_only_wrong_utterances():
    results = score({"u1": "GO HOME".split(), "u2": ["C"]}, {"u1": ["GO"], "u2": ["C"]})
    assert score_report.aligned_errors(results) == "Aligned transcription: u1\n LAB: GO HOME\n REC: GO"


def test_confusions_file(tmp_path):
    results = score({"u1": "B B C".split()}, {"u1": "D D C E".split()})
    score_report.write_confusions(results, tmp_path / "confusions.txt")
    assert (tmp_path / "confusions.txt").read_text() == "2\tB\tD\n1\t***\tE\n"


def test_fold_words_chain_is_not_followed():
    assert scoring.fold_words(["a"], {"a": "b", "b": "c"}, frozenset()) == ["b"]


def test_thousands_of_words_are_aligned_in_little_time():
    words = [f"w{i % 997}" for i in range(5000)]
    with limited(10.0):
        pairs = align(words, [*words[:2000], "x", *words[2001:4000], *words[4001:]])
    assert [pair for pair in pairs if pair[0] != pair[1]] == [(words[2000], "x"), (words[4000], None)]


def test_utterances_beyond_hours_of_speech_are_refused():
    with pytest.raises(
        FormatError, match=r"u1: 15000 words against 14000; expected a product of at most 2e\+08; divide"
    ):
        score({"u1": ["a"] * 15000}, {"u1": ["a"] * 14000})
