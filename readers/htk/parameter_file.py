"""HTK parameter files: all base kinds and qualifiers, both byte orders, compression, checksums.

A file is a 12-byte header (number of frames, period in 100 ns units, bytes per frame, kind) and the frames, normally
big-endian.  Kinds WAVEFORM, IREFC and DISCRETE, and all kinds with `_C`, store 16-bit integers, the others 32-bit
floats.  Source: HTK Book 3.4, section 5.10.1 (HTK Format Parameter Files).
"""

import os
import struct
import sys
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from readers.common.audio_format import HEAD_SIZE, refuse_audio
from readers.common.files import atomic_write
from readers.errors import FormatError, ShapeError
from readers.htk.storage.coding import COMPRESSION_FRAMES, SHORT_MAX, checksum, compress

HEADER_SIZE = 12
BASE_MASK = 0o77
BASE_KINDS = (
    "WAVEFORM",
    "LPC",
    "LPREFC",
    "LPCEPSTRA",
    "LPDELCEP",
    "IREFC",
    "MFCC",
    "FBANK",
    "MELSPEC",
    "USER",
    "DISCRETE",
    "PLP",
    "ANON",
)
WAVEFORM, IREFC, MFCC, FBANK, MELSPEC, USER, DISCRETE, PLP, ANON = 0, 5, 6, 7, 8, 9, 10, 11, 12
HAS_E, HAS_N, HAS_D, HAS_A = 0o100, 0o200, 0o400, 0o1000
HAS_C, HAS_Z, HAS_K, HAS_0 = 0o2000, 0o4000, 0o10000, 0o20000
HAS_V, HAS_T = 0o40000, 0o100000
# In the order in which HTK writes them.
QUALIFIERS = {"E": HAS_E, "D": HAS_D, "N": HAS_N, "A": HAS_A, "T": HAS_T}
QUALIFIERS |= {"C": HAS_C, "K": HAS_K, "Z": HAS_Z, "0": HAS_0, "V": HAS_V}
SHORT_KINDS = (WAVEFORM, IREFC, DISCRETE)
GUID_SIZE = 16  # CNTK's FESTREAM files (kind 12) have an identifier of this size after the header


@dataclass(frozen=True)
class HTKHeader:
    """The header of a parameter file.

    Attributes
    ----------
    num_frames : int
        Frames in the file, without the four that `_C` adds for its vectors.
    period : int
        Time between frames in 100 ns units.
    sample_size : int
        Bytes per frame.
    kind : int
        The 16 bits of parmKind, unsigned.
    byte_order : str
        ">" big-endian or "<" little-endian.
    data_offset : int
        Bytes before the first frame.
    """

    num_frames: int
    period: int
    sample_size: int
    kind: int
    byte_order: str = ">"
    data_offset: int = HEADER_SIZE

    @property
    def base_kind(self) -> int:
        """The kind without its qualifiers, such as 6 for MFCC."""
        return self.kind & BASE_MASK

    @property
    def is_short(self) -> bool:
        """Whether values are stored as 16-bit integers."""
        return bool(self.kind & HAS_C) or self.base_kind in SHORT_KINDS

    @property
    def dim(self) -> int:
        """Number of values per frame."""
        return self.sample_size // (2 if self.is_short else 4)


@dataclass(frozen=True, eq=False)
class HTKFile:
    """The content of a parameter file.

    Attributes
    ----------
    frames : (dim, T) float32, Fortran order
    period : int
        Time between frames in 100 ns units.
    kind : int
        Parameter kind as in the header.
    """

    frames: npt.NDArray[np.float32]
    period: int
    kind: int


def parse_kind(name: str) -> int:
    """Return the number of a parameter kind such as "FBANK_Z_D_A"; case and order of the qualifiers do not matter.

    Raises FormatError for an unknown base kind or qualifier, a repeated qualifier, or a missing one that another
    requires.
    """
    base, *qualifiers = name.strip().upper().split("_")
    if base not in BASE_KINDS:
        raise FormatError(f"parameter kind {name!r}: unknown base {base!r}; expected one of {', '.join(BASE_KINDS)}")
    kind = BASE_KINDS.index(base)
    for qualifier in qualifiers:
        bit = QUALIFIERS.get(qualifier)
        if bit is None:
            raise FormatError(
                f"parameter kind {name!r}: unknown qualifier _{qualifier}; expected some of _{' _'.join(QUALIFIERS)}"
            )
        if kind & bit:
            raise FormatError(f"parameter kind {name!r}: qualifier _{qualifier} is given twice; expected once")
        kind |= bit
    if kind & HAS_A and not kind & HAS_D:
        raise FormatError(f"parameter kind {name!r}: _A without _D; expected both")
    if kind & HAS_T and not kind & HAS_A:
        raise FormatError(f"parameter kind {name!r}: _T without _A; expected both")
    if kind & HAS_N and not (kind & HAS_D and kind & (HAS_E | HAS_0)):
        raise FormatError(f"parameter kind {name!r}: _N needs _D and one of _E and _0; expected all of them")
    return kind


