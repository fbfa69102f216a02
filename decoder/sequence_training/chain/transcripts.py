"""Numerators from transcripts alone: all pronunciations, optional silences and alignments (flat start).

References
----------
Hadian et al., End-to-end speech recognition using lattice-free MMI, Interspeech 2018.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from decoder.lm.language_model import SENTENCE_END, SENTENCE_START
from decoder.sequence_training.chain.options import SilenceOptions
from decoder.sequence_training.chain.outputs import ChainOutputs
from decoder.sequence_training.chain.phone_lm import BOUNDARY
from readers.common.faults import listed
from readers.errors import GraphError
from readers.htk.dictionary import Pronunciation
from readers.sources.chain import TranscriptNumerator

MOST_STATES = 100_000  # of the acceptor of one transcript
NOTHING = -1  # stands for the beginning and the end among the occurrences of phones

_Place = tuple[int, int, int]  # phone before, occurrence, next occurrence


class Lexicon:
    """The pronunciations of words as numbers of phones.

    Parameters
    ----------
    dictionary : sequence of Pronunciation
        Silence at the end of a word is left out, since it may follow any word.
    outputs : ChainOutputs

    Raises
    ------
    GraphError
        For phones without outputs.
    """

    def __init__(self, dictionary: Sequence[Pronunciation], outputs: ChainOutputs):
        self.silence = outputs.number(outputs.silence)
        self.unspoken = {SENTENCE_START, SENTENCE_END}
        pronunciations: dict[str, dict[tuple[int, ...], None]] = {}
        for entry in dictionary:
            phones = list(entry.phones)
            while len(phones) > 1 and phones[-1] == outputs.silence:
                phones.pop()
            if phones and entry.word not in self.unspoken:
                pronunciations.setdefault(entry.word, {})[tuple(map(outputs.number, phones))] = None
        self.pronunciations: Mapping[str, list[tuple[int, ...]]] = {
            w: list(prons) for w, prons in pronunciations.items()
        }
        if outputs.silence not in pronunciations:
            self.unspoken.add(outputs.silence)

    def of(self, words: Sequence[str]) -> list[list[tuple[int, ...]]]:
        """Return the pronunciations of each word; <s>, </s> and silence are left out.

        Raises GraphError for words that are not in the dictionary, and if there are none.
        """
        spoken = [word for word in words if word not in self.unspoken]
        unknown = list(dict.fromkeys(word for word in spoken if word not in self.pronunciations))
        if unknown:
            raise GraphError(f"words not in the dictionary: {listed(unknown)}; expected words of it")
        return [self.pronunciations[word] for word in spoken]

    def sample(self, words: Sequence[str], silence: SilenceOptions, rng: np.random.Generator) -> list[int]:
        """Return the phones of a transcript with random pronunciations and silences.

        Parameters
        ----------
        words : sequence of str
        silence : SilenceOptions
        rng : numpy.random.Generator

        Returns
        -------
        list of int
            Numbers of phones.
        """
        spoken = self.of(words)
        places = [silence.edges, *[silence.between] * (len(spoken) - 1), silence.edges]
        present = rng.random(len(places)) < places
        if not spoken:
            return [self.silence]
        phones = [self.silence] if present[0] else []
        for choices, followed in zip(spoken, present[1:]):
            phones += choices[int(rng.integers(len(choices)))]
            phones += [self.silence] * bool(followed)
        return phones


def transcript_numerator(
    words: Sequence[str], lexicon: Lexicon, outputs: ChainOutputs, num_input_frames: int, num_frames: int
) -> TranscriptNumerator:
    """Return the numerator of a transcript.

    Parameters
    ----------
    words : sequence of str
        Without words, silence.
    lexicon : Lexicon
    outputs : ChainOutputs
    num_input_frames, num_frames : int
        Number of frames at the rates of the features and of the network's output.

    Returns
    -------
    TranscriptNumerator

    Raises
    ------
    GraphError
        For words that are not in the dictionary, and transcripts with more phones than frames.
    """
    spoken = lexicon.of(words)
    least = max(1, sum(min(map(len, choices)) for choices in spoken))
    if least > num_frames:
        raise GraphError(
            f"a transcript of {least} phones or more in {num_input_frames} frames, {num_frames} outputs; expected an "
            "output for each phone at least"
        )
    return _Acceptor(spoken, lexicon.silence, outputs).numerator(num_input_frames, num_frames)


class _Acceptor:
    """The deterministic acceptor of the sequences of outputs of a transcript.

    phone: of each occurrence of a phone; following: the occurrences that may follow each one; ends: those that may be
    the last.
    """

    def __init__(self, spoken: Sequence[Sequence[tuple[int, ...]]], silence: int, outputs: ChainOutputs):
        self.outputs = outputs
        self.left = outputs.uses_left
        self.right = outputs.uses_right
        self.phone: list[int] = []
        self.following: dict[int, list[int]] = {NOTHING: []}
        before = [NOTHING]
        for choices in spoken:
            before = [*before, self._add(silence, before)]
            last = []
            for phones in choices:
                current = before
                for phone in phones:
                    current = [self._add(phone, current)]
                last += current
            before = last
        silent = self._add(silence, before)
        self.ends = {*(before if spoken else ()), silent}

    def _add(self, phone: int, before: Sequence[int]) -> int:
        number = len(self.phone)
        self.phone.append(phone)
        self.following[number] = []
        for predecessor in before:
            self.following[predecessor].append(number)
        return number

    def _phone(self, occurrence: int) -> int:
        return BOUNDARY if occurrence == NOTHING else self.phone[occurrence]

    def _entered(self, before: int, occurrence: int) -> list[tuple[_Place, int]]:
        """The places where a phone begins, and the output of its first frame."""
        after = [NOTHING]
        if self.right:
            after = [*self.following[occurrence], *after[: occurrence in self.ends]]
        phone = self._phone(occurrence)
        context = self._phone(before)
        return [
            (
                (context if self.left else BOUNDARY, occurrence, following),
                self.outputs.outputs(context, phone, self._phone(following))[0],
            )
            for following in after
        ]

    def _steps(self, place: _Place) -> list[tuple[_Place, int]]:
        """The places that may follow, and the output of each."""
        context, occurrence, after = place
        steps = []
        if occurrence != NOTHING:
            further = self.outputs.outputs(context, self._phone(occurrence), self._phone(after))[1]
            steps.append((place, further))
        if self.right and occurrence != NOTHING:
            return steps + (self._entered(occurrence, after) if after != NOTHING else [])
        for following in self.following[occurrence]:
            steps += self._entered(occurrence, following)
        return steps

    def _is_end(self, place: _Place) -> bool:
        return place[1] in self.ends and (not self.right or place[2] == NOTHING)

    def numerator(self, num_input_frames: int, num_frames: int) -> TranscriptNumerator:
        start = frozenset([(BOUNDARY, NOTHING, NOTHING)])
        number = {start: 0}
        waiting = [start]
        arcs: list[tuple[int, int, int]] = []
        for places in waiting:  # grows
            reached: dict[int, set[_Place]] = {}
            for position in places:
                for target, output in self._steps(position):
                    reached.setdefault(output, set()).add(target)
            for output, targets in sorted(reached.items()):
                key = frozenset(targets)
                if key not in number:
                    number[key] = len(number)
                    waiting.append(key)
                    if len(number) > MOST_STATES:
                        raise GraphError(f"a transcript of more than {MOST_STATES} states; expected a shorter one")
                arcs.append((number[places], number[key], output))
        from_state, to_state, outputs = (np.array(column, dtype=np.int32) for column in zip(*arcs))
        final = np.array([any(map(self._is_end, places)) for places in waiting])
        return TranscriptNumerator(num_frames, num_input_frames, from_state, to_state, outputs, final)
