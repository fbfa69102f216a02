"""Large tables of text as columns: many rows at once, and the exact line when one of them is wrong."""

from collections.abc import Iterator

ROWS_AT_ONCE = 50000


def chunks(lines: list[str], first: int, last: int, size: int = ROWS_AT_ONCE) -> Iterator[tuple[int, list[list[str]]]]:
    """(index of the first line, fields of each line) of lines[first:last], some tens of thousands at a time.

    Whole columns of a chunk go through map() and numpy in one go, which is several times faster than line by line;
    chunks keep the split fields of a large file from being in memory all at once.
    """
    for begin in range(first, last, size):
        yield begin, [line.split() for line in lines[begin : min(begin + size, last)]]
