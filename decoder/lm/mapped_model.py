"""Opens ARPA language models; large ones are read once and then mapped into memory from a file beside the ARPA file.

`words.arpa.mapped` holds the arrays of `decoder.lm.language_model`, the vocabulary, and size and time of the ARPA file
that it was made from; when these change, the mapped file is written again.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from decoder.lm.language_model import SENTENCE_START, LanguageModel, LMArrays
from decoder.storage.array_checks import check_costs, check_offsets, check_range
from decoder.storage.mapped_file import MappedFormat, NameList, check_lengths, pack_names
from readers.common.file_part import FilePart
from readers.common.report import Figures
from readers.errors import ArgonautError, FormatError
from readers.language.arpa import Arpa, ArpaOrder, read_arpa
from readers.tables.sphinx import is_ngram_model, read_ngrams

MAX_ORDER = 1000  # of the n-grams; kernels allocate stacks of this size
LEAST_SIZE = 1 << 20  # bytes of an ARPA file; a smaller one is read as fast
_FIELDS = LMArrays._fields[:6]  # of a single model
_TYPES = dict(zip(_FIELDS, ("<i8", "<i4", "<f4", "<i4", "<f4", "<i4")), source="<i8", start="<i8", vocabulary="|u1")
FORMAT = MappedFormat(
    b"ARGONLM\n", 2, _TYPES, "mapped language model", "it is made from the ARPA file when that is opened"
)


def mapped_path(arpa: str | Path) -> Path:
    """The mapped file that belongs to an ARPA file."""
    return Path(f"{arpa}.mapped")


def open_language_model(
    path: str | Path,
    log: Callable[[str], None] | None = None,
    least_size: int = LEAST_SIZE,
    verify: bool | None = None,
) -> LanguageModel:
    """Open an ARPA language model, from the mapped file beside it if that is up to date, or a mapped file itself.

    A binary model of CMU Sphinx is opened like an ARPA file.

    Parameters
    ----------
    path : str or Path
        The ARPA file, plain or gzip-compressed, or Sphinx's `.lm.bin` or `.lm.DMP`.
    log : callable, optional
        log(line) is told when a damaged mapped file is written again, when it cannot be written, and when the model has
        no unigram <s>, so that sentences begin without history.
    least_size : int
        Size of the ARPA file in bytes from which on a mapped file is used; written if the directory is writable.
    verify : bool, optional
        Whether to compare the checksums of the mapped file, by default when it is first opened.  Its numbers are
        checked in any case.

    Returns
    -------
    LanguageModel

    Raises
    ------
    FormatError
        For a malformed file.
    """
    with Path(path).open("rb") as file:
        if file.read(len(FORMAT.magic)) == FORMAT.magic:
            return load_language_model(path, verify)
    source = _source_of(path)
    mapped = mapped_path(path)
    if source[0] >= least_size and mapped.exists():
        try:
            model = _load(mapped, source, verify)
            if model is not None:
                _note_start(model, path, log)
                return model
        except (ArgonautError, OSError) as fault:
            if log:
                log(f"{fault}; writing it again")
    if is_ngram_model(path):
        vocabulary, orders = read_ngrams(path)
        arpa = Arpa(vocabulary, [ArpaOrder(*columns) for columns in orders])
    else:
        arpa = read_arpa(path)
    model = LanguageModel.from_arpa(arpa)
    _note_start(model, path, log)
    if source[0] >= least_size:
        try:
            save_language_model(model, mapped, source)
        except OSError as fault:
            if log:
                log(f"{mapped}: not written ({fault.strerror}); the ARPA file is read every time")
    return model


def _note_start(model: LanguageModel, path: str | Path, log: Callable[[str], None] | None) -> None:
    if log and SENTENCE_START not in model.vocabulary:
        log(f"{path}: no unigram {SENTENCE_START}; sentences begin without history")


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


def load_language_model(path: str | Path | FilePart, verify: bool | None = None) -> LanguageModel:
    """Map a language model into memory.

    Parameters
    ----------
    path : str, Path or FilePart
        A mapped file, `words.arpa.mapped`.
    verify : bool, optional
        Whether to compare the checksums of the file, by default when it is first opened.

    Returns
    -------
    LanguageModel
        Its pages are read when they are first used.

    Raises
    ------
    FormatError
        For a damaged file.
    GraphError
        For numbers out of range.
    """
    model = _load(path, None, verify)
    assert model is not None
    return model


def _load(path: str | Path | FilePart, source: tuple[int, int] | None, verify: bool | None) -> LanguageModel | None:
    """The model, or None if the file was made from another ARPA file than `source`."""
    # Copy on write: the kernels are compiled for writable arrays, as those of a model read from text are.
    order, sections = FORMAT.read(path, mode="c", verify=verify)
    if source is not None and tuple(sections["source"].tolist()) != source:
        return None
    vocabulary = NameList(sections["vocabulary"], "words", path)
    arrays = LMArrays(**{name: sections[name] for name in _FIELDS})
    start = int(sections["start"][0]) if sections["start"].shape[0] == 1 else -1
    check_automaton(arrays, vocabulary, order, start, path)
    return LanguageModel(arrays, vocabulary, order, start)


def check_automaton(
    arrays: LMArrays, vocabulary: Sequence[str], order: int, start: int, path: str | Path | FilePart
) -> None:
    """Check what the kernels rely on; raise FormatError or GraphError for arrays that are not an automaton."""
    lengths = {name: array.shape[0] for name, array in zip(_FIELDS, arrays)}
    check_lengths(lengths, (("word", "cost", "next_state"), ("backoff_cost", "backoff_state")), path)
    num_states = lengths["backoff_state"]
    size = len(vocabulary)
    if lengths["first_arc"] != num_states + 1:
        raise FormatError(f"{path}: {lengths['first_arc']} offsets for {num_states} states; expected one more")
    check_offsets(arrays.first_arc, lengths["word"], "first_arc", path)
    for name, bound in (("word", size), ("next_state", num_states), ("backoff_state", num_states)):
        check_range(getattr(arrays, name), bound, name, path)
    for name in ("cost", "backoff_cost"):
        check_costs(getattr(arrays, name), name, path)
    if not (0 < order <= MAX_ORDER and 0 <= start < num_states):
        raise FormatError(
            f"{path}: order {order}, start state {start}; expected 1 to {MAX_ORDER} and 0 to {num_states - 1}"
        )
    if arrays.first_arc[1] != size or not np.array_equal(arrays.word[:size], np.arange(size, dtype=np.int32)):
        raise FormatError(f"{path}: the empty history does not list every word in order; expected all {size} words")
    if not _backing_off_ends(arrays.backoff_state, order):
        raise FormatError(
            f"{path}: backing off does not end; expected to reach the empty history after at most {order} steps"
        )


def _backing_off_ends(backoff_state: np.ndarray, order: int) -> bool:
    """Whether histories back off to lower states, and in at most `order` steps to state 0."""
    states = np.arange(backoff_state.shape[0], dtype=backoff_state.dtype)
    if backoff_state[0] != 0 or np.any(backoff_state[1:] >= states[1:]):
        return False
    for _ in range(order):
        states = backoff_state[states]
        states = states[states > 0]
        if not states.size:
            return True
    return False


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    model = load_language_model(path, verify=True)
    return [("order", model.order), ("words", len(model.vocabulary)), ("n-grams", model.num_arcs)]
