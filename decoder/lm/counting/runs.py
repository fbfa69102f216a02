"""Counts that memory cannot hold: sorted tables on the disk, which are merged block by block (external sorting).

The keys of a run's n-grams rise, and the rows of their prefixes in the merged table rise with the rows in the run, so
each level is merged as the one below was, with the rows that this one has got.
"""

import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from decoder.lm.counting.tables import WORD_BITS, NgramTable, merged, sorted_table

BLOCK = 1 << 20  # n-grams of each run in memory at once
Rows = npt.NDArray[np.int64]


class SortedRuns:
    """Tables of n-grams in a temporary directory, which is made for the first of them.

    Parameters
    ----------
    parent : Path
        Where to make the temporary directory, on a disk with space for the counts.
    """

    def __init__(self, parent: Path):
        self._parent = parent
        self._directory = parent
        self._stack = contextlib.ExitStack()
        self._runs: list[list[NgramTable]] = []

    def __enter__(self) -> "SortedRuns":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, tables: Sequence[NgramTable]) -> None:
        """Write the tables of a run, one for each order."""
        if not self._runs:
            self._parent.mkdir(parents=True, exist_ok=True)
            holder = tempfile.TemporaryDirectory(prefix=".counts.", dir=self._parent)
            self._directory = Path(self._stack.enter_context(holder))
        self._runs.append(self._stored(len(self._runs), tables))

    def _stored(self, run: int, tables: Sequence[NgramTable]) -> list[NgramTable]:
        stored = []
        for level, table in enumerate(tables):
            paths = [self._directory / f"{run}.{level}.{name}.npy" for name in NgramTable._fields]
            for path, values in zip(paths, table):
                np.save(path, values, allow_pickle=False)
            stored.append(NgramTable(*(np.load(path, mmap_mode="r", allow_pickle=False) for path in paths)))
        return stored

    def merge(self, new_ids: npt.NDArray[np.integer]) -> list[NgramTable]:
        """Return the sums of all runs, mapped into memory as long as this object lives; new_ids: of all words."""
        for number, run in enumerate(self._runs):
            self._runs[number] = self._stored(number, merged([(run, new_ids)]))
        rows: list[Rows] = [np.zeros(1, np.int64) for _ in self._runs]  # of each run's prefixes in the merged table
        result = []
        for level, tables in enumerate(zip(*self._runs, strict=True)):
            table, rows = self._merge_level(level, tables, rows)
            result.append(table)
        return result

    def _merge_level(
        self, level: int, tables: Sequence[NgramTable], rows: Sequence[Rows]
    ) -> tuple[NgramTable, list[Rows]]:
        """Return the merged table of one order, and the row in it of each n-gram of each run."""
        outputs = [self._directory / f"merged.{level}.{name}" for name in NgramTable._fields]
        places = [self._directory / f"{run}.{level}.rows" for run in range(len(tables))]
        begin = [0] * len(tables)
        done = 0
        with contextlib.ExitStack() as stack:
            files, row_files = ([stack.enter_context(path.open("wb")) for path in paths] for paths in (outputs, places))
            while any(first < len(table.word) for first, table in zip(begin, tables)):
                blocks = [_block(*run) for run in zip(begin, tables, rows)]
                # Up to the last key of the block that ends first, every run has shown all its n-grams.
                bounds = [
                    keys[-1]
                    for keys, first, table in zip(blocks, begin, tables)
                    if len(keys) and first + len(keys) < len(table.word)
                ]
                last = min(bounds, default=np.iinfo(np.int64).max)
                sizes = [int(np.searchsorted(keys, last, "right")) for keys in blocks]
                keys = np.concatenate([keys[:size] for keys, size in zip(blocks, sizes)])
                counts = [table.count[first : first + size] for table, first, size in zip(tables, begin, sizes)]
                table, where = sorted_table(keys, np.concatenate(counts))
                for file, values in zip(files, table):
                    values.tofile(file)
                for file, part in zip(row_files, np.split(where + done, np.cumsum(sizes)[:-1])):
                    part.tofile(file)
                done += len(table.word)
                begin = [first + size for first, size in zip(begin, sizes)]
        types = (np.int32, np.int32, np.int64)
        return (
            NgramTable(*(_mapped(path, dtype) for path, dtype in zip(outputs, types))),
            [_mapped(path, np.int64) for path in places],
        )


def _block(begin: int, table: NgramTable, rows: Rows) -> Rows:
    """Return the next keys of a run."""
    part = slice(begin, begin + BLOCK)
    return rows[table.prefix[part]] << WORD_BITS | table.word[part]


def _mapped(path: Path, dtype: npt.DTypeLike) -> np.ndarray:
    """Map a file of numbers, which may be empty."""
    return np.memmap(path, dtype, "r") if path.stat().st_size else np.zeros(0, dtype)
