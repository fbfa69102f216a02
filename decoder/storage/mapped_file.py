"""Files of named arrays that are mapped into memory: a header, a table of sections, the arrays and checksums.

    0   8s   magic
    8   u4   version
    12  u4   number of sections
    16  u8   size of the file
    24  i8   a number whose meaning depends on the kind of file
    32  per section 40 bytes: name 20s, type 4s (numpy's), offset u8, length in items u8
    then the sections, each at a multiple of 64 bytes
    then the CRC-32 of each block of 4 MiB of everything before, u4

All numbers are little-endian.  Lists of names are UTF-8 text, one name per line.  The pages of mapped arrays are shared
by processes.
"""

import struct
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, overload

import numpy as np

from decoder.storage.first_opening import FirstOpening
from readers.common.environment import available_cores
from readers.common.file_part import FilePart, part_of
from readers.common.files import atomic_write
from readers.errors import FormatError

ALIGNMENT = 64
BLOCK = 1 << 22  # bytes per checksum
_HEADER = struct.Struct("<8sIIQq")
_SECTION = struct.Struct("<20s4sQQ")


@dataclass(frozen=True)
class MappedFormat:
    """A kind of mapped file.

    types: section -> numpy type; what: the kind's name in messages; remedy: how to make such a file; again: how to
    replace a damaged one; optional: sections that may be missing.
    """

    magic: bytes
    version: int
    types: Mapping[str, str]
    what: str
    remedy: str
    again: str = "make it again"
    optional: Collection[str] = ()

    def write(self, path: str | Path, number: int, sections: Mapping[str, np.ndarray]) -> None:
        """Write the arrays, completely or not at all, in the order of `sections`."""
        end = _HEADER.size + _SECTION.size * len(sections)
        table = []
        for name, array in sections.items():
            offset = -(-end // ALIGNMENT) * ALIGNMENT
            table.append(_SECTION.pack(name.encode(), self.types[name].encode(), offset, array.shape[0]))
            end = offset + array.shape[0] * np.dtype(self.types[name]).itemsize
        size = end + 4 * -(-end // BLOCK)
        with atomic_write(path) as file:
            checksums = _Checksums(file)
            checksums.write(_HEADER.pack(self.magic, self.version, len(sections), size, number) + b"".join(table))
            for array in sections.values():
                checksums.write(b"\0" * (-checksums.position % ALIGNMENT))
                checksums.write(np.ascontiguousarray(array).view(np.uint8).data)
            file.write(np.array(checksums.blocks, "<u4").tobytes())

    def read(
        self, path: str | Path | FilePart, mode: Literal["r", "c"] = "r", verify: bool | None = None
    ) -> tuple[int, dict[str, np.ndarray]]:
        """(the header's number, section -> array), mapped into memory.

        mode: "r" for read-only arrays, "c" for arrays whose changes stay in this process; verify: whether to compare
        the checksums, by default unless they were compared before.
        Raises FormatError for a file of another kind or version, a truncated file, a damaged table, a wrong checksum.
        """
        part = part_of(path)
        if not part.path.is_file():
            raise FormatError(f"{path}: a directory, a device or a pipe; expected a file, which is a {self.what}")
        with part.path.open("rb") as file:
            file.seek(part.offset)
            header = file.read(min(_HEADER.size, part.size))
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
        opening = FirstOpening([part.path])
        raw = part.map(mode)
        if raw.shape[0] != size:
            raise FormatError(f"{path}: {raw.shape[0]} bytes; expected {size}; the file is damaged, {self.again}")
        sections = self._sections(raw, num_sections, path)
        if verify or (verify is None and not opening.was_checked()):
            self._verify(raw, path)
            if not part.name:
                opening.note_checked()
        return number, sections

    def _verify(self, raw: np.ndarray, path: str | Path | FilePart) -> None:
        num_blocks = -(-raw.shape[0] // (BLOCK + 4))
        end = raw.shape[0] - 4 * num_blocks
        stored = np.frombuffer(raw[end:].tobytes(), "<u4")
        wrong = np.flatnonzero(block_checksums(raw[:end]) != stored)
        if wrong.size:
            raise FormatError(
                f"{path}: wrong checksum of the bytes from {wrong[0] * BLOCK}; the file is damaged, {self.again}"
            )

    def _sections(self, raw: np.ndarray, num_sections: int, path: str | Path | FilePart) -> dict[str, np.ndarray]:
        damaged = f"the file is damaged, {self.again}"
        end = _HEADER.size + _SECTION.size * num_sections
        fewest = len(self.types) - len(self.optional)
        if not fewest <= num_sections <= len(self.types) or end > raw.shape[0]:
            raise FormatError(f"{path}: {num_sections} sections in the table; expected {fewest}; {damaged}")
        sections = {}
        for entry in _SECTION.iter_unpack(raw[_HEADER.size : end].tobytes()):
            name, kind = (text.rstrip(b"\0").decode("ascii", "replace") for text in entry[:2])
            offset, length = entry[2:]
            if self.types.get(name) != kind or name in sections:
                raise FormatError(
                    f"{path}: section {name!r} of type {kind!r}; expected the sections of version {self.version}; "
                    f"{damaged}"
                )
            num_bytes = length * np.dtype(kind).itemsize
            if offset % ALIGNMENT or offset < end or offset + num_bytes > raw.shape[0]:
                raise FormatError(
                    f"{path}: section {name!r} at {offset}, {num_bytes} bytes; expected inside the file's "
                    f"{raw.shape[0]}; {damaged}"
                )
            sections[name] = raw[offset : offset + num_bytes].view(kind)
        missing = [name for name in self.types if name not in sections and name not in self.optional]
        if missing:
            raise FormatError(f"{path}: no section {missing[0]!r}; expected one; {damaged}")
        return sections


def block_checksums(content: np.ndarray) -> np.ndarray:
    """Return the CRC-32 of each block of 4 MiB of bytes, (blocks,) uint32; the last block may be shorter."""
    blocks = [content[begin : begin + BLOCK] for begin in range(0, len(content), BLOCK)]
    if len(blocks) < 2:
        return np.array([zlib.crc32(block.data) for block in blocks], np.uint32)
    with ThreadPoolExecutor(min(len(blocks), available_cores())) as threads:
        return np.fromiter(threads.map(zlib.crc32, blocks), np.uint32, len(blocks))


class _Checksums:
    """Writes to a file and keeps the CRC-32 of each block."""

    def __init__(self, file: IO[bytes]):
        self.file = file
        self.position = 0
        self.blocks: list[int] = []

    def write(self, data: bytes | memoryview) -> None:
        self.file.write(data)
        done = 0
        while done < len(data):
            if self.position % BLOCK == 0:
                self.blocks.append(0)
            part = data[done : done + BLOCK - self.position % BLOCK]
            self.blocks[-1] = zlib.crc32(part, self.blocks[-1])
            done += len(part)
            self.position += len(part)


def check_lengths(lengths: Mapping[str, int], groups: Iterable[Sequence[str]], path: str | Path | FilePart) -> None:
    """Raise FormatError unless the arrays of each group have one length."""
    for group in groups:
        for name in group[1:]:
            if lengths[name] != lengths[group[0]]:
                raise FormatError(
                    f"{path}: {lengths[name]} entries in {name}; expected {lengths[group[0]]} as in {group[0]}; "
                    "the file is damaged"
                )


def pack_names(names: Sequence[str], path: str | Path) -> np.ndarray:
    """The names as UTF-8 text, one per line, (bytes,) u1.  Raises FormatError for a name with a line break."""
    for name in names:
        if "\n" in name:
            raise FormatError(f"{path}: name {name!r} contains a line break; expected none")
    return np.frombuffer("".join(f"{name}\n" for name in names).encode(), dtype=np.uint8)


def unpack_names(section: np.ndarray, what: str, path: str | Path | FilePart) -> list[str]:
    """The names of a section written by `pack_names`.  Raises FormatError if it is damaged."""
    return list(NameList(section, what, path))


class NameList(Sequence[str]):
    """Names in a section written by `pack_names`, decoded one by one when they are asked for.

    Processes share the text, which as a list of str would take ten times its size in each of them.  Raises FormatError
    if the section is damaged.
    """

    def __init__(self, section: np.ndarray, what: str, path: str | Path | FilePart):
        try:
            section.tobytes().decode()
        except UnicodeDecodeError as fault:
            raise FormatError(f"{path}: {what} are not UTF-8 ({fault.reason}); the file is damaged") from None
        self._text = section
        self._ends = np.flatnonzero(section == ord("\n")).astype(np.int32 if section.size < 2**31 else np.int64)
        if section.size and section[-1] != ord("\n"):
            raise FormatError(f"{path}: {what} do not end in a line break; the file is damaged")
        self._known: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, number: int) -> str: ...

    @overload
    def __getitem__(self, number: slice) -> list[str]: ...

    def __getitem__(self, number: int | slice) -> str | list[str]:
        name = self._known.get(number) if type(number) is int else None
        if name is not None:
            return name
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        i = range(len(self))[number]  # raises IndexError
        begin = int(self._ends[i - 1]) + 1 if i else 0
        self._known[i] = name = self._text[begin : int(self._ends[i])].tobytes().decode()
        return name

    def __iter__(self) -> Iterator[str]:
        return iter(self._text.tobytes().decode().split("\n")[:-1])

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) >= 0

    def index(self, name: str, *limits: int) -> int:
        """Return the number of a name.  Raises ValueError if it is not there."""
        if limits:
            return list(self).index(name, *limits)
        if (position := self._find(name)) < 0:
            raise ValueError(f"{name!r} is not in the list")
        return int(np.searchsorted(self._ends, position))

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, (NameList, list)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as the data model wants it

    def _find(self, name: str) -> int:
        """Return where the first name that is equal begins, -1 if there is none."""
        if "\n" in name:
            return -1
        return (b"\n" + self._text.tobytes()).find(f"\n{name}\n".encode())
