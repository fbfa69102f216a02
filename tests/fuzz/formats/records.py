"""Records as text, their cache, and archives of examples, with byte-coded streams."""

import contextlib
import json
import random
from functools import partial
from pathlib import Path

import numpy as np

from readers.config.config import Config
from readers.minibatches.base import open_reader
from readers.sources.examples.example_archive import (
    ARCHIVE,
    Description,
    ExampleArchive,
    ExampleStream,
    record_type,
    write_archive,
)
from readers.sources.examples.example_writer import archive_path
from readers.sources.records.record_cache import FIRST_RECORD, CachedStream, open_cache, write_cache
from readers.sources.records.record_cache import PREFIX as CACHE
from tests.fuzz.format import Format, text, written
from tests.fuzz.formats.lattices import changed
from tests.fuzz.mutators import mutate_json

UCI = """readerType=UCIFastReader; file=input; {more}
features=[dim=2;start=0]
labels=[start=2;dim=1;labelDim=3;labelMappingFile=map.txt]"""
STREAMS = (CachedStream("features", 0, 0, 2), CachedStream("labels", 0, 2, 1, 3, ("zero", "one", "two")))


def minibatches(block: str, directory: Path) -> None:
    with contextlib.chdir(directory):
        reader = open_reader(Config.from_text(f"reader=[\n{block}\n]", "r.cntk").block("reader"), 1)
        try:
            for size in (1, 4):
                for _, _minibatch in zip(range(4), reader.minibatches(0, size)):
                    pass
        finally:
            reader.close()


def use_uci(path: Path) -> None:
    path.rename(path.parent / "input")
    minibatches(UCI.format(more=""), path.parent)
    (path.parent / "map.txt").unlink(missing_ok=True)
    minibatches(UCI.format(more="wfile=cache.bin"), path.parent)
    minibatches(UCI.format(more="wfile=cache.bin"), path.parent)


def use_label_map(path: Path) -> None:
    (path.parent / "map.txt").write_bytes(path.read_bytes())
    path.write_text("1 2 zero\n3 4 one\n5 6 two\n")
    use_uci(path)


def cache(path: Path, rng: random.Random) -> None:
    count = rng.choice((1, 3, 9))
    blocks = [{"features": np.ones((count, 2), "f4"), "labels": np.arange(count, dtype="i4") % 3}]
    write_cache(path, blocks, STREAMS, (), {"customDelimiter": ""})


def use_cache(path: Path) -> None:
    found = open_cache(path)
    for column in found.columns.values():
        np.array(column[:5])
    minibatches(f"readerType=BinaryReader; file={path}", path.parent)


def cache_description(content: bytes, rng: random.Random) -> bytes:
    """Change the description of a cache, or a number of its header."""
    head = list(CACHE.unpack(content[: CACHE.size]))
    offset, length = head[4], head[5]
    if rng.random() < 0.3:
        field = rng.randrange(1, 6)
        head[field] = rng.choice((0, 1, 2, head[field] + 1, 2**31 - 1, 2**32 - 1))
        return CACHE.pack(*head) + content[CACHE.size :]
    described = json.dumps(mutate_json(json.loads(content[offset : offset + length]), rng)).encode()
    head[5] = len(described)
    return CACHE.pack(*head) + content[CACHE.size : offset] + described


def cache_values(content: bytes, rng: random.Random) -> bytes:
    """Change numbers and classes of records."""
    place = FIRST_RECORD + 4 * rng.randrange((CACHE.unpack(content[: CACHE.size])[4] - FIRST_RECORD) // 4)
    value = rng.choice(
        (b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\3\0\0\0", b"\0\0\xc0\x7f", b"\0\0\x80\x7f")
    )
    return content[:place] + value + content[place + 4 :]


def examples(path: Path, rng: random.Random) -> None:
    kinds = (
        ExampleStream("f", "byte", rng.randrange(1, 5)),
        ExampleStream("g", "float", 2),
        ExampleStream("l", "class", 3),
    )
    count = rng.randrange(1, 9)
    numbers = np.random.default_rng(rng.randrange(10**6))
    records = np.zeros(count, record_type(kinds))
    records["f0"] = numbers.standard_normal(records["f0"].shape)
    records["f2"] = numbers.integers(0, 3, count)
    write_archive(
        path, Description(kinds, 1, 1, count, count, rng.choice((1, 2, count)), "t"), records, np.arange(count)
    )


def use_examples(path: Path) -> None:
    archive = ExampleArchive(path)
    described = archive.described
    for block in range(min(described.num_blocks, 3)):
        begin = block * described.per_block
        for stream in range(len(described.streams)):
            archive.numbers(stream, begin, begin + described.count(block))
    path.rename(archive_path(path.parent / "set", 1))
    try:
        minibatches("readerType=ExampleReader; file=set", path.parent)
    finally:
        archive_path(path.parent / "set", 1).rename(path)


FORMATS = (
    Format("records as text", text("1 -0.5 zero\n2 0 two\n3 1e-3 one\n"), use_uci),
    Format("label map", text("zero\none\ntwo\n"), use_label_map),
    Format("record cache", written(cache), use_cache, (cache_description, cache_values), True),
    Format("archive of examples", written(examples), use_examples, (partial(changed, kind=ARCHIVE),), True),
)
