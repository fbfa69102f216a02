"""Pairs of source and target sentences for an encoder and a decoder, from one reader for each.

The n-th line, or sentence, of one text belongs to the n-th of the other.  The streams of the source are named
`encoder.NAME`, like the encoder's inputs; those of the target keep their names.
Source: CNTK book 2.7, 3.5.11.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from readers.config.values import Schedule
from readers.errors import ConfigError, FormatError
from readers.language.vocabulary_record import VocabularyRecord
from readers.minibatches.base import Minibatch, Reader, check_epoch
from readers.minibatches.randomisation import ChunkPlan
from readers.minibatches.sequence_layout import SequenceLayout
from readers.minibatches.sequence_packing import pack_whole
from readers.minibatches.sequence_pairs import PairLayout
from readers.sources.frames.utterance_minibatches import UtteranceOrder
from readers.sources.sentences.lm_sequence_reader import LMSequenceReader
from readers.sources.sentences.sentences import SentenceReader

ENCODER = "encoder."  # prefix of the names of the encoder's nodes and streams


class PairReader(Reader):
    """Pairs of whole sentences in parallel slots, of any lengths.  Frames are those of the target.

    Parameters
    ----------
    encoder, decoder : Reader
        Readers of the source and target sentences.  The decoder's reader determines the number of parallel pairs
        (nbruttsineachrecurrentiter; 0: as many as give minibatchSize frames of the target) and whether the order is
        random.
    seed : int
        Seed of the order.

    Attributes
    ----------
    skipped : list of (str, str)
        Sentences without a partner, and those that the readers skipped.

    Raises
    ------
    ConfigError
        For readers that do not deliver sentences.
    FormatError
        If there is no pair.

    References
    ----------
    CNTK book 2.7, 3.5.11.
    """

    unit = "utterances"
    in_sequence = True

    def __init__(self, encoder: Reader, decoder: Reader, seed: int = 0):
        super().__init__()
        self.encoder = _pairable(encoder, "encoderReader")
        self.decoder = _pairable(decoder, "decoderReader")
        self.warnings = [*encoder.warnings, *decoder.warnings]
        self._sources, self._targets = self._match()
        self._lengths = self.decoder.lengths[self._targets]
        shuffle = self.decoder.order.shuffle
        self._order = UtteranceOrder(ChunkPlan(np.array([0, len(self._lengths)]), 1, seed, shuffle), self._lengths)
        self.parallel = Schedule(max(1, count) for count in self.decoder.order.parallel)

    def _match(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (K,) the numbers of the sources, and (K,) those of their targets."""
        sources = _places(self.encoder)
        targets = _places(self.decoder)
        lost = {name for reader in (self.encoder, self.decoder) for name, _ in reader.skipped}
        self.skipped = [*self.encoder.skipped, *self.decoder.skipped]
        pairs = [(number, targets[line]) for line, number in sources.items() if line in targets]
        for numbers, partners, reader, title in (
            (sources, targets, self.encoder, "target"),
            (targets, sources, self.decoder, "source"),
        ):
            for line, number in numbers.items():
                if line not in partners and reader.keys[number] not in lost:
                    self.skipped.append((reader.keys[number], f"{reader.keys[number]}: no {title} sentence"))
        if not pairs:
            reason = f"; first error: {self.skipped[0][1]}" if self.skipped else ""
            raise FormatError(f"source and target text: no pair of sentences; expected at least one{reason}")
        source, target = np.array(pairs, np.int64).T
        return source, target

    def dims(self) -> dict[str, int]:
        return {ENCODER + name: dim for name, dim in self.encoder.dims().items()} | self.decoder.dims()

    def places(self) -> dict[str, str]:
        return {ENCODER + name: where for name, where in self.encoder.places().items()} | self.decoder.places()

    def vocabularies(self) -> dict[str, VocabularyRecord]:
        """Return the words of each stream; see SentenceReader."""
        source = {ENCODER + name: record for name, record in self.encoder.vocabularies().items()}
        return source | self.decoder.vocabularies()

    def input_files(self) -> list[str]:
        return [*self.encoder.input_files(), *self.decoder.input_files()]

    @property
    def num_frames(self) -> int:
        return int(self._lengths.sum())

    @property
    def num_utterances(self) -> int:
        return len(self._lengths)

    @property
    def sources(self) -> np.ndarray:
        """(K,) the number of every pair's source among the sentences of the encoder's reader."""
        return self._sources

    def assemble(self, position: int, size: int) -> Minibatch:
        raise RuntimeError("the reader delivers pairs of sentences, whose minibatches cannot begin at any position")

    def minibatches(self, epoch: int = 0, minibatch_size: int = 256, epoch_size: int = 0) -> Iterator[Minibatch]:
        """Yield the minibatches of an epoch, which has the pairs whose targets begin within its frames."""
        check_epoch(epoch, minibatch_size, epoch_size)
        for pairs in self._groups(epoch, minibatch_size, epoch_size):
            yield self.minibatch(pairs)

    def _groups(self, epoch: int, minibatch_size: int, epoch_size: int) -> Iterator[np.ndarray]:
        """Yield the pairs of each minibatch."""
        pairs = self._order.epoch(epoch, epoch_size).excerpts
        parallel = self.decoder.order.parallel[epoch]
        begin = 0
        while begin < len(pairs):
            if parallel:
                count = parallel
            else:
                frames = np.cumsum(self._lengths[pairs[begin : begin + minibatch_size]])
                count = max(1, int(np.searchsorted(frames, minibatch_size, side="right")))
            yield pairs[begin : begin + count]
            begin += count

    def minibatch(self, pairs: Sequence[int] | np.ndarray) -> Minibatch:
        """Return the minibatch of some pairs, given by number, each in its own slot."""
        source = side_by_side(self.encoder, self._sources[pairs])
        target = side_by_side(self.decoder, self._targets[pairs])
        assert isinstance(source.layout, SequenceLayout)
        assert isinstance(target.layout, SequenceLayout)
        return Minibatch(
            {**{ENCODER + name: matrix for name, matrix in source.matrices.items()}, **target.matrices},
            {ENCODER + name: numbers for name, numbers in source.classes.items()} | target.classes,
            target.num_frames,
            PairLayout(source.layout, target.layout),
        )

    def target_words(self, pair: int) -> list[str]:
        """Return the words of a pair's target without the end mark."""
        words = self.decoder.outputs(int(self._targets[pair]))
        return words[:-1] if words and words[-1] == self.decoder.end else words

    def close(self) -> None:
        self.encoder.close()
        self.decoder.close()


def _pairable(reader: Reader, title: str) -> SentenceReader:
    if not isinstance(reader, SentenceReader):
        raise ConfigError(
            f"{title}: {type(reader).__name__}; expected LMSequenceReader or LUSequenceReader, whose sentences can be "
            "paired"
        )
    if isinstance(reader, LMSequenceReader) and reader.noise is not None:
        raise ConfigError(f"{title}: mode=nce; expected mode=class or softmax, for pairs of sentences")
    return reader


def _places(reader: SentenceReader) -> dict[int, int]:
    """Map the place of every sentence in the text (with one sentence per line, its line number) to its number."""
    if isinstance(reader, LMSequenceReader):
        return {int(key.rpartition(":")[2]): number for number, key in enumerate(reader.keys)}
    return {number + 1: number for number in range(len(reader.keys))}


def side_by_side(reader: SentenceReader, sentences: np.ndarray) -> Minibatch:
    """Return the minibatch of some sentences of a reader, given by number, each in its own slot."""
    (packed,) = pack_whole(reader.lengths[sentences].tolist(), len(sentences))
    return reader.fill(packed, sentences)
