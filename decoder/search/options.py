"""Options of the search (CNTK book 6.1.3.4)."""

import math
from dataclasses import dataclass

from readers.errors import ConfigError

NEW_SENTENCE_COST = 5.0  # few more tokens than with one sentence


@dataclass(frozen=True)
class SearchOptions:
    """Options of the search; the defaults are those of the CNTK book where it gives one.

    Parameters
    ----------
    acweight : float
        Weight of the acoustic log-likelihoods (natural log).
    beam : float
        Beam, in cost (weighted -ln): a token is pruned if its cost exceeds the lowest of its frame by more.
    max_tokens : int
        Maximum number of tokens kept in a frame.
    word_end_beam_frac : float
        The beam right after a word arc, as a fraction of `beam`.
    sil_cost : float
        Cost added once whenever a path enters a silence model from any other model.
    silence : tuple of str, optional
        Names of the silence models.  By default sil, sp and the models that realise <s>.
    lm_scale : float
        Weight of the language model (not in the book, where it is 1).
    word_penalty : float
        Cost added per word, except for <s> and </s> (not in the book).
    slack_decay : float
        Factor per frame by which a token's language-model slack shrinks (CNTK book 6.1); 0 turns slack off.
    new_sentence : float, optional
        Cost of a new sentence within an utterance: where a sentence has ended, the search may begin again in the start
        state of the graph, with the history of <s> (not in the book).  None: an utterance is one sentence.
    lm_lookahead : bool
        For pruning, add to each token the lowest n-gram cost of the words that it can reach, given its history.
        Without pruning it does not change the result.
    lattice_beam : float, optional
        Keep a lattice of all paths within this cost of the best; None keeps none.
    widenings : int
        Maximum number of times that an utterance is decoded again, with beam and max_tokens doubled each time, while no
        path reaches a final state.
    partial : bool
        If no path reaches a final state, return the best unfinished path.

    Raises
    ------
    ConfigError
        For a value out of range.
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
    new_sentence: float | None = None
    lm_lookahead: bool = True
    lattice_beam: float | None = None
    widenings: int = 2
    partial: bool = True

    def __post_init__(self) -> None:
        for name, low, high in (
            ("acweight", 0.0, math.inf),
            ("beam", 0.0, math.inf),
            ("max_tokens", 1, 2**31 - 1),
            ("word_end_beam_frac", 0.0, math.inf),
            ("sil_cost", -1e30, 1e30),
            ("lm_scale", 0.0, 1e30),
            ("word_penalty", -1e30, 1e30),
            ("slack_decay", 0.0, 0.999999),
            ("new_sentence", 0.0, 1e30),
            ("lattice_beam", 0.0, math.inf),
            ("widenings", 0, 20),
        ):
            value = getattr(self, name)
            if value is not None and not low <= value <= high:  # NaN fails too
                raise ConfigError(f"search option {name}: {value}; expected {_range_text(low, high)}")
        if math.isinf(self.acweight):
            raise ConfigError("search option acweight: inf; expected a finite number")


def _range_text(low: float, high: float) -> str:
    return f"at least {low:g}" if high >= 1e30 else f"{low:g} to {high:g}"
