"""Trains an LSTM network as a language model: from texts and a vocabulary to a network that rescores.

The network has word vectors, one layer of LSTM cells and a softmax in two steps, over classes of words by frequency and
over the words of a class.  Each sentence is a sequence of its own, with sentences of equal length side by side.  After
many words of other texts, a few epochs on a small text of the right kind alone lower the perplexity most.

References
----------
CNTK book 7.3; Mikolov, Kombrink, Burget, Cernocky and Khudanpur, Extensions of recurrent neural network language model,
ICASSP 2011; Loshchilov and Hutter, Decoupled weight decay regularization, ICLR 2019.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from acoustic.descriptions.builders.language_model import ClassLstmOptions
from acoustic.descriptions.opening import NetworkSource
from acoustic.network.model_file import load_model, save_model
from acoustic.scoring.word_scorer import SENTENCE_MARK
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import AdamW
from acoustic.training.sgd import EpochResult, train
from acoustic.training.state.checkpoint import TrainingFiles
from decoder.lm.options import LMTrainOptions, TextFiles
from decoder.lm.texts.reading import read_sentences, read_transcripts, read_vocabulary_words
from readers.common.files import require_writable
from readers.common.jobs.stop_signals import epochs_kept
from readers.common.report import Log, Progress, silent
from readers.errors import FormatError
from readers.language.vocabulary import VocabularyWord, classed_words
from readers.language.vocabulary_record import VocabularyRecord
from readers.sources.sentences.lm_sequence_reader import LMSequenceOptions, class_table
from readers.sources.sentences.sentences import SentenceReader, WordStream

UNKNOWN = "<unk>"
FEWEST = 2  # occurrences of a word in the vocabulary, without a list
EPOCH_WORDS = 1_500_000  # about, at most; the next epoch of a larger text goes on where one ended
EVERY = 100  # one sentence in so many is held out, without a text
MINIBATCHES, FEWEST_WORDS, MOST_WORDS = 1000, 64, 2048  # of a text at least, if one has words between these bounds
RATE, DOMAIN_RATE = 0.003, 0.001  # of a minibatch
DECAY = 1 / 30  # of a rate until the end, exponentially
DOMAIN_EPOCHS = 4
CLIPPING = 1.0  # of the norm of the gradient, per word


@dataclass(frozen=True)
class LMTraining:
    """A trained network.

    Attributes
    ----------
    num_sentences, num_words : int
        Of the text, without that of the domain.
    vocabulary : int
        Words, with </s> and <unk>.
    cells : int
    num_unknown, num_held_out : int
        Words of the held-out sentences: those outside the vocabulary, and all.
    perplexities : tuple of float
        Of the held-out sentences after each epoch, words outside the vocabulary counted as <unk>.
    """

    num_sentences: int
    num_words: int
    vocabulary: int
    cells: int
    num_unknown: int
    num_held_out: int
    perplexities: tuple[float, ...]

    @property
    def best_epoch(self) -> int:
        """The epoch, counted from 1, whose network was written."""
        return self.perplexities.index(min(self.perplexities)) + 1


def train_language_model(
    options: LMTrainOptions, *, progress: Progress = silent, log: Log = silent, note: Log = silent
) -> LMTraining:
    """Train a recurrent network as a language model, and write the network of the best epoch to `options.output`.

    It leaves its epochs in `options.output`.unfinished until the network is written, and is continued from there after
    an interruption.

    Parameters
    ----------
    options : LMTrainOptions
    progress : callable
        Called as that of `acoustic.training.train`, with the stage "language model".
    log : callable
        Receives the lines of the training's log.
    note : callable
        Receives texts about the files, and a line for each epoch.

    Returns
    -------
    LMTraining

    Raises
    ------
    FormatError, OSError
        For a fault of a file.
    ModelError
        For a network that diverges.

    Examples
    --------
    ``train_language_model(LMTrainOptions(texts=TextOptions(text="train.txt"), output="lstm.lm"))``
    """
    read = [*options.texts.files, *options.domain, options.vocabulary, options.dictionary.dict, options.heldout]
    require_writable(options.output, read)
    sentences, domain, held_out = _read(options, note)
    words = _vocabulary(
        [*sentences, *domain], read_vocabulary_words(options.vocabulary, options.dictionary, note), options.size
    )
    num_words = sum(map(len, sentences))
    cells = options.cells or _cells(num_words)
    validation = Sentences(held_out, words)
    unfinished = Path(f"{options.output}.unfinished")
    network: NetworkSource = _description(len(words), words[-1].word_class + 1, cells)
    perplexities: list[float] = []
    models: list[tuple[float, Path]] = []  # of the best epoch of each part, with its perplexity
    parts = [(sentences, options.epochs, RATE), *([(domain, DOMAIN_EPOCHS, DOMAIN_RATE)] if domain else [])]
    used: list[Path] = []
    for part, epochs, rate in parts:
        reader = Sentences(part, words, shuffle=True, seed=options.seed)
        settings = _settings(options, reader.num_frames, epochs, rate)
        path = unfinished / reader.digest(words, held_out, settings, cells, [earlier.name for earlier in used])
        used.append(path)
        with epochs_kept():
            result = train(
                network,
                reader,
                settings,
                validation,
                model_path=path,
                progress=partial(progress, stage="language model", unit="words"),
                log=log,
                on_epoch=partial(_tell, note, len(perplexities)),
            )
        perplexities += map(_perplexity, result.epochs)
        best = result.best_epoch or epochs
        models.append((_perplexity(result.epochs[best - 1]), TrainingFiles(path, epochs).model(best)))
        network = trained = load_model(min(models, key=itemgetter(0))[1])
    save_model(trained, options.output)
    _remove(unfinished, used)
    vocabulary = {word.word for word in words} - {UNKNOWN}
    num_unknown = sum(word not in vocabulary for sentence in held_out for word in sentence)
    num_held_out = sum(map(len, held_out))
    return LMTraining(len(sentences), num_words, len(words), cells, num_unknown, num_held_out, tuple(perplexities))


def _tell(note: Log, before: int, row: dict[str, Any]) -> None:
    """Note the perplexity after an epoch; before: the epochs of earlier parts."""
    result = EpochResult.of(row)
    note(f"epoch {before + result.epoch}: perplexity {_perplexity(result):.2f} of the held-out sentences")


def _perplexity(epoch: EpochResult) -> float:
    assert epoch.validation_criterion is not None  # there are held-out sentences
    return math.exp(epoch.validation_criterion)


def _remove(directory: Path, used: Sequence[Path]) -> None:
    """Remove the models and checkpoints of these trainings, and the directory if it has no others."""
    for path in used:
        for file in directory.glob(f"{path.name}*"):
            file.unlink()
    if not any(directory.iterdir()):
        directory.rmdir()


def _description(num_words: int, num_classes: int, cells: int) -> ClassLstmOptions:
    return ClassLstmOptions(
        layer_sizes=(num_words, cells, cells, num_words),
        words=1,
        vocabulary=num_words,
        num_classes=num_classes,
        with_dropout=True,
        forget_gate=1.0,
        training_criterion="ClassCrossEntropyWithSoftmax",
    )


def _settings(options: LMTrainOptions, num_words: int, epochs: int, rate: float) -> TrainingOptions:
    return TrainingOptions(
        max_epochs=epochs,
        epoch_size=EPOCH_WORDS if num_words > EPOCH_WORDS else 0,
        learning_rates_per_minibatch=(rate,),
        final_learning_rate=rate * DECAY,
        minibatch_size=(min(max(num_words // MINIBATCHES, FEWEST_WORDS), MOST_WORDS),),
        dropout_rate=(options.dropout,),
        clipping_threshold=CLIPPING,
        clip_by_truncation=False,
        rule=AdamW(decay=0.0),
        seed=options.seed,
        keep_models=False,
    )


class Sentences(SentenceReader):
    """Gives sentences in memory to the training of a language model.

    Parameters
    ----------
    sentences : sequence of list of str
        Without marks.
    words : list of VocabularyWord
        The vocabulary, with SENTENCE_MARK and UNKNOWN.
    shuffle : bool
        Whether the order is random.
    seed : int
        Of the order.

    Raises
    ------
    FormatError
        If there is no sentence.
    """

    def __init__(
        self,
        sentences: Sequence[Sequence[str]],
        words: list[VocabularyWord],
        shuffle: bool = False,
        seed: int = 0,
    ):
        super().__init__()
        number = {word.word: k for k, word in enumerate(words)}
        unknown = number[UNKNOWN]
        self.word_classes = np.array([word.word_class for word in words])
        self.begin = self.end = SENTENCE_MARK
        flat = np.full(sum(map(len, sentences)) + len(sentences) + 1, number[SENTENCE_MARK], np.int32)
        position = 1
        for sentence in sentences:
            flat[position : position + len(sentence)] = [number.get(word, unknown) for word in sentence]
            position += len(sentence) + 1
        streams = [
            WordStream(("features",), flat[np.newaxis, :-1], len(words), "sentences", is_label=False),
            WordStream(("labels",), flat[np.newaxis, 1:], len(words), "sentences", class_table(words)),
        ]
        self.records = dict.fromkeys(("features", "labels"), VocabularyRecord.of_words(words))
        order = LMSequenceOptions(file=None, parallel=(0,), randomize="true" if shuffle else "none", block=1_000_000)
        self.take(streams, [len(sentence) + 1 for sentence in sentences], [""] * len(sentences), order, seed)


def _read(options: LMTrainOptions, note: Log) -> tuple[list[list[str]], list[list[str]], list[list[str]]]:
    """Return the sentences of the training, those of the domain, and the held-out ones, which are in neither.

    A file may be both text and domain.
    """
    files = dict.fromkeys([*options.texts.text, *options.domain])
    texts = {path: read_sentences(TextFiles(text=(path,)), note) for path in files}
    transcripts = read_transcripts(options.texts)
    held_out: list[list[str]] = []
    if options.heldout:
        held_out = read_sentences(TextFiles(text=(options.heldout,)), note)
    else:
        for divided in [texts[path] for path in dict.fromkeys(options.domain)] or [*texts.values(), transcripts]:
            held_out += divided[EVERY - 1 :: EVERY]
            del divided[EVERY - 1 :: EVERY]
    if not held_out:
        file = [*options.domain, *options.texts.files][0]
        raise FormatError(f"{file}: fewer than {EVERY} sentences; expected more, or the option heldout")
    domain = [sentence for path in options.domain for sentence in texts[path]]
    return [sentence for path in options.texts.text for sentence in texts[path]] + transcripts, domain, held_out


def _vocabulary(
    sentences: Sequence[Sequence[str]], listed: Sequence[str] | None, size: int | None
) -> list[VocabularyWord]:
    """Return the words by decreasing count, in classes: those of a list, or those that occur twice or more."""
    counts = Counter(word for sentence in sentences for word in sentence)
    total = counts.total()
    candidates = [word for word, count in counts.items() if count >= FEWEST] if listed is None else listed
    vocabulary = sorted({*candidates} - {SENTENCE_MARK, UNKNOWN}, key=lambda word: (-counts[word], word))[:size]
    of_word = Counter({word: counts[word] for word in vocabulary})
    of_word[SENTENCE_MARK] = len(sentences)
    of_word[UNKNOWN] = total - sum(counts[word] for word in vocabulary)
    return classed_words(of_word, len(of_word), max(1, round(math.sqrt(len(of_word)))), UNKNOWN)


def _cells(num_words: int) -> int:
    """Return a usual number of cells: 128 for a hundred thousand words, 224 for a million, 384 for six million."""
    return 32 * round(min(max(128 * (num_words / 1e5) ** 0.27, 64), 768) / 32)
