"""The supervision of lattice-free MMI for a reader: `chain=[denominator=FILE, numerators=FILE]`."""

from pathlib import Path

import numpy as np

from readers.errors import FormatError
from readers.minibatches.supervision import ChainSupervision, NumeratorGraph
from readers.results.indexed_archive import IndexedArchive
from readers.sources.chain.composition import LogDenominator, compose_aligned, compose_transcript
from readers.sources.chain.denominator_file import AGAIN, fingerprint, read_denominator
from readers.sources.chain.numerators import KIND, AlignedNumerator, Numerator, numerator_of

MOST_SUBSAMPLING = 100


class ChainSource:
    """Denominator and numerator graphs of training utterances, from files that `argonaut chain` writes.

    Parameters
    ----------
    denominator, numerators : str or Path
        The files.

    Attributes
    ----------
    outputs : list of str
        Names of the network's outputs, in order.
    subsampling : int
        Number of input frames of one output.
    paths : list of str
        The files.

    Raises
    ------
    FormatError
        For damaged files, and numerators that were made for another denominator.
    OSError
        If a file cannot be read.
    """

    def __init__(self, denominator: str | Path, numerators: str | Path):
        self.paths = [str(denominator), str(numerators)]
        contents = read_denominator(denominator)
        self.denominator = contents.graph
        self.outputs = contents.outputs
        self._archive = IndexedArchive(numerators, KIND)
        metadata = self._archive.metadata
        if metadata.get("fingerprint") != fingerprint(self.denominator):
            raise FormatError(f"{numerators}: made for another denominator graph than {denominator}; {AGAIN}")
        self.subsampling = metadata.get("subsampling")
        if type(self.subsampling) is not int or not 1 <= self.subsampling <= MOST_SUBSAMPLING:
            raise FormatError(f"{numerators}: frame subsampling {self.subsampling!r}; expected a number; {AGAIN}")
        self._log = LogDenominator.of(self.denominator)

    @property
    def num_outputs(self) -> int:
        """Number of outputs of the network."""
        return self.denominator.num_outputs

    def check(self, key: str, num_frames: int, whole: bool = True) -> None:
        """Check that there is a numerator for an utterance, with as many frames.

        Parameters
        ----------
        key : str
            The utterance's name in the SCP list.
        num_frames : int
            Its frames at the rate of the features.
        whole : bool
            Whether the utterance stays whole; otherwise it may be cut into chunks.

        Raises
        ------
        FormatError
        """
        numerator = self.numerator(key)
        if numerator.num_input_frames != num_frames:
            raise FormatError(
                f"{self._where(key)}: a numerator of {numerator.num_input_frames} frames; expected {num_frames}, "
                "as the features have"
            )
        if not whole and not isinstance(numerator, AlignedNumerator):
            raise FormatError(
                f"{self._where(key)}: a numerator from a transcript, for the whole utterance; expected one from an "
                "alignment, since the reader cuts utterances into chunks"
            )

    def numerator(self, key: str) -> Numerator:
        """Return what the transcript of an utterance allows.

        Parameters
        ----------
        key : str
            The utterance's name in the SCP list, or the last part of it.

        Returns
        -------
        AlignedNumerator or TranscriptNumerator

        Raises
        ------
        FormatError
            If there is none, or it is damaged.
        """
        name = self._archive.find(key)
        if name is None:
            raise FormatError(f"{self._archive.path}: no numerator of '{key}'; expected one for every utterance")
        return numerator_of(self._archive.record(name), self.num_outputs, self._where(key))

    def supervision(self, key: str, first: int, num_frames: int) -> ChainSupervision:
        """Return the supervision of some frames of the network's output for an utterance.

        Parameters
        ----------
        key : str
            The utterance's name in the SCP list.
        first, num_frames : int
            The frames, at the rate of the network's output.

        Returns
        -------
        ChainSupervision
            Where a chunk begins or ends within the utterance, all phones are possible that may be current there.

        Raises
        ------
        FormatError
            For an utterance without numerator, frames that it does not have, and transcripts that the denominator does
            not contain.
        """
        numerator = self.numerator(key)
        where = self._where(key)
        if num_frames < 1 or first < 0 or first + num_frames > numerator.num_frames:
            raise FormatError(
                f"{where}: frames {first} to {first + num_frames} of {numerator.num_frames}; expected frames of the "
                "numerator"
            )
        graph = self._graph(numerator, first, num_frames, where)
        if graph is None:
            raise FormatError(f"{where}: a transcript that the denominator graph does not contain; {AGAIN}")
        return ChainSupervision(key, num_frames, graph, self.denominator)

    def _graph(self, numerator: Numerator, first: int, num_frames: int, where: str) -> NumeratorGraph | None:
        if isinstance(numerator, AlignedNumerator):
            first_outputs = np.array(numerator.first)
            further_outputs = np.array(numerator.further)
            phones = first_outputs, further_outputs, np.array(numerator.earliest), np.array(numerator.latest)
            try:
                return compose_aligned(phones, self._log, first, num_frames)
            except ValueError as fault:
                raise FormatError(f"{where}: {fault}; expected a smaller tolerance; {AGAIN}") from None
        if num_frames != numerator.num_frames:
            raise FormatError(
                f"{where}: frames {first} to {first + num_frames} of a numerator from a transcript; expected the whole "
                f"utterance, {numerator.num_frames} frames"
            )
        first_arc = np.searchsorted(numerator.from_state, np.arange(len(numerator.final) + 1)).astype(np.int64)
        acceptor = (first_arc, np.array(numerator.to_state), np.array(numerator.output), np.array(numerator.final))
        return compose_transcript(acceptor, self._log)

    def _where(self, key: str) -> str:
        return f"{self._archive.path}: '{key}'"
