"""The options of dictionaries for commands that parse their own arguments, and what is printed about dictionaries."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from decoder.g2p.guessing import CompletedDictionary
from readers.config.options.declaration import with_names

SHOWN_WORDS = 5  # of those without a guess


def add_dictionary_options(group, phones: bool = True, name: str = "--dict") -> None:
    """Add the options to a parser or a group of its arguments.

    phones: those that change phones, too.
    name: the argument that names the dictionary.
    """
    for field in ("dict_format", "strip_stress", "map_phones") if phones else ("dict_format",):
        _add(group, field, name)


def add_guess_option(group, words: str, name: str = "--dict") -> None:
    """Add --g2p to a parser or a group of its arguments.

    words: which words need pronunciations.
    name: the argument that names the dictionary.
    """
    _add(group, "g2p", name, words)


def _add(group, field: str, name: str, words: str = "words") -> None:
    declared = CompletedDictionary.declaration(field)
    text = declared.help.replace("{dict}", name).replace("of words", f"of {words}", 1)
    text = with_names(text, CompletedDictionary.declared(), "flag")
    if declared.type is bool:
        group.add_argument(declared.flag, action="store_true", help=text)
    else:
        shown = {"choices": declared.choices} if declared.choices else {"metavar": declared.metavar}
        group.add_argument(declared.flag, default=declared.default, help=text, **shown)


def dictionary_options(arguments: argparse.Namespace) -> CompletedDictionary:
    """Return the options of a dictionary that were given."""
    fields = [declared.name for declared in CompletedDictionary.declared()]
    return CompletedDictionary(**{name: getattr(arguments, name) for name in fields if getattr(arguments, name, None)})


def open_dictionary(arguments: argparse.Namespace) -> list | None:
    """Read --dict with the options of add_dictionary_options, if a command has them; None without --dict.

    Raises ManyFaults with all malformed lines, and OptionFault for options that change phones without --dict.
    """
    options = dictionary_options(arguments)
    return options.read(show_note) if options.dict else None


def with_guesses(arguments: argparse.Namespace, dictionary: list, words: Iterable[str], path: Path) -> list:
    """Return a dictionary with guesses of --g2p for the words that it lacks, and write these to `path` for review.

    Prints how many words were guessed, which could not be, and phones of the guesses that the dictionary lacks.
    """
    guesses = dictionary_options(arguments).guess(dictionary, words, path, print)
    show_guesses(guesses, arguments.verbose)
    return [*dictionary, *guesses.for_decoding()]


def show_guesses(guesses, verbose: int) -> None:
    """Print which words could not be guessed, the first few unless verbose."""
    for word, reason in guesses.without if verbose else guesses.without[:SHOWN_WORDS]:
        print(f"not guessed: {word}: {reason}")
    if len(guesses.without) > SHOWN_WORDS and not verbose:
        print(f"and {len(guesses.without) - SHOWN_WORDS} more words not guessed, shown with -v")


def show_note(text: str) -> None:
    """Print a note about a dictionary."""
    print(f"note: {text}", file=sys.stderr)
