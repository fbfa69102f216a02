"""Words of transcripts that no dictionary has: cut-off words, laughter, breath, noises and speech nobody understood.

Brackets [], <> and {} are around annotations, as in MFA's transcripts: `<cutoff-going>` is a part of `going` from its
beginning on, `<cutoff>` of the next word; `[laughter]`, `{breath}`, `<unk>`; others are noises.  GAT's
`((laughs))` and CHAT's `&=laughs` are in brackets, too; CHAT's `xxx` is unknown.  Without brackets, a hyphen stands
where a word was cut off: `go-`, `-ing`.

References
----------
McAuliffe et al., Montreal Forced Aligner, user guide, "Modeling cutoffs and hesitations" and "Non-speech annotations".
Selting et al., A system for transcribing talk-in-interaction: GAT 2, Gesprächsforschung 12, 2011.
MacWhinney, Tools for Analyzing Talk, part 1: The CHAT Transcription Format, "Unidentifiable Material", "Simple Events".
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, cast

from readers.errors import ConfigError

Kind = Literal["cutoff", "laughter", "breath", "noise", "unknown"]
KINDS: tuple[Kind, ...] = ("cutoff", "laughter", "breath", "noise", "unknown")
NAMES: Mapping[str, Kind] = {  # in brackets, in small letters
    **dict.fromkeys(("laugh", "laughs", "laughed", "laughing", "laughter", "lachen", "lacht", "lg"), "laughter"),
    **dict.fromkeys(("breath", "breathes", "breathing", "inhale", "inhales", "exhale", "exhales", "br"), "breath"),
    **dict.fromkeys(("unk", "unknown", "oov", "inaudible", "unintelligible", "xxx"), "unknown"),
}  # fmt: skip
_BARE: Mapping[str, Kind] = {"xxx": "unknown"}  # without brackets, too
_MARKED = re.compile(r"[\[<{](?!/?s>)(.*)[\]>}]|\(\((.*)\)\)|&=(.+)", re.DOTALL)
_CUTOFF = re.compile(r"(?:cutoff|hes|hesitation)(?:[-_](.+))?", re.IGNORECASE | re.DOTALL)
_PART = r"('?[^\W\d_](?:[^\s,;:!?\"()]*[^\s,;:!?\"().-])?)"
_BEGINNING, _END = re.compile(f"-?{_PART}-"), re.compile(f"-{_PART}")


class CutOff(NamedTuple):
    """A cut-off word.

    Attributes
    ----------
    word : str
        As it was written: the whole word in brackets, the part that was said beside a hyphen; "" if there is none.
    is_part : bool
        Whether only the part that was said is written.
    is_end : bool
        Whether the end of the word was said, not its beginning.
    """

    word: str
    is_part: bool
    is_end: bool


@dataclass(frozen=True)
class Annotations:
    """Tells annotations from words.

    Parameters
    ----------
    names : mapping of str to {"cutoff", "laughter", "breath", "noise", "unknown"}
        Further annotations, such as `xxx` or `[lacht]`; without brackets also what is in brackets.  Upper and lower
        case are the same.
    frame_cost : float, optional
        Cost in nats of each frame of a sound or an unknown word; by default 1, of Gaussian models 2.5.  The lower, the
        more they take of the words beside them.

    Raises
    ------
    ConfigError
        For another kind, and a negative cost.
    """

    names: Mapping[str, Kind] = field(default_factory=dict)
    frame_cost: float | None = None

    def __post_init__(self) -> None:
        for name, kind in self.names.items():
            if kind not in KINDS:
                raise ConfigError(f"annotation {name}: kind {kind!r}; expected {', '.join(KINDS)}")
        if self.frame_cost is not None and not 0 <= self.frame_cost < math.inf:
            raise ConfigError(f"annotations: frame_cost {self.frame_cost}; expected a number that is not negative")
        object.__setattr__(self, "names", {name.lower(): kind for name, kind in self.names.items()})

    @classmethod
    def of(cls, names: Iterable[str], frame_cost: float | None = None) -> "Annotations":
        """Make them of texts `NAME=KIND`."""
        pairs = (text.rpartition("=") for text in names)
        return cls({name: cast(Kind, kind) for name, _, kind in pairs}, frame_cost)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self.kind(word) is not None

    def kind(self, word: str) -> Kind | None:
        """Return the kind of an annotation, None of a word."""
        written = word.lower()
        inside = _inside(written)
        if kind := self.names.get(written, self.names.get(written if inside is None else inside)):
            return kind
        if self.cut_off(word) is not None:
            return "cutoff"
        return _BARE.get(written) if inside is None else NAMES.get(inside, "noise")

    def cut_off(self, word: str) -> CutOff | None:
        """Return what is known of a cut-off word, None of others."""
        inside = _inside(word)
        if inside is not None:
            marked = _CUTOFF.fullmatch(inside)
            return CutOff(marked[1] or "", False, False) if marked else None
        if part := _BEGINNING.fullmatch(word):
            return CutOff(part[1], True, False)
        if part := _END.fullmatch(word):
            return CutOff(part[1], True, True)
        return CutOff("", False, False) if self.names.get(word.lower()) == "cutoff" else None


def _inside(word: str) -> str | None:
    """Return what is in the brackets of an annotation, None of a word without."""
    marked = _MARKED.fullmatch(word)
    return None if marked is None else next(text for text in marked.groups() if text is not None)
