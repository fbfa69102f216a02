"""Bundles: everything that a recogniser needs, in a directory or in a zip file NAME.argo.

A bundle holds bundle.json (see description.py) and members with fixed names, which are read, or mapped into memory,
where they lie.  In a zip file they are stored uncompressed and begin at multiples of 64 bytes.

The members of a compact bundle are streams of xz, and the search tables, which follow from the others, are left out.
It is unpacked once, to a directory in the user's cache (see decoder.storage.unpacked).
"""

import contextlib
import hashlib
import stat
import struct
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from decoder.recognizer.description import AGAIN, CHECKSUM, MAX_BYTES, BundleDescription, dump, undump
from decoder.storage.compression import decompress
from decoder.storage.first_opening import FirstOpening, cache_directory
from decoder.storage.installed import SUFFIX as SUFFIX
from decoder.storage.installed import find_model, model_fault
from decoder.storage.mapped_file import ALIGNMENT, BLOCK, block_checksums
from decoder.storage.unpacked import hold, remove_unused
from readers.common.file_part import FilePart, part_of
from readers.common.files import write_content
from readers.common.temporary import directory_of_process, temporary_directory
from readers.errors import ConfigError, FormatError

DESCRIPTION = "bundle.json"
MODEL, GRAPH, LM, CNTKMAP, DICTIONARY = "model.safetensors", "graph.dg", "lm.mapped", "cntkmap", "dictionary"
ONNX_MODEL = "model.onnx"  # in place of MODEL
SEARCH = "search.mapped"  # what the search reads of graph, language model, cntkmap and options
G2P_MODEL = "g2p"  # model of words that the dictionary lacks
IVECTORS = "ivectors.safetensors"  # model that estimates them, for a network that takes them
REQUIRED = (GRAPH, CNTKMAP, SEARCH)  # and a model
TABLES = ("state_map", "transitions", "topology", "tied", "silence")  # of `argonaut graph`, for alignment
CALIBRATION = "calibration.json"
PRONUNCIATION = "pronunciation.safetensors"  # from measures of aligned phones to scores of experts
SECOND_PASS, SECOND_PASS_SETTINGS = "second_pass.safetensors", "second_pass.json"  # a network as language model
NETWORK_MEMBERS = (MODEL, CNTKMAP, *TABLES)  # a network, and the phone models whose states are its outputs
ALIGNER = "aligner."  # prefix of the members of a network that aligns instead of that of the search
MEMBERS = (
    *(MODEL, ONNX_MODEL, *REQUIRED, LM, DICTIONARY, *TABLES, CALIBRATION, IVECTORS, PRONUNCIATION, G2P_MODEL),
    *(SECOND_PASS, SECOND_PASS_SETTINGS, *(ALIGNER + name for name in NETWORK_MEMBERS)),
)
PACKED = ".xz"  # suffix of the members of a compact bundle
ZIP_MAGIC = b"PK\x03\x04"
LOCAL_HEADER = struct.Struct("<4s5H3I2H")


