"""The options of lattice-free MMI's graphs, which need no kernels."""

from dataclasses import dataclass
from pathlib import Path

from decoder.tying.state_files import StateFiles
from readers.config.options import Options, group, option
from readers.dictionaries.options import DictionaryOptions

MOST_TOLERANCE = 50  # frames of the features


@dataclass(frozen=True)
class ChainTiming(Options):
    """The rate of the network's output, and how exact phone boundaries are."""

    subsampling: int = option(3, "input frames of one output", least=1, most=100)
    tolerance: int = option(
        5, "input frames by which phones may begin earlier and end later than in the alignment", most=MOST_TOLERANCE
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        expected = f"{self.subsampling // 2} to {MOST_TOLERANCE} for a {{subsampling}} of {self.subsampling}"
        fine = self.subsampling <= 2 * self.tolerance + 1
        self.require("tolerance", fine, f"is {self.tolerance}; expected {expected}")

    def output_frames(self, num_frames: int) -> int:
        """Return the number of output frames for a number of input frames."""
        return -(-num_frames // self.subsampling)


@dataclass(frozen=True)
class PhoneLmOptions(Options):
    """Options of the phone language model."""

    order: int = option(4, "order of the phone language model", least=2, most=10)
    unpruned_order: int | None = option(
        None,
        "histories of this order, of one phone less, are never merged (default: {order}, 3 at most)",
        least=2,
        flag=None,
    )
    num_extra_states: int = option(
        2000,
        "states of the phone language model beside the histories that are never merged: those of two phones",
        flag="--extra-states",
        least=0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        unpruned = min(3, self.order) if self.unpruned_order is None else self.unpruned_order
        self.require(
            "unpruned_order", unpruned <= self.order, f"is {unpruned}; expected at most {{order}}, {self.order}"
        )
        object.__setattr__(self, "unpruned_order", unpruned)


@dataclass(frozen=True)
class SilenceOptions(Options):
    """Where silence is likely, for the phone language model; numerators allow silence between all words.

    Raises
    ------
    OptionFault
        For values that are not probabilities.
    """

    edges: float = option(
        0.8, "probability of silence at both ends of an utterance", flag="--edge-sil-prob", metavar="P", least=0, most=1
    )
    between: float = option(
        0.1,
        "probability of silence between words in the phone language model",
        flag="--sil-prob",
        metavar="P",
        least=0,
        most=1,
    )


@dataclass(frozen=True, kw_only=True)
class ChainStates(StateFiles):
    """The states of an alignment, if there is one."""

    def __post_init__(self) -> None:
        if any(path is not None for path in (self.states, self.state_list, self.trees)):
            super().__post_init__()
        else:
            Options.__post_init__(self)


@dataclass(frozen=True, kw_only=True)
class ChainDictionary(DictionaryOptions):
    """The pronunciations of transcripts."""

    dict: Path | None = option(None, "pronunciations of these words")


@dataclass(frozen=True, kw_only=True)
class ChainOptions(Options):
    """What lattice-free MMI's graphs are made of: an alignment, or transcripts, a dictionary and feature files.

    Raises
    ------
    OptionFault
        For a value out of range, and for files that are missing or exclude each other.
    """

    alignment: Path | None = option(
        None, "state alignment of the utterances", metavar="MLF", heading="from an alignment"
    )
    files: ChainStates = group(ChainStates)
    words: Path | None = option(
        None,
        "instead of {alignment}: the words of the utterances",
        metavar="MLF",
        heading="from transcripts (flat start)",
    )
    dictionary: ChainDictionary = group(ChainDictionary)
    features: Path | None = option(None, "list of the HTK feature files, for their numbers of frames", metavar="SCP")
    silences: SilenceOptions = group(SilenceOptions)
    tied: Path | None = option(
        None,
        "results of `tie` for exp/chain/states.mlf: outputs of phones in context",
        metavar="DIR",
        heading="outputs and graphs",
    )
    silence: str = option("sil", "context at both ends of an utterance", metavar="PHONE")
    timing: ChainTiming = group(ChainTiming)
    phone_lm: PhoneLmOptions = group(PhoneLmOptions)
    out: Path = option(help="directory for the results", metavar="DIR")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("alignment", bool(self.alignment or self.words), "is missing; expected it or {words}")
        self.require("alignment", not (self.alignment and self.words), "is given beside {words}; expected one of them")
        has_states = bool(self.files.file or not self.alignment)
        self.require("states", has_states, "is missing; expected it or {state_list}")
        complete = bool((self.dictionary.dict and self.features) or not self.words)
        self.require("words", complete, "is given without {dict} and {features}; expected both")
        is_other = self.tied is None or self.tied.resolve() != self.out.resolve()
        self.require("tied", is_other, "is the directory of {out}, too; expected two directories")
