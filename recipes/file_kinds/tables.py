"""Figures of small tables: lattice indices, tables beside a graph, symbol tables, vocabularies, HCopy lists."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from readers.common.text import is_count, is_number, read_lines, split_fields
from readers.errors import FormatError
from readers.language.vocabulary import read_vocabulary
from readers.tables.hmm_tables import read_lookahead, read_state_map, read_topology
from recipes.file_kinds.figures import Figures, Kind
from recipes.file_kinds.labels import names

STATE = re.compile(r"\S*(\[\d+\]|_s?\d+)")  # names of states: aa_s2, aa_s2_1, sil[2], ST_a_3
BRACKETED_NAME = re.compile(r"[^\s=\[\]()]+(\[\d+\])?")
OUTPUT = re.compile(r"\S+\s+\[[^\[\]\s]*\]")
FILE_NAME = re.compile(r".*[/\\].*|.+\.\w+")
INDEX = re.compile(r"\d{1,18}\t[^\t]+")
# Suffixes of files that an index can refer to, in the order in which they are tried.
NUMBERED = (".lat", ".fst", ".txt")
MIXTURE_TOLERANCE = 1e-3


def text_kind(path: str, lines: list[str]) -> Kind | None:
    """Return (kind, function for its figures) given the non-empty lines of a text file; None for other text."""
    rows = [line.split() for line in lines]
    if not rows:
        return None
    if all(map(INDEX.fullmatch, lines)) and any(not is_number(row[1]) for row in rows) and _rises(rows):
        return "index of lattices", index
    if all(len(row) == 1 for row in rows):
        bracketed = all(map(BRACKETED_NAME.fullmatch, lines)) and any("[" in line for line in lines)
        return ("list of names", names) if bracketed else None
    if all(len(row) == 4 and not is_number(row[0]) and is_count(row[1]) and is_count(row[2]) for row in rows):
        return ("ways through HMMs (topology)", topology) if _is_topology(path) else None
    if all(map(OUTPUT.fullmatch, lines)):
        return "output words of a graph", outputs
    if all(len(row) > 1 and all(map(STATE.fullmatch, row[1:])) for row in rows):
        return "states of models (state map)", state_map
    if all(len(row) == 2 and _is_score(row[1]) for row in rows) and any(not is_number(row[0]) for row in rows):
        return _number_kind(rows)
    physical = {row[1] for row in rows if len(row) == 2}
    if len(rows[0]) < 3 and physical and physical <= {row[0] for row in rows if len(row) == 1}:
        return "HMM list", hmm_list
    return None


def vocabulary_kind(lines: list[str]) -> Kind | None:
    """Return the kind of a vocabulary, which looks like an acceptor but has no line for a final state."""
    rows = [line.split() for line in lines]
    numbered = all(
        len(row) == 4 and row[0] == str(k) and is_count(row[1]) and is_count(row[3]) for k, row in enumerate(rows)
    )
    words = numbered and any(not is_number(row[2]) for row in rows)
    return ("vocabulary with classes", vocabulary) if words else None


def pair_kind(lines: list[str]) -> Kind | None:
    """Return the kind of a list with two file names per line; None for other text."""
    try:
        rows = [[name for name, _ in split_fields(line, "")] for line in lines]
    except FormatError:
        return None
    pairs = rows and all(len(row) == 2 and all(map(FILE_NAME.fullmatch, row)) for row in rows)
    return ("list of sources and targets (HCopy)", pairs_of_files) if pairs else None


def _rises(rows: Sequence[Sequence[str]]) -> bool:
    numbers = [int(row[0]) for row in rows]
    return all(a < b for a, b in pairwise(numbers))


def _falls(counts: Sequence[int]) -> bool:
    """Whether counts are at least 1, the largest first."""
    return all(a >= b for a, b in pairwise(counts)) and counts[-1] > 0


def _is_score(text: str) -> bool:
    return is_number(text) or text.lower() == "-inf"


def _is_topology(path: str) -> bool:
    try:
        read_topology(path)
    except FormatError:
        return False
    return True


def _number_kind(rows: list[list[str]]) -> Kind:
    """Return the kind of a table with one number for each name."""
    names = {row[0] for row in rows}
    once = len(names) == len(rows)
    if once and all(is_count(row[1]) for row in rows) and _falls([int(row[1]) for row in rows]):
        return "words with counts", counts
    if once and all(is_count(row[1]) for row in rows) and len({int(row[1]) for row in rows}) == len(rows):
        return "symbol table", symbols
    if once and {"<s>", "</s>"} <= names:
        return "look-ahead scores of a graph", lookahead
    total = sum(float(row[1]) for row in rows)
    if all(FILE_NAME.fullmatch(row[0]) for row in rows) and abs(total - 1) < MIXTURE_TOLERANCE:
        return "mixture of language models", numbers
    return "names with a number each", numbers


def index(path: str) -> Figures:
    rows = [line.strip().split("\t") for line in read_lines(path) if line.strip()]
    prefix = path.removesuffix(".index")
    suffix = next((end for end in NUMBERED if Path(f"{prefix}{rows[0][0]}{end}").is_file()), NUMBERED[0])
    missing = sum(not Path(f"{prefix}{number}{suffix}").is_file() for number, _ in rows)
    first = f"{prefix}{rows[0][0]}{suffix}"
    return [
        ("utterances", len(rows)),
        ("files", f"{first}, ..." + (f", {missing} of them not there" if missing else "")),
        ("first", rows[0][1].strip()),
        ("last", rows[-1][1].strip()),
    ]


def pairs_of_files(path: str) -> Figures:
    from readers.audio.parts import audio_part
    from readers.htk.scp import read_pairs

    pairs = read_pairs(path)
    missing = sum(not Path(audio_part(source).path).is_file() for source, _ in pairs)
    made = sum(Path(target).is_file() for _, target in pairs)
    return [
        ("entries", len(pairs)),
        ("sources", f"{len({source for source, _ in pairs})}" + (f", {missing} of them not there" if missing else "")),
        ("targets", f"{len({target for _, target in pairs})}, {made} of them there"),
        ("first", f"{pairs[0][0]} to {pairs[0][1]}"),
    ]


def vocabulary(path: str) -> Figures:
    words = read_vocabulary(path)
    return [
        ("words", len(words)),
        ("classes", len({one.word_class for one in words})),
        ("most frequent", words[0].word),
    ]


def topology(path: str) -> Figures:
    models = read_topology(path)
    return [("models", " ".join(models)), ("ways", sum(map(len, models.values())))]


def outputs(path: str) -> Figures:
    shown = dict(line.split() for line in read_lines(path) if line.strip())
    silent = sum(output == "[]" for output in shown.values())
    return [("words", len(shown)), ("output", f"nothing for {silent}, another word for {len(shown) - silent}")]


def state_map(path: str) -> Figures:
    models = read_state_map(path)
    sizes = {len(states) for states in models.values()}
    states = {state for row in models.values() for state in row}
    each = f"{min(sizes)}" if len(sizes) == 1 else f"{min(sizes)} to {max(sizes)}"
    return [("models", f"{len(models)}, {each} states each"), ("states", f"{len(states)} different")]


def symbols(path: str) -> Figures:
    from readers.kaldi.lattice import read_word_table

    ids = read_word_table(path)
    zero = next((name for name, number in ids.items() if number == 0), "nothing")
    return [("symbols", f"{len(ids)}, numbers {min(ids.values())} to {max(ids.values())}"), ("0 is", zero)]


def lookahead(path: str) -> Figures:
    scores = read_lookahead(path)
    return [("words", len(scores)), ("scores", f"{min(scores.values()):g} to {max(scores.values()):g}")]


def counts(path: str) -> Figures:
    rows = [line.split() for line in read_lines(path) if line.strip()]
    return [
        ("words", len(rows)),
        ("counts", f"{sum(int(count) for _, count in rows)} in all"),
        ("frequent", ", ".join(f"{word} {count}" for word, count in rows[:5])),
    ]


def speakers(path: str) -> Figures:
    found = Counter(line.split()[1] for line in read_lines(path) if line.strip())
    return [
        ("utterances", sum(found.values())),
        ("speakers", len(found)),
        ("utterances of each", f"{min(found.values())} to {max(found.values())}"),
    ]


def numbers(path: str) -> Figures:
    rows = [line.split() for line in read_lines(path) if line.strip()]
    values = [float(row[1]) for row in rows]
    return [
        ("names", f"{len(rows)}, {len({row[0] for row in rows})} different"),
        ("numbers", f"{min(values):g} to {max(values):g}"),
    ]


def hmm_list(path: str) -> Figures:
    from readers.htk.hmm_list import read_hmm_list

    models = read_hmm_list(path)
    return [("logical", len(models)), ("physical", len(set(models.values())))]
