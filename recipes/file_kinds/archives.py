"""Figures of Kaldi archives and lists, record caches, example archives and records as text."""

import re
from collections import Counter
from functools import partial
from pathlib import Path

from readers.common.text import is_number, read_lines
from recipes.file_kinds.figures import Figures, Kind

ENTRY = re.compile(r"\S+\s+\S+(:\d+(\[[\d:,]+\])?|\.ark)")
CONTENTS = re.compile(r"[^=]+=.*\[\d+\]")
TEXT_MATRIX = re.compile(r"\S+\s+\[\s*(\]\s*($|\S+\s+\[)|[-+.\d]\S*(\s|$))")
_BINARY = re.compile(rb"\S{1,4096} \0B")
_INDEXED = re.compile(rb'ARGOREC\n.{12}\{"kind":"([\w -]+)"', re.DOTALL)
_VECTOR = re.compile(rb"\S{1,4096} \0B\x04")


def archive_kind(head: bytes) -> Kind | None:
    """Return (kind, function for its figures) given the first bytes of a binary archive; None for other files."""
    from readers.sources.records import record_cache

    if head.startswith(record_cache.MAGIC):
        return "record cache of a reader", cache
    if (found := _INDEXED.match(head)) is not None:
        kind = found[1].decode()
        return f"archive of {kind}", {"lattices": lattices, "training examples": examples}.get(
            kind, partial(indexed, kind=kind)
        )
    if _VECTOR.match(head):
        return "Kaldi archive of alignments", alignments
    return ("Kaldi archive of features", features) if _BINARY.match(head) else None


def text_kind(lines: list[str]) -> Kind | None:
    """Return (kind, function for its figures) given the non-empty lines of a text file; None for other files."""
    if lines and all(CONTENTS.fullmatch(line) for line in lines):
        return "table of contents of lattices", contents
    if lines and all(ENTRY.fullmatch(line) for line in lines):
        return "Kaldi script file (scp)", scp
    if TEXT_MATRIX.match(" ".join(lines[:2])):
        return "Kaldi archive of features, as text", features
    rows = [line.split() for line in lines[:100]]
    if not rows or len(rows[0]) < 2:
        return None
    counts = len(rows[0]) > 2 and all(row[1:] and all(map(str.isdigit, row[1:])) for row in rows)
    if counts and not rows[0][0].isdigit():
        return "Kaldi archive of alignments, as text", alignments
    if all(_is_record(row) and len(row) == len(rows[0]) for row in rows):
        return "records as text (UCI)", records
    return None


def _is_record(row: list[str]) -> bool:
    return sum(map(is_number, row)) >= max(2, len(row) - 1)


def features(path: str) -> Figures:
    from readers.kaldi.ark import read_matrix_header, scan_ark

    entries = scan_ark(path)
    headers = [read_matrix_header(path, entry.offset, True) for entry in entries]
    kinds = Counter(header.kind.decode().strip() for header in headers)
    return [
        ("entries", len(entries)),
        ("frames", sum(header.num_frames for header in headers)),
        ("values", " and ".join(str(dim) for dim in sorted({header.dim for header in headers} - {0})) + " per frame"),
        ("stored as", ", ".join(f"{count} {kind}" for kind, count in kinds.items())),
        ("first key", entries[0].key if entries else "none"),
    ]


def alignments(path: str) -> Figures:
    import numpy as np

    from readers.kaldi.alignments import read_alignments

    found = dict(read_alignments(path))
    classes = set().union(*(np.unique(one).tolist() for one in found.values()))
    return [
        ("entries", len(found)),
        ("frames", sum(len(one) for one in found.values())),
        ("classes", f"{len(classes)} different"),
        ("first key", next(iter(found), "none")),
    ]


def scp(path: str) -> Figures:
    from readers.kaldi.ark import read_ark_scp

    entries = read_ark_scp(path)
    files = {entry.path for entry in entries}
    missing = sum(not Path(file).is_file() for file in files)
    return [
        ("entries", len(entries)),
        ("archives", f"{len(files)}" + (f", {missing} of them not there" if missing else "")),
        ("first key", entries[0].key if entries else "none"),
    ]


def cache(path: str) -> Figures:
    from readers.sources.records.record_cache import open_cache

    found = open_cache(path)
    figures: Figures = [("records", len(next(iter(found.columns.values()))))]
    for stream in found.streams:
        what = f"{stream.dim} numbers" if stream.num_classes is None else f"a class of {stream.num_classes}"
        figures.append((stream.name, what))
    return figures + [("made from", source.path) for source in found.sources]


def examples(path: str) -> Figures:
    from readers.sources.examples.example_archive import BYTE, CLASS, ExampleArchive

    found = ExampleArchive(path).described
    figures: Figures = [
        ("examples", f"{found.examples} of {found.total}"),
        ("archive", f"{found.number} of {found.archives} of set {found.token}"),
        ("blocks", f"{found.num_blocks}, of {min(found.per_block, found.examples)} examples"),
    ]
    for stream in found.streams:
        each = "a byte each" if stream.kind == BYTE else "4 bytes each"
        what = f"a class of {stream.dim}" if stream.kind == CLASS else f"{stream.dim} numbers, {each}"
        figures.append((stream.name, what))
    made = [("computed with", f"{name}: {', '.join(record.texts())}") for name, record in found.features.items()]
    return [*figures, *made]


def indexed(path: str, kind: str) -> Figures:
    from readers.results.indexed_archive import IndexedArchive

    archive = IndexedArchive(path, kind)
    single = {key: value for key, value in archive.metadata.items() if isinstance(value, str | int | float)}
    return [("records", f"{len(archive.names)}"), *((key, f"{value}") for key, value in single.items())]


def lattices(path: str) -> Figures:
    from readers.sources.lattices.lattice_archive import LatticeArchive

    archive = LatticeArchive(path)
    found = [archive.lattice(name) for name in archive.names]
    frames, arcs = sum(one.num_frames for one in found), sum(len(one.start_node) for one in found)
    density = sum(int(one.num_arc_frames.sum()) for one in found) / max(frames, 1)
    silent = [phone for phone, quiet in zip(archive.phones, archive.silence) if quiet]
    return [
        ("utterances", f"{len(found)}"),
        ("frames", f"{frames}"),
        ("arcs", f"{arcs}, {density:.1f} per frame"),
        ("outputs", f"{archive.num_senones} of the network"),
        ("phones", f"{len(archive.phones)}, of which {', '.join(silent) or 'none'} silence"),
    ]


def contents(path: str) -> Figures:
    from readers.sources.lattices.lattice_contents import read_contents

    found = read_contents(path)
    archives = dict.fromkeys(entry.path for entry in found.values())
    missing = sum(not Path(archive).is_file() for archive in archives)
    return [
        ("utterances", f"{len(found)}"),
        ("archives", ", ".join(archives) + (f"; {missing} of them not there" if missing else "")),
        ("first", next(iter(found))),
    ]


def records(path: str) -> Figures:
    rows = [line.split() for line in read_lines(path) if line.strip()]
    return [("records", len(rows)), ("columns", len(rows[0]))]