def kind_name(kind: int) -> str:
    """Return the name of a parameter kind with its qualifiers in HTK's order, such as "MFCC_E_D_A"."""
    base = kind & BASE_MASK
    name = BASE_KINDS[base] if base < len(BASE_KINDS) else f"KIND{base}"
    return name + "".join(f"_{qualifier}" for qualifier, bit in QUALIFIERS.items() if kind & bit)


def read_htk_header(path: str | Path) -> HTKHeader:
    """Read the header of a parameter file and check it against the size of the file.

    Parameters
    ----------
    path : path
        HTK parameter file.

    Returns
    -------
    HTKHeader

    Raises
    ------
    FormatError
        If the file is not an HTK file, is truncated or too long, or has an unsupported kind (`_V`, unknown base kinds).

    References
    ----------
    HTK Book 3.4, section 5.10.1.
    """
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 (faster, for lists of many files)
        return _read_header(file, path)


def read_htk(path: str | Path, start: int = 0, end: int | None = None, verify: bool = False) -> HTKFile:
    """Read the frames start .. end of a parameter file.

    Only the bytes of these frames are read, so reading a segment of a large archive is as fast as reading a small file.

    Parameters
    ----------
    path : path
        HTK parameter file.
    start, end : int
        First and last frame, counted from 0, both inclusive as in an SCP's `[s,e]`; end None is the last frame.
    verify : bool
        Also check the checksum of a file with `_K`, which reads the whole file.

    Returns
    -------
    HTKFile
        `frames` is (dim, T) float32 in Fortran order.  Compressed values are decompressed and IREFC values divided by
        32767, as in HTK; other 16-bit values are not scaled.

    Raises
    ------
    FormatError
        As read_htk_header, and for a range outside of the file and a wrong checksum.

    References
    ----------
    HTK Book 3.4, section 5.10.1.
    """
    with Path(path).open("rb", buffering=0) as file:
        header = _read_header(file, path)
        last = header.num_frames - 1 if end is None else end
        if not 0 <= start <= last:
            raise FormatError(f"{path}: frames [{start},{last}]; expected 0 <= first <= last")
        if last >= header.num_frames:
            raise FormatError(
                f"{path}: frames [{start},{last}] of a file with {header.num_frames} frames; "
                f"expected a last frame of at most {header.num_frames - 1}"
            )
        if verify and header.kind & HAS_K:
            _check_checksum(file, header, path)
        frames = _read_frames(file, header, start, last - start + 1, path)
    return HTKFile(frames, header.period, header.kind)


def write_htk(
    path: str | Path, frames: npt.NDArray[np.floating], kind: int | str, period: int = 100000, byte_order: str = ">"
) -> None:
    """Write frames as an HTK parameter file; the file appears completely or not at all.

    Parameters
    ----------
    path : path
        File to write.
    frames : (dim, T) array, T > 0
        Values; for WAVEFORM and DISCRETE 16-bit integers, for IREFC in [-1, 1] (stored as round(32767 x)).
    kind : int or str
        Parameter kind, as a number or a name such as "FBANK_D_A"; `_C` compresses, `_K` appends a checksum.
    period : int
        Time between frames in 100 ns units.
    byte_order : {">", "<"}
        Big-endian or little-endian.

    Raises
    ------
    ShapeError
        For a matrix, period or number of bytes per frame that the format cannot represent.
    FormatError
        For an unknown kind, and for values that the kind cannot represent.

    References
    ----------
    HTK Book 3.4, section 5.10.1.
    """
    if isinstance(kind, str):
        try:
            kind = parse_kind(kind)
        except FormatError as fault:
            raise FormatError(f"{path}: {fault}") from None
    frames = np.asarray(frames)
    if frames.ndim != 2 or 0 in frames.shape:
        raise ShapeError(f"{path}: matrix of shape {frames.shape}; expected (dim, frames) with at least one of each")
    if not 0 < period < 2**31:
        raise ShapeError(f"{path}: period {period}; expected 1 to {2**31 - 1} (100 ns units)")
    if kind & HAS_V or kind & BASE_MASK >= len(BASE_KINDS) or not 0 <= kind < 2**16:
        raise FormatError(f"{path}: kind {kind_name(kind)} ({kind:#o}) cannot be written; expected one without _V")
    body, sample_size, extra = _encode(path, frames, kind, byte_order)
    if sample_size > 65535:
        raise ShapeError(f"{path}: {frames.shape[0]} values per frame; expected at most 65535 bytes per frame")
    with atomic_write(path) as file:
        # parmKind and sampSize are written as unsigned; HTK declares them signed, with the same bits
        file.write(struct.pack(byte_order + "iiHH", frames.shape[1] + extra, period, sample_size, kind))
        for part in body:
            file.write(part)
        if kind & HAS_K:
            file.write(struct.pack(byte_order + "H", checksum(b"".join(body), byte_order)))


