r"""ARPA language models: back-off n-grams of any order, plain or gzip.

A file has lines `\data\` and `ngram N=count`, for each order a section `\N-grams:` with lines
`log10p w1 .. wN [log10bow]`, and `\end\`, which may be missing.  Text before `\data\` is a comment.
All values in this module are log10.  Source: the ARPA format of the CMU and SRI toolkits; CNTK book 6.2.1.
"""

import gzip
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from readers.common.files import atomic_write
from readers.common.report import Figures
from readers.common.text import decode_lines, is_number, read_bytes
from readers.errors import FormatError
from readers.language.arpa_columns import Columns, read_columns

_COUNT = re.compile(r"ngram\s+([0-9]{1,9})\s*=\s*([0-9]{1,18})")
_SECTION = re.compile(r"\\([0-9]+)-grams:")
LEAST_SIZE = 1 << 18  # bytes; a smaller file is read faster than the compiled loops are loaded
MAX_LOG10_BACKOFF = 1e9  # a larger one makes costs of -inf in float32
MAX_LOG10_PROBABILITY = 1e-3  # rounding in some toolkits leaves a probability just above 1


@dataclass(frozen=True, eq=False)
class ArpaOrder:
    """The n n-grams of order k.

    Attributes
    ----------
    words : (n, k) int32
        Indices into the vocabulary, oldest word first.
    logprob : (n,) float64
        log10 probability of the last word.
    backoff : (n,) float64
        log10 back-off weight, 0 if the file has none.
    """

    words: npt.NDArray[np.int32]
    logprob: npt.NDArray[np.float64]
    backoff: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.logprob)


@dataclass(frozen=True, eq=False)
class Arpa:
    """A back-off n-gram model.

    Attributes
    ----------
    vocabulary : list of str
        Words in the order of the unigrams.
    orders : list of ArpaOrder
        orders[k-1] holds the n-grams of order k.
    """

    vocabulary: list[str]
    orders: list[ArpaOrder]

    def __str__(self) -> str:
        ngrams = ", ".join(f"{len(order)} {k}-grams" for k, order in enumerate(self.orders, start=1))
        return f"{self.order}-gram, {len({*self.vocabulary} - {'<s>', '</s>'})} words, {ngrams}"

    def __repr__(self) -> str:
        return f"<Arpa: {self}>"

    @property
    def order(self) -> int:
        """The largest n of the n-grams."""
        return len(self.orders)


def read_arpa(path: str | Path) -> Arpa:
    """Read an ARPA language model.

    Parameters
    ----------
    path : path
        ARPA file, plain or gzip.

    Returns
    -------
    Arpa

    Raises
    ------
    FormatError
        With file and line, for a missing or malformed header, a section that is missing, out of order or of another
        size than announced, a malformed line, a word that is not a unigram, and a repeated n-gram.

    References
    ----------
    CNTK book 6.2.1; the ARPA format of the CMU and SRI toolkits.
    """
    raw = read_bytes(path)
    if len(raw) >= LEAST_SIZE:
        parsed = read_columns(raw, lambda lines: _read_header(lines, path))
        if parsed is not None and all(map(_sound, parsed[1])):
            return Arpa(parsed[0], [ArpaOrder(*columns) for columns in parsed[1]])
    return _read_line_by_line(decode_lines(raw, path), path)


def _sound(columns: Columns) -> bool:
    """Whether all numbers are in range and no n-gram is repeated."""
    words, logprob, backoff = columns
    in_range = bool(np.all(logprob <= MAX_LOG10_PROBABILITY)) and bool(np.all(backoff <= MAX_LOG10_BACKOFF))
    return in_range and _first_repeated(words) is None


def _read_line_by_line(lines: list[str], path: str | Path) -> Arpa:
    """Read the model slowly, with the exact line of an error."""
    counts, index = _read_header(lines, path)
    vocabulary: list[str] = []
    ids: dict[str, int] = {}
    orders = []
    for order, count in enumerate(counts, 1):
        first, last = _find_section(lines, index, order, path)
        parsed, line_numbers = _read_section(lines, first, last, order, ids, vocabulary, path)
        if len(parsed) != count:
            raise FormatError(
                f"{path}:{first}: section \\{order}-grams: has {len(parsed)} n-grams; expected {count}, as announced"
            )
        _refuse_repeated(parsed, line_numbers, vocabulary, path)
        orders.append(parsed)
        index = last
    if index < len(lines) and _SECTION.fullmatch(lines[index].strip()):
        raise FormatError(f"{path}:{index + 1}: section {lines[index].strip()} was not announced; expected \\end\\")
    return Arpa(vocabulary, orders)


