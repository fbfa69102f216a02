"""Word error rates of n-best lists, before and after rescoring with a network."""

from collections.abc import Iterator
from pathlib import Path

from acoustic.scoring.word_scorer import WordScorer
from decoder.lattices.nbest_rescoring import RescoringOptions, best_words, rescore, sentences_of
from decoder.lm.evaluation import sentence_logs
from decoder.lm.language_model import LanguageModel
from decoder.scoring.error_counts import Score, score
from readers.htk.mlf import read_mlf
from readers.language.arpa import read_arpa
from readers.results.nbest import Lists, read_nbest

WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)  # interpolation weights of the network


def first_score(nbest: Path, references: Path) -> Score:
    """Return the score of each list's first hypothesis."""
    return score_lists(read_nbest(nbest), references)


def oracle_score(nbest: Path, references: Path) -> Score:
    """Return the score of each list's hypothesis with the fewest errors, a lower bound for rescoring."""
    true = read_words(references)
    lists = read_nbest(nbest)
    best = {
        name: min((hypothesis.words for hypothesis in lists[name]), key=lambda words: _errors(true[name], words))
        for name in lists
    }
    return score({name: true[name] for name in best}, best).total


def trials(scorer: WordScorer, ngram: Path, nbest: Path, references: Path) -> Iterator[tuple[float, Score]]:
    """Yield (weight, score of the lists rescored with it) for each of WEIGHTS."""
    lists = read_nbest(nbest)
    sentences = sentences_of(lists)
    new = dict(zip(sentences, scorer.score(sentences)))
    old = dict(zip(sentences, sentence_logs(LanguageModel.from_arpa(read_arpa(ngram)), sentences)))
    for weight in WEIGHTS:
        yield weight, score_lists(rescore(lists, new, RescoringOptions(weight), old), references)


def score_lists(lists: Lists, references: Path) -> Score:
    true = read_words(references)
    return score({name: true[name] for name in lists}, best_words(lists)).total


def score_files(references: Path, hypotheses: Path) -> Score:
    """Score an MLF of words against the reference MLF."""
    return score(read_words(references), read_words(hypotheses)).total


def read_words(path: Path) -> dict[str, list[str]]:
    """Return utterance -> words of an MLF."""
    return {name: [label.name for label in labels] for name, labels in read_mlf(path).items()}


def _errors(true: list[str], words: tuple[str, ...]) -> int:
    return score({"": true}, {"": words}).total.num_errors
