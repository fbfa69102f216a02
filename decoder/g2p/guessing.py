"""The options of a dictionary that a pronunciation model completes."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from readers.common.file_part import FilePart
from readers.common.files import require_writable
from readers.common.report import Log, silent
from readers.config.options import option
from readers.dictionaries.options import DictionaryOptions
from readers.htk.dictionary import Pronunciation

if TYPE_CHECKING:
    from decoder.g2p.completion import Guesses


@dataclass(frozen=True, kw_only=True)
class CompletedDictionary(DictionaryOptions):
    """A pronunciation dictionary, and a model that guesses the pronunciations of words that it lacks.

    Raises
    ------
    OptionFault
        For options that need a dictionary without one.
    """

    g2p: Path | None = option(
        None,
        "guess the pronunciations of words that {dict} lacks, with a model of `argonaut g2p train`, and write them to "
        "a dictionary for review",
        metavar="MODEL",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("g2p", self.dict is not None or self.g2p is None, "is given without {dict}; expected both")

    def guess(
        self,
        dictionary: Iterable[Pronunciation],
        words: Iterable[str],
        path: Path,
        log: Log = silent,
        model: FilePart | None = None,
    ) -> "Guesses":
        """Guess the pronunciations of words that the dictionary lacks, and write them for review.

        Parameters
        ----------
        dictionary : iterable of Pronunciation
            What `read` returned.
        words : iterable of str
            Those in brackets, such as <s>, are not pronounced.
        path : Path
            Dictionary to write.
        log : callable
            Receives the number of guessed words, and phones of theirs that the dictionary lacks.
        model : FilePart, optional
            The model if the option `g2p` is not given.

        Returns
        -------
        Guesses
            Without a model there are none.
        """
        from decoder.g2p.completion import Guesses, complete_dictionary  # import numba

        g2p = self.g2p or model
        if g2p is None:
            return Guesses()
        require_writable(path, [self.dict, self.g2p])
        dictionary = list(dictionary)
        guesses = complete_dictionary(dictionary, words, g2p)
        guesses.write(path)
        if guesses.entries:
            log(guesses.summary(path))
        phones = {phone for entry in dictionary for phone in entry.phones}
        if foreign := {phone for entry in guesses.entries for phone in entry.phones} - phones:
            log(f"phones of guesses that {self.dict or 'the dictionary'} lacks: {' '.join(sorted(foreign))}")
        return guesses
