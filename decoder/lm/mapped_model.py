"""Opens ARPA language models; large ones are read once and then mapped into memory from a file beside the ARPA file.

`words.arpa.mapped` holds the arrays of `decoder.lm.language_model`, the vocabulary, and size and time of the ARPA file
that it was made from; when these change, the mapped file is written again.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from decoder.lm.language_model import SENTENCE_START, LanguageModel, LMArrays
from decoder.mapped_file import MappedFormat, check_lengths, pack_names, unpack_names
from readers.errors import ArgonautError, FormatError
from readers.language.arpa import read_arpa

LEAST_SIZE = 1 << 20  # bytes of an ARPA file; a smaller one is read as fast
_FIELDS = LMArrays._fields[:6]  # of a single model
_TYPES = dict(zip(_FIELDS, ("<i8", "<i4", "<f4", "<i4", "<f4", "<i4")), source="<i8", start="<i8", vocabulary="|u1")
FORMAT = MappedFormat(
    b"ARGONLM\n", 1, _TYPES, "mapped language model", "it is made from the ARPA file when that is opened"
)


def mapped_path(arpa: str | Path) -> Path:
    """The mapped file that belongs to an ARPA file."""
    return Path(f"{arpa}.mapped")


def open_language_model(
    path: str | Path, log: Callable[[str], None] | None = None, least_size: int = LEAST_SIZE
) -> LanguageModel:
    """Open an ARPA language model, from the mapped file beside it if that is up to date.

    Parameters
    ----------
    path : str or Path
        The ARPA file, plain or gzip-compressed.
    log : callable, optional
        log(line) is told when a damaged mapped file is written again, and when it cannot be written.
    least_size : int
        Size of the ARPA file in bytes from which on a mapped file is used; written if the directory is writable.

    Returns
    -------
    LanguageModel

    Raises
    ------
    FormatError
        For a malformed ARPA file, and for a model without <s>, which has no history for the start of a sentence.
    """
    source, mapped = _source_of(path), mapped_path(path)
    if source[0] >= least_size and mapped.exists():
        try:
            model = _load(mapped, source)
            if model is not None:
                return _with_start(model, path)
        except (ArgonautError, OSError) as fault:
            if log:
                log(f"{fault}; writing it again")
    model = _with_start(LanguageModel.from_arpa(read_arpa(path)), path)
    if source[0] >= least_size:
        try:
            save_language_model(model, mapped, source)
        except OSError as fault:
            if log:
                log(f"{mapped}: not written ({fault.strerror}); the ARPA file is read every time")
    return model


def _with_start(model: LanguageModel, path: str | Path) -> LanguageModel:
    if SENTENCE_START not in model.vocabulary:
        raise FormatError(
            f"{path}: no unigram {SENTENCE_START}; expected one; with a line "
            f"`-99 {SENTENCE_START}` among the 1-grams, sentences begin without history"
        )
    return model


def _source_of(path: str | Path) -> tuple[int, int]:
    status = Path(path).stat()
    return status.st_size, status.st_mtime_ns


def save_language_model(model: LanguageModel, path: str | Path, source: tuple[int, int] = (0, 0)) -> None:
    """Write a mapped file.  source: size in bytes and modification time (ns) of the ARPA file."""
    sections = dict(zip(_FIELDS, model.arrays))
    sections |= {
        "source": np.array(source, dtype=np.int64),
        "start": np.array([model.start_state], dtype=np.int64),
        "vocabulary": pack_names(model.vocabulary, path),
    }
    FORMAT.write(path, model.order, sections)


def load_language_model(path: str | Path) -> LanguageModel:
    """Map a language model into memory.

    Parameters
    ----------
    path : str or Path
        A mapped file, `words.arpa.mapped`.

    Returns
    -------
    LanguageModel
        Its pages are read when they are first used.

    Raises
    ------
    FormatError
        For a damaged file.
    """
    return _load(path, None)


def _load(path: str | Path, source: tuple[int, int] | None) -> LanguageModel | None:
    """The model, or None if the file was made from another ARPA file than `source`."""
    # Copy on write: the kernels are compiled for writable arrays, as those of a model read from text are.
    order, sections = FORMAT.read(path, mode="c")
    if source is not None and tuple(sections["source"].tolist()) != source:
        return None
    vocabulary = unpack_names(sections["vocabulary"], "words", path)
    arrays = LMArrays(**{name: sections[name] for name in _FIELDS})
    start = int(sections["start"][0]) if sections["start"].shape[0] == 1 else -1
    _check(arrays, vocabulary, order, start, path)
    return LanguageModel(arrays, vocabulary, order, start)


def _check(arrays: LMArrays, vocabulary: list[str], order: int, start: int, path: str | Path) -> None:
    """Check what `lm_step` relies on."""
    lengths = {name: array.shape[0] for name, array in zip(_FIELDS, arrays)}
    check_lengths(lengths, (("word", "cost", "next_state"), ("backoff_cost", "backoff_state")), path)
    num_states, size = lengths["backoff_state"], len(vocabulary)
    first = arrays.first_arc
    sound = (
        num_states > 0
        and lengths["first_arc"] == num_states + 1
        and first[0] == 0
        and first[-1] == lengths["word"]
        and bool(np.all(np.diff(first) >= 0))
        and first[1] == size
        and np.array_equal(arrays.word[:size], np.arange(size))  # the empty history lists every word
        and 0 <= start < num_states
        and order > 0
        and int(arrays.word.min()) >= 0
        and int(arrays.word.max()) < size
        and int(arrays.next_state.min()) >= 0
        and int(arrays.next_state.max()) < num_states
        and int(arrays.backoff_state.min()) >= 0
        and bool(np.all(arrays.backoff_state[1:] < np.arange(1, num_states)))  # backing off ends
        and not np.isnan(arrays.cost).any()
        and not np.isnan(arrays.backoff_cost).any()
    )
    if not sound:
        raise FormatError(f"{path}: a number out of range; expected a complete mapped language model")
