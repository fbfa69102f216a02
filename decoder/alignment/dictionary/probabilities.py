"""Counts pronunciations and the silences beside them, and estimates their probabilities as Kaldi and MFA do.

With counts C in an alignment, of a pronunciation w, with silence s or none n beside it:

    P(w | word)    (C(w) + 1) / (C(u) + 1), u the most frequent pronunciation of the word
    P(s | w)       (C(w s) + 2 P(s)) / (C(w) + 2), the probability that silence follows
    F(s | w)       (C(s w) + 2) / (E(s w) + 2), E(s w) the sum over v of C(v w) P(s | v)
    F(n | w)       the same with n, and P(n | v) = 1 - P(s | v)

The highest probability of each word is 1, so that words with many pronunciations are not penalised.  The corrections F
say how much more or less often silence precedes than the words before let expect.  <s> and </s> are words, too.

References
----------
Chen, Xu, Wang, Povey and Khudanpur, Pronunciation and silence probability modeling for ASR, Interspeech 2015, equations
1 to 6.  Kaldi, steps/get_prons.sh and utils/dict_dir_add_pronprobs.sh, which rounds as it is done here, but takes P(s |
<s>) for 0 in E.  MFA, "Probabilistic lexicons".
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise

from decoder.alignment.dictionary.spoken import SpokenUtterance
from readers.dictionaries.case import AUTO, CASES, best_case
from readers.dictionaries.silence import SENTENCE_END, SENTENCE_START
from readers.htk.dictionary import Pronunciation, SilenceProbabilities

PRIOR_COUNT, SILENCE_SMOOTHING, CORRECTION_SMOOTHING = 1, 2.0, 2.0  # lambda 1, 2 and 3 of Chen et al.
LEAST, MOST = 0.01, 0.99  # of P(s | w), and the least correction

Spoken = tuple[str, tuple[str, ...]]  # word and phones
START, END = (SENTENCE_START, ()), (SENTENCE_END, ())


class DictionaryCounts:
    """How often each pronunciation of a dictionary was spoken, and what stood beside it.

    Parameters
    ----------
    entries : sequence of Pronunciation
        Silence at the end of their phones, as HTK's dictionaries have it, counts as none.
    silence : collection of str
        Its names.

    Attributes
    ----------
    counts : Counter of (str, tuple of str)
        Word, as it is printed, and phones -> how often they were spoken; also of pronunciations that the dictionary
        lacks.
    marks : list of Pronunciation
        Those of <s> and </s> in the dictionary.
    """

    def __init__(self, entries: Sequence[Pronunciation], silence: Collection[str]):
        self.marks = [entry for entry in entries if entry.word in (SENTENCE_START, SENTENCE_END)]
        self.entries = [entry for entry in entries if entry.word not in (SENTENCE_START, SENTENCE_END)]
        self.silence = frozenset(silence)
        self.counts: Counter[Spoken] = Counter()
        self.known = {self.key(entry) for entry in self.entries}
        self._words = {entry.output_word for entry in self.entries}
        self._after: dict[bool, Counter[Spoken]] = {True: Counter(), False: Counter()}
        self._before: dict[bool, Counter[Spoken]] = {True: Counter(), False: Counter()}
        self._pairs: Counter[tuple[Spoken, Spoken]] = Counter()

    def key(self, entry: Pronunciation) -> Spoken:
        """Return the word and the phones of a pronunciation as alignments have them."""
        end = len(entry.phones)
        while end > 1 and entry.phones[end - 1] in self.silence:
            end -= 1
        return entry.output_word, entry.phones[:end]

    def add(self, utterances: Iterable[SpokenUtterance], case: str = AUTO) -> None:
        """Count the words of utterances, in a case; "auto" is that in which the dictionary has the most of them."""
        utterances = list(utterances)
        if case == AUTO:
            case = best_case(Counter(word for utterance in utterances for word, _ in utterance.words), self._words)
        change = CASES[case]
        for utterance in utterances:
            spoken = [(change(word), phones) for word, phones in utterance.words]
            self.counts.update(spoken)
            keys = [START, *spoken, END]
            for (before, after), pause in zip(pairwise(keys), utterance.pauses, strict=True):
                if pause is not None:
                    self._after[pause][before] += 1
                    self._before[pause][after] += 1
                    self._pairs[before, after] += 1

    @property
    def unknown(self) -> dict[Spoken, int]:
        """Pronunciations that the dictionary lacks, with their counts."""
        return {spoken: count for spoken, count in self.counts.items() if spoken not in self.known}

    def variants(self) -> list[tuple[str, tuple[str, ...], int]]:
        """Return word, phones and count of each pronunciation of the words that were spoken and have several."""
        choices: dict[str, list[tuple[str, ...]]] = {}
        for word, phones in dict.fromkeys(map(self.key, self.entries)):
            choices.setdefault(word, []).append(phones)
        spoken = {word for word, _ in self.counts}
        return [
            (word, phones, self.counts[word, phones])
            for word, several in sorted(choices.items())
            if len(several) > 1 and word in spoken
            for phones in sorted(several, key=lambda phones: -self.counts[word, phones])
        ]

    def estimate(self, silence: str) -> list[Pronunciation]:
        """Return the dictionary with its probabilities, then <s> and </s>.

        silence: the phone of <s> and </s>.
        """
        num_before = {pause: self._before[pause].total() for pause in (True, False)}
        overall = _probability(num_before[True], num_before[False], 0.5 if not any(num_before.values()) else None)
        after = {spoken: self._silence_after(spoken, overall) for spoken in {*self._after[True], *self._after[False]}}
        expected: dict[bool, dict[Spoken, float]] = {True: defaultdict(float), False: defaultdict(float)}
        for (before, word), count in self._pairs.items():
            expected[True][word] += count * after[before]
            expected[False][word] += count * (1 - after[before])

        def beside(spoken: Spoken) -> SilenceProbabilities:
            factors = (
                (self._before[pause][spoken] + CORRECTION_SMOOTHING) / (expected[pause][spoken] + CORRECTION_SMOOTHING)
                for pause in (True, False)
            )
            return SilenceProbabilities(
                after.get(spoken, overall), *(max(round(factor, 2), LEAST) for factor in factors)
            )

        most: Counter[str] = Counter()
        for entry in self.entries:
            most[entry.word] = max(most[entry.word], self.counts[self.key(entry)])
        trained = [
            entry._replace(
                probability=(self.counts[self.key(entry)] + PRIOR_COUNT) / (most[entry.word] + PRIOR_COUNT),
                silence=beside(self.key(entry)),
            )
            for entry in self.entries
        ]
        ends = (
            (SENTENCE_START, SilenceProbabilities(after.get(START, overall))),
            (SENTENCE_END, beside(END)._replace(after=overall)),
        )
        return trained + [Pronunciation(mark, None, 1.0, (silence,), numbers) for mark, numbers in ends]

    def _silence_after(self, spoken: Spoken, overall: float) -> float:
        return _probability(
            self._after[True][spoken] + SILENCE_SMOOTHING * overall,
            self._after[False][spoken] + SILENCE_SMOOTHING * (1 - overall),
        )


def _probability(num_silent: float, num_spoken: float, default: float | None = None) -> float:
    """Return the share of silence, rounded as Kaldi does."""
    share = num_silent / (num_silent + num_spoken) if default is None else default
    return min(max(round(share, 2), LEAST), MOST)
