"""Networks as language models: the probabilities of sentences by a network and an n-gram."""

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from acoustic.scoring.word_scorer import WordScorer
from decoder.lm.evaluation import Perplexity, mix_logs, perplexity, sentence_logs
from decoder.lm.language_model import LanguageModel
from decoder.lm.options import NetworkOptions, PerplexityOptions
from decoder.lm.texts.reading import read_sentences
from readers.common.report import Log, Progress, silent
from readers.language.arpa import read_arpa
from readers.language.vocabulary import read_vocabulary


def open_scorer(options: NetworkOptions) -> WordScorer:
    """Return the scorer of sentences by the network, which must be given."""
    assert options.model is not None
    words = read_vocabulary(options.words) if options.words else None
    return WordScorer(options.model, words, options.unk)


def score_sentences(
    scorer: WordScorer, sentences: Iterable[Sequence[str]], progress: Progress = silent
) -> list[np.ndarray]:
    """Return ln P (len + 1,) of each sentence's words and </s>; the progress is that of a stage."""
    return scorer.score(sentences, partial(progress, stage="language model"))


def perplexity_of_texts(options: PerplexityOptions, *, progress: Progress = silent, note: Log = silent) -> Perplexity:
    """Measure how well a network, an n-gram or their interpolation predicts texts.

    Parameters
    ----------
    options : PerplexityOptions
    progress : callable
        Called as ``progress(sentences done, sentences, stage="language model")`` for a network.
    note : callable
        Receives lines about texts whose lines seem to begin with utterance names.

    Returns
    -------
    Perplexity

    Raises
    ------
    ArgonautError, OSError
        For a fault of a file, and for words that an interpolated n-gram lacks.

    Examples
    --------
    ``perplexity_of_texts(PerplexityOptions(texts=TextOptions(text="heldout.txt"), lm="lm.arpa")).perplexity``
    """
    ngram = LanguageModel.from_arpa(read_arpa(options.lm)) if options.lm else None
    sentences = read_sentences(options.texts, note)
    if not options.network.model and ngram is not None:
        return perplexity(ngram, sentences)
    scorer = open_scorer(options.network)
    logs = score_sentences(scorer, sentences, progress)
    if ngram is not None:
        logs = [mix_logs(*pair, options.network.weight) for pair in zip(logs, sentence_logs(ngram, sentences))]
    return Perplexity(
        num_sentences=len(sentences),
        num_words=sum(map(len, sentences)),
        num_as_unknown=sum(not scorer.is_known(word) for sentence in sentences for word in sentence),
        unknown=(),
        impossible=(),
        cost=-float(np.sum([log.sum() for log in logs])),
        num_predicted=sum(map(len, logs)),
    )
