"""What alignment needs of an experiment of Kaldi: the phone models of its tree, its dictionary and its silence."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from readers.common.report import Log
from readers.common.text import is_count, read_rows
from readers.dictionaries.forms import read_any_dictionary
from readers.errors import GraphError
from readers.htk.dictionary import Pronunciation, write_dictionary
from readers.kaldi.hmm.phones import read_align_lexicon, with_positions

if TYPE_CHECKING:
    from readers.kaldi.transition_model import TransitionModel

ALIGN_LEXICONS = ("align_lexicon.int", "align_lexicon.txt")
LEXICON = "lexicon.txt"
OPTIONAL_SILENCES = ("optional_silence.txt", "optional_silence.int")
DICTIONARY = "dictionary"


def read_lexicon(
    given: Path | None, root: Path, phones_directory: Path, words: Mapping[int, str], phones: Mapping[int, str]
) -> list[Pronunciation] | None:
    """Return the dictionary of an experiment: the file that is given, `align_lexicon.int` or `lexicon.txt`; else None.

    words, phones: names by number.  Raises FormatError and OSError.
    """
    if given is None:
        for name in ALIGN_LEXICONS:
            if (phones_directory / name).is_file():
                return read_align_lexicon(phones_directory / name, words, phones)
        if not (root / LEXICON).is_file():
            return None
    return with_positions(read_any_dictionary(given or root / LEXICON), set(phones.values()))


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

    if not tree.is_file() or dictionary is None:
        lexicon = f"{phones_directory / ALIGN_LEXICONS[0]} and {LEXICON}"
        log(f"{lexicon if tree.is_file() else tree}: missing; the bundle recognises, but cannot align")
        return False
    silence = _optional_silence(phones_directory, phones)
    try:
        models = kaldi_phone_models(read_tree(tree), transitions, phones, dictionary, silence, f"{tree}")
    except GraphError as fault:
        log(f"{fault}; the bundle recognises, but cannot align")
        return False
    models.save(directory)
    if silence is not None:
        write_silence(directory / "silence", silence, "left-to-right")
    write_dictionary(directory / DICTIONARY, dictionary)
    return True


def _optional_silence(directory: Path, phones: Mapping[int, str]) -> str | None:
    """Return the phone that may stand between words; None if no file tells it."""
    for name in OPTIONAL_SILENCES:
        if (directory / name).is_file():
            for _, fields in read_rows(directory / name):
                return phones.get(int(fields[0]), fields[0]) if is_count(fields[0]) else fields[0]
    return None
