"""Labelled queries of a user, such as ATIS, in the formats of published copies.

DIR/train/seq.in, DIR/train/seq.out (and dev or valid, test)    one sentence per line, words and labels separately
DIR/*train*, DIR/*dev* or DIR/*valid*, DIR/*test*               columns, or `words<TAB>labels` per line
Marks BOS and EOS around a sentence are removed, whatever their label (in some copies, the intent of the query).
"""

from pathlib import Path

from readers.common.text import read_lines
from readers.errors import ConfigError, FormatError
from readers.language.labelled_text import Token, read_columns, read_parallel, read_tab_lines
from recipes.understanding.conlleval import phrases
from recipes.understanding.grammar import Tagged

BEGIN, END = "BOS", "EOS"
PARTS = {"train": ("train",), "dev": ("dev", "valid"), "test": ("test",)}
DEV_EVERY = 10  # without development queries, every tenth training query is used


def read_corpus(directory: Path) -> dict[str, list[Tagged]]:
    """Return the queries of train, dev and test.  Raises ConfigError and FormatError."""
    if not directory.is_dir():
        raise ConfigError(f"--data {directory}: no such directory; expected one with training and test queries")
    parts: dict[str, list[Tagged]] = {}
    for part, names in PARTS.items():
        files = _find(directory, part, names)
        if files:
            parts[part] = _read(files)
    train = parts["train"]
    if "dev" not in parts:
        parts["dev"] = train[DEV_EVERY - 1 :: DEV_EVERY]
        parts["train"] = [query for place, query in enumerate(train, 1) if place % DEV_EVERY]
        if not parts["dev"]:
            raise ConfigError(f"--data {directory}: {len(train)} training queries; expected at least {DEV_EVERY}")
    return parts


def _find(directory: Path, part: str, names: tuple[str, ...]) -> list[Path]:
    """Return the two files (words and labels) or the one file of a set; none for an optional set."""
    for name in names:
        pair = [directory / name / "seq.in", directory / name / "seq.out"]
        if all(path.is_file() for path in pair):
            return pair
    found = sorted(
        path for path in directory.iterdir() if path.is_file() and any(name in path.name.lower() for name in names)
    )
    if len(found) > 1:
        shown = ", ".join(path.name for path in found)
        raise ConfigError(f"--data {directory}: {shown} are all named as {part} queries; expected one file")
    if not found and part != "dev":
        raise ConfigError(
            f"--data {directory}: no {part} queries; expected a file with {part!r} in its name, or {part}/seq.in and "
            f"{part}/seq.out"
        )
    return found


def _read(files: list[Path]) -> list[Tagged]:
    if len(files) == 2:
        sentences = read_parallel(*files)
    elif _is_tab_form(files[0]):
        sentences = read_tab_lines(files[0])
    else:
        sentences, left_out = read_columns(files[0], END)
        if left_out:
            number, text = left_out[0]
            raise FormatError(f"{files[0]}:{number}: {text[:60]!r} has one column; expected a word and its label")
    queries = [_without_marks(sentence, files[-1]) for sentence in sentences]
    queries = [query for query in queries if query]
    if not queries:
        raise FormatError(f"{files[0]}: no query; expected words with their labels")
    return queries


def _is_tab_form(path: Path) -> bool:
    """Whether the first line has as many labels after a tab as words before it, and more than one."""
    for line in read_lines(path):
        if line.strip():
            words, _, labels = line.partition("\t")
            return len(words.split()) == len(labels.split()) > 1
    return False


def _without_marks(sentence: list[Token], path: Path) -> Tagged:
    if sentence[0][1] == BEGIN:
        sentence = sentence[1:]
    if sentence and sentence[-1][1] == END:
        sentence = sentence[:-1]
    for number, _, label in sentence:
        phrases([label], f"{path}:{number}")
    return [(word, label) for _, word, label in sentence]
