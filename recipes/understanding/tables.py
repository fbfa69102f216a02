"""The files for LUSequenceReader: queries in columns, token lists of both sides, and the map of known words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from readers.common.files import atomic_write, write_lines
from readers.common.text import read_lines
from readers.errors import FormatError
from readers.language.labelled_text import read_columns
from readers.sources.sentences.lu_sequence_reader import read_tokens
from recipes.understanding.corpus import BEGIN, END
from recipes.understanding.grammar import Tagged

UNKNOWN = "<unk>"


def query_file(directory: Path, part: str) -> Path:
    return directory / f"{part}.IOB"


def write_tables(directory: Path, parts: Mapping[str, Sequence[Tagged]], few: int) -> None:
    """Write PART.IOB, input.txt (words), inputmap.txt (training words and their replacements), and output.txt (labels).

    output.txt has the labels of all sets, because the reader accepts no others.  Training words with fewer than `few`
    occurrences are replaced by UNKNOWN, which represents unknown words.
    """
    for part, queries in parts.items():
        with atomic_write(query_file(directory, part), "w") as file:
            for query in queries:
                marked = [(BEGIN, "O"), *query, (END, "O")]
                file.writelines(f"{word} {label}\n" for word, label in marked)
                file.write("\n")
    counts = Counter(word for query in parts["train"] for word, _ in query)
    marks = (BEGIN, END, UNKNOWN)
    frequent = sorted(word for word, count in counts.items() if count >= few and word not in marks)
    rare = sorted(word for word, count in counts.items() if count < few and word not in marks)
    labels = sorted({label for queries in parts.values() for query in queries for _, label in query} | {"O"})
    write_lines(directory / "input.txt", [*marks, *frequent])
    write_lines(
        directory / "inputmap.txt",
        [*(f"{word} {word}" for word in (*marks, *frequent)), *(f"{w} {UNKNOWN}" for w in rare)],
    )
    write_lines(directory / "output.txt", labels)


def sizes(directory: Path) -> dict[str, int]:
    """Return the numbers of words and labels of the network."""
    return {name: len(read_tokens(directory / f"{name}.txt")) for name in ("input", "output")}


def read_queries(path: Path) -> list[Tagged]:
    """Return the queries of a file that write_tables wrote, without marks."""
    sentences, _ = read_columns(path, END)
    return [[(word, label) for _, word, label in sentence[1:-1]] for sentence in sentences]


def read_tags(path: Path, queries: Sequence[Tagged]) -> list[list[str]]:
    """Return the labels of every query, without those of the marks, from the output of LUSequenceWriter."""
    lines = [line.split() for line in read_lines(path)]
    if len(lines) != len(queries):
        raise FormatError(f"{path}: {len(lines)} lines; expected {len(queries)}, one for each query")
    for number, (tags, query) in enumerate(zip(lines, queries), 1):
        if len(tags) != len(query) + 2:
            raise FormatError(f"{path}:{number}: {len(tags)} labels; expected {len(query) + 2}")
    return [tags[1:-1] for tags in lines]


def known_words(directory: Path) -> set[str]:
    """Return the words of the training set, including rare ones."""
    return {line.split()[0] for line in read_lines(directory / "inputmap.txt") if line.strip()}
