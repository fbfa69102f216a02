"""CMUdict: lines `WORD  PH1 PH2 ...`, `WORD(2)` for further pronunciations; comments after `;;;` and ` #`."""

import re

COMMENT = ";;;"
VARIANT = re.compile(r"(.+)\([0-9]+\)")
_TRAILING_COMMENT = re.compile(r"\s#.*")


def split_cmu_line(line: str) -> tuple[str, list[str]] | None:
    """Split a line into the word, without the number of the pronunciation, and phones; None if only a comment."""
    fields = [] if line.startswith(COMMENT) else _TRAILING_COMMENT.sub("", line).split()
    if not fields:
        return None
    variant = VARIANT.fullmatch(fields[0])
    return variant[1] if variant else fields[0], fields[1:]
