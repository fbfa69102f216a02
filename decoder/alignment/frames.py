"""An alignment of phones with the posterior probabilities of its frames."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from readers.htk.trees import phone_of

if TYPE_CHECKING:
    from decoder.alignment.aligner import StateAlignment

SILENCE = -1  # word of silence that the alignment inserted


class AlignedPhone(NamedTuple):
    """A phone of an alignment, silence between words included.

    Attributes
    ----------
    text : str
    row : int
        Of the phone among the posteriors.
    start, end : int
        Frames.
    word : int
        Index of the word of the text; -1 for inserted silence.
    """

    text: str
    row: int
    start: int
    end: int
    word: int


@dataclass(frozen=True, eq=False)
class AlignedFrames:
    """An alignment with the posterior probabilities of its frames.

    Attributes
    ----------
    words : tuple of str
        The words of the text.
    phones : tuple of AlignedPhone
        By time, without gaps.
    log_posteriors : (P, T) array, float64
        See `PhoneGoodness`.
    period : float
        Seconds of a frame.
    seconds : float
        Duration of the audio.
    notes : tuple of str
        What is unusual about the audio file.
    """

    words: tuple[str, ...]
    phones: tuple[AlignedPhone, ...]
    log_posteriors: np.ndarray
    period: float
    seconds: float
    notes: tuple[str, ...] = ()


def aligned_phones(alignment: "StateAlignment", rows: Mapping[str, int]) -> tuple[AlignedPhone, ...]:
    """Return the phones of an alignment; rows: of each phone among the posteriors."""
    phones = [(phone_of(unit.model), unit.word, span) for unit, span in alignment.phones]
    return tuple(AlignedPhone(phone, rows[phone], span.start, span.end, word) for phone, word, span in phones)
