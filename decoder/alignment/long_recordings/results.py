"""What the alignment of a long recording returns."""

from dataclasses import dataclass
from typing import NamedTuple

DELETED, INSERTED, REPLACED = "deleted", "inserted", "replaced"


class SpokenWord(NamedTuple):
    """A word of the transcript that was spoken.

    Attributes
    ----------
    position : int
        Index in the transcript.
    text : str
    start, end : int
        Frames, end exclusive.
    confidence : float
        From 0 to 1: the geometric mean of those of its phones; 0 if no alignment was possible.
    """

    position: int
    text: str
    start: int
    end: int
    confidence: float


class SpokenPhone(NamedTuple):
    """A phone of a spoken word, or silence.

    Attributes
    ----------
    text : str
    start, end : int
        Frames, end exclusive.
    position : int
        Index of its word in the transcript, -1 for silence and words that are not in the transcript.
    confidence : float
        See `PhoneGoodness`.
    """

    text: str
    start: int
    end: int
    position: int
    confidence: float


class DamagedStretch(NamedTuple):
    """A place where transcript and recording differ.

    Attributes
    ----------
    kind : {"deleted", "inserted", "replaced"}
        "deleted": words of the transcript that were not spoken; "inserted": speech that is not in the transcript;
        "replaced": other speech than the transcript's words.
    first, last : int
        The words of the transcript, last exclusive; the same for "inserted".
    words : tuple of str
        These words.
    start, end : int
        Frames between the words beside the stretch, or of the speech, end exclusive.
    recognised : tuple of str
        What was recognised there; phones outside of known words are written as `#phone`.
    """

    kind: str
    first: int
    last: int
    words: tuple[str, ...]
    start: int
    end: int
    recognised: tuple[str, ...]


@dataclass(frozen=True)
class LongAlignment:
    """The alignment of a long recording.

    Attributes
    ----------
    words : tuple of SpokenWord
        Words of the transcript that were spoken, in order.
    damage : tuple of DamagedStretch
        In order; every word of the transcript is in `words` or in one of these.
    phones : tuple of SpokenPhone
        Phones and silences of all that was said.
    num_frames : int
    period : int
        Of the frames in 100 ns units.
    delay : float
        How much later than k * period frame k begins, see `FrameTimes`.
    """

    words: tuple[SpokenWord, ...]
    damage: tuple[DamagedStretch, ...]
    phones: tuple[SpokenPhone, ...]
    num_frames: int
    period: int
    delay: float = 0.0
