"""Options of the alignment of long recordings."""

from dataclasses import dataclass

from readers.errors import ConfigError

LIMITS = {
    "order": (1, 10),
    "lm_scale": (0, 1e6),
    "filler_cost": (0, 1e6),
    "anchor": (1, 100),
    "margin": (0, 1e6),
    "doubt": (0, 1),
}


@dataclass(frozen=True)
class LongOptions:
    """Options of `align_long`.

    Parameters
    ----------
    order : int
        Of the n-gram of the transcript.
    lm_scale : float
        Weight of this n-gram: the lower, the more words are recognised that are not in the transcript.
    filler_cost : float or None
        Cost, -ln, of each phone of speech that is no word of the vocabulary.  None: such speech is not expected.
    anchor : int
        Number of consecutive words that must be recognised as in the transcript to be taken for sure.
    margin : float
        A stretch that was recognised differently still counts as undamaged if the transcript's words cost at most so
        much more per word than those recognised, in weighted log-likelihood.
    doubt : float
        Words of a lower confidence are recognised again, without the transcript.
    shortest, longest : float
        Seconds of the pieces in which the recording is recognised; it is divided at the clearest pause between.

    Raises
    ------
    ConfigError
        For a value out of range.
    """

    order: int = 4
    lm_scale: float = 1.0
    filler_cost: float | None = 4.0
    anchor: int = 3
    margin: float = 3.0
    doubt: float = 0.7
    shortest: float = 10.0
    longest: float = 30.0

    def __post_init__(self) -> None:
        for name, (least, most) in LIMITS.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise ConfigError(f"alignment option {name}: {value}; expected {least} to {most:g}")
        if not 0 < self.shortest < self.longest < 3600:
            raise ConfigError(
                f"alignment options shortest {self.shortest:g}, longest {self.longest:g} s; expected seconds in rising "
                "order, below 3600"
            )
