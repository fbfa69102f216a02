"""The options of denominator lattices, which need no kernels."""

from dataclasses import dataclass
from pathlib import Path

from readers.config.options import Options, group, option
from readers.dictionaries.options import DictionaryOptions

SEARCH = ("acweight", "lm_scale", "word_penalty", "beam", "max_tokens", "lattice_beam")


@dataclass(frozen=True, kw_only=True)
class TranscriptDictionary(DictionaryOptions):
    """The pronunciations of transcripts."""

    dict: Path | None = option(None, "pronunciations of these words; without it, they are phones")


@dataclass(frozen=True, kw_only=True)
class DenominatorOptions(Options):
    """What the lattices of training utterances are made of."""

    features: Path = option(help="list of the utterances' feature files", metavar="SCP", heading="files")
    model: Path = option(help="acoustic model")
    ivectors: Path | None = option(None, "i-vectors of the utterances, if it takes them", metavar="SCP")
    output_node: str | None = option(None, "its log-likelihoods (ScaledLogLikelihood)", metavar="NODE")
    window: int | None = option(None, "frames in its input (default: as trained)")
    graph: Path = option(help="decoding graph in an output directory of argonaut graph")
    lm: Path = option(help="the weak language model of the graph", metavar="ARPA")
    cntkmap: Path | None = option(None, "network output of each HMM state (cntkmap beside {graph})")
    words: Path = option(help="the words of the utterances", metavar="MLF")
    dictionary: TranscriptDictionary = group(TranscriptDictionary)
    alignment: Path | None = option(None, "states of the utterances; without it, {words} are aligned", metavar="MLF")
    out: Path = option(help="directory for the results", metavar="DIR")
    lattice_beam: float = option(
        8.0,
        "keep paths whose cost exceeds the best by at most X",
        heading="search (options that are not given have the values stored in the graph; costs are -ln probabilities)",
        least=0,
        most=float("inf"),
    )
    density: float = option(200.0, "prune lattices to N arcs per frame", metavar="N", least=1, most=float("inf"))
    acweight: float | None = option(None, "acoustic scale of the search")
    lm_scale: float | None = option(None, "language model scale of the search")
    word_penalty: float | None = option(None, "cost per word in the search")
    beam: float | None = option(None, "beam of the search, above {lattice_beam}", most=float("inf"))
    max_tokens: int | None = option(None, "maximum number of tokens per frame")
    sil_prob: float | None = option(
        None, "probability of silence between the words of an alignment", metavar="P", above=0, below=1
    )

    @property
    def outputs(self) -> Path:
        """The file with the network output of each HMM state."""
        return self.cntkmap or self.graph.parent / "cntkmap"

    @property
    def inputs(self) -> dict[str, Path | None]:
        """The files that are read, by the names of their options."""
        names = ("features", "model", "ivectors", "graph", "lm", "words", "alignment")
        files = {name: getattr(self, name) for name in names}
        return files | {"cntkmap": self.outputs, "dict": self.dictionary.dict, "map_phones": self.dictionary.map_phones}
