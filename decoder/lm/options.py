"""The options of language models: texts, estimation, perplexities, and networks as language models."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from readers.config.options import Options, group, option
from readers.dictionaries.options import WordList


@dataclass(frozen=True, kw_only=True)
class TextFiles(Options):
    """Files with sentences, if any."""

    text: tuple[Path, ...] = option((), "text with one sentence per line")
    transcription: tuple[Path, ...] = option((), "lines `words (utterance)`, as in Sphinx and NIST trn files")
    mlf: tuple[Path, ...] = option((), "master label file of words")

    @property
    def files(self) -> tuple[Path, ...]:
        """All files."""
        return (*self.text, *self.transcription, *self.mlf)


@dataclass(frozen=True, kw_only=True)
class TextOptions(TextFiles):
    """Files with sentences.

    Raises
    ------
    OptionFault
        Without files.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("text", bool(self.files), "is missing; expected a text: it, {transcription} or {mlf}")


@dataclass(frozen=True, kw_only=True)
class CountedTexts(TextOptions):
    """Files with sentences, or with the n-grams of sentences.

    Raises
    ------
    OptionFault
        Without files.
    """

    counts: tuple[Path, ...] = option((), "n-grams that `argonaut lm counts` counted, up to the same order or longer")

    @property
    def files(self) -> tuple[Path, ...]:
        """All files."""
        return (*super().files, *self.counts)


@dataclass(frozen=True, kw_only=True)
class VocabularyDictionary(WordList):
    """A dictionary with the vocabulary of a language model."""

    dict: Path | None = option(None, "dictionary; its words are the vocabulary")


def _classes(text: str) -> int | Path:
    return int(text) if text.isdecimal() else Path(text)


