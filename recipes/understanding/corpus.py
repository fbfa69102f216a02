"""Labelled queries of a user, such as ATIS, in the formats of published copies.

DIR/train/seq.in, DIR/train/seq.out (and dev or valid, test)    one sentence per line, words and labels separately
DIR/*train*, DIR/*dev* or DIR/*valid*, DIR/*test*               columns, `words<TAB>labels` per line, or CNTK's CTF
DIR/*.trn.*, DIR/*.tst.* or DIR/*.nov93.*, DIR/*.dec94.*        the same; NIST's names of the sets
Marks BOS and EOS around a sentence are removed, whatever their label (in some copies, the intent of the query).
"""

import re
from pathlib import Path

from readers.common.text import read_lines
from readers.errors import ConfigError, FormatError
from readers.language.labelled_text import Token, is_ctf, read_columns, read_ctf, read_parallel, read_tab_lines
from recipes.understanding.conlleval import phrases
from recipes.understanding.grammar import Tagged

BEGIN, END = "BOS", "EOS"
PARTS = {"train": ("train",), "dev": ("dev", "valid"), "test": ("test",)}
# Between dots, hyphens or underscores; NIST's test sets of ATIS-3 are those of November 1993 and December 1994.
NIST_PARTS = {"train": ("trn",), "dev": (), "test": ("tst", "nov93", "dec93", "dec94")}
NO_WORDS = (".pkl", ".sparse")  # pickles, and CNTK's text format without comments
DEV_EVERY = 10  # without development queries, every tenth training query is used


def read_corpus(directory: Path) -> dict[str, list[Tagged]]:
    """Return the queries of train, dev and test.  Raises ConfigError and FormatError."""
    if not directory.is_dir():
        raise ConfigError(f"--data {directory}: no such directory; expected one with training and test queries")
    files = {part: _parallel_files(directory, part) for part in PARTS}
    named = _named_files(directory, [part for part in PARTS if not files[part]])
    parts: dict[str, list[Tagged]] = {}
    for part in PARTS:
        if files[part]:
            parts[part] = _read(files[part])
        elif named[part]:
            parts[part] = [query for path in named[part] for query in _read([path])]
        elif part != "dev":
            raise ConfigError(
                f"--data {directory}: no {part} queries; expected a file with {part!r} in its name, or {part}/seq.in "
                f"and {part}/seq.out"
            )
    train = parts["train"]
    if "dev" not in parts:
        parts["dev"] = train[DEV_EVERY - 1 :: DEV_EVERY]
        parts["train"] = [query for number, query in enumerate(train, 1) if number % DEV_EVERY]
        if not parts["dev"]:
            raise ConfigError(f"--data {directory}: {len(train)} training queries; expected at least {DEV_EVERY}")
    return parts


def _parallel_files(directory: Path, part: str) -> list[Path]:
    """Return the files of words and of labels of a set, none if it is in another form."""
    for name in PARTS[part]:
        pair = [directory / name / "seq.in", directory / name / "seq.out"]
        if all(path.is_file() for path in pair):
            return pair
    return []


def _named_files(directory: Path, parts: list[str]) -> dict[str, list[Path]]:
    """Return the files of each set by their names.  Raises ConfigError if several could be meant.

    A set of several files is that of the only family of names, such as atis.*.iob, which has training and test queries.
    NIST's test sets belong together.
    """
    paths = sorted(path for path in directory.iterdir() if path.is_file() and path.suffix.lower() not in NO_WORDS)
    named = {part: [path for path in paths if _family(path, part)] for part in parts}
    if any(len(files) > 1 for files in named.values()):
        families = {_family(path, "train") for path in paths} & {_family(path, "test") for path in paths} - {""}
        if len(families) == 1:
            named = {part: [path for path in files if _family(path, part) in families] for part, files in named.items()}
    for part, files in named.items():
        if len(files) > 1 and not (part == "test" and all(_is_of_nist(path, part) for path in files)):
            shown = ", ".join(path.name for path in files)
            raise ConfigError(f"--data {directory}: {shown} are all named as {part} queries; expected one file")
    return named


def _family(path: Path, part: str) -> str:
    """Return the name of a file with `*` in place of the set's name, "" if it does not contain that."""
    name = path.name.lower()
    if _is_of_nist(path, part):
        return re.sub(_nist_pattern(part), "*", name)
    part_word = next((word for word in PARTS[part] if word in name), None)
    return name.replace(part_word, "*", 1) if part_word else ""


def _is_of_nist(path: Path, part: str) -> bool:
    return bool(NIST_PARTS[part]) and re.search(_nist_pattern(part), path.name.lower()) is not None


def _nist_pattern(part: str) -> str:
    return rf"(?<![a-z0-9])(?:{'|'.join(NIST_PARTS[part])})(?![a-z0-9])"


def _read(files: list[Path]) -> list[Tagged]:
    if len(files) == 2:
        sentences = read_parallel(*files)
    elif is_ctf(files[0]):
        sentences = read_ctf(files[0])
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
