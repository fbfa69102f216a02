"""Vocabularies from files: the table of words and classes, or a model that was trained with it."""

from pathlib import Path

from readers.errors import ArgonautError, FormatError, ModelError
from readers.language.vocabulary import VocabularyWord, read_vocabulary
from readers.language.vocabulary_record import ENTRY, parse_vocabularies
from readers.tables.tensor_file import is_tensor_file, load_metadata


def read_words(path: Path, name: str = "labels") -> list[VocabularyWord]:
    """Read a vocabulary from its table or from a model.

    Parameters
    ----------
    path : Path
        A table as `read_vocabulary` reads it, or a model file that has a vocabulary.
    name : str
        Of a model with several vocabularies: the input whose words are meant.

    Returns
    -------
    list of VocabularyWord
        In the order of their numbers.

    Raises
    ------
    FormatError, ModelError
        For a damaged file, and for a model without this vocabulary.
    OSError
    """
    if not is_tensor_file(path):
        return read_vocabulary(path)
    metadata = load_metadata(path)
    try:
        vocabularies = parse_vocabularies(metadata.get(ENTRY, []))
    except ArgonautError as fault:
        raise ModelError(f"{path}: {fault}") from fault
    if not vocabularies:
        raise FormatError(f"{path}: a model without words; expected one that was trained on text, or a vocabulary")
    records = set(vocabularies.values())
    if name not in vocabularies and len(records) > 1:
        raise FormatError(f"{path}: a model with words for {', '.join(vocabularies)}; expected words for {name}")
    return (vocabularies[name] if name in vocabularies else records.pop()).entries()
