"""The options of the jobs on lattices."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from decoder.lm.options import HistoryOptions, NetworkOptions, SomeModel
from readers.config.options import Options, group, option

LATTICES = (
    "PREFIX.index of argon, a lattice file (*.lat, *.slf, also with .gz), or a directory of them, named after their "
    "utterances"
)


class _WithOutput(Options):
    """Options that name an output file, an MLF, or both."""

    output: Path | None
    mlf: Path | None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("output", bool(self.output or self.mlf), "is missing; expected an output file: it or {mlf}")


@dataclass(frozen=True, kw_only=True)
class SomeLattices(Options):
    """Lattices, SLF or in archives of Kaldi."""

    lattices: Path = option(help=LATTICES, metavar="INDEX")
    kaldi_words: Path | None = option(
        None,
        "symbol table of the words of Kaldi's lattices, of which {lattices} is an archive, or a directory of lat.*",
        metavar="WORDS.TXT",
    )
    acoustic_scale: float = option(0.1, "acoustic scale of Kaldi's lattices, which do not tell it", above=0)
    frame_period: float = option(0.01, "seconds of a frame of Kaldi's lattices", above=0)


@dataclass(frozen=True, kw_only=True)
class LatticeFiles(SomeLattices):
    """The lattices that a job reads, and the report of the job."""

    report: Path | None = option(None, "file that lists the lattices that failed")


@dataclass(frozen=True, kw_only=True)
class WordsOptions(LatticeFiles, _WithOutput):
    """Options of words with times and confidences.

    Raises
    ------
    OptionFault
        For a value out of range, and without an output file.
    """

    scale: float = option(1.0, "scale of all scores; a scale below 1 lowers the confidences", above=0)
    output: Path | None = option(None, "output file", flag="-o --output")
    by: Literal["best", "consensus"] = option("best", "words of the best path (default), or of the consensus network")
    mlf: Path | None = option(None, "MLF for words and confidences")


@dataclass(frozen=True, kw_only=True)
class ConsensusOptions(LatticeFiles):
    """Options of consensus networks."""

    scale: float = option(1.0, "scale of all scores; a scale below 1 lowers the confidences", above=0)
    output: Path = option(help="output file", flag="-o --output")


@dataclass(frozen=True, kw_only=True)
class OracleOptions(LatticeFiles):
    """Options of the lowest error rate that lattices allow."""

    reference: Path = option(help="reference transcripts", metavar="MLF")
    level: int = option(0, "MLF level that holds the words", least=0)
    mlf: Path | None = option(None, "MLF for the words of the oracle paths")


@dataclass(frozen=True, kw_only=True)
class WrittenLattices(LatticeFiles):
    """Options of a job that writes lattices."""

    prefix: str = option(help="write PREFIX1.lat, ... and PREFIX.index", metavar="PREFIX")

    @property
    def index(self) -> Path:
        """The index of the lattices that are written."""
        return Path(f"{self.prefix}.index")


@dataclass(frozen=True, kw_only=True)
class DeterminiseOptions(WrittenLattices):
    """Options of determinisation."""


@dataclass(frozen=True, kw_only=True)
class RescoreOptions(WrittenLattices, SomeModel):
    """Options of rescoring lattices with another n-gram, a network, or first one and then the other.

    Raises
    ------
    OptionFault
        For a value out of range, and without a model.
    """

    lm: Path | None = option(None, "the new language model", metavar="ARPA")
    lm_scale: float | None = option(
        None, "scale of the new model (default: that of the lattices)", least=0, metavar="S"
    )
    mlf: Path | None = option(None, "MLF for words and confidences of the new best paths")
    network: NetworkOptions = group(NetworkOptions, heading="network as a language model")
    histories: HistoryOptions = group(HistoryOptions)


@dataclass(frozen=True, kw_only=True)
class CombineOptions(WrittenLattices):
    """Options of joining the lattices of several systems.

    Raises
    ------
    OptionFault
        For a value out of range, and for a wrong number of weights.
    """

    others: tuple[Path, ...] = option(
        help="lattices of another system, with the same utterances; may be repeated", flag="--with", metavar="INDEX"
    )
    weights: tuple[float, ...] | None = option(
        None, "shares of the systems in the probability (default: equal)", metavar="W,W", separator=",", above=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        count = 1 + len(self.others)
        fine = self.weights is None or len(self.weights) == count
        expected = f"expected {count} numbers: of {{lattices}}, then of each {{others}}"
        self.require("weights", fine, f"has {len(self.weights or ())}; {expected}")


@dataclass(frozen=True, kw_only=True)
class KaldiOptions(LatticeFiles):
    """Options of lattices in Kaldi's format."""

    words: Path = option(help="symbol table words.txt: read if present, else written")
    output: Path = option(help="output file", flag="-o --output")
    binary: bool = option(False, "write the binary form, not text")
    plain: bool = option(False, "write lattices that are not compact")


@dataclass(frozen=True, kw_only=True)
class OpenFstOptions(WrittenLattices):
    """Options of word acceptors for OpenFst."""

    prefix: str = option(help="write PREFIX1.txt, ... and PREFIX.index", metavar="PREFIX")
    words: Path = option(help="symbol table words.txt: read if present, else written")
    binary: bool = option(False, "write PREFIX1.fst, ... in OpenFst's binary format")


@dataclass(frozen=True, kw_only=True)
class NbestOptions(SomeLattices):
    """Options of n-best lists."""

    number: int = option(100, "hypotheses per lattice", flag="-n --number", least=1)
    output: Path = option(help="file for the n-best lists", flag="-o --output")


@dataclass(frozen=True, kw_only=True)
class RescoreListsOptions(_WithOutput):
    """Options of rescoring n-best lists.

    Raises
    ------
    OptionFault
        For a value out of range, and without an output file.
    """

    nbest: Path = option(help="n-best lists: `utterance acoustic lm number word ...`")
    lm: Path | None = option(
        None, "n-gram to interpolate with the network, or to use alone without {model} (default: scores of the lists)"
    )
    lm_scale: float = option(1.0, "weight of the language model", least=0)
    word_penalty: float = option(0.0, "cost added per word")
    silence: tuple[str, ...] = option(
        (), "words, separated by commas, that the new models do not score", separator=",", metavar="WORDS"
    )
    output: Path | None = option(None, "file for the lists, best hypothesis first", flag="-o --output")
    mlf: Path | None = option(None, "MLF for the words of the best hypotheses")
    network: NetworkOptions = group(NetworkOptions, heading="network as a language model")
