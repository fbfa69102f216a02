"""The options for dictionaries that several commands share, and how they read them."""

import argparse
import sys

from readers.errors import ConfigError, FormatError, ManyFaults


def add_dictionary_options(group, phones: bool = True) -> None:
    """Add the options to a parser or a group of its arguments; phones: those that change phones, too."""
    from readers.dictionaries.forms import FORMS

    group.add_argument(
        "--dict-format",
        choices=("auto", *FORMS),
        default="auto",
        help="form of --dict: HTK's, CMUdict's (;;; comments, WORD(2)), Kaldi's lexicon.txt or lexiconp.txt, or MFA's "
        "(default: from its content)",
    )
    if phones:
        group.add_argument(
            "--strip-stress",
            action="store_true",
            help="remove CMUdict's stress from the phones of --dict: AH0 becomes AH",
        )
        group.add_argument(
            "--map-phones",
            default="",
            metavar="FILE",
            help="replace phones of --dict, after --strip-stress: lines `phone new-phone ...`; a phone alone is "
            "deleted",
        )


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
    entries = read_any_dictionary(arguments.dict, getattr(arguments, "dict_format", "auto"), faults.append)
    if faults:
        raise ManyFaults(str(faults[0]), list(map(str, faults)))
    if getattr(arguments, "strip_stress", False) or getattr(arguments, "map_phones", ""):
        return with_phones_of_models(arguments, entries)
    return entries


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
            f"{arguments.dict}: {arguments.map_phones} deletes all phones of {len(empty)} words, such as "
            f"{min(empty)!r}; expected at least one phone for each"
        )
    if num_merged and arguments.verbose:
        print(f"{arguments.dict}: {num_merged} pronunciations have become equal to others; merged", file=sys.stderr)
    return changed
