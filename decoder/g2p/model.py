"""Pronunciations of words that no dictionary has: a joint n-gram model of letters and phones, and a network beside it.

    model = G2P.train(read_any_dictionary("cmudict.dict"))
    model.save("english.g2p")
    G2P.load("english.g2p").pronunciations("abalone", 2)

The file of a model is a mapped file with the n-gram automaton (`decoder.lm.language_model`), whose words are graphones:
a letter and its phones, separated by tabs.  The weights of the network, if there is one, have 16 bits.
"""

import itertools
import json
import unicodedata
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from decoder.g2p.options import MOST_PRONUNCIATIONS, ORDER
from decoder.g2p.search_kernels import Weighed, search
from decoder.g2p.training import MOST_PHONES, SEPARATOR, divide_words, letters_of
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START, LanguageModel, LMArrays
from decoder.lm.mapped_model import check_automaton
from decoder.storage.mapped_file import MappedFormat, pack_names, unpack_names
from readers.common.environment import available_cores
from readers.common.file_part import FilePart
from readers.common.report import Figures, Progress, silent
from readers.common.text import parse_object
from readers.errors import ArgonautError, FormatError
from readers.htk.dictionary import Pronunciation

if TYPE_CHECKING:
    from decoder.g2p.tagger import Tagger

PASSES = 20
BEAM = 8.0  # of -ln P
MAX_TOKENS = 200
BLOCK = 1000  # words that a thread takes at a time
_ARRAYS = LMArrays._fields[:6]  # of a single model
_TAGGER = {"cells": "<i4", "network": "<f2", "mixture": "<f8"}
_TYPES = dict(zip(_ARRAYS, ("<i4", "<i4", "<f4", "<i4", "<f4", "<i4")), start="<i8", graphones="|u1", about="|u1")
FORMAT = MappedFormat(
    b"ARGONG2P", 1, _TYPES | _TAGGER, "pronunciation model", "argonaut g2p train makes one", "train it again", _TAGGER
)

Guessed = list[tuple[tuple[str, ...], float]]  # phones and probability of pronunciations, the most probable one first


class Mixture(NamedTuple):
    """Weights of the costs, -ln P, of a pronunciation by the n-gram model and by the network."""

    ngram: float = 1.0
    network: float = 0.0


