"""The options for dictionaries that several commands share, and how they read them."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from readers.common.faults import counted
from readers.errors import ConfigError, FormatError, ManyFaults

SHOWN_WORDS = 5  # of those without a guess


def add_dictionary_options(group, phones: bool = True, name: str = "--dict") -> None:
    """Add the options to a parser or a group of its arguments.

    phones: those that change phones, too.
    name: the argument that names the dictionary.
    """
    from readers.dictionaries.forms import FORMS

    group.add_argument(
        "--dict-format",
        choices=("auto", *FORMS),
        default="auto",
        help=f"form of {name}: HTK's, CMUdict's (;;; comments, WORD(2)), Kaldi's lexicon.txt or lexiconp.txt, or MFA's "
        "(default: from its content)",
    )
    if phones:
        group.add_argument(
            "--strip-stress",
            action="store_true",
            help=f"remove CMUdict's stress from the phones of {name}: AH0 becomes AH",
        )
        group.add_argument(
            "--map-phones",
            default="",
            metavar="FILE",
            help=f"replace phones of {name}, after --strip-stress: lines `phone new-phone ...`; a phone alone is "
            "deleted",
        )


def add_guess_option(group, words: str, name: str = "--dict") -> None:
    """Add --g2p to a parser or a group of its arguments.

    words: which words need pronunciations.
    name: the argument that names the dictionary.
    """
    group.add_argument(
        "--g2p",
        default="",
        metavar="MODEL",
        help=f"guess the pronunciations of {words} that {name} lacks, with a model of `argonaut g2p train`, and write "
        "them to a dictionary for review",
    )


def with_guesses(arguments: argparse.Namespace, dictionary: list | None, words: Iterable[str], path: Path) -> list:
    """Return a dictionary with guesses of --g2p for the words that it lacks, and write these to `path` for review.

    Prints how many words were guessed, which could not be, and phones of the guesses that the dictionary lacks.
    Raises ConfigError for --g2p without --dict.
    """
    from decoder.g2p.completion import complete_dictionary
    from decoder.g2p.model import G2P
    from decoder.g2p.training import NO_WORD
    from readers.common.files import require_writable

    if dictionary is None:
        raise ConfigError("command line: --g2p without --dict; expected both")
    require_writable(path, [arguments.dict, arguments.g2p])
    spoken = (word for word in words if not NO_WORD.fullmatch(word))
    guesses = complete_dictionary(dictionary, spoken, G2P.load(arguments.g2p))
    guesses.write(path)
    print(guesses.summary(path), flush=True)
    known = {phone for entry in dictionary for phone in entry.phones}
    if foreign := {phone for entry in guesses.entries for phone in entry.phones} - known:
        print(f"phones of guesses that {arguments.dict} lacks: {' '.join(sorted(foreign))}")
    for word, reason in guesses.without if arguments.verbose else guesses.without[:SHOWN_WORDS]:
        print(f"not guessed: {word}: {reason}")
    if len(guesses.without) > SHOWN_WORDS and not arguments.verbose:
        print(f"and {len(guesses.without) - SHOWN_WORDS} more words not guessed, shown with -v")
    return [*dictionary, *guesses.for_decoding()]


def open_dictionary(arguments: argparse.Namespace) -> list | None:
    """Read --dict with the options of add_dictionary_options, if a command has them; None without --dict.

    Raises ManyFaults with all malformed lines, and ConfigError for options that change phones without --dict.
    """
    from readers.dictionaries.forms import read_any_dictionary

    if not arguments.dict:
        for option in ("strip_stress", "map_phones"):
            if getattr(arguments, option, ""):
                raise ConfigError(f"command line: --{option.replace('_', '-')} without --dict; expected both")
        return None
    faults: list[FormatError] = []
    entries = read_any_dictionary(arguments.dict, getattr(arguments, "dict_format", "auto"), faults.append, show_note)
    if faults:
        raise ManyFaults(str(faults[0]), list(map(str, faults)))
    if getattr(arguments, "strip_stress", False) or getattr(arguments, "map_phones", ""):
        return with_phones_of_models(arguments, entries)
    return entries


def show_note(text: str) -> None:
    """Print a note about a dictionary."""
    print(f"note: {text}", file=sys.stderr)


def with_phones_of_models(arguments: argparse.Namespace, entries: list) -> list:
    """Return the pronunciations after --strip-stress and --map-phones.

    Raises FormatError for pronunciations that have no phones left.
    """
    from readers.dictionaries.phones import change_phones, read_phone_replacements, without_stress

    replacements = read_phone_replacements(arguments.map_phones) if arguments.map_phones else {}

    def change(phone: str) -> tuple[str, ...]:
        phone = without_stress(phone) if arguments.strip_stress else phone
        return replacements.get(phone, (phone,))

    changed, num_merged = change_phones(entries, change)
    empty = {entry.word for entry in changed if not entry.phones} - {
        entry.word for entry in entries if not entry.phones
    }
    if empty:
        raise FormatError(
            f"{arguments.dict}: {arguments.map_phones} deletes all phones of {counted(len(empty), 'word')}, such as "
            f"{min(empty)!r}; expected at least one phone for each"
        )
    if num_merged and arguments.verbose:
        print(f"{arguments.dict}: {num_merged} pronunciations have become equal to others; merged", file=sys.stderr)
    return changed
