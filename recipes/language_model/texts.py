"""Texts of the user: one to be split into training, development and test sentences, or a folder with three."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from readers.common.files import write_lines
from readers.common.text import read_lines
from readers.errors import ConfigError, FormatError

SETS = {"train": ("train",), "dev": ("dev", "valid"), "test": ("test",)}  # set -> parts of file names
MARKS = ("<s>", "</s>")
SPLIT_EVERY = 20  # one in this many blocks is for development and one for testing
BLOCK = 10  # consecutive sentences that stay together, because neighbours have the same topic
MIN_SENTENCES = 3 * SPLIT_EVERY


def split_text(source: Path, out: Path) -> None:
    """Write out/train.txt, dev.txt, test.txt: of SPLIT_EVERY blocks of BLOCK sentences, the last two are dev and test.

    Raises FormatError for a text with too few sentences.
    """
    sentences = read_sentences(source)
    if len(sentences) < MIN_SENTENCES:
        raise FormatError(f"{source}: {len(sentences)} sentences; expected at least {MIN_SENTENCES}, one per line")
    block = min(BLOCK, len(sentences) // MIN_SENTENCES)
    parts: dict[str, list[str]] = {name: [] for name in SETS}
    for number, sentence in enumerate(sentences):
        position = number // block % SPLIT_EVERY
        parts["test" if position == SPLIT_EVERY - 1 else "dev" if position == SPLIT_EVERY - 2 else "train"].append(
            sentence
        )
    _write(out, parts)


def take_texts(folder: Path, out: Path) -> None:
    """Copy texts whose names contain train, dev or valid, and test, such as ptb.train.txt.

    Raises ConfigError unless there is exactly one of each.
    """
    parts = {}
    for name, words in SETS.items():
        files = [path for path in sorted(folder.glob("*.txt")) if any(word in path.name.lower() for word in words)]
        if len(files) != 1:
            names = ", ".join(path.name for path in files) or "none"
            expected = " or ".join(words)
            raise ConfigError(f"{folder}: {names}; expected one text *.txt with {expected} in its name")
        parts[name] = read_sentences(files[0])
        if not parts[name]:
            raise FormatError(f"{files[0]}: no sentences; expected one per line")
    _write(out, parts)


def read_sentences(path: Path) -> list[str]:
    """Return the lines that contain words, without sentence marks; one blank separates the words."""
    lines = ([word for word in line.split() if word not in MARKS] for line in read_lines(path))
    return [" ".join(words) for words in lines if words]


def _write(out: Path, parts: Mapping[str, Sequence[str]]) -> None:
    for name, sentences in parts.items():
        write_lines(out / f"{name}.txt", sentences)
