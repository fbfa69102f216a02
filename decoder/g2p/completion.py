"""Adds guessed pronunciations to a dictionary, and lists them for review."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from decoder.g2p.digits import read_digits
from decoder.g2p.model import G2P, Guessed
from decoder.g2p.training import NO_WORD, letters_of
from readers.common.file_part import FilePart
from readers.htk.dictionary import Pronunciation, write_dictionary


@dataclass
class Guesses:
    """Pronunciations of the words that a dictionary lacks.

    Attributes
    ----------
    entries : list of Pronunciation
        With the probabilities that the model gives them; the most doubtful word comes first.
    without : list of (word, reason)
        Words that the model cannot pronounce.
    """

    entries: list[Pronunciation] = field(default_factory=list)
    without: list[tuple[str, str]] = field(default_factory=list)

    @property
    def words(self) -> list[str]:
        """The guessed words, the most doubtful one first."""
        return list(dict.fromkeys(entry.word for entry in self.entries))

    def for_decoding(self) -> list[Pronunciation]:
        """Return the entries with probabilities relative to the best pronunciation of the word.

        So that a doubtful word costs no more than a certain one.

        Returns
        -------
        list of Pronunciation
            Of a word with one pronunciation, the probability is None.
        """
        best: dict[str, float] = {}
        several = set()
        for entry in self.entries:
            if entry.word in best:
                several.add(entry.word)
            best[entry.word] = max(best.get(entry.word, 0.0), entry.probability or 0.0)
        return [
            entry._replace(probability=(entry.probability or 0.0) / best[entry.word] if entry.word in several else None)
            for entry in self.entries
        ]

    def write(self, path: str | Path) -> None:
        """Write the entries as a dictionary, the most doubtful word first.

        Parameters
        ----------
        path : path
        """
        write_dictionary(path, self.entries, readable=True)

    def summary(self, path: str | Path) -> str:
        """Return the line for a report, such as `37 words guessed, see guessed.dict`.

        Parameters
        ----------
        path : path
            Where the entries were written.

        Returns
        -------
        str
        """
        count = len(self.words)
        return f"{count} word{'' if count == 1 else 's'} guessed, see {path}"


def complete_dictionary(
    dictionary: Iterable[Pronunciation],
    words: Iterable[str],
    model: G2P | str | Path | FilePart | None,
    n: int = 1,
    *,
    phones: Container[str] | None = None,
    threads: int | None = None,
) -> Guesses:
    """Guess the pronunciations of the words that a dictionary lacks.

    Every guess of the program is made here.  Unknown letters with accents are read without them, and digits as the
    words of numbers, which have the pronunciations of the dictionary.

    Parameters
    ----------
    dictionary : iterable of Pronunciation
    words : iterable of str
        Repetitions do not matter, and those in brackets, such as <s>, are not pronounced.
    model : G2P, or its file, or None
        Without one no word can be pronounced.
    n : int
        Pronunciations of each word, at most.
    phones : container of str, optional
        Guesses with other phones count as none.
    threads : int, optional
        By default the available cores.

    Returns
    -------
    Guesses
        `[*dictionary, *guesses.for_decoding()]` is the complete dictionary.

    Raises
    ------
    FormatError, OSError
        For a fault of the file of the model.
    """
    dictionary = list(dictionary)
    listed = {entry.word for entry in dictionary}
    missing = [word for word in dict.fromkeys(words) if word not in listed and not NO_WORD.fullmatch(word)]
    guesses = Guesses()
    if model is None:
        guesses.without += [(word, "no dictionary has it, and there is no pronunciation model") for word in missing]
        return guesses
    g2p = model if isinstance(model, G2P) else G2P.load(model)
    guessed = []
    for word, pronunciations in zip(missing, _pronounce(missing, dictionary, g2p, n, threads)):
        usable = [guess for guess in pronunciations if phones is None or all(phone in phones for phone in guess[0])]
        if usable:
            guessed.append((word, usable))
        else:
            guesses.without.append((word, _reason(g2p, word, pronunciations, phones)))
    for word, pronunciations in sorted(guessed, key=lambda guess: (guess[1][0][1], guess[0])):
        guesses.entries += [Pronunciation(word, None, _positive(p), guess) for guess, p in pronunciations]
    return guesses


def _pronounce(
    words: Sequence[str], dictionary: Sequence[Pronunciation], model: G2P, n: int, threads: int | None
) -> list[Guessed]:
    """Return the pronunciations of words, those with digits word by word."""
    readings = {word: read_digits(word, model.language) for word in words if model.unknown_letters(word)}
    readings = {word: [letters_of(part) for part in reading] for word, reading in readings.items()}
    parts = dict.fromkeys(part for reading in readings.values() for part in reading)
    listed: dict[str, Guessed] = {}
    if parts:
        for entry in dictionary:
            letters = letters_of(entry.word)
            if letters in parts and entry.phones:
                listed.setdefault(letters, [(entry.phones, 1.0)])
    unlisted = [word for word in words if word not in readings] + [part for part in parts if part not in listed]
    guessed = dict(zip(unlisted, model.pronounce(unlisted, n, threads)))
    return [
        _joined([listed.get(part) or guessed[part] for part in readings[word]], n)
        if word in readings
        else guessed[word]
        for word in words
    ]


def _joined(parts: Sequence[Guessed], n: int) -> Guessed:
    """Return the n most probable pronunciations of several words, one after the other; none if a word has none."""
    joined: Guessed = [((), 1.0)]
    for alternatives in parts:
        joined = [((*phones, *more), p * q) for phones, p in joined for more, q in alternatives]
        joined = sorted(joined, key=lambda guess: -guess[1])[:n]
    return joined


def _positive(probability: float) -> float:
    """A probability that a dictionary can hold."""
    return min(max(round(probability, 6), 1e-6), 1.0)


def _reason(model: G2P, word: str, pronunciations: Guessed, phones: Container[str] | None) -> str:
    """Return why there is no pronunciation of a word."""
    if pronunciations and phones is not None:
        foreign = next(phone for phone in pronunciations[0][0] if phone not in phones)
        return f"there is no model of the phone '{foreign}' of its guess"
    unknown = model.unknown_letters(word)
    if not unknown:
        return "all letters are silent"
    advice = "; expected numbers as words" if any(map(str.isdigit, unknown)) else ""
    return f"letters {', '.join(map(repr, unknown))} are not in the model{advice}"