@dataclass(frozen=True)
class Bundle:
    """An opened bundle.

    Attributes
    ----------
    path : Path
        The zip file or directory.
    description : BundleDescription
    parts : mapping of str to FilePart
        Where each member lies.
    checksums : mapping of str to tuple of int
        CRC-32 of each 4 MiB of a member.
    is_compact : bool
        Whether the members lie in a directory to which the bundle was unpacked.
    """

    path: Path
    description: BundleDescription
    parts: Mapping[str, FilePart]
    checksums: Mapping[str, tuple[int, ...]]
    is_compact: bool = False

    @classmethod
    def open(cls, path: str | Path, verify: bool | None = None) -> "Bundle":
        """Open a bundle: read its description, and check that every member is complete.

        Parameters
        ----------
        path : str or Path
            The zip file or directory, or the name of an installed bundle, such as en.
        verify : bool, optional
            Whether to compare the checksums of the members, by default when it is first opened.

        Returns
        -------
        Bundle

        Raises
        ------
        FormatError
            For a file or directory that is no bundle, another version, and damage of any kind; for a bare name that is
            neither a file nor an installed bundle.
        OSError
        """
        path = find_model(path)
        if not is_bundle(path) and (fault := model_fault(path)):
            raise FormatError(fault)
        parts = _parts(path)
        if _is_compact(parts):
            bundle = _open_compact(parts, bool(verify))
            members = {name: replace(part, name=name, source=path) for name, part in bundle.parts.items()}
            return replace(bundle, path=path, parts=members, is_compact=True)
        return cls._of_parts(path, parts, verify)

    @classmethod
    def _of_parts(cls, path: Path, parts: dict[str, FilePart], verify: bool | None) -> Self:
        part = parts.pop(DESCRIPTION)
        description, sizes = _described(part)
        for name in sizes.keys() - parts.keys():
            raise FormatError(f"{path}: no member {name}; expected it, as {DESCRIPTION} says; {AGAIN}")
        for name in parts.keys() - sizes.keys() if not path.is_dir() else ():
            raise FormatError(f"{path}: member {name} is not in {DESCRIPTION}; expected it there; {AGAIN}")
        for name, (size, _) in sizes.items():
            if parts[name].size != size:
                raise FormatError(f"{parts[name]}: {parts[name].size} bytes; expected {size}; damaged, {AGAIN}")
        members = {name: parts[name] for name in MEMBERS if name in sizes}
        bundle = cls(path, description, members, {name: checksums for name, (_, checksums) in sizes.items()})
        opening = FirstOpening(list(dict.fromkeys(part.path for part in members.values())))
        if verify or (verify is None and not opening.was_checked()):
            bundle.verify()
            opening.note_checked()
        return bundle

    def verify(self) -> None:
        """Compare the checksums of all members.  Raises FormatError for a wrong one."""
        for name, part in self.parts.items():
            wrong = np.flatnonzero(block_checksums(part.map()) != np.array(self.checksums[name], np.uint32))
            if wrong.size:
                raise FormatError(
                    f"{part}: wrong checksum of the bytes from {wrong[0] * BLOCK}; the bundle is damaged, {AGAIN}"
                )

    @property
    def model(self) -> FilePart:
        """The acoustic model."""
        return self.parts[ONNX_MODEL if ONNX_MODEL in self.parts else MODEL]

    def native_model(self, purpose: str) -> FilePart:
        """Return the acoustic model.  Raises ConfigError for an ONNX model, with which something cannot be done."""
        if MODEL not in self.parts:
            raise ConfigError(f"{self.path}: {purpose} needs a network of Argonaut; this bundle has an ONNX model")
        return self.parts[MODEL]

    @property
    def size(self) -> int:
        """Bytes of all members; of a compact bundle, of its file."""
        return self.path.stat().st_size if self.is_compact else sum(part.size for part in self.parts.values())


def read_description(path: Path) -> tuple[BundleDescription, int]:
    """Return the description of a bundle, and its size as of `Bundle.size`; a compact one is not unpacked.

    Raises FormatError and OSError as `Bundle.open`, but not for damaged members.
    """
    parts = _parts(path)
    description, sizes = _described(parts[DESCRIPTION], required=())
    return description, path.stat().st_size if _is_compact(parts) else sum(size for size, _ in sizes.values())


def _open_compact(parts: dict[str, FilePart], verify: bool) -> Bundle:
    """Open a compact bundle; it is unpacked when it is first opened, or with `verify`."""
    directory = None
    try:
        directory = cache_directory() / "bundles" / _name_of_copy(parts[DESCRIPTION])
        hold(directory)
        if verify or not _is_sound(directory):
            directory.parent.mkdir(parents=True, exist_ok=True)
            with temporary_directory(directory) as temporary:
                _unpack(parts, temporary / "bundle")
                with contextlib.suppress(FileNotFoundError):
                    directory.rename(temporary / "replaced")
                (temporary / "bundle").rename(directory)
            hold(directory)
            remove_unused(directory.parent)
    except (OSError, RuntimeError):  # no cache that can be written; or another process was faster
        if directory is None or verify or not _is_sound(directory):
            directory = directory_of_process() / "bundle"
            _unpack(parts, directory)
    return Bundle.open(directory)


def _name_of_copy(description: FilePart) -> str:
    """Return the name of the directory to which a bundle is unpacked; another format of the tables has another."""
    from decoder.search.table_file import FORMAT  # a bundle that is not compact is opened without it

    return hashlib.sha256(description.read_bytes() + bytes([FORMAT.version])).hexdigest()[:32]


