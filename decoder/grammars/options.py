"""The options of a decoding graph from files: phone models, a dictionary, and a language model or a grammar."""

from dataclasses import dataclass
from pathlib import Path

from decoder.g2p.guessing import CompletedDictionary
from decoder.graph.options import GraphOptions
from readers.config.options import Options, group, option


@dataclass(frozen=True, kw_only=True)
class GraphDictionary(CompletedDictionary):
    """The dictionary of a graph, and a model that guesses the pronunciations of words that it lacks."""

    dict: Path | None = option(None, "dictionary (default: loop over all phones)")
    g2p: Path | None = option(
        None,
        "guess the pronunciations of words of the language model or grammar that {dict} lacks, with a model of "
        "`argonaut g2p train`, and write them to a dictionary for review",
        metavar="MODEL",
    )


@dataclass(frozen=True, kw_only=True)
class GraphFiles(Options):
    """What a decoding graph is made of: phone models, a dictionary, and a language model or a grammar.

    Raises
    ------
    OptionFault
        For a value out of range, for files that are missing and for those that exclude each other.
    """

    states: Path | None = option(
        None, "state map: lines `model s1 s2 s3` (default: made from {state_list})", heading="files"
    )
    state_list: Path | None = option(None, "state of each network output, one per line, for the cntkmap")
    transitions: Path | None = option(None, "lines `[state] ln_self ln_forward`")
    alignment: tuple[Path, ...] = option(
        (),
        "estimate the transitions from this state alignment instead: an MLF, or archives of Kaldi that contain the "
        "line numbers of {state_list}, from 0",
        separator=" ",
    )
    dictionary: GraphDictionary = group(GraphDictionary)
    lm: Path | None = option(None, "ARPA language model, plain or .gz")
    lm_collection: Path | None = option(None, "instead of {lm}: lines `ARPA-file weight`, interpolated")
    loop: bool = option(
        False, "instead of {lm}: a loop over all words, or phones without {dict}, with equal probabilities"
    )
    grammar: Path | None = option(None, "instead of {lm}: the sentences of a grammar")
    out: Path | None = option(None, "directory for the results", metavar="DIR")
    mmf: tuple[Path, ...] = option(
        (),
        "HTK model definitions (text), read in this order",
        separator=" ",
        heading="triphones: an HTK model set, or the tables extracted from one",
    )
    hmm_list: Path | None = option(None, "lines `logical physical` (default: the models of {mmf})")
    trees: Path | None = option(None, "decision trees of HHEd's ST command, for unseen triphones")
    hmms: Path | None = option(None, "tables of the model set: written with {mmf}, else read", metavar="DIR")
    tokens: Path | None = option(
        None,
        "instead of HMM states: the outputs of the network, lines `token number` or one token each; words that {dict} "
        "lacks, or all without it, are spelled with as few tokens as possible",
        heading="CTC: a network whose outputs are tokens and a blank",
    )
    blank: str | None = option(
        None,
        "name of the blank (default: <blk>, <blank>, <pad> or the like; else an output after the last token)",
        metavar="TOKEN",
    )
    graph: GraphOptions = group(GraphOptions, heading="graph")

    @property
    def from_model_set(self) -> bool:
        """Whether the states are those of an HTK model set."""
        return bool(self.mmf or self.hmms or self.trees)

    @property
    def only_tables(self) -> bool:
        """Whether the tables of a model set are all that is made."""
        return bool(self.mmf and self.hmms and not self._language_models)

    @property
    def _language_models(self) -> list[str]:
        """The options that give the language model."""
        return [name for name in ("lm", "lm_collection", "loop", "grammar") if getattr(self, name)]

    def __post_init__(self) -> None:
        super().__post_init__()
        has_states = self.from_model_set or bool(self.states or self.state_list)
        self.require(
            "states", has_states or bool(self.tokens),
            "is missing; expected HMM states: it, {state_list}, {mmf} or {hmms}; or {tokens}",
        )  # fmt: skip
        self.require("blank", self.blank is None or bool(self.tokens), "is given without {tokens}; expected it, too")
        for name in ("states", "state_list", "transitions", "alignment", "mmf", "hmms", "trees", "grammar"):
            excluded = bool(self.tokens and getattr(self, name))
            self.require(name, not excluded, "is given beside {tokens}; expected one of them")
        self.require(
            "trees", bool(not self.trees or self.mmf or self.states),
            "is given without {mmf} or {states}; expected one of them, for the silence states",
        )  # fmt: skip
        models = self._language_models
        beside = models[1] if len(models) > 1 else ""
        self.require(models[0] if models else "lm", not beside, f"is given beside {{{beside}}}; expected one of them")
        tables = ", or {hmms} for the tables alone" if self.mmf else ""
        expected = "it, {lm_collection}, {grammar}, or {loop} for a loop in which all words have the same probability"
        self.require("lm", bool(models) or self.only_tables, f"is missing; expected {expected}{tables}")
        self.require("out", bool(self.out) or self.only_tables, "is missing; expected a directory for the graph")
        guesses = bool(self.tokens and self.dictionary.g2p)
        self.require("g2p", not guesses, "is given beside {tokens}, which spell words; expected one of them")
        self.require(
            "loop", not (self.loop and self.tokens) or bool(self.dictionary.dict),
            "is given beside {tokens} without {dict}; expected a dictionary, for its words",
        )  # fmt: skip
        self.require(
            "g2p", not (self.loop and self.dictionary.g2p),
            "is given beside {loop}, whose words are those of {dict}; expected one of them",
        )  # fmt: skip
        has_dictionary = bool(self.dictionary.dict or not self.grammar)
        self.require("grammar", has_dictionary, "is given without {dict}; expected a dictionary, which a grammar needs")
        needed = not (self.from_model_set or self.tokens)
        has_both = bool(self.transitions and self.alignment)
        neither = not (self.transitions or self.alignment)
        self.require("transitions", not has_both, "is given beside {alignment}; expected one of them")
        self.require("transitions", not (needed and neither), "is missing; expected it or {alignment}")
