"""The files that LUSequenceReader is given: queries in columns, the tokens of either side, the words it knows."""

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
    """PART.IOB, input.txt (words), inputmap.txt (every word of the training, and what stands for it), output.txt
    (the labels of all parts: the reader takes no other).

    A word that the training has less than `few` times stands for all that it has not: it becomes UNKNOWN.
    """
    for part, queries in parts.items():
        with atomic_write(query_file(directory, part), "w") as file:
            for query in queries:
                marked = [(BEGIN, "O"), *query, (END, "O")]
                file.writelines(f"{word} {label}\n" for word, label in marked)
                file.write("\n")
    counts = Counter(word for query in parts["train"] for word, _ in query)
    marks = (BEGIN, END, UNKNOWN)
    kept = sorted(word for word, count in counts.items() if count >= few and word not in marks)
    rare = sorted(word for word, count in counts.items() if count < few and word not in marks)
    labels = sorted({label for queries in parts.values() for query in queries for _, label in query} | {"O"})
    write_lines(directory / "input.txt", [*marks, *kept])
    write_lines(
        directory / "inputmap.txt", [*(f"{word} {word}" for word in (*marks, *kept)), *(f"{w} {UNKNOWN}" for w in rare)]
    )
    write_lines(directory / "output.txt", labels)


def sizes(directory: Path) -> dict[str, int]:
    """words and labels that the network knows."""
    return {name: len(read_tokens(directory / f"{name}.txt")) for name in ("input", "output")}


def read_queries(path: Path) -> list[Tagged]:
    """The queries of a file that write_tables wrote, without marks."""
    sentences, _ = read_columns(path, END)
    return [[(word, label) for _, word, label in sentence[1:-1]] for sentence in sentences]


def read_tags(path: Path, queries: Sequence[Tagged]) -> list[list[str]]:
    """The labels of every query, a line each with those of the marks, as LUSequenceWriter wrote them."""
    lines = [line.split() for line in read_lines(path)]
    if len(lines) != len(queries):
        raise FormatError(f"{path}: {len(lines)} lines; expected {len(queries)}, one for each query")
    for number, (tags, query) in enumerate(zip(lines, queries), 1):
        if len(tags) != len(query) + 2:
            raise FormatError(f"{path}:{number}: {len(tags)} labels; expected {len(query) + 2}")
    return [tags[1:-1] for tags in lines]


def known_words(directory: Path) -> set[str]:
    """The words of the training, rare ones included."""
    return {line.split()[0] for line in read_lines(directory / "inputmap.txt") if line.strip()}
