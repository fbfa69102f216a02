"""Files of named arrays that are mapped into memory: a header, a table of sections, and the arrays.

    0   8s   magic
    8   u4   version
    12  u4   number of sections
    16  u8   size of the file
    24  i8   a number whose meaning depends on the kind of file
    32  per section 40 bytes: name 20s, type 4s (numpy's), offset u8, length in items u8
    then the sections, each at a multiple of 64 bytes

All numbers are little-endian.  Lists of names are UTF-8 text, one name per line.  The pages of mapped arrays are read
when they are first used, and processes share them.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from readers.common.files import atomic_write
from readers.errors import FormatError

ALIGNMENT = 64
_HEADER = struct.Struct("<8sIIQq")
_SECTION = struct.Struct("<20s4sQQ")


@dataclass(frozen=True)
class MappedFormat:
    """A kind of mapped file.

    types: section -> numpy type; what: the kind's name in messages; remedy: how to make such a file; again: how to
    replace a damaged one.
    """

    magic: bytes
    version: int
    types: Mapping[str, str]
    what: str
    remedy: str
    again: str = "make it again"

    def write(self, path: str | Path, number: int, sections: Mapping[str, np.ndarray]) -> None:
        """Write the arrays, completely or not at all, in the order of `sections`."""
        end = _HEADER.size + _SECTION.size * len(sections)
        table = []
        for name, array in sections.items():
            offset = -(-end // ALIGNMENT) * ALIGNMENT
            table.append(_SECTION.pack(name.encode(), self.types[name].encode(), offset, array.shape[0]))
            end = offset + array.shape[0] * np.dtype(self.types[name]).itemsize
        with atomic_write(path) as file:
            file.write(_HEADER.pack(self.magic, self.version, len(sections), end, number) + b"".join(table))
            for array in sections.values():
                file.write(b"\0" * (-file.tell() % ALIGNMENT))
                file.write(np.ascontiguousarray(array).data)

    def read(self, path: str | Path, mode: str = "r") -> tuple[int, dict[str, np.ndarray]]:
        """(the header's number, section -> array), mapped into memory.

        mode: "r" for read-only arrays, "c" for arrays whose changes stay in this process.
        Raises FormatError for a file of another kind or version, a truncated file and a damaged table.
        """
        with Path(path).open("rb") as file:
            header = file.read(_HEADER.size)
        if not header.startswith(self.magic):
            raise FormatError(f"{path}: begins with {header[:8]!r}; expected a {self.what}; {self.remedy}")
        if len(header) < _HEADER.size:
            raise FormatError(
                f"{path}: {len(header)} bytes; expected a {self.what} of at least {_HEADER.size}; "
                f"the file is damaged, {self.again}"
            )
        _, version, num_sections, size, number = _HEADER.unpack(header)
        if version != self.version:
            raise FormatError(f"{path}: {self.what} of version {version}; expected {self.version}; {self.again}")
        raw = np.memmap(path, dtype=np.uint8, mode=mode).view(np.ndarray)
        if raw.shape[0] != size:
            raise FormatError(f"{path}: {raw.shape[0]} bytes; expected {size}; the file is damaged, {self.again}")
        return number, self._sections(raw, num_sections, path)

    def _sections(self, raw: np.ndarray, num_sections: int, path: str | Path) -> dict[str, np.ndarray]:
        end = _HEADER.size + _SECTION.size * num_sections
        if num_sections != len(self.types) or end > raw.shape[0]:
            raise FormatError(f"{path}: {num_sections} sections in the table; expected {len(self.types)}")
        sections = {}
        for entry in _SECTION.iter_unpack(raw[_HEADER.size : end].tobytes()):
            name, kind = (text.rstrip(b"\0").decode("ascii", "replace") for text in entry[:2])
            offset, length = entry[2:]
            if self.types.get(name) != kind or name in sections:
                raise FormatError(
                    f"{path}: section {name!r} of type {kind!r}; expected the sections of version {self.version}"
                )
            num_bytes = length * np.dtype(kind).itemsize
            if offset % ALIGNMENT or offset < end or offset + num_bytes > raw.shape[0]:
                raise FormatError(
                    f"{path}: section {name!r} at {offset}, {num_bytes} bytes; expected inside the file's "
                    f"{raw.shape[0]}"
                )
            sections[name] = raw[offset : offset + num_bytes].view(kind)
        return sections


def check_lengths(lengths: Mapping[str, int], groups, path: str | Path) -> None:
    """Raise FormatError unless the arrays of each group have one length."""
    for group in groups:
        for name in group[1:]:
            if lengths[name] != lengths[group[0]]:
                raise FormatError(
                    f"{path}: {lengths[name]} entries in {name}; expected {lengths[group[0]]} as in {group[0]}"
                )


def pack_names(names: list[str], path: str | Path) -> np.ndarray:
    """The names as UTF-8 text, one per line, (bytes,) u1.  Raises FormatError for a name with a line break."""
    for name in names:
        if "\n" in name:
            raise FormatError(f"{path}: name {name!r} contains a line break; expected none")
    return np.frombuffer("".join(f"{name}\n" for name in names).encode(), dtype=np.uint8)


def unpack_names(section: np.ndarray, what: str, path: str | Path) -> list[str]:
    """The names of a section written by `pack_names`.  Raises FormatError if it is damaged."""
    try:
        text = section.tobytes().decode()
    except UnicodeDecodeError as fault:
        raise FormatError(f"{path}: {what} are not UTF-8 ({fault.reason}); the file is damaged") from None
    names = text.split("\n")
    if names.pop():
        raise FormatError(f"{path}: {what} do not end in a line break; the file is damaged")
    return names
