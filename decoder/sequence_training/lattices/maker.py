"""Lattices of one utterance for sequence training, from its scores and words."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from decoder.alignment.aligner import Aligner
from decoder.lattices.posteriors import oracle
from decoder.search.decoder import Decoder
from decoder.search.lattice import WordLattice
from decoder.sequence_training.lattices.expansion import StateTable, expand, prune
from decoder.sequence_training.lattices.reference import (
    aligned_reference,
    find_reference,
    labelled_reference,
)
from readers.errors import ConfigError, GraphError, ShapeError
from readers.htk.mlf import Label
from readers.htk.units import TICKS_PER_FRAME
from readers.minibatches.supervision import LatticeSupervision
from readers.results.lattice import NULL_WORD, Lattice
from readers.sources.lattices.state_lattice import StatePath


@dataclass(frozen=True)
class MadeLattice:
    """The lattice of an utterance, and figures for the report.

    Attributes
    ----------
    supervision : LatticeSupervision
    figures : dict of str to int
        frames, ticks (of 100 ns); words (of the transcript) and errors (the fewest of a path against them, before the
        reference was added); links (with words) of the word lattice; added: 1 if the reference was added to the
        lattice; arc_frames: of all arcs.
    widenings : int
        How often the search was repeated with twice the beam.
    """

    supervision: LatticeSupervision
    figures: dict[str, int]
    widenings: int


class LatticeMaker:
    """Makes lattices; any number of threads may call `make`.

    Parameters
    ----------
    decoder : Decoder
        With a language model and a lattice beam.
    aligner : Aligner or None
        For transcripts without labels.
    density : float
        Most arcs per frame; lattices with more are pruned.

    Raises
    ------
    ConfigError
        For a decoder that does not fit.
    """

    def __init__(self, decoder: Decoder, aligner: Aligner | None, density: float):
        if decoder.lm is None or decoder.options.lattice_beam is None or decoder.options.sil_cost:
            raise ConfigError("lattices: expected a language model, a lattice beam, and no cost of silence")
        if not density >= 1:
            raise ConfigError(f"lattices: {density:g} arcs per frame; expected at least 1")
        self.decoder = decoder
        self.aligner = aligner
        self.density = density
        self.table = StateTable(decoder)

    def make(
        self,
        name: str,
        words: Sequence[str],
        scores: np.ndarray,
        labels: Sequence[Label] | None = None,
        where: str = "",
        period: int = TICKS_PER_FRAME,
    ) -> MadeLattice:
        """Decode an utterance and return its lattice with the reference.

        Parameters
        ----------
        name : str
        words : sequence of str
            The transcript; the name of a silence model is no word.
        scores : (K, T) array, float32
            Scaled log-likelihoods of the network's outputs.
        labels : sequence of Label, optional
            States of the transcript; without them it is aligned.
        where : str
            File and line of the labels.
        period : int
            Ticks of 100 ns per frame.

        Returns
        -------
        MadeLattice

        Raises
        ------
        GraphError, ShapeError, FormatError
            If the transcript cannot be aligned, or no path reaches the end.
        """
        num_frames = scores.shape[1]
        reference = self._reference(words, scores, labels, where, period)
        if reference.end[-1] != num_frames:
            raise ShapeError(f"{where}: {reference.end[-1]} frames of labels; expected {num_frames} as in the features")
        result = self.decoder.decode(scores)
        if result.reason or result.lattice is None:
            raise GraphError(f"{name}: {result.reason or 'no lattice'}; expected a path to the end; try a wider beam")
        word_lattice = prune(result.lattice, self.density * num_frames)
        arcs, shares = expand(word_lattice, self.decoder, self.table, scores)
        reference_scores = find_reference(word_lattice, shares, self.decoder, self.table, reference)
        if reference_scores is None:
            arcs = arcs.with_path(reference)
        supervision = arcs.supervision(name, reference, reference_scores or reference.scores, self.table.silence)
        figures = {
            "frames": num_frames,
            "ticks": num_frames * period,
            "words": len(reference.words),
            "errors": self._errors(word_lattice, reference.words),
            "links": int((word_lattice.word >= 0).sum()),
            "added": int(reference_scores is None),
            "arc_frames": int(arcs.arcs["num_arc_frames"].sum()),
        }
        return MadeLattice(supervision, figures, result.widenings)

    def _reference(
        self, words: Sequence[str], scores: np.ndarray, labels: Sequence[Label] | None, where: str, period: int
    ) -> StatePath:
        assert self.decoder.lm is not None
        if labels is not None:
            return labelled_reference(labels, where, period, words, self.decoder.lm, self.table)
        if self.aligner is None:
            raise ConfigError("lattices: neither labels nor an aligner; expected one of them")
        return aligned_reference(self.aligner.align(words, scores), words, self.decoder.lm, self.table)

    def _errors(self, lattice: WordLattice, words: Sequence[str]) -> int:
        """The fewest word errors of a path."""
        names = self.decoder.graph.words
        spoken = [names[w] if w >= 0 and self.table.is_word[w] else NULL_WORD for w in lattice.word.tolist()]
        plain = Lattice.of_words(lattice.time, lattice.start, lattice.end, spoken, -lattice.cost, lattice.lm)
        return oracle(plain, list(words))[0]
