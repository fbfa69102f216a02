"""The options for dictionaries that several commands share, and how they read them."""

import argparse
import sys

from readers.errors import FormatError, ManyFaults


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


def open_dictionary(arguments: argparse.Namespace) -> list | None:
    """Read --dict with the options of add_dictionary_options, if a command has them; None without --dict.

    Raises ManyFaults with all malformed lines.
    """
    from readers.dictionaries.forms import read_any_dictionary
    from readers.dictionaries.phones import change_phones, without_stress

    if not arguments.dict:
        return None
    faults: list[FormatError] = []
    entries = read_any_dictionary(arguments.dict, getattr(arguments, "dict_format", "auto"), faults.append)
    if faults:
        raise ManyFaults(str(faults[0]), list(map(str, faults)))
    if getattr(arguments, "strip_stress", False):
        entries, num_merged = change_phones(entries, lambda phone: (without_stress(phone),))
        if num_merged and arguments.verbose:
            print(f"{arguments.dict}: {num_merged} pronunciations differ only in stress; merged", file=sys.stderr)
    return entries