class G2P:
    """A model that pronounces words.

    Parameters
    ----------
    language_model : LanguageModel
        An n-gram model of graphones, in which those of a letter are neighbours.
    about : dict of str to str, int or float
        Where the model comes from, for people.
    tagger : Tagger, optional
        A network for the letters and tags of the n-gram model.
    mixture : Mixture
        Weights of the two.

    Attributes
    ----------
    phones : list of str
    letters : frozenset of str
        Letters that the model can pronounce.
    tags : list of tuple of str
        The phones that a letter can stand for, in the order of the network's outputs.
    order : int
        The longest n-grams.
    language : str or None
        The one whose rules read digits.
    """

    def __init__(
        self,
        language_model: LanguageModel,
        about: dict[str, Any] | None = None,
        tagger: "Tagger | None" = None,
        mixture: Mixture = Mixture(),  # noqa: B008 (immutable)
    ):
        self.language_model = language_model
        self.about = dict(about or {})
        self.order = language_model.order
        self.language = self.about.get("digits")
        self.tagger = tagger
        self.mixture = mixture
        graphones = [name.split(SEPARATOR) for name in language_model.vocabulary]
        self.phones = sorted({phone for _, *phones in graphones for phone in phones})
        self.tags = sorted({tuple(phones) for _, *phones in graphones})
        ids = {phone: number for number, phone in enumerate(self.phones)}
        tag_ids = {tag: number for number, tag in enumerate(self.tags)}
        self._tag_of = np.array([tag_ids[tuple(phones)] for _, *phones in graphones], np.int32)
        self._phones_of = np.full((len(graphones), max(len(graphone) for graphone in graphones) - 1 or 1), -1, np.int32)
        ranges: dict[str, tuple[int, int]] = {}
        for number, (letter, *phones) in enumerate(graphones):
            self._phones_of[number, : len(phones)] = [ids[phone] for phone in phones]
            if len(letter) == 1:
                ranges[letter] = (ranges.get(letter, (number, 0))[0], number + 1)
        self.letters = frozenset(ranges)
        self._codes = np.array(sorted(map(ord, ranges)), np.uint32)
        self._ranges = np.array([ranges[chr(code)] for code in self._codes], np.int32).reshape(-1, 2)
        self._base_letters = _BaseLetters(self.letters)

    @classmethod
    def train(
        cls,
        entries: Iterable[Pronunciation],
        order: int = ORDER,
        *,
        passes: int = PASSES,
        threads: int | None = None,
        about: dict[str, Any] | None = None,
        on_left_out: Callable[[str, str], None] = silent,
        progress: Progress = silent,
    ) -> "G2P":
        """Train a model without a network on a dictionary; `train_g2p` trains one with it.

        An EM algorithm divides the phones of each word among its letters; the n-gram model of the resulting graphones
        is smoothed by interpolated modified Kneser-Ney.

        Parameters
        ----------
        entries : iterable of Pronunciation
            Of a dictionary; output symbols and probabilities are not used.
        order : int
            The longest n-grams of graphones.
        passes : int
            Passes of the EM algorithm.
        threads : int, optional
            By default the available cores.  The model does not depend on it.
        about : dict, optional
            Stored with the model.
        on_left_out : callable, optional
            Called with each word that the model is not trained on, and the reason.
        progress : callable, optional
            Called with the number of passes done and in all.

        Returns
        -------
        G2P

        Raises
        ------
        FormatError
            If there are no words to train on.

        References
        ----------
        Bisani and Ney, Joint-sequence models for grapheme-to-phoneme conversion, Speech Communication 50, 2008.
        Novak, Minematsu and Hirose, Phonetisaurus: Exploring grapheme-to-phoneme conversion with joint n-gram models in
        the WFST framework, Natural Language Engineering 22, 2016.
        """
        divided = divide_words(entries, passes, threads, on_left_out, progress)
        return cls(divided.estimate(order), {**divided.facts, **(about or {})})

    def pronunciations(self, word: str, n: int = 1) -> Guessed:
        """Return the most probable pronunciations of a word.

        Parameters
        ----------
        word : str
        n : int
            How many at most.

        Returns
        -------
        list of (phones, probability)
            The most probable one first.  The probability of a pronunciation is the sum over all ways to divide its
            phones among the letters, divided by the sum over all pronunciations that the beam search has kept, so that
            those of a word sum to at most 1.

        Raises
        ------
        FormatError
            For a word with letters that the model does not know; the message names them.
        """
        self.require_known(word)
        return self.pronounce([word], n, threads=1)[0]

    def spelling(self, word: str) -> str:
        """Return the letters of a word that are pronounced: an unknown letter with an accent becomes one without.

        Parameters
        ----------
        word : str

        Returns
        -------
        str
            Letters that the model does not know stay as they are.
        """
        return letters_of(word).translate(self._base_letters)

    def letter_numbers(self, letters: str) -> npt.NDArray[np.int32]:
        """Return the numbers of known letters, by which the network knows them.

        Parameters
        ----------
        letters : str

        Returns
        -------
        (letters,) array
        """
        codes = np.frombuffer(letters.encode("utf-32-le"), np.uint32)
        return np.searchsorted(self._codes, codes).astype(np.int32)

    def unknown_letters(self, word: str) -> list[str]:
        """Return the letters of a word that the model cannot pronounce.

        Parameters
        ----------
        word : str

        Returns
        -------
        list of str
        """
        return list(dict.fromkeys(letter for letter in self.spelling(word) if letter not in self.letters))

    def require_known(self, word: str) -> None:
        """Raise FormatError for a word that the model cannot pronounce.

        Parameters
        ----------
        word : str

        Raises
        ------
        FormatError
            With the letters that the model does not know.
        """
        unknown = self.unknown_letters(word)
        if unknown or not word:
            shown = ", ".join(map(repr, unknown)) or "none"
            raise FormatError(
                f"word {word!r}: letters {shown}; expected letters of the dictionary that the pronunciation model was "
                "trained on"
            )

    def pronounce(self, words: Sequence[str], n: int = 1, threads: int | None = None) -> list[Guessed]:
        """Return the most probable pronunciations of many words.

        Parameters
        ----------
        words : sequence of str
        n : int
            Of each word, at most.
        threads : int, optional
            By default the available cores.

        Returns
        -------
        list of list of (phones, probability)
            As `pronunciations`; empty for a word with unknown letters.

        Raises
        ------
        FormatError
            If n is not from 1 to 1000.
        """
        if not 1 <= n <= MOST_PRONUNCIATIONS:
            raise FormatError(f"{n} pronunciations of a word; expected 1 to {MOST_PRONUNCIATIONS}")
        blocks = [words[at : at + BLOCK] for at in range(0, len(words), BLOCK)]
        if len(blocks) < 2:
            return [pronunciations for block in blocks for pronunciations in self._search(block, n)]
        with ThreadPoolExecutor(threads or available_cores()) as pool:
            return [
                pronunciations
                for block in pool.map(lambda block: self._search(block, n), blocks)
                for pronunciations in block
            ]

    def _search(self, words: Sequence[str], n: int) -> list[Guessed]:
        spellings = [letters if self.letters.issuperset(letters) else "" for letters in map(self.spelling, words)]
        letters = self.letter_numbers("".join(spellings))
        lengths = np.array([len(spelling) for spelling in spellings], np.int64)
        first = np.concatenate([[0], np.cumsum(lengths)])
        if self.tagger is None:
            weighed = Weighed(1.0, np.zeros((len(letters), 1), np.float32), np.zeros_like(self._tag_of))
        else:
            costs = np.float32(self.mixture.network) * self.tagger.costs(letters, lengths)
            weighed = Weighed(self.mixture.ngram, costs, self._tag_of)
        model = self.language_model
        counts, probability, first_phone, phones = search(
            model.arrays, model.start_state, model.end_id, self._phones_of, self._ranges[letters], first, weighed,
            BEAM, MAX_TOKENS, n,
        )  # fmt: skip
        names = [self.phones[phone] for phone in phones]
        bounds = first_phone.tolist()
        return [
            [
                (tuple(names[bounds[w * n + i] : bounds[w * n + i + 1]]), float(probability[w, i]))
                for i in range(counts[w])
            ]
            for w in range(len(words))
        ]

    def save(self, path: str | Path) -> None:
        """Write the model, completely or not at all.

        Parameters
        ----------
        path : path
        """
        model = self.language_model
        sections = dict(zip(_ARRAYS, model.arrays)) | {
            "first_arc": model.arrays.first_arc.astype(np.int32),
            "start": np.array([model.start_state], np.int64),
            "graphones": pack_names(list(model.vocabulary), path),
            "about": np.frombuffer(json.dumps(self.about, ensure_ascii=False).encode(), np.uint8),
        }
        if self.tagger is not None:
            sections["cells"] = np.array([self.tagger.cells], np.int32)
            sections["network"] = self.tagger.weights
            sections["mixture"] = np.array(self.mixture)
        FORMAT.write(path, model.order, sections)

    @classmethod
    def load(cls, path: str | Path | FilePart) -> "G2P":
        """Open a model; its arrays are mapped into memory.

        Parameters
        ----------
        path : str, Path or FilePart

        Returns
        -------
        G2P

        Raises
        ------
        FormatError, GraphError
            For a file of another kind, a damaged file, and numbers out of range.
        """
        order, sections = FORMAT.read(path, mode="c")
        vocabulary = unpack_names(sections["graphones"], "graphones", path)
        sections["first_arc"] = sections["first_arc"].astype(np.int64)
        arrays = LMArrays(**{name: sections[name] for name in _ARRAYS})
        start = int(sections["start"][0]) if sections["start"].shape[0] == 1 else -1
        check_automaton(arrays, vocabulary, order, start, path)
        _check_graphones(vocabulary, path)
        about = parse_object(sections["about"].tobytes(), f"{path}: section 'about'", "an object; the file is damaged")
        try:
            model = cls(LanguageModel(arrays, vocabulary, order, start), about)
            model._add_tagger(sections)
        except ArgonautError as fault:
            raise FormatError(f"{path}: {fault}") from fault
        return model

    def _add_tagger(self, sections: Mapping[str, np.ndarray]) -> None:
        """Add the network of a file, if it has one.  Raises FormatError for damaged sections."""
        given = [name for name in _TAGGER if name in sections]
        if not given:
            return
        if len(given) < len(_TAGGER):
            raise FormatError(f"sections {', '.join(given)}; expected {', '.join(_TAGGER)}, or none of them")
        cells, weights, mixture = (sections[name] for name in _TAGGER)
        if cells.shape != (1,) or mixture.shape != (2,) or not (np.isfinite(mixture).all() and mixture.min() >= 0):
            raise FormatError(
                f"sections cells {cells[:3].tolist()}, mixture {mixture[:3].tolist()}; expected one number of cells, "
                "and two weights of 0 or more"
            )
        from decoder.g2p.tagger import Tagger  # slow to import

        self.tagger = Tagger.of_weights(weights, len(self.letters), len(self.tags), int(cells[0]))
        self.mixture = Mixture(*mixture.tolist())