def _read_header(file: FileIO, path: str | Path) -> HTKHeader:
    """Read and check the header.  The message for an audio file names its format."""
    try:
        return _parse_header(file, path)
    except FormatError:
        file.seek(0)
        use = "argonaut hcopy makes one from it, and `argon --features` reads audio directly"
        refuse_audio(file.read(HEAD_SIZE), path, f"an HTK feature file; {use}")
        raise


def _parse_header(file: FileIO, path: str | Path) -> HTKHeader:
    size = os.fstat(file.fileno()).st_size
    raw = file.read(HEADER_SIZE)
    if len(raw) < HEADER_SIZE:
        raise FormatError(f"{path}: {size} bytes; expected at least the {HEADER_SIZE}-byte HTK header")
    order, num_samples, period, sample_size, kind = _unpack_header(raw, size)
    base = kind & BASE_MASK
    if base >= len(BASE_KINDS) or num_samples < 0 or period <= 0:
        raise FormatError(
            f"{path}: {num_samples} frames, period {period}, kind {kind:#o}; expected the header of an HTK file"
        )
    if kind & HAS_V or (kind & HAS_C and base in (WAVEFORM, DISCRETE)):
        raise FormatError(
            f"{path}: kind {kind_name(kind)}; expected one without _V, and WAVEFORM or DISCRETE without _C"
        )
    width = 2 if kind & HAS_C or base in SHORT_KINDS else 4
    if sample_size == 0 or sample_size % width:
        raise FormatError(
            f"{path}: {sample_size} bytes per frame of kind {kind_name(kind)}; expected a multiple of {width}, not 0"
        )
    extra = COMPRESSION_FRAMES if kind & HAS_C else 0
    if num_samples <= extra:
        raise FormatError(f"{path}: {num_samples} frames in the header; expected at least {extra + 1}")
    want = HEADER_SIZE + num_samples * sample_size + (2 if kind & HAS_K else 0)
    guid = GUID_SIZE if base == ANON and size == want + GUID_SIZE else 0
    if size != want + guid:
        fault = "truncated" if size < want else "too long"
        raise FormatError(
            f"{path}: {fault}, {size} bytes; expected {want} for {num_samples} frames of {sample_size} bytes "
            f"of kind {kind_name(kind)}"
        )
    return HTKHeader(num_samples - extra, period, sample_size, kind, order, HEADER_SIZE + guid + extra * sample_size)


def _unpack_header(raw: bytes, size: int) -> tuple[str, int, int, int, int]:
    """Return (byte order, frames, period, bytes per frame, kind).

    As in CNTK, the byte order is the one that makes the period smaller.  For a period that reads the same in both
    orders, such as 0, the size of the file decides.
    """
    big = struct.unpack(">iIHH", raw)
    little = struct.unpack("<iIHH", raw)
    if big[1] != little[1]:
        order = ">" if big[1] < little[1] else "<"
    else:
        order = "<" if HEADER_SIZE + little[0] * little[2] == size else ">"
    return order, *(big if order == ">" else little)


def _read_frames(file: FileIO, header: HTKHeader, start: int, count: int, path: str | Path) -> npt.NDArray[np.float32]:
    dim = header.dim
    order = header.byte_order
    file.seek(header.data_offset + start * header.sample_size)
    if not header.is_short:
        return _read_array(file, (count, dim), "f4", order, path).T
    shorts = _read_array(file, (count, dim), "i2", order, path)
    frames = shorts.astype(np.float32)
    if header.kind & HAS_C:
        file.seek(header.data_offset - COMPRESSION_FRAMES * header.sample_size)
        scale, offset = _read_array(file, (2, dim), "f4", order, path)
        with np.errstate(all="ignore"):  # callers check the values
            frames += offset
            frames /= scale
    elif header.base_kind == IREFC:
        frames /= np.float32(SHORT_MAX)
    return frames.T


