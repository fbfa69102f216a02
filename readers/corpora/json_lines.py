"""JSON objects on the lines of a text: lhotse's manifests, and tables such as NeMo's."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from readers.common.text import parse_object


def json_objects(lines: Iterable[str], path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place and the object of each line that is not blank.  Raises FormatError for other lines."""
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}"
        if not line.strip():
            continue
        yield where, parse_object(line, where)