def _read_header(lines: list[str], path: str | Path) -> tuple[list[int], int]:
    """Return (n-grams of each order, index of the line after the counts)."""
    index = next((i for i, line in enumerate(lines) if line.strip() == "\\data\\"), None)
    if index is None:
        raise FormatError(f"{path}: no \\data\\ line; expected the header of an ARPA language model")
    counts: list[int] = []
    index += 1
    while index < len(lines):
        text = lines[index].strip()
        match = _COUNT.fullmatch(text)
        if match:
            if int(match.group(1)) != len(counts) + 1:
                raise FormatError(f"{path}:{index + 1}: {text!r}; expected the count of order {len(counts) + 1}")
            counts.append(int(match.group(2)))
        elif text.startswith("\\"):
            break
        elif text:
            raise FormatError(f"{path}:{index + 1}: {text[:40]!r}; expected ngram N=count")
        index += 1
    if not counts:
        raise FormatError(f"{path}: no ngram N=count line after \\data\\; expected one for each order")
    if counts[0] == 0:
        raise FormatError(f"{path}: 0 unigrams announced; expected at least one")
    return counts, index


def _find_section(lines: list[str], index: int, order: int, path: str | Path) -> tuple[int, int]:
    """Return (index of the first n-gram line of a section, index of the line that ends it)."""
    while index < len(lines) and not lines[index].strip():
        index += 1
    title = lines[index].strip() if index < len(lines) else "the end of the file"
    if title != f"\\{order}-grams:":
        raise FormatError(f"{path}:{index + 1}: {title[:40]}; expected section \\{order}-grams:")
    first = last = index + 1
    while last < len(lines) and not _is_title(lines[last]):
        last += 1
    return first, last


def _is_title(line: str) -> bool:
    # A word may begin with a backslash, but a line of n-grams begins with a number.
    line = line.lstrip()
    return line.startswith("\\") and (line.rstrip() == "\\end\\" or _SECTION.fullmatch(line.rstrip()) is not None)


def _read_section(
    lines: list[str],
    first: int,
    last: int,
    order: int,
    ids: dict[str, int],
    vocabulary: list[str],
    path: str | Path,
) -> tuple[ArpaOrder, npt.NDArray[np.int64]]:
    """Return (n-grams, line number of each); unigrams fill vocabulary and ids."""
    words: list[list[int]] = []
    logprobs: list[float] = []
    backoffs: list[float] = []
    numbers: list[int] = []
    for number in range(first + 1, last + 1):
        row = lines[number - 1].split()
        if not row:
            continue
        if fault := _fault_of(row, order, ids):
            raise FormatError(f"{path}:{number}: {fault}")
        if order == 1:
            ids[row[1]] = len(vocabulary)
            vocabulary.append(row[1])
        words.append([ids[word] for word in row[1 : order + 1]])
        logprobs.append(float(row[0]))
        backoffs.append(float(row[order + 1]) if len(row) > order + 1 else 0.0)
        numbers.append(number)
    rows = np.array(words, np.int32).reshape(-1, order)
    return ArpaOrder(rows, np.array(logprobs), np.array(backoffs)), np.array(numbers, np.int64)


def _fault_of(row: list[str], order: int, ids: dict[str, int]) -> str:
    """Return what is wrong with the fields of a line, "" for nothing."""
    text = " ".join(row)[:60]
    if len(row) not in (order + 1, order + 2):
        return (
            f"{text!r} has {len(row)} fields; expected log10 probability, {order} word(s) and perhaps a log10 back-off"
        )
    for field in (row[0], *row[order + 1 :]):
        if not is_number(field) and field.lower() not in ("-inf", "-infinity"):
            return f"{field!r} in {text!r}; expected a number"
    if len(row) > order + 1 and not float(row[order + 1]) <= MAX_LOG10_BACKOFF:
        return f"log10 back-off {row[order + 1]}; expected at most {MAX_LOG10_BACKOFF:g}"
    if not float(row[0]) <= MAX_LOG10_PROBABILITY:
        return f"log10 probability {row[0]}; expected 0 or less"
    if order == 1:
        return f"unigram {row[1]!r} is repeated; expected each once" if row[1] in ids else ""
    unknown = next((word for word in row[1 : order + 1] if word not in ids), "")
    return f"word {unknown!r} is not a unigram; expected words of the \\1-grams: section" if unknown else ""