def _read_array(file: FileIO, shape: tuple[int, int], dtype: str, order: str, path: str | Path) -> np.ndarray:
    """Read an array from the file's position; converts it in place to the native byte order."""
    array = np.empty(shape, dtype)
    view = array.data.cast("B")
    while view:
        got = file.readinto(view)  # an unbuffered file returns at most 2 GiB at once
        if not got:
            raise FormatError(f"{path}: ended while being read; expected {len(view)} bytes more")
        view = view[got:]
    if order != (">" if sys.byteorder == "big" else "<"):
        array.byteswap(inplace=True)
    return array


def _check_checksum(file: FileIO, header: HTKHeader, path: str | Path) -> None:
    size = os.fstat(file.fileno()).st_size
    first = header.data_offset - (COMPRESSION_FRAMES * header.sample_size if header.kind & HAS_C else 0)
    file.seek(first)
    computed = 0
    num_unread = size - 2 - first
    while num_unread > 0:
        chunk = file.read(min(num_unread, 1 << 24))
        if not chunk or len(chunk) % 2:
            raise FormatError(f"{path}: ended while being read; expected {num_unread} bytes more")
        computed = checksum(chunk, header.byte_order, computed)
        num_unread -= len(chunk)
    (stored,) = struct.unpack(header.byte_order + "H", file.read(2))
    if stored != computed:
        raise FormatError(
            f"{path}: checksum {stored}, but the data gives {computed}; expected the same; the file is damaged"
        )


def _encode(path: str | Path, frames: npt.NDArray[np.floating], kind: int, order: str) -> tuple[list[bytes], int, int]:
    """Return (parts of the body, bytes per frame, extra frames to count) for frames (dim, T) of this kind."""
    dim = frames.shape[0]
    base = kind & BASE_MASK
    if not kind & HAS_C and base not in SHORT_KINDS:
        return [frames.T.astype(order + "f4").tobytes()], 4 * dim, 0
    if not np.isfinite(frames).all():
        raise FormatError(f"{path}: infinite values or NaN; expected finite values in kind {kind_name(kind)}")
    if kind & HAS_C:
        if base in (WAVEFORM, DISCRETE):
            raise FormatError(f"{path}: kind {kind_name(kind)} cannot be compressed; expected it without _C")
        scale, offset, shorts = compress(frames)
        vectors = np.stack([scale, offset]).astype(order + "f4").tobytes()
        return [vectors, shorts.T.astype(order + "i2").tobytes()], 2 * dim, COMPRESSION_FRAMES
    values = np.rint(frames * float(SHORT_MAX)) if base == IREFC else frames
    if np.any(values != np.rint(values)) or values.min() < -32768 or values.max() > SHORT_MAX:
        raise FormatError(
            f"{path}: values from {frames.min():g} to {frames.max():g}; expected "
            + ("-1 to 1" if base == IREFC else "16-bit integers")
            + f" in kind {kind_name(kind)}"
        )
    return [values.T.astype(order + "i2").tobytes()], 2 * dim, 0


class FrameRange(Protocol):
    """Frames of an HTK parameter file, as those of an utterance: first and last one, None for the whole file."""

    @property
    def path(self) -> str: ...

    @property
    def start(self) -> int | None: ...

    @property
    def end(self) -> int | None: ...


def read_features(utterance: FrameRange) -> tuple[np.ndarray, str, int]:
    """Return features (d, T) float32, their kind and period.  Raises ShapeError unless there are some, all finite."""
    file = read_htk(utterance.path, utterance.start or 0, utterance.end)
    check_frames(file.frames, utterance)
    return file.frames, kind_name(file.kind & ~(HAS_C | HAS_K)), file.period


def check_frames(frames: np.ndarray, utterance: FrameRange) -> None:
    """Raise ShapeError unless there are frames (d, T), all finite."""
    if not frames.shape[1]:
        raise ShapeError(f"{utterance.path}: no frames; expected at least one")
    if not np.isfinite(frames).all():
        bad = int(np.flatnonzero(~np.isfinite(frames).all(axis=0))[0]) + (utterance.start or 0)
        raise ShapeError(f"{utterance.path}: frame {bad} has a value that is infinite or NaN; expected finite values")


def unlike(form: tuple[str, int, int], expected: tuple[str, int, int]) -> str:
    """Return how forms of features (kind, values of a frame, ticks from frame to frame) differ, for a message."""
    described, description_expected = (
        f"{kind} of {dim} values every {period / 10_000:g} ms" for kind, dim, period in (form, expected)
    )
    return f"{described}; expected {description_expected}"
