"""Action testEncoderDecoder: decode source sequences by beam search (CNTK book 2.7 and 3.5.11)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from acoustic.actions.base import CommonSettings, ModelOptions, NetworkAction
from acoustic.actions.encoder_decoder import PAIRS, open_pairs, text_reader
from acoustic.actions.write import refuse_inputs
from acoustic.engine.inputs import NetworkInputs, check_inputs, check_vocabularies
from acoustic.engine.pair_engine import make_engine
from acoustic.network.network import Network
from acoustic.nodes.properties import CROSS_ENTROPY
from acoustic.scoring.beam_search import BeamSearch, Hypothesis
from acoustic.training.evaluation import result_line, sum_figures
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config
from readers.config.options import Options, option
from readers.errors import ConfigError, ModelError
from readers.language.vocabulary_record import VocabularyRecord
from readers.minibatches.base import Utterance, open_writer, writer_class
from readers.minibatches.indicators import one_hot
from readers.minibatches.sequence_layout import SequenceLayout
from readers.sources.sentences.lm_sequence_reader import LMSequenceReader, LMSequenceWords
from readers.sources.sentences.pair_reader import ENCODER, PairReader, side_by_side
from readers.sources.sentences.sentences import SentenceReader

AT_ONCE = 64  # sequences decoded side by side
MOST_HYPOTHESES = 1000  # of a sequence, all computed at once


@dataclass(frozen=True, kw_only=True)
class TestEncoderDecoderOptions(ModelOptions):
    """Options of action testEncoderDecoder."""

    __test__ = False  # not a test, despite its name

    names: tuple[str, ...] = option(
        (), "output node, with a value for each word; by default that of the model", cntk="outputNodeNames"
    )
    minibatch_size: Sequence[int] = option(
        (4096,), "frames that are decoded side by side; the first one counts", unit="frames", least=1
    )
    width: int = option(
        8, "hypotheses of a sequence", unit="hypotheses", least=1, most=MOST_HYPOTHESES, cntk="maxHypotheses"
    )
    max_length: int = option(
        0, "words of the longest output; 0: twice those of the source plus 10", unit="words", least=0
    )
    beam: float = option(
        1.0, "beam, in natural logarithms below the best hypothesis", least=0, most=math.inf, cntk="beamWidth"
    )


@dataclass(frozen=True, kw_only=True)
class ModelHalves(Options):
    """The names that CNTK has for the model of both networks."""

    encoder: Path = option(help="the model, with decoderModelPath", cntk="encoderModelPath")
    decoder: Path = option(help="the same model", cntk="decoderModelPath")

    def __post_init__(self) -> None:
        super().__post_init__()
        values_text = f"is {self.decoder} and {{encoder}} {self.encoder}"
        text = f"{values_text}; expected one file, in which trainEncoderDecoder has put both, or modelPath"
        self.require("decoder", self.encoder == self.decoder, text)


class TestEncoderDecoder(NetworkAction):
    """Decodes the sequences of encoderReader and compares the outputs with the targets of decoderReader.

    Reads the blocks encoderReader, decoderReader and writer. An LMSequenceReader without `file` as decoderReader gives
    only the words; with it, the outputs are compared with its targets. CNTK's encoderModelPath and decoderModelPath are
    one file here.
    """

    __test__ = False  # not a test, despite its name
    options = TestEncoderDecoderOptions
    model_path: Path
    blocks = (*PAIRS["reader"], "writer")

    def __init__(self, config: Config, common: CommonSettings):
        super().__init__(config, common)
        encoder, decoder = (config.block(name) for name in PAIRS["reader"])
        text_reader(encoder, "encoderReader")
        kind = text_reader(decoder, "decoderReader")
        self.has_targets = decoder.has("file") or not issubclass(kind, LMSequenceReader)
        self.has_writer = config.has("writer")
        if self.has_writer:
            writer_class(config.block("writer"))
        elif not self.has_targets:
            raise ConfigError(
                f"{config.where()}: {config.full_name()} has no writer, and decoderReader no file; expected a writer "
                "for the outputs, or targets to compare them with"
            )

    def _given(self, config: Config) -> dict[str, Any]:
        has_halves = any(config.has(key) for key in ModelHalves.option_keys())
        return {"model_path": ModelHalves.from_block(config).encoder} if has_halves else {}

    def data_blocks(self) -> list[str]:
        return [*PAIRS["reader"]] if self.has_targets else [PAIRS["reader"][0]]

    def roots(self, network: Network) -> list[str]:
        names = self.settings.names or network.outputs
        if len(names) != 1:
            raise ModelError(
                f"{self.model_path}: output nodes {', '.join(names) or 'none'}; expected outputNodeNames with the one "
                "that has a value for each word"
            )
        return [network[names[0]].name]

    def run(self, log: Log, progress: Progress) -> RunReport:
        network = self.network()
        (output,) = self.roots(network)
        pairs = open_pairs(self, "reader", log, progress, "None") if self.has_targets else None
        if pairs is not None:
            encoder = pairs.encoder
            decoder = pairs.decoder
            numbers = np.arange(len(encoder.keys))[np.sort(pairs.sources)]
            self._evaluate(network, pairs, log)
        else:
            source_reader = self.open_reader("encoderReader", log, progress, "None")
            assert isinstance(source_reader, SentenceReader)  # by text_reader
            encoder = source_reader
            block = self.config.block("decoderReader")
            decoder = LMSequenceWords(block)
            decoder.named_files = block.files
            inputs = NetworkInputs(network, [*network.features, *network.labels])
            check_vocabularies(inputs, decoder, "decoderReader")
            numbers = np.arange(len(encoder.keys))
        search = self._search(network, output, decoder)
        check_inputs(search.encoder, _Renamed(encoder), "encoderReader")
        report = RunReport("utterances")
        best = self._decode(search, encoder, numbers, progress)
        self._write(output, encoder, decoder, numbers, best, log)
        if pairs is not None:
            self._compare(pairs, numbers, best, decoder, log)
        unfinished = sum(not hypothesis.finished for hypothesis in best)
        if unfinished:
            log(f"warning: {unfinished} outputs have no end mark; they are cut off at maxLength")
        report.done(len(best))
        for name, reason in (pairs or encoder).skipped:
            report.skip(name, reason)
        return report

    def _search(self, network: Network, output: str, decoder: SentenceReader) -> BeamSearch:
        where = self.config.block("decoderReader").where()
        inputs = {word: number for number, word in enumerate(decoder.input_words)}
        if decoder.begin not in inputs or decoder.end not in decoder.output_words:
            raise ConfigError(
                f"{where}: beginSequence {decoder.begin!r}, endSequence {decoder.end!r}; expected words of the target "
                "that begin and end a sequence"
            )
        lost = next((word for word in decoder.output_words if word not in inputs and word != decoder.end), None)
        if lost is not None:
            raise ConfigError(
                f"{where}: output {lost!r} is not an input word; expected every output except the last to be one"
            )
        follow = [inputs.get(word, inputs[decoder.begin]) for word in decoder.output_words]
        return BeamSearch(
            network,
            output,
            inputs[decoder.begin],
            list(decoder.output_words).index(decoder.end),
            follow,
            classes=decoder.word_classes,
            beam=self.settings.beam,
            width=self.settings.width,
            max_length=self.settings.max_length,
        )

    def _decode(
        self, search: BeamSearch, encoder: SentenceReader, numbers: np.ndarray, progress: Progress
    ) -> list[Hypothesis]:
        """Return the best hypothesis of each of the encoder's sentences `numbers`."""
        best: list[Hypothesis] = []
        for group in _groups(encoder.lengths[numbers], self.settings.minibatch_size[0]):
            minibatch = side_by_side(encoder, numbers[group])
            assert isinstance(minibatch.layout, SequenceLayout)
            matrices = {ENCODER + name: matrix for name, matrix in minibatch.matrices.items()}
            best += [hypotheses[0] for hypotheses in search(matrices, minibatch.layout)]
            progress(len(best), len(numbers))
        return best

    def _write(
        self,
        output: str,
        encoder: SentenceReader,
        decoder: SentenceReader,
        numbers: np.ndarray,
        best: Sequence[Hypothesis],
        log: Log,
    ) -> None:
        """Write the outputs as one-hot matrices (words, T), which writers of tokens convert to words."""
        if not self.has_writer:
            return
        num_words = len(decoder.output_words)
        with open_writer(self.config.block("writer")) as writer:
            for warning in writer.warnings:
                log(f"warning: {warning}")
            if any(writer_output.nbest > 1 for writer_output in getattr(writer, "outputs", {}).values()):
                raise ConfigError(
                    f"{self.config.block('writer').where()}: nbest; expected 1: an output is one sequence"
                )
            writer.check({output: num_words}, len(best))
            refuse_inputs([*encoder.input_files(), *decoder.input_files(), self.model_path], writer)
            for line, (number, hypothesis) in enumerate(zip(numbers, best)):
                matrix = one_hot(list(hypothesis.words), num_words)
                writer.write(Utterance(encoder.keys[number], {}, line), {output: matrix})

    def _evaluate(self, network: Network, pairs: PairReader, log: Log) -> None:
        """Log criteria and errors on the targets, where each word is predicted from the true previous ones."""
        names = list(dict.fromkeys((*network.evaluations, *network.criteria)))
        if names:
            engine = make_engine(network, names)
            check_inputs(engine, pairs, "encoderReader and decoderReader")
            totals = sum_figures(engine, pairs.minibatches(0, self.settings.minibatch_size[0]), names)
            perplexities = [name for name in names if network[name].has(CROSS_ENTROPY)]
            log(f"Final Results: {result_line(0, totals, perplexities)}")

    def _compare(
        self,
        pairs: PairReader,
        numbers: np.ndarray,
        best: Sequence[Hypothesis],
        decoder: SentenceReader,
        log: Log,
    ) -> None:
        pair_of = {source: pair for pair, source in enumerate(pairs.sources.tolist())}
        exact = errors = words = 0
        for number, hypothesis in zip(numbers.tolist(), best):
            target = pairs.target_words(pair_of[number])
            output = [decoder.output_words[word] for word in hypothesis.words]
            exact = exact + (output == target)
            words = words + len(target)
            errors += edit_distance(output, target)
        log(
            f"Decoded {len(best)} sequences: exact = {100 * exact / len(best):.3f}% ({exact}); "
            f"words wrong = {100 * errors / max(words, 1):.3f}% * {words}"
        )


