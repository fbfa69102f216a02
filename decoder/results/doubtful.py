"""Stretches of aligned words that the audio hardly supports."""

from typing import TYPE_CHECKING, NamedTuple

from readers.results.timed_words import Word

if TYPE_CHECKING:
    from decoder.results.alignment import Alignment


class DoubtfulStretch(NamedTuple):
    """Successive words of an utterance whose confidences, at least `confidence`, are all below the threshold."""

    recording: str
    speaker: str
    utterance: str
    start: float
    end: float
    words: str
    confidence: float


def doubtful_stretches(alignment: "Alignment", threshold: float) -> list[DoubtfulStretch]:
    """Return the stretches of words with confidences below a threshold."""
    stretches = []
    for utterance in alignment.utterances:
        stretch: list[Word] = []
        for word in (*utterance.words, None):
            if word is not None and word.confidence is not None and word.confidence < threshold:
                stretch.append(word)
            elif stretch:
                text = " ".join(member.text for member in stretch)
                least = min(member.confidence or 0.0 for member in stretch)
                span = alignment.name, utterance.speaker, utterance.name, stretch[0].start, stretch[-1].end
                stretches.append(DoubtfulStretch(*span, text, least))
                stretch = []
    return stretches