def _is_sound(directory: Path) -> bool:
    """Return whether a directory has a complete bundle."""
    try:
        Bundle.open(directory)
    except (FormatError, OSError):
        return False
    return True


def _unpack(parts: Mapping[str, FilePart], directory: Path) -> None:
    """Write the members of a compact bundle to a new directory, with the search tables.

    Raises FormatError for damaged members, and OSError.
    """
    from decoder.search.options import SearchOptions  # a bundle that is not compact is opened without these
    from decoder.search.table_file import make_search_tables

    description, sizes = _described(parts[DESCRIPTION], required=(GRAPH, CNTKMAP))
    for name in parts.keys() - {DESCRIPTION, *(listed + PACKED for listed in sizes)}:
        raise FormatError(f"{parts[name]}: not in {DESCRIPTION}; expected it there; {AGAIN}")
    directory.mkdir()
    for name, (size, checksums) in sizes.items():
        part = parts.get(name + PACKED)
        if part is None:
            raise FormatError(f"{parts[DESCRIPTION].path}: no member {name}{PACKED}; expected one; {AGAIN}")
        content = decompress(part, size)
        if not np.array_equal(block_checksums(np.frombuffer(content, np.uint8)), np.array(checksums, np.uint32)):
            raise FormatError(f"{part}: wrong checksum; the bundle is damaged, {AGAIN}")
        write_content(directory / name, content)  # an error of the disk has the name of the file
    options: dict[str, Any] = dict(description.options)
    lm = directory / LM
    make_search_tables(
        directory / GRAPH,
        lm if lm.exists() else None,
        directory / CNTKMAP,
        SearchOptions(**options, silence=description.silence),
        directory / SEARCH,
    )
    describe(description, directory)


def describe(description: BundleDescription, directory: Path) -> None:
    """Write bundle.json, which lists all other files of the directory."""
    members = []
    for file in sorted(directory.iterdir()):
        if file.name != DESCRIPTION:
            content = part_of(file)
            checksums = block_checksums(content.map()).tolist()
            members.append({"name": file.name, "size": content.size, CHECKSUM: checksums})
    (directory / DESCRIPTION).write_bytes(dump(description.as_json() | {"members": members}))


def _described(
    part: FilePart, required: tuple[str, ...] = REQUIRED
) -> tuple[BundleDescription, dict[str, tuple[int, tuple[int, ...]]]]:
    """Read bundle.json; return the description, and size and checksums of the members by name."""
    if part.size > MAX_BYTES:
        raise FormatError(f"{part}: {part.size} bytes; expected at most {MAX_BYTES}; {AGAIN}")
    data = undump(part.read_bytes(), str(part))
    description = BundleDescription.parse(data, str(part))
    if description.aligner is not None:
        required = (*required, *(ALIGNER + name for name in (MODEL, CNTKMAP, "state_map")))
    return description, _listed(data["members"], str(part), required)


def is_bundle(path: str | Path) -> bool:
    """Return whether a path looks like a bundle: a directory with bundle.json, or a zip file that begins with it.

    Parameters
    ----------
    path : str or Path
        May be the name of an installed bundle.

    Returns
    -------
    bool
        Also for damaged bundles, about which `Bundle.open` gives a message.
    """
    path = find_model(path)
    if path.is_dir():
        return (path / DESCRIPTION).is_file()
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(LOCAL_HEADER.size + len(DESCRIPTION))
    return head.startswith(ZIP_MAGIC) and head.endswith(DESCRIPTION.encode())


