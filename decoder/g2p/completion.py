"""Adds guessed pronunciations to a dictionary, and lists them for review."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from decoder.g2p.model import G2P
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
    dictionary: Iterable[Pronunciation], words: Iterable[str], model: G2P, n: int = 1, threads: int | None = None
) -> Guesses:
    """Guess the pronunciations of the words that a dictionary lacks.

    Parameters
    ----------
    dictionary : iterable of Pronunciation
    words : iterable of str
        Repetitions do not matter.
    model : G2P
    n : int
        Pronunciations of each word, at most.
    threads : int, optional
        By default the available cores.

    Returns
    -------
    Guesses
        `[*dictionary, *guesses.for_decoding()]` is the complete dictionary.
    """
    listed = {entry.word for entry in dictionary}
    missing = [word for word in dict.fromkeys(words) if word not in listed]
    guesses = Guesses()
    guessed = []
    for word, pronunciations in zip(missing, model.pronounce(missing, n, threads)):
        if pronunciations:
            guessed.append((word, pronunciations))
        else:
            guesses.without.append((word, _reason(model, word)))
    for word, pronunciations in sorted(guessed, key=lambda guess: (guess[1][0][1], guess[0])):
        guesses.entries += [Pronunciation(word, None, _positive(p), phones) for phones, p in pronunciations]
    return guesses


def _positive(probability: float) -> float:
    """A probability that a dictionary can hold."""
    return min(max(round(probability, 6), 1e-6), 1.0)


def _reason(model: G2P, word: str) -> str:
    unknown = model.unknown_letters(word)
    return f"letters {', '.join(map(repr, unknown))} are not in the model" if unknown else "all letters are silent"
