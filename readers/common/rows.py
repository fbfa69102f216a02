"""Large text tables, split into many rows at once."""

from collections.abc import Iterator

ROWS_AT_ONCE = 50000


def chunks(lines: list[str], first: int, last: int, size: int = ROWS_AT_ONCE) -> Iterator[tuple[int, list[list[str]]]]:
    """Yield (index of the first line, fields of each line) of lines[first:last] in chunks of `size` lines.

    Converting a whole column with map() or numpy is several times faster than converting line by line; chunks limit the
    memory that the split fields need.
    """
    for begin in range(first, last, size):
        yield begin, [line.split() for line in lines[begin : min(begin + size, last)]]