def _listed(members: Any, where: str, required: tuple[str, ...]) -> dict[str, tuple[int, tuple[int, ...]]]:
    """Return (size, checksums) of the members by name.  Raises FormatError for anything unexpected."""
    listed = {}
    for entry in members if isinstance(members, list) else [None]:
        if not isinstance(entry, dict) or entry.keys() != {"name", "size", CHECKSUM}:
            raise FormatError(f"{where}: member {str(entry)[:60]!r}; expected name, size and {CHECKSUM}; {AGAIN}")
        name = entry["name"]
        size = entry["size"]
        checksums = entry[CHECKSUM]
        if name not in MEMBERS or name in listed:
            raise FormatError(f"{where}: member {str(name)[:60]!r}; expected each of {', '.join(MEMBERS)} at most once")
        sound = type(size) is int and 0 <= size < 2**53 and isinstance(checksums, list)
        if not sound or len(checksums) != -(-size // BLOCK) or not all(_is_crc(checksum) for checksum in checksums):
            raise FormatError(f"{where}: member {name}: size {str(size)[:40]} or its checksums are wrong; {AGAIN}")
        listed[name] = size, tuple(checksums)
    for name in required:
        if name not in listed:
            raise FormatError(f"{where}: no member {name}; expected one; {AGAIN}")
    if required and (MODEL in listed) == (ONNX_MODEL in listed):
        both = "both members" if MODEL in listed else "no member"
        raise FormatError(f"{where}: {both} {MODEL} and {ONNX_MODEL}; expected one of them; {AGAIN}")
    return listed


def _is_crc(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**32


def _parts(path: Path) -> dict[str, FilePart]:
    """Return the members of a directory or zip file.  Raises FormatError for what is no bundle."""
    parts = _directory_parts(path) if path.is_dir() else _zip_parts(path)
    if DESCRIPTION not in parts:
        raise FormatError(f"{path}: no {DESCRIPTION}; expected a bundle, which argonaut pack makes")
    return parts


def _is_compact(parts: Iterable[str]) -> bool:
    return any(name.endswith(PACKED) for name in parts)


def _directory_parts(path: Path) -> dict[str, FilePart]:
    """Return the members of a directory; other files there are ignored.  Raises FormatError for links and pipes."""
    parts = {}
    for name in (DESCRIPTION, *MEMBERS):
        try:
            status = (path / name).lstat()
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(status.st_mode):
            raise FormatError(f"{path / name}: a link or no file; expected a file in the bundle itself; {AGAIN}")
        parts[name] = FilePart(path / name, 0, status.st_size)
    return parts


def _zip_parts(path: Path) -> dict[str, FilePart]:
    """Return the members of a zip file.  Raises FormatError for everything that `argonaut pack` does not write."""
    neither = f"{path}: neither a directory nor a zip file; expected a bundle, or the name of an installed one"
    if not stat.S_ISREG(path.stat().st_mode):  # to open a pipe waits for its other end
        raise FormatError(neither)
    with path.open("rb") as file:
        if file.read(len(ZIP_MAGIC)) != ZIP_MAGIC:
            raise FormatError(neither)
        try:
            with zipfile.ZipFile(file) as archive:
                entries = archive.infolist()
                end = archive.start_dir
        except (zipfile.BadZipFile, ValueError, struct.error, OverflowError, NotImplementedError) as fault:
            raise FormatError(f"{path}: {fault}; expected a bundle, a zip file; it is damaged, {AGAIN}") from fault
        parts: dict[str, FilePart] = {}
        for entry in entries:
            name = entry.filename
            if name.removesuffix(PACKED) not in (DESCRIPTION, *MEMBERS) or name in parts:
                raise FormatError(
                    f"{path}: member {name[:60]!r}; expected {DESCRIPTION}, {', '.join(MEMBERS)}, each at most once"
                )
            if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits or entry.compress_size != entry.file_size:
                raise FormatError(f"{path}: member {name} is compressed or encrypted; expected it as it is; {AGAIN}")
            if not 0 <= entry.header_offset < end:
                raise FormatError(f"{path}: member {name} at {entry.header_offset}; expected inside the file; {AGAIN}")
            file.seek(entry.header_offset)
            header = file.read(LOCAL_HEADER.size + len(name))
            begin = _content_offset(header, entry.header_offset, name)
            if begin is None or begin % ALIGNMENT or begin + entry.file_size > end:
                raise FormatError(
                    f"{path}: member {name}: wrong header, or not at a multiple of {ALIGNMENT} bytes; expected it as "
                    f"argonaut pack writes it; {AGAIN}"
                )
            parts[name] = FilePart(path, begin, entry.file_size, name)
    return parts


def _content_offset(header: bytes, offset: int, name: str) -> int | None:
    """Return where the content begins behind a local header; None for a header of another member."""
    if len(header) < LOCAL_HEADER.size + len(name):
        return None
    magic, *_, name_size, extra_size = LOCAL_HEADER.unpack_from(header)
    if magic != ZIP_MAGIC or name_size != len(name) or header[LOCAL_HEADER.size :] != name.encode():
        return None
    return offset + LOCAL_HEADER.size + name_size + extra_size
