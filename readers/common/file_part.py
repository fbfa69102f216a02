"""A run of bytes in a file: a member of a bundle, which is read or mapped into memory where it lies."""

import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from readers.errors import FormatError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True)
class FilePart:
    """Bytes of a file, with a name of their own.

    Functions that read text, compiled graphs, language models and safetensors files take one in place of a path.

    Parameters
    ----------
    path : Path
        The file.
    offset, size : int
        Where the bytes begin, and how many there are.
    name : str
        The name in messages, after that of the file; empty for a file of its own.
    source : Path, optional
        The file that messages name, if `path` is a copy that was unpacked from it.
    """

    path: Path
    offset: int
    size: int
    name: str = ""
    source: Path | None = None

    def __str__(self) -> str:
        path = self.source or self.path
        return f"{path}:{self.name}" if self.name else f"{path}"

    def read_bytes(self) -> bytes:
        """Return all bytes.  Raises FormatError if the file has become too short, and OSError."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            content = file.read(self.size)
        if len(content) < self.size:
            raise FormatError(f"{self}: {len(content)} bytes; expected {self.size}; the file is truncated")
        return content

    def map(self, mode: Literal["r", "c"] = "r") -> "npt.NDArray[np.uint8]":
        """Map the bytes into memory.

        Parameters
        ----------
        mode : {"r", "c"}
            "r" for a read-only array, "c" for one whose changes stay in this process.

        Returns
        -------
        array (size,)
            uint8; its pages are shared between processes.

        Raises
        ------
        FormatError
            If the file has become too short.
        OSError
        """
        import numpy as np  # commands that compute nothing start without it

        if self.path.stat().st_size < self.offset + self.size:
            raise FormatError(f"{self}: the file is truncated; expected {self.size} bytes from {self.offset}")
        if not self.size:
            return np.zeros(0, np.uint8)
        start = self.offset - self.offset % mmap.ALLOCATIONGRANULARITY
        pages = np.memmap(self.path, np.uint8, mode, start, (self.offset + self.size - start,)).view(np.ndarray)
        return pages[self.offset - start :]


def part_of(path: "str | Path | FilePart") -> FilePart:
    """Return a file as a part of itself; a part is returned unchanged.  Raises OSError for a file that is missing."""
    if isinstance(path, FilePart):
        return path
    return FilePart(Path(path), 0, Path(path).stat().st_size)


def check_length(content: Any, where: str) -> None:
    """Check that a mapped file is as long as before; to read beyond its new end would kill the process.

    Parameters
    ----------
    content : array
        From `FilePart.map`.
    where : str
        What is read, for the message.

    Raises
    ------
    FormatError
        If the file was made shorter after it was mapped.
    """
    mapping = content
    while not isinstance(mapping, mmap.mmap):
        if mapping.base is None:  # an empty file is not mapped
            return
        mapping = mapping.base
    if mapping.size() < len(mapping):
        raise FormatError(
            f"{where}: the file was cut to {mapping.size()} bytes while it was read; expected it unchanged; make it "
            "again, and start again"
        )
