"""Options of the search (CNTK book 6.1.3.4)."""

import math
from dataclasses import dataclass

from readers.config.options import Options, option

NEW_SENTENCE_COST = 5.0  # few more tokens than with one sentence
LARGEST = 1e30  # cost or scale


@dataclass(frozen=True)
class SearchOptions(Options):
    """Options of the search; the defaults are those of the CNTK book where it gives one.

    Raises
    ------
    OptionFault
        For a value out of range.
    """

    acweight: float = option(0.0667, "weight of the acoustic log-likelihoods (natural log)", least=0)
    beam: float = option(
        15.0, "beam, in cost (weighted -ln): a token is pruned if its cost exceeds the lowest of its frame by more",
        least=0, most=math.inf,
    )  # fmt: skip
    max_tokens: int = option(5000, "maximum number of tokens kept in a frame", least=1)
    word_end_beam_frac: float = option(
        0.33333, "the beam right after a word arc, as a fraction of {beam}", least=0, most=math.inf
    )
    sil_cost: float = option(
        1.0, "cost added once whenever a path enters a silence model from any other model", least=-LARGEST,
        most=LARGEST,
    )  # fmt: skip
    silence: tuple[str, ...] | None = option(
        None, "names of the silence models (default: sil, sp and the models that realise <s>)"
    )
    lm_scale: float = option(
        1.0, "weight of the language model (not in the book, where it is 1)", least=0, most=LARGEST
    )
    word_penalty: float = option(
        0.0, "cost added per word, except for <s> and </s> (not in the book)", least=-LARGEST, most=LARGEST
    )
    slack_decay: float = option(
        0.8, "factor per frame by which a token's language-model slack shrinks (CNTK book 6.1); 0 turns slack off",
        least=0, most=0.999999,
    )  # fmt: skip
    new_sentence: float | None = option(
        None,
        "cost of a new sentence within an utterance: where a sentence has ended, the search may begin again in the "
        "start state of the graph, with the history of <s> (not in the book); None: an utterance is one sentence",
        least=0, most=LARGEST,
    )  # fmt: skip
    lm_lookahead: bool = option(
        True,
        "for pruning, add to each token the lowest n-gram cost of the words that it can reach, given its history; "
        "without pruning it does not change the result",
    )
    lookahead_sums: bool = option(
        False,
        "look ahead by the sum of the probabilities of the words that can be reached, as Kaldi does, not by the best",
    )
    lattice_beam: float | None = option(
        None, "keep a lattice of all paths within this cost of the best; None keeps none", least=0, most=math.inf
    )
    widenings: int = option(
        2,
        "maximum number of times that an utterance is decoded again, with {beam} and {max_tokens} doubled each time, "
        "while no path reaches a final state", least=0, most=20,
    )  # fmt: skip
    partial: bool = option(True, "if no path reaches a final state, return the best unfinished path")