class _Renamed:
    """An encoder's reader whose streams have the names of the network's inputs."""

    in_sequence = True

    def __init__(self, reader: SentenceReader):
        self.reader = reader

    def dims(self) -> dict[str, int]:
        return {ENCODER + name: dim for name, dim in self.reader.dims().items()}

    def places(self) -> dict[str, str]:
        return {ENCODER + name: where for name, where in self.reader.places().items()}

    def vocabularies(self) -> dict[str, VocabularyRecord]:
        return {ENCODER + name: record for name, record in self.reader.vocabularies().items()}


def _groups(lengths: np.ndarray, num_frames: int) -> Iterator[slice]:
    """Yield groups of consecutive sequences, at most AT_ONCE, fewer if they have more than num_frames frames."""
    begin = 0
    while begin < len(lengths):
        frames = np.cumsum(lengths[begin : begin + AT_ONCE])
        count = max(1, int(np.searchsorted(frames, num_frames, side="right")))
        yield slice(begin, begin + count)
        begin += count


def edit_distance(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the smallest number of substitutions, insertions and deletions between two sequences."""
    row = list(range(len(other) + 1))
    for i, word in enumerate(one, 1):
        diagonal = row[0]
        row[0] = i
        for j, other_word in enumerate(other, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (word != other_word))
    return row[-1]
