"""Measures a pronunciation model on words of a dictionary that it was not trained on."""

from collections.abc import Iterable, Sequence

from decoder.g2p.model import G2P
from decoder.g2p.training import NO_WORD, letters_of
from decoder.scoring.error_counts import PENALTIES, Score, align, count
from readers.errors import FormatError
from readers.htk.dictionary import Pronunciation


def hold_out(entries: Sequence[Pronunciation], every: int) -> tuple[list[Pronunciation], list[Pronunciation]]:
    """Divide a dictionary: one word in every few, by its place in sorted order, is held out with all pronunciations.

    Parameters
    ----------
    entries : sequence of Pronunciation
    every : int
        At least 2; 10 holds out the 10th, 20th, 30th ... word.

    Returns
    -------
    (kept, held_out) : tuple of list of Pronunciation
        In the order of the dictionary.

    Raises
    ------
    FormatError
        If `every` is less than 2, and if the dictionary has fewer words.
    """
    words = sorted({letters_of(entry.word) for entry in entries})
    if not 2 <= every <= len(words):
        raise FormatError(f"every word number {every} of {len(words)} is held out; expected 2 to {len(words)}")
    held = set(words[every - 1 :: every])
    training = [entry for entry in entries if letters_of(entry.word) not in held]
    return training, [entry for entry in entries if letters_of(entry.word) in held]


def count_errors(model: G2P, entries: Iterable[Pronunciation], threads: int | None = None) -> Score:
    """Compare the most probable pronunciation of each word with the closest one of a dictionary.

    Parameters
    ----------
    model : G2P
    entries : iterable of Pronunciation
        Those without phones, and words in brackets such as <s>, do not count.
    threads : int, optional
        By default the available cores.

    Returns
    -------
    Score
        Its words are phones, its sentences words: `word_error_rate` is the phone error rate, `sentence_error_rate` the
        part of the words that are wrong.  A word that the model cannot pronounce counts as deleted phones.

    Raises
    ------
    FormatError
        If there are no words to compare.
    """
    references: dict[str, list[tuple[str, ...]]] = {}
    for entry in entries:
        if entry.phones and not NO_WORD.fullmatch(entry.word):
            references.setdefault(entry.word, []).append(entry.phones)
    if not references:
        raise FormatError("no words to measure the model on; expected words of letters with phones")
    total = Score()
    for correct, guessed in zip(references.values(), model.pronounce(list(references), threads=threads)):
        guess = guessed[0][0] if guessed else ()
        scores = [count(align(phones, guess, PENALTIES["kaldi"])) for phones in correct]
        total += min(scores, key=lambda score: (score.num_errors, -score.num_words))
    return total


def error_rates(score: Score) -> str:
    """The errors that `count_errors` counted, as a line."""
    return (
        f"phone error rate {score.word_error_rate:.2f} %, word error rate {score.sentence_error_rate:.2f} % "
        f"({score.num_sentences} words, {score.num_words} phones)"
    )
