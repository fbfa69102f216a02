"""Figures of lattices and small tables without a reader of their own, and of JSON."""

import json
import re
from itertools import pairwise
from pathlib import Path

from readers.common.faults import counted
from readers.common.report import Figures, all_finite, extent, missing, rows_of
from readers.common.text import read_lines
from readers.errors import FormatError
from readers.htk.edit_script import read_edit_script
from readers.htk.trees import read_trees
from readers.language.att import read_acceptor
from readers.tables.hmm_tables import is_bracketed
from recipes.file_kinds.text_kinds import json_objects

# Suffixes of files that an index can refer to, in the order in which they are tried.
NUMBERED = (".lat", ".fst", ".txt")
# An arc of a Kaldi text lattice, compact or not; Kaldi omits costs that are zero.
KALDI_ARC = re.compile(r"\d+\s+\d+\s+[^\s,]+(\s+[^\s,]+)?(\s+[^\s,]*,[^\s,]*(,\S*)?)?")


def kaldi_lattices(path: str) -> Figures:
    lines = [line.strip() for line in read_lines(path)]
    names = [line for before, line in pairwise(["", *lines]) if line and not before]
    links = []
    for number, line in enumerate(lines, 1):
        if len(line.split()) > 2:
            if not KALDI_ARC.fullmatch(line):
                raise FormatError(f"{path}:{number}: {line[:60]!r}; expected `start end label costs`")
            links.append([field for field in line.split() if "," not in field])
    return [
        ("lattices", len(names)),
        ("links", f"{len(links)}, {'compact' if len(links[0]) == 3 else 'of transitions'}"),
        ("labels", f"{len({row[-1] for row in links})} different"),
        ("first key", names[0]),
    ]


def lattice(path: str) -> Figures:
    from readers.htk.slf import SCALES, read_slf
    from readers.results.lattice import NULL_WORD

    lattice = read_slf(path)
    words = set(lattice.word) - {NULL_WORD}
    return [
        ("utterance", lattice.utterance or "not named"),
        ("nodes", lattice.num_nodes),
        ("links", lattice.num_links),
        ("words", f"{len(words)} different"),
        ("ends at", f"{lattice.time.max():.2f} s" if lattice.num_nodes and all_finite(lattice.time) else "no times"),
        *((key, f"{getattr(lattice, name):g}") for name, key in SCALES.items()),
        *sorted(lattice.header.items()),
    ]


def index(path: str) -> Figures:
    rows = [line.strip().split("\t") for line in read_lines(path) if line.strip()]
    prefix = path.removesuffix(".index")
    suffix = next((end for end in NUMBERED if Path(f"{prefix}{rows[0][0]}{end}").is_file()), NUMBERED[0])
    files = [f"{prefix}{number}{suffix}" for number, _ in rows]
    return [
        ("utterances", len(rows)),
        ("files", f"{files[0]}, ...{missing(files)}"),
        ("first", rows[0][1].strip()),
        ("last", rows[-1][1].strip()),
    ]


def outputs(path: str) -> Figures:
    shown = dict(rows_of(path))
    silent = sum(output == "[]" for output in shown.values())
    return [("words", len(shown)), ("output", f"nothing for {silent}, another word for {len(shown) - silent}")]


def symbols(path: str) -> Figures:
    from readers.kaldi.lattice import read_word_table

    ids = read_word_table(path)
    zero = next((name for name, number in ids.items() if number == 0), "nothing")
    return [("symbols", f"{len(ids)}, numbers {extent(ids.values())}"), ("0 is", zero)]


def counts(path: str) -> Figures:
    rows = rows_of(path)
    return [
        ("words", len(rows)),
        ("counts", f"{sum(int(count) for _, count in rows)} in all"),
        ("frequent", ", ".join(f"{word} {count}" for word, count in rows[:5])),
    ]


def numbers(path: str) -> Figures:
    rows = rows_of(path)
    values = [float(row[1]) for row in rows]
    return [
        ("names", f"{len(rows)}, {len({row[0] for row in rows})} different"),
        ("numbers", extent(values, "g")),
    ]


def json_lines(path: str) -> Figures:
    records = json_objects(path)
    return [
        ("records", len(records)),
        ("names", " ".join(dict.fromkeys(name for record in records for name in record))),
    ]


def json_words(path: str) -> Figures:
    utterances = json_objects(path)[0]
    try:
        words = [word for entry in utterances.values() for word in entry["words"]]
        confidences = [word["confidence"] for word in words if "confidence" in word]
        figures: Figures = [("utterances", len(utterances)), ("words", len(words))]
        figures.append(("ends at", f"{max((word['end'] for word in words), default=0.0):.2f} s"))
        mean = f", mean {sum(confidences) / len(confidences):.3f}" if confidences else ""
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as fault:
        raise FormatError(f"{path}: not a list of words ({fault}); expected word, start, end, confidence") from fault
    return [*figures, ("confidence", f"given for {len(confidences)}{mean}")]


def json_object(path: str) -> Figures:
    return [
        (name, value if isinstance(value, str) else json.dumps(value)) for name, value in json_objects(path)[0].items()
    ]


def tuning(path: str) -> Figures:
    content = json_objects(path)[0]
    try:
        chosen = ", ".join(f"{name} {value}" for name, value in content["chosen"].items())
        return [("trials", len(content["trials"])), ("chosen", chosen)]
    except (AttributeError, TypeError) as fault:
        raise FormatError(
            f"{path}: {fault}; expected `chosen`, options with their values, and a list `trials`"
        ) from fault


def acceptor(path: str) -> Figures:
    graph = read_acceptor(path)
    used = [graph.symbols[i] for i in set(graph.label.tolist())]
    states = sum(is_bracketed(name) for name in used)
    epsilons = int((graph.label == 0).sum())
    return [
        ("states", f"{graph.num_states}, {len(graph.final)} of them final, start {graph.start}"),
        ("arcs", f"{graph.num_arcs}, {epsilons} of them epsilon"),
        ("labels", f"{counted(states, 'HMM state')} and {counted(len(used) - states - bool(epsilons), 'word')}"),
    ]


def trees_or_script(path: str) -> Figures:
    try:
        trees = read_trees(path)
    except FormatError as fault:
        try:
            script = read_edit_script(path)
        except FormatError:
            raise fault from None
        return [
            ("questions", len(script.questions)),
            ("TB commands", len(script.clusterings)),
            ("other commands", " ".join(command for command, _ in script.others) or "none"),
        ]
    leaves = {leaf for tree in trees.trees.values() for leaf in tree.leaves}
    return [
        ("questions", len(trees.questions)),
        ("trees", f"{len(trees.trees)} of {len({phone for phone, _ in trees.trees})} phones"),
        ("leaves", f"{len(leaves)} tied states"),
    ]
