"""The options of graph construction, which need no kernels."""

from dataclasses import dataclass
from typing import Literal, get_args

from readers.config.options import Options, option

SHORT_PAUSE = "sp"
SilenceTopology = Literal["left-to-right", "any-order"]
SILENCE_TOPOLOGIES: tuple[SilenceTopology, ...] = get_args(SilenceTopology)
# Search options that a graph may carry, of decoder.search.SearchOptions.
TUNED_OPTIONS = (
    *("acweight", "beam", "max_tokens", "word_end_beam_frac", "sil_cost", "lm_scale", "word_penalty", "slack_decay"),
    "lookahead_sums",
)


@dataclass(frozen=True, kw_only=True)
class GraphOptions(Options):
    """Options of graph construction."""

    silence: str | None = option(
        None, "silence model (default: pronunciation of <s> in the dictionary)", metavar="PHONE"
    )
    optional_silence: bool | None = option(
        None, "allow silence between words, or do not (default: allowed, but not in a phone loop)"
    )
    silence_probability: float | None = option(
        None,
        "probability of silence between words for which the dictionary has none (default: silence has no cost)",
        flag="--sil-prob",
        metavar="P",
        above=0,
        below=1,
    )
    silence_topology: SilenceTopology = option(
        "left-to-right",
        "any-order: all transitions between the silence states are allowed, as in HTK's silence model with skips",
        flag="--sil-topology",
    )
    short_pause: str | None = option(
        None,
        "short-pause model for triphones (default: sp, if present); in a phone loop it is a word if the language model "
        "has it",
        metavar="NAME",
    )
    pronunciation_scale: float = option(1.0, "scale of ln pronunciation probabilities", flag="--pron-scale", least=0)
    silence_scale: float = option(
        1.0, "scale of ln silence probabilities of the dictionary; 0 ignores them", flag="--sil-scale", least=0
    )
    drop_missing: bool = option(
        False,
        "leave out words that are not in the language model, and pronunciations with phones that have no model",
    )
