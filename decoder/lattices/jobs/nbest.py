"""N-best lists of lattices, and their rescoring with networks and n-grams."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from decoder.lattices import nbest as search
from decoder.lattices.jobs.index import LatticeResult, each_lattice, lattice_files, write_words
from decoder.lattices.jobs.options import NbestOptions, RescoreListsOptions
from decoder.lattices.nbest_rescoring import RescoringOptions, best_words, rescore, sentences_of
from decoder.lm.evaluation import sentence_logs
from decoder.lm.language_model import LanguageModel
from readers.common.files import require_writable
from readers.common.report import Progress, silent
from readers.language.arpa import read_arpa
from readers.results.lattice import Lattice
from readers.results.nbest import Hypothesis, Lists, read_nbest, write_nbest


@dataclass(frozen=True)
class NbestResult(LatticeResult):
    """N-best lists.

    Attributes
    ----------
    lists : dict of str to list of Hypothesis
        Of each utterance.
    lm_scale : float or None
        The language model scale of the lattices, if it is the same in all.
    """

    lists: Lists
    lm_scale: float | None


def extract_nbest(options: NbestOptions, *, progress: Progress = silent) -> NbestResult:
    """Write the best hypotheses of lattices, and a report beside them.

    Parameters
    ----------
    options : NbestOptions
    progress : callable
        Called as ``progress(lattices done, lattices)``.

    Returns
    -------
    NbestResult

    Raises
    ------
    ArgonautError, OSError
        For faults of other files than single lattices.
    """
    require_writable(options.output, lattice_files(options))
    scales = set()

    def hypotheses(name: str, lattice: Lattice) -> list[Hypothesis]:
        best = search.nbest(lattice, options.number)
        scales.add(lattice.lm_scale)
        return best

    lists, report = each_lattice(options, hypotheses, progress)
    report.write(f"{options.output}.report")
    if lists:
        write_nbest(options.output, lists)
    return NbestResult(report, (options.output,) if lists else (), lists, scales.pop() if len(scales) == 1 else None)


@dataclass(frozen=True)
class RescoredLists:
    """Rescored n-best lists.

    Attributes
    ----------
    lists : dict of str to list of Hypothesis
        Of each utterance, best hypothesis first.
    num_sentences, num_changed : int
        Different sentences, and lists with another best hypothesis.
    """

    lists: Lists
    num_sentences: int
    num_changed: int


def rescore_nbest(options: RescoreListsOptions, *, progress: Progress = silent) -> RescoredLists:
    """Rescore n-best lists with a network, an n-gram or both, or with other weights for the scores of the lists.

    Parameters
    ----------
    options : RescoreListsOptions
    progress : callable
        Called as ``progress(sentences done, sentences, stage="language model")`` for a network.

    Returns
    -------
    RescoredLists

    Raises
    ------
    ArgonautError, OSError
        For a fault of a file, and for words that a model lacks.
    """
    for path in filter(None, (options.output, options.mlf)):
        require_writable(path, [options.nbest])
    lists = read_nbest(options.nbest)
    sentences = sentences_of(lists)
    spoken = [tuple(word for word in words if word not in options.silence) for words in sentences]
    ngram = dict(zip(sentences, sentence_logs(_open_ngram(options.lm), spoken))) if options.lm else None
    if options.network.model:
        from decoder.lm.networks.evaluation import open_scorer, score_sentences

        logs = score_sentences(open_scorer(options.network), spoken, progress)
        new = dict(zip(sentences, logs))
        old = ngram
        weight = options.network.weight
    elif ngram is not None:
        new = ngram
        old = None
        weight = 1.0
    else:  # only change the weights of the scores
        new = dict.fromkeys(sentences, np.zeros(1))
        old = None
        weight = 0.0
    rescored = rescore(lists, new, RescoringOptions(weight, options.lm_scale, options.word_penalty), old)
    if options.output:
        write_nbest(options.output, rescored)
    best = best_words(rescored)
    best_before = best_words(lists)
    if options.mlf:
        write_words(options.mlf, best)
    return RescoredLists(rescored, len(sentences), sum(best[name] != best_before[name] for name in best))


def _open_ngram(path: Path) -> LanguageModel:
    return LanguageModel.from_arpa(read_arpa(path))
