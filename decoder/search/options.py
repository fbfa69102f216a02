"""What the search is told (CNTK book 6.1.3.4)."""

import math
from dataclasses import dataclass

from readers.errors import ConfigError


@dataclass(frozen=True)
class SearchOptions:
    """How to search; defaults are the book's (6.1.3), except where it has none.

    acweight: factor on log-likelihoods; beam: absolute; max_tokens: per frame; word_end_beam_frac: the beam right after
    a word arc, as a part of the beam.
    sil_cost: added once whenever a path enters a silence model from anything else; silence: names of those models, None
    takes the models that realise <s>, and sil and sp.
    lm_scale, word_penalty (added per word, <s> and </s> are none): extensions.  slack_decay: per frame, 0 = no slack.
    lm_lookahead: whether the beam looks ahead with n-grams of every token's own history; what it finds without a beam
    is the same.
    lattice_beam: keep a lattice of all paths found within this cost of the best; None = no lattice.
    partial: give the best unfinished path when no token is final.
    """

    acweight: float = 0.0667
    beam: float = 15.0
    max_tokens: int = 20000
    word_end_beam_frac: float = 0.33333
    sil_cost: float = 1.0
    silence: tuple[str, ...] | None = None
    lm_scale: float = 1.0
    word_penalty: float = 0.0
    slack_decay: float = 0.8
    lm_lookahead: bool = True
    lattice_beam: float | None = None
    partial: bool = False

    def __post_init__(self):
        for name, low, high in (
            ("acweight", 0.0, math.inf),
            ("beam", 0.0, math.inf),
            ("max_tokens", 1, 2**31 - 1),
            ("word_end_beam_frac", 0.0, math.inf),
            ("sil_cost", -1e30, 1e30),
            ("lm_scale", 0.0, 1e30),
            ("word_penalty", -1e30, 1e30),
            ("slack_decay", 0.0, 0.999999),
            ("lattice_beam", 0.0, math.inf),
        ):
            value = getattr(self, name)
            if value is not None and not low <= value <= high:  # NaN fails too
                raise ConfigError(f"search option {name}: {value}; expected {_range_text(low, high)}")
        if math.isinf(self.acweight):
            raise ConfigError("search option acweight: inf; expected a finite number")


def _range_text(low: float, high: float) -> str:
    return f"at least {low:g}" if high >= 1e30 else f"{low:g} to {high:g}"