class _BaseLetters(dict[int, str]):
    """A table for str.translate: known letters as they are, others without their accents if this makes them known."""

    def __init__(self, letters: Container[str]):
        super().__init__()
        self.letters = letters

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        base = "".join(part for part in unicodedata.normalize("NFKD", letter) if not unicodedata.combining(part))
        is_better = letter not in self.letters and base and all(part in self.letters for part in base)
        self[code] = base if is_better else letter
        return self[code]


def _check_graphones(vocabulary: Sequence[str], path: str | Path | FilePart) -> None:
    """Raise FormatError unless these are <s>, </s> and sorted graphones."""
    if list(vocabulary[:2]) != [SENTENCE_START, SENTENCE_END] or len(vocabulary) < 3:
        raise FormatError(f"{path}: graphones begin with {list(vocabulary[:2])}; expected <s>, </s>, and graphones")
    names = list(vocabulary[2:])
    if any(a >= b for a, b in itertools.pairwise(names)):
        raise FormatError(f"{path}: graphones are not in rising order; expected all different and sorted")
    for name in names:
        letter, *phones = name.split(SEPARATOR)
        if len(letter) != 1 or len(phones) > MOST_PHONES or not all(phones):
            raise FormatError(f"{path}: graphone {name!r}; expected a letter and at most {MOST_PHONES} phones")


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    model = G2P.load(path)
    return [
        ("order", model.order),
        ("graphones", f"{len(model.language_model.vocabulary) - 2} pairs of a letter and its phones"),
        ("n-grams", model.language_model.num_arcs),
        ("letters", f"{len(model.letters)}: {''.join(sorted(model.letters))[:40]}"),
        ("phones", f"{len(model.phones)}: {' '.join(model.phones[:12])}" + (" ..." if len(model.phones) > 12 else "")),
        *([] if model.tagger is None else [("network", f"2 layers of {model.tagger.cells} cells in both directions")]),
        *model.about.items(),
    ]
