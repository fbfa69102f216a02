"""Action trainEncoderDecoder, or doEncoderDecoder: two networks trained jointly on pairs of sequences.

Source: CNTK book 2.7 and 3.5.11; the names are those of CNTK in 2015.
"""

from typing import Any

from acoustic.actions.base import Action
from acoustic.actions.train import Train
from acoustic.descriptions.builders.encoder_decoder import DECODER_BLOCK, ENCODER_BLOCK, pair_options
from acoustic.network.network import Network
from acoustic.nodes.properties import CROSS_ENTROPY
from acoustic.training.evaluation import perplexity
from readers.common.report import Log, Progress
from readers.config.config import Config
from readers.errors import ConfigError, ModelError
from readers.minibatches.base import reader_class
from readers.sources.sentences.pair_reader import PairReader
from readers.sources.sentences.sentences import SentenceReader

PAIRS = {"reader": ("encoderReader", "decoderReader"), "cvReader": ("encoderCVReader", "decoderCVReader")}


class TrainEncoderDecoder(Train):
    """Trains an encoder and a decoder as one model, in which the encoder's nodes are called encoder.NAME.

    Reads the blocks EncoderNetworkBuilder, DecoderNetworkBuilder, SGD, encoderReader, decoderReader and, optionally,
    encoderCVReader and decoderCVReader.
    """

    blocks = (ENCODER_BLOCK, DECODER_BLOCK, "SGD", *PAIRS["reader"], *PAIRS["cvReader"])
    one_reader = False

    def _read_start(self, config: Config) -> None:
        if self.training.adaptation_weight:
            where = config.block("SGD").where("adaptationRegType")
            raise ConfigError(
                f"{where}: KL adaptation of an encoder-decoder network is not built; expected no adaptationRegType"
            )
        self.pair = pair_options(config)
        self.pair.build()  # reports what does not fit before anything starts

    def network(self) -> Network:
        network = self.pair.build(self.common.precision, self.common.device, self.common.seed)
        if network.precomputed():
            raise ModelError(
                f"{network.precomputed()[0].where}: in an encoder-decoder network; expected inputs without statistics"
            )
        return network

    def data_blocks(self) -> list[str]:
        return [half for halves in PAIRS.values() for half in halves]

    def _reader_blocks(self, config: Config) -> list[str]:
        return pair_blocks(config)

    def _open(self, name: str, log: Log, progress: Progress, network: Network) -> PairReader:
        return open_pairs(self, name, log, progress)

    def _epoch_done(self, row: dict[str, Any], network: Network, log: Log) -> None:
        parts = []
        for title, figures in (("[Training]", row["training"]), ("[Validate]", row.get("validation", {}))):
            values = [value for name, value in figures.items() if network[name].has(CROSS_ENTROPY)]
            parts += [f"{title} perplexity = {perplexity(value):.6g}" for value in values]
        if parts:
            log(f"Finished Epoch[{row['epoch']:2d} of {self.training.max_epochs}]: {'; '.join(parts)}")


def pair_blocks(config: Config) -> list[str]:
    """Return which of PAIRS a command has. Raises ConfigError for half a pair, and for other readers than of text."""
    halves = PAIRS["cvReader"]
    missing = [half for half in halves if not config.has(half)]
    if len(missing) == 1:
        present_half = halves[1 - halves.index(missing[0])]
        raise ConfigError(
            f"{config.where(present_half)}: {present_half} without {missing[0]}; expected both, or neither"
        )
    names = ["reader"] if missing else ["reader", "cvReader"]
    for half in (half for name in names for half in PAIRS[name]):
        text_reader(config.block(half), half)
    return names


def text_reader(block: Config, name: str) -> type[SentenceReader]:
    """Return the class of a reader block. Raises ConfigError for one that does not read sentences of text."""
    kind = reader_class(block)
    if not (isinstance(kind, type) and issubclass(kind, SentenceReader)):
        raise ConfigError(
            f"{block.where('readerType')}: {name}: {kind.__name__}; expected LMSequenceReader or LUSequenceReader"
        )
    return kind


def open_pairs(action: Action, name: str, log: Log, progress: Progress, order: str | None = None) -> PairReader:
    """Open the readers of both sides as one; `order` is that of Action.open_reader."""
    encoder, decoder = (action.open_reader(half, log, progress, order) for half in PAIRS[name])
    return PairReader(encoder, decoder, action.common.seed)