def _refuse_repeated(
    parsed: ArpaOrder, line_numbers: npt.NDArray[np.int64], vocabulary: list[str], path: str | Path
) -> None:
    pair = _first_repeated(parsed.words)
    if pair is not None:
        text = " ".join(vocabulary[word] for word in parsed.words[pair[0]])
        first, second = sorted(line_numbers[pair].tolist())
        raise FormatError(f"{path}:{second}: n-gram {text!r} is already at line {first}; expected each once")


def _first_repeated(words: npt.NDArray[np.int32]) -> npt.NDArray[np.intp] | None:
    """Return the places of the first two equal rows in the order of words; None if all rows differ."""
    order = words.shape[1]
    if order == 1 or len(words) < 2:
        return None
    bits = int(words.max()).bit_length()
    if bits * order < 64:
        keys = np.zeros(len(words), np.int64)
        for k in range(order):
            keys = (keys << bits) | words[:, k]
        if np.all(keys[1:] > keys[:-1]) or np.all(np.diff(np.sort(keys))):
            return None
    rows = np.lexsort(words.T[::-1])
    ordered = words[rows]
    same = np.flatnonzero((ordered[1:] == ordered[:-1]).all(axis=1))
    return rows[same[0] : same[0] + 2] if same.size else None


def write_arpa(path: str | Path, arpa: Arpa, digits: int = 7) -> None:
    """Write an ARPA language model; gzip-compressed if the name ends in .gz.

    Back-off weights of 1 (log10 0) and those of the highest order are omitted.

    Parameters
    ----------
    path : path
        File to write.
    arpa : Arpa
    digits : int
        Significant digits of the numbers; 17 restore them exactly.
    """
    compress = os.fspath(path).endswith(".gz")
    with atomic_write(path) as raw:
        # No time stamp, so that the same model gives the same bytes.
        file = gzip.GzipFile("", "wb", 6, raw, mtime=0) if compress else raw
        counts = "".join(f"ngram {k}={len(order)}\n" for k, order in enumerate(arpa.orders, 1))
        file.write(f"\n\\data\\\n{counts}".encode())
        for k, order in enumerate(arpa.orders, 1):
            file.write(f"\n\\{k}-grams:\n".encode())
            for begin in range(0, len(order), 50000):
                part = slice(begin, begin + 50000)
                file.write(_format_rows(arpa, order, part, digits, last=k == arpa.order).encode())
        file.write(b"\n\\end\\\n")
        if compress:
            file.close()


def _format_rows(arpa: Arpa, order: ArpaOrder, part: slice, digits: int, last: bool) -> str:
    vocabulary = arpa.vocabulary
    rows = []
    for ids, logprob, backoff in zip(
        order.words[part].tolist(), order.logprob[part].tolist(), order.backoff[part].tolist()
    ):
        text = " ".join([vocabulary[i] for i in ids])
        tail = "" if last or backoff == 0 else f"\t{backoff:.{digits}g}"
        rows.append(f"{logprob:.{digits}g}\t{text}{tail}\n")
    return "".join(rows)


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    arpa = read_arpa(path)
    return ngram_figures(arpa.vocabulary, [len(order) for order in arpa.orders])


def ngram_figures(vocabulary: Iterable[str], counts: Sequence[int]) -> Figures:
    """Return the figures of an n-gram model for `argonaut info`; counts: of the n-grams of each order."""
    figures: Figures = [("order", len(counts))]
    figures += [(f"{order}-grams", count) for order, count in enumerate(counts, 1)]
    words = set(vocabulary)
    special = [word for word in ("<s>", "</s>", "<UNK>", "<unk>") if word in words]
    return [*figures, ("marks", " ".join(special) or "no <s>, </s> or <UNK>")]
