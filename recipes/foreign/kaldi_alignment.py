"""What alignment needs of an experiment of Kaldi: the phone models of its tree, its dictionary and its silence."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from readers.common.faults import listed
from readers.common.report import Log
from readers.common.text import is_count, read_rows
from readers.dictionaries.forms import read_any_dictionary
from readers.errors import FormatError, GraphError
from readers.htk.dictionary import Pronunciation, write_dictionary
from readers.kaldi.hmm.phones import NUMERIC, read_align_lexicon, with_positions
from readers.language.att import EPSILON

if TYPE_CHECKING:
    from readers.kaldi.transition_model import TransitionModel

ALIGN_LEXICONS = ("align_lexicon.int", "align_lexicon.txt")
LEXICON = "lexicon.txt"
OPTIONAL_SILENCES = ("optional_silence.txt", "optional_silence.int")
DICTIONARY = "dictionary"


def read_lexicon(
    given: Path | None,
    root: Path,
    phones_directory: Path,
    words: Mapping[int, str],
    phones: Mapping[int, str],
    log: Log,
) -> list[Pronunciation] | None:
    """Return the dictionary of an experiment: the file that is given, `align_lexicon.int` or `lexicon.txt`; else None.

    words, phones: names by number; log(line) is told of words without phones.  Raises FormatError for damaged files and
    those without words, and OSError.
    """
    paths = [path for path in (phones_directory / name for name in ALIGN_LEXICONS) if path.is_file()]
    if given is None and paths:
        path = paths[0]
        entries = read_align_lexicon(path, words, phones)
    else:
        path = given or root / LEXICON
        if given is None and not path.is_file():
            return None
        entries = with_positions(read_any_dictionary(path), set(phones.values()))
    silent = [entry.word for entry in entries if not entry.phones]
    if silent:
        log(f"{path}: words without phones, which are left out: {listed(silent)}")
    entries = [entry for entry in entries if entry.phones]
    if not entries:
        raise FormatError(f"{path}: no words; expected at least one, with its phones")
    return entries


def tell_unknown(words: Sequence[str], dictionary: Sequence[Pronunciation], log: Log) -> None:
    """Log which words of a graph cannot be aligned."""
    unknown = sorted({*words} - {EPSILON} - {entry.word for entry in dictionary})
    if unknown:
        log(f"words without a pronunciation, which are recognised, but cannot be aligned: {listed(unknown)}")


def convert_alignment(
    tree: Path,
    dictionary: list[Pronunciation] | None,
    transitions: "TransitionModel",
    phones: Mapping[int, str],
    phones_directory: Path,
    directory: Path,
    log: Log,
) -> bool:
    """Write the tables of phone models and the dictionary to a directory, if an experiment has what they are made of.

    phones: names by number; log(line) is told what is missing.  Returns whether they were written.  Raises FormatError
    for damaged files, and OSError.
    """
    from decoder.graph.foreign.kaldi_phones import kaldi_phone_models
    from readers.kaldi.hmm.tree import read_tree
    from readers.tables.hmm_tables import write_silence

    silence = _optional_silence(phones_directory, phones)
    if not tree.is_file() or dictionary is None or silence is None:
        missing = f"{phones_directory / OPTIONAL_SILENCES[0]}"
        if not tree.is_file():
            missing = f"{tree}"
        elif dictionary is None:
            missing = f"{phones_directory / ALIGN_LEXICONS[0]} and {LEXICON}"
        log(f"{missing}: missing; the bundle recognises, but cannot align")
        return False
    try:
        models = kaldi_phone_models(read_tree(tree), transitions, phones, dictionary, silence, f"{tree}")
    except GraphError as fault:
        log(f"{fault}; the bundle recognises, but cannot align")
        return False
    models.save(directory)
    write_silence(directory / "silence", silence, "left-to-right")
    write_dictionary(directory / DICTIONARY, dictionary)
    return True


def _optional_silence(directory: Path, phones: Mapping[int, str]) -> str | None:
    """Return the phone that may stand between words; None if no file tells it."""
    for name in OPTIONAL_SILENCES:
        if (directory / name).is_file():
            is_numeric = (directory / name).suffix == NUMERIC
            for _, fields in read_rows(directory / name):
                return phones.get(int(fields[0]), fields[0]) if is_numeric and is_count(fields[0]) else fields[0]
    return None