@dataclass(frozen=True, kw_only=True)
class EstimationOptions(Options):
    """Options of the estimation of an n-gram model."""

    texts: CountedTexts = group(CountedTexts, heading="text, from one or more files")
    order: int = option(3, "order of the model", least=1, heading="model")
    method: Literal["kn", "wb"] = option("kn", "interpolated modified Kneser-Ney (default) or Witten-Bell")
    dictionary: VocabularyDictionary = group(VocabularyDictionary)
    vocabulary: Path | None = option(None, "vocabulary, one word per line (default: words of the text)")
    unk: str | None = option(None, "word for all words outside the vocabulary, such as <UNK>", metavar="WORD")
    min_counts: tuple[int, ...] = option(
        (),
        "leave out bigrams, trigrams and so on that occur less often; the last number is also that of longer n-grams",
        separator=",",
        least=1,
        metavar="N,N",
    )
    output: Path = option(help="ARPA file to write; .gz compresses", flag="-o --output")
    classes: int | Path | None = option(
        None,
        "number of classes to find, or file of lines `word class`",
        metavar="N|FILE",
        parse=_classes,
        heading="interpolation with a class n-gram",
    )
    class_order: int | None = option(None, "order of the class n-gram (default: {order})", least=1)
    class_weight: float = option(0.5, "weight of the class n-gram", least=0, most=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, given in (("counts", self.texts.counts), ("min_counts", self.min_counts)):
            fine = not (given and self.classes is not None)
            self.require(name, fine, "is given with {classes}; expected a text, and all n-grams")


@dataclass(frozen=True, kw_only=True)
class LMTrainOptions(Options):
    """Options of the training of a recurrent network as a language model."""

    texts: TextOptions = group(TextOptions, heading="text, from one or more files")
    domain: tuple[Path, ...] = option(
        (), "text of the kind that will be recognised, on which alone the training ends with four more epochs"
    )
    heldout: Path | None = option(
        None,
        "text that chooses the best epoch (default: one sentence in 100, of {domain} if there is any, not used for the "
        "training)",
    )
    dictionary: VocabularyDictionary = group(VocabularyDictionary, heading="vocabulary")
    vocabulary: Path | None = option(
        None, "words, one per line, beside those of {dict} (default of both: words that occur twice or more)"
    )
    size: int | None = option(None, "only so many words, the most frequent ones", least=1)
    cells: int | None = option(
        None, "LSTM cells (default by the size of the text: 64 to 768)", least=1, heading="network and training"
    )
    epochs: int = option(8, "epochs of the training, of at most 1.5 million words", unit="epochs", least=1)
    dropout: float = option(0.1, "probability that an output of words or cells is set to zero", least=0, below=1)
    seed: int = option(0, "seed of the initial weights, the order of sentences and the dropout", least=0)
    output: Path = option(help="network to write", flag="-o --output")


@dataclass(frozen=True, kw_only=True)
class CountingOptions(Options):
    """Options of the counts of n-grams."""

    texts: CountedTexts = group(CountedTexts, heading="text, from one or more files")
    order: int = option(3, "the longest n-grams", least=1, heading="counts")
    vocabulary: Path | None = option(None, "vocabulary, one word per line (default: words of the text)")
    unk: str | None = option(None, "word for all words outside the vocabulary, such as <UNK>", metavar="WORD")
    memory: float = option(2.0, "memory for n-grams; more of them are sorted on the disk", unit="GB", above=0)
    output: Path = option(help="file of counts to write", flag="-o --output")


@dataclass(frozen=True, kw_only=True)
class VocabularyOptions(Options):
    """Options of the choice of a vocabulary."""

    texts: CountedTexts = group(CountedTexts, heading="text, from one or more files")
    size: int | None = option(None, "at most so many words, the most frequent ones", least=1, heading="vocabulary")
    coverage: float | None = option(
        None, "the fewest words that make up this part of the texts, such as 0.99", above=0, most=1
    )
    min_count: int = option(1, "words that occur at least so often", least=1)
    heldout: Path | None = option(None, "text of which the coverage is shown")
    output: Path = option(help="file to write, one word per line", flag="-o --output")


@dataclass(frozen=True, kw_only=True)
class NetworkOptions(Options):
    """A network as a language model.

    Raises
    ------
    OptionFault
        For a value out of range, and for a vocabulary without a network.
    """

    model: Path | None = option(None, "network that was trained with LMSequenceReader")
    words: Path | None = option(None, "vocabulary of the network (default: the one in its file)")
    unk: str = option("<unk>", "unknown word of the network", metavar="WORD")
    weight: float = option(0.5, "interpolation weight of the network", least=0, most=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        fine = bool(self.model or not self.words)
        self.require("words", fine, "is given without {model}; expected the network of this vocabulary")


@dataclass(frozen=True, kw_only=True)
class HistoryOptions(Options):
    """Which paths of a lattice a network rescores, and which of them share a history.

    Raises
    ------
    OptionFault
        For a value out of range.
    """

    order: int = option(
        5, "with a network, histories with the same last N-1 words are one; 0: none are", least=0, metavar="N"
    )
    beam: float = option(
        math.inf, "with a network, links are left out whose best path scores worse than the best one by more", least=0
    )


class SomeModel(Options):
    """Options that name an n-gram, a network, or both."""

    lm: Path | None
    network: NetworkOptions

    def __post_init__(self) -> None:
        super().__post_init__()
        fine = bool(self.lm or self.network.model)
        self.require("lm", fine, "is missing; expected an n-gram, a network ({model}), or both")


@dataclass(frozen=True, kw_only=True)
class PerplexityOptions(SomeModel):
    """Options of the perplexity of a text.

    Raises
    ------
    OptionFault
        For a value out of range, and without a model.
    """

    texts: TextOptions = group(TextOptions, heading="text, from one or more files")
    lm: Path | None = option(None, "ARPA language model, plain or .gz", heading="n-gram")
    network: NetworkOptions = group(NetworkOptions, heading="network as a language model")


@dataclass(frozen=True, kw_only=True)
class InterpolationOptions(Options):
    """Options of the linear interpolation of n-gram models.

    Raises
    ------
    OptionFault
        For fewer than two models, another number of weights, weights whose sum is not 1, both or neither of weights and
        a text, and nothing to write.
    """

    lm: tuple[Path, ...] = option(help="ARPA language models, plain or .gz")
    weights: tuple[float, ...] = option(
        (), "weights of the models, with sum 1, separated by commas", separator=",", least=0, most=1, metavar="X,X"
    )
    heldout: Path | None = option(
        None, "text with one sentence per line, not used for {lm}, under which the weights make the mixture most likely"
    )
    output: Path | None = option(None, "ARPA file to write; .gz compresses", flag="-o --output")
    collection: Path | None = option(
        None, "list of models and weights to write, which argon mixes exactly during the search (-lm-collection)"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("lm", len(self.lm) > 1, "is one model; expected at least two")
        self.require("weights", bool(self.weights) != bool(self.heldout), "must be given, or {heldout}, but not both")
        fine = not self.weights or (len(self.weights) == len(self.lm) and abs(sum(self.weights) - 1) < 1e-6)
        self.require("weights", fine, f"does not fit; expected {len(self.lm)} numbers with sum 1")
        self.require("output", bool(self.output or self.collection), "is missing; expected it, {collection}, or both")


@dataclass(frozen=True, kw_only=True)
class PruningOptions(Options):
    """Options of the pruning of an n-gram model."""

    lm: Path = option(help="ARPA language model, plain or .gz")
    threshold: float = option(
        1e-8, "leave out n-grams whose removal changes the perplexity relatively by less than that", least=0
    )
    output: Path = option(help="ARPA file to write; .gz compresses", flag="-o --output")


@dataclass(frozen=True, kw_only=True)
class ExaminationOptions(Options):
    """Options of the examination of an n-gram model."""

    lm: Path = option(help="ARPA language model, plain or .gz")
    text: tuple[Path, ...] = option((), "text with one sentence per line, of which the coverage is shown")


@dataclass(frozen=True, kw_only=True)
class NormalisationOptions(Options):
    """Options of the normalisation of texts."""

    text: tuple[Path, ...] = option(help="text with one sentence per line, with numbers and punctuation")
    language: Literal["english"] = option("english", "language of the text")
    table: Path | None = option(None, "rules of another language, in the form of decoder/lm/texts/data/english.table")
    case: Literal["keep", "upper", "lower"] = option("keep", "case of the words")
    output: Path = option(help="text of words to write, one sentence per line", flag="-o --output")
