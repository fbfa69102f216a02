"""The second pass of a recogniser: a network as language model rescores the lattice of each utterance."""

import json
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from acoustic.scoring.word_scorer import WordScorer
from decoder.lattices.consensus import consensus
from decoder.lattices.posteriors import confident_words
from decoder.lattices.rescoring import MAX_NODES
from decoder.lattices.second_pass import rescore_with_network
from decoder.lm.options import HistoryOptions
from decoder.results.live_recognition import Rescored
from decoder.results.outputs import slf_lattice
from decoder.search.decoder import DecodingResult
from readers.common.file_part import FilePart
from readers.common.text import parse_object
from readers.config.options import option
from readers.errors import ConfigError, FormatError

UNKNOWN = "<unk>"


@dataclass(frozen=True, kw_only=True)
class SecondPassOptions(HistoryOptions):
    """How a recogniser rescores its lattices.

    Raises
    ------
    OptionFault
        For a value out of range.
    """

    weight: float = option(0.5, "share of the network in ln P of a word", least=0, most=1)
    beam: float = option(8.0, "links are left out whose best path scores worse than the best one by more", least=0)
    consensus: float = option(
        0.0,
        "words with the fewest expected errors, the scores multiplied by this number; 0: words of the best path",
        least=0,
    )

    def dump(self) -> bytes:
        """Return the options as JSON, without consensus if there is none, as in earlier versions."""
        content = asdict(self)
        if not self.consensus:
            del content["consensus"]
        return json.dumps(content).encode()

    @classmethod
    def parse(cls, text: bytes, where: str) -> Self:
        """Return the options in JSON.  Raises FormatError for a missing or unknown field, and a wrong value."""
        content = {"consensus": 0.0} | parse_object(text, where)  # earlier bundles lack it
        kinds = {"weight": (int, float), "order": (int,), "beam": (int, float), "consensus": (int, float)}
        if content.keys() != kinds.keys() or any(type(content[name]) not in kinds[name] for name in kinds):
            raise FormatError(f"{where}: {str(content)[:60]}; expected the numbers weight, order, beam and consensus")
        try:
            return cls(**content)
        except ConfigError as fault:
            raise FormatError(f"{where}: {fault}") from fault


class SecondPass:
    """Rescores lattices; any number of threads may call it.

    Parameters
    ----------
    model : str, Path or FilePart
        Network that was trained with LMSequenceReader; it knows its vocabulary.
    options : SecondPassOptions, optional
    max_nodes : int
        The most nodes of a lattice.

    Raises
    ------
    ModelError
        For a network that is no language model.
    OSError
    """

    def __init__(
        self, model: str | Path | FilePart, options: SecondPassOptions | None = None, max_nodes: int = MAX_NODES
    ):
        self.options = options or SecondPassOptions()
        self.max_nodes = max_nodes
        self._scorer = WordScorer(model, unknown=UNKNOWN)
        self._lock = threading.Lock()  # the network has one state

    def rescored(self, result: DecodingResult, period: int) -> Rescored | None:
        """Return the words and the lattice of an utterance; None if it has no lattice, or no path to its end.

        period: of the frames in 100 ns units.
        """
        if result.lattice is None or result.reason or result.decoder is None:
            return None
        options = result.decoder.options
        lattice = slf_lattice(result.lattice, result.decoder.graph, options, period=period)
        bonus = result.lattice.bonus / options.lm_scale if options.lm_scale else None
        with self._lock:
            lattice = rescore_with_network(
                lattice, self._scorer, self.options.weight, self.options, self.max_nodes, bonus=bonus
            )
        scale = self.options.consensus
        return Rescored(consensus(lattice, scale).words if scale else confident_words(lattice), lattice)
