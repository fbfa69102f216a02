"""Headers of NIST SPHERE audio files (TIMIT): reading, for checks, and writing.

The first line is `NIST_1A`, the second the size of the header in bytes; then come `name -type value` lines (types -i
integer, -r real, -sN string of N characters) up to `end_head`, padded to the size.  Source: NIST SPHERE documentation.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from readers.common.text import to_number
from readers.errors import FormatError

HEADER_SIZE = 1024
MAX_HEADER_SIZE = 1 << 20


def read_sphere_header(path: str | Path) -> dict[str, int | float | str]:
    """Return the fields of the header.

    Raises FormatError, with the line, for a malformed header, and for encodings that libsndfile cannot decode
    (shorten-compressed).
    """
    size = Path(path).stat().st_size
    with Path(path).open("rb") as file:
        opening = file.read(16).split(b"\n")
        if opening[0] != b"NIST_1A" or len(opening) < 3 or not opening[1].strip().isdigit():
            raise FormatError(f"{path}:1: {opening[0][:20]!r}; expected NIST_1A and the header's size on the next line")
        header_size = int(opening[1])
        if not 16 < header_size <= min(size, MAX_HEADER_SIZE):
            raise FormatError(f"{path}:2: header of {header_size} bytes in a file of {size}; expected it to fit")
        file.seek(0)
        lines = file.read(header_size).decode("latin-1").split("\n")
    fields: dict[str, int | float | str] = {}
    for number, line in enumerate(lines[2:], 3):
        if line.strip() == "end_head":
            break
        if line.strip() and not line.startswith(";"):
            name, value = _parse_field(line, f"{path}:{number}")
            fields[name] = value
    else:
        raise FormatError(f"{path}: no end_head line in the header of {header_size} bytes; expected one")
    coding = str(fields.get("sample_coding", "pcm"))
    if "shorten" in coding or "shortpack" in coding or "wavpack" in coding:
        raise FormatError(
            f"{path}: SPHERE file with compressed samples ({coding}); expected plain pcm, ulaw or alaw; "
            "decompress it first, for instance with w_decode or sph2pipe"
        )
    return fields


def _parse_field(line: str, where: str) -> tuple[str, int | float | str]:
    parts = line.split(None, 2)
    try:
        name, kind, value = parts
        if kind in ("-i", "-r"):
            number = to_number(value)
            return name, int(value) if kind == "-i" else number
        if kind.startswith("-s"):
            return name, value[: int(kind[2:])]
    except ValueError:
        pass
    raise FormatError(f"{where}: {line.strip()[:60]!r}; expected name, -i, -r or -sN, and a value")


def sphere_header(samples: npt.NDArray[np.int16], sample_rate: int) -> bytes:
    """Return the 1024-byte header of 16-bit little-endian PCM in one channel; samples (N,) int16."""
    fields: list[tuple[str, int | str]] = [
        ("channel_count", 1),
        ("sample_count", len(samples)),
        ("sample_rate", int(sample_rate)),
        ("sample_min", int(samples.min()) if len(samples) else 0),
        ("sample_max", int(samples.max()) if len(samples) else 0),
        ("sample_n_bytes", 2),
        ("sample_byte_format", "01"),
        ("sample_sig_bits", 16),
        ("sample_coding", "pcm"),
    ]
    lines = ["NIST_1A", f"{HEADER_SIZE:7d}"]
    lines += [f"{n} -i {v}" if isinstance(v, int) else f"{n} -s{len(v)} {v}" for n, v in fields]
    return ("\n".join(lines) + "\nend_head\n").encode().ljust(HEADER_SIZE, b" ")
