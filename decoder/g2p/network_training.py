"""Trains a network beside the n-grams of a pronunciation model, and chooses the weights of the two."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from acoustic.training.options import TrainingOptions
from acoustic.training.rules import AdamW
from acoustic.training.sgd import train
from decoder.g2p.evaluation import count_errors
from decoder.g2p.model import G2P, Mixture
from decoder.g2p.options import TaggerOptions
from decoder.g2p.tagger import INPUT, LABELS, Tagger, describe, windows
from decoder.g2p.training import SEPARATOR, DividedWords
from readers.common.jobs.stop_signals import epochs_kept
from readers.common.report import Progress, silent
from readers.config.options import option
from readers.errors import FormatError
from readers.htk.dictionary import Pronunciation
from readers.sources.sentences.sentences import SentenceOrder, SentenceReader, WordStream

MINIBATCH = 512  # letters
RATE, FINAL_RATE = 0.005, 0.00017  # of a minibatch; the first falls exponentially to the second
DROPOUT = 0.1
CLIPPING = 1.0  # of the norm of the gradient, per letter
EVERY = 25  # one word in so many is not for training but for the choice of the weights
FEWEST = 4  # of these words
NETWORK_WEIGHTS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0)  # for 1 of the n-grams
SHARPNESS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)  # factors of both weights


def with_network(
    model: G2P,
    divided: DividedWords,
    options: TaggerOptions,
    directory: Path | None = None,
    progress: Progress = silent,
    threads: int | None = None,
) -> G2P:
    """Train a network for a model.

    Parameters
    ----------
    model : G2P
        Of the words.
    divided : DividedWords
        All of them.  One in 25 is not for the training of the network; the weights of n-grams and network are those
        with which the network and n-grams of the others make the fewest errors in these words.
    options : TaggerOptions
    directory : Path, optional
        Where an interrupted training is continued.
    progress : callable
        As that of `acoustic.training.train`.
    threads : int, optional
        By default the available cores.

    Returns
    -------
    G2P
        With the n-grams of `model`.

    Raises
    ------
    FormatError
        For fewer than 100 words.
    ModelError
        For a network that diverges.
    """
    spellings = sorted(divided.spellings)
    held_out = set(spellings[EVERY - 1 :: EVERY])
    if len(held_out) < FEWEST:
        raise FormatError(f"{len(spellings)} words; expected {EVERY * FEWEST} or more to train a network")
    numbers = [number for number, (letters, _) in enumerate(divided.words) if letters in held_out]
    others = [number for number, (letters, _) in enumerate(divided.words) if letters not in held_out]
    training = _tagged(model, divided, others, options.seed)
    tagger = train_tagger(training, _tagged(model, divided, numbers), options, directory, progress)
    trial = G2P(divided.estimate(model.order, without=set(numbers)), tagger=tagger)
    unseen = [Pronunciation(letters, None, None, phones) for letters, phones in map(divided.words.__getitem__, numbers)]
    mixture = choose_mixture(trial, unseen, threads)
    about = {"network trained for": f"{options.epochs} epochs, seed {options.seed}"}
    return G2P(model.language_model, model.about | about, tagger, mixture)


def _tagged(model: G2P, divided: DividedWords, numbers: Sequence[int], seed: int | None = None) -> "TaggedWords":
    """Return a reader of some words; seed: of their order, None for the given one."""
    words = [divided.words[number][0] for number in numbers]
    tag_numbers = {tag: number for number, tag in enumerate(model.tags)}
    of_graphone = {name: tag_numbers[tuple(name.split(SEPARATOR)[1:])] for name in divided.vocabulary}
    tags = np.array([of_graphone[name] for number in numbers for name in divided.graphones[number]], np.int32)
    letters = model.letter_numbers("".join(words))
    lengths = np.array(list(map(len, words)), np.int64)
    return TaggedWords(letters, tags, lengths, len(model.letters), len(model.tags), seed)


@dataclass(frozen=True, kw_only=True)
class _WordOrder(SentenceOrder):
    """As many words of equal length side by side as give a minibatch."""

    parallel: Sequence[int] = option((0,), "words side by side; 0: as many as give a minibatch", least=0)


class TaggedWords(SentenceReader):
    """Gives the words that a tagger is trained on.

    Parameters
    ----------
    letters, tags : (N,) arrays
        Numbers of the letters of all words, one after the other, and of their tags.
    lengths : (words,) array
        Letters of each word.
    num_letters, num_tags : int
        How many there are.
    seed : int or None
        Of the order of the words; None for the given order.
    """

    def __init__(
        self,
        letters: npt.NDArray[np.int32],
        tags: npt.NDArray[np.int32],
        lengths: npt.NDArray[np.int64],
        num_letters: int,
        num_tags: int,
        seed: int | None = None,
    ):
        super().__init__()
        self.num_letters = num_letters
        self.num_tags = num_tags
        streams = [
            WordStream((INPUT,), windows(letters, lengths), num_letters, "letters", is_label=False),
            WordStream((LABELS,), tags[np.newaxis], num_tags, "tags"),
        ]
        order = _WordOrder(file=None, randomize="none" if seed is None else "true", block=len(letters))
        self.take(streams, lengths.tolist(), [""] * len(lengths), order, seed or 0)


def train_tagger(
    training: TaggedWords,
    validation: TaggedWords,
    options: TaggerOptions,
    directory: Path | None = None,
    progress: Progress = silent,
) -> Tagger:
    """Train a tagger.

    Parameters
    ----------
    training, validation : TaggedWords
        The second only shows how far the training is.
    options : TaggerOptions
    directory : Path, optional
        Where models and checkpoints are kept, by which an interrupted training of the same words is continued.
    progress : callable
        As that of `acoustic.training.train`.

    Returns
    -------
    Tagger
        With weights of 16 bits, as in its file.

    Raises
    ------
    ModelError
        For a network that diverges.
    """
    settings = TrainingOptions(
        max_epochs=options.epochs,
        learning_rates_per_minibatch=(RATE,),
        final_learning_rate=FINAL_RATE,
        minibatch_size=(MINIBATCH,),
        dropout_rate=(DROPOUT,),
        clipping_threshold=CLIPPING,
        clip_by_truncation=False,
        rule=AdamW(decay=0.0),
        seed=options.seed,
    )
    description = describe(training.num_letters, training.num_tags, options.cells)
    path = None if directory is None else directory / training.digest(description, settings)
    with epochs_kept():
        result = train(description, training, settings, validation, model_path=path, progress=progress)
    weights = Tagger(result.network, training.num_letters, options.cells).weights
    return Tagger.of_weights(weights, training.num_letters, training.num_tags, options.cells)


def choose_mixture(model: G2P, entries: Sequence[Pronunciation], threads: int | None = None) -> Mixture:
    """Choose the weights of n-grams and network.

    Their ratio is the one with the fewest wrong words, and then phones.  Their sum is the one with which the
    probabilities of the best pronunciations add up to the number of words that are right.

    Parameters
    ----------
    model : G2P
        With a network; its own weights do not matter.
    entries : sequence of Pronunciation
        Words that neither was trained on.
    threads : int, optional
        By default the available cores.

    Returns
    -------
    Mixture
    """
    wrong = {}
    for weight in NETWORK_WEIGHTS:
        model.mixture = Mixture(1.0, weight)
        score = count_errors(model, entries, threads)
        wrong[weight] = score.num_wrong_sentences, score.num_errors
    best = min(wrong, key=wrong.__getitem__)
    words = sorted({entry.word for entry in entries})
    num_right = len(words) - wrong[best][0]
    excess = {}
    for factor in SHARPNESS:
        model.mixture = Mixture(factor, factor * best)
        guesses = model.pronounce(words, threads=threads)
        excess[factor] = abs(sum(guess[0][1] for guess in guesses if guess) - num_right)
    factor = min(excess, key=excess.__getitem__)
    return Mixture(factor, factor * best)
