"""Prepares MPEG audio (MP3) for its decoder.

The decoder finds no frames behind other bytes, skips what is damaged, prints messages on the terminal, and guesses the
length of files without a header that contains it.

References
----------
ISO/IEC 11172-3 and 13818-3, for the frames of layer III; G. Bouvigne, "Mp3 Info Tag rev 1", for the header.
"""

from pathlib import Path
from typing import NamedTuple

from readers.common.audio_format import (
    HEAD_SIZE,
    first_mpeg_frame,
    mpeg_frame_samples,
    mpeg_frame_size,
    mpeg_kind,
)
from readers.common.faults import counted
from readers.errors import FormatError

ID3 = b"ID3"
ENDINGS = (b"TAG", b"APETAGEX", b"LYRICSBEGIN")  # tags after the last frame
LENGTH_MARKS = (b"Xing", b"Info")  # in the first frame, before flags and the number of frames
OTHER_MARK = b"VBRI"  # of another header, which is replaced
MARKED = 42  # bytes of a frame in which the mark ends
HAS_FRAMES, HAS_BYTES = 1, 2
MOST_SILENCE = 8  # frames that a decoder removes, which encoders have added


class MpegAudio(NamedTuple):
    """What the decoder is to read.

    Attributes
    ----------
    content : bytes or None
        The frames with a header that contains their number; None for the file as it is.
    least : int
        How many samples (per channel) it gives at least.
    is_counted : bool
        Whether the decoder will know their number.
    notes : tuple of str
        What was skipped.
    """

    content: bytes | None = None
    least: int = 0
    is_counted: bool = True
    notes: tuple[str, ...] = ()


def mpeg_audio(path: str | Path) -> MpegAudio:
    """Find the frames of a file.

    Bytes before the first one and after the last whole one are skipped.  Raises FormatError for bytes between two
    frames that belong to neither.
    """
    data = Path(path).read_bytes()
    tagged = _after_tags(data)
    first = _first_frame(data, tagged)
    if first < 0:
        return MpegAudio()
    frames, skipped = _frames(data, first, path)
    notes = []
    if first > tagged:
        notes.append(f"{first - tagged} bytes before the first MPEG frame were skipped")
    if skipped:
        notes.append(f"{skipped} bytes after the last whole MPEG frame were skipped")
    if not frames:
        return MpegAudio()
    samples = mpeg_frame_samples(frames[0])
    least = max(0, len(frames) - MOST_SILENCE) * samples
    is_layer_3 = frames[0][1] >> 1 & 3 == 1
    if not is_layer_3:  # the decoder's headers exist in layer III only
        return MpegAudio(b"".join(frames) if notes else None, least, False, tuple(notes))
    begin = bytes(frames[0][:MARKED])
    mark = max(map(begin.find, (*LENGTH_MARKS, OTHER_MARK)))
    header = bytes(frames.pop(0)) if mark >= 0 else b""
    announced = _announced_frames(header, mark)
    is_right = announced == len(frames)
    if is_right and not notes:
        return MpegAudio(least=least)
    if announced > len(frames) + 1:  # some encoders count the header, too
        notes.append(f"{len(frames)} MPEG frames, its header says {announced}; read to the end")
    num_silent = _silence_incomplete(frames)
    if num_silent:
        notes.append(f"silent at the beginning: {counted(num_silent, 'MPEG frame')} without data of those before")
    if not is_right:
        header = _with_length(header, mark, frames) if announced else _length_header(frames)
    return MpegAudio(b"".join([header, *frames]), least, True, tuple(notes))


def _frames(data: bytes, first: int, path: str | Path) -> tuple[list[memoryview | bytes], int]:
    """Return the whole frames from the first one, and the number of bytes after the last one that are no tag."""
    view = memoryview(data)
    frames = list[memoryview | bytes]()
    position = first
    kind = mpeg_kind(data, first)
    while position < len(data):
        size = mpeg_frame_size(data[position : position + 4])
        if size and mpeg_kind(data, position) == kind:
            if position + size > len(data):
                return frames, len(data) - position
            frames.append(view[position : position + size])
            position += size
        elif data.startswith(ID3, position):  # of files that were put together
            position = _after_id3(data, position)
        elif data.startswith(ENDINGS, position) or not data[position:].strip(b"\0") or len(data) - position < 4:
            break
        elif first_mpeg_frame(data[position:]) < 0:
            return frames, len(data) - position
        else:
            raise FormatError(
                f"{path}: no MPEG frame at byte {position}; expected frames without a gap; the file is damaged"
            )
    return frames, 0


def _first_frame(data: bytes, position: int) -> int:
    """Return the position of the first frame from a position, also behind other bytes; -1 if there is none."""
    offset = first_mpeg_frame(data[position : position + HEAD_SIZE])
    if offset >= 0:
        return position + offset
    return position if mpeg_frame_size(data[position : position + 4]) else -1


def _after_tags(data: bytes) -> int:
    """Return the position after the tags at the beginning."""
    position = 0
    while data.startswith(ID3, position):
        position = _after_id3(data, position)
    return position


def _after_id3(data: bytes, position: int) -> int:
    """Return the end of a tag, whose size is stored in four times seven bits."""
    size = 0
    for byte in data[position + 6 : position + 10]:
        size = size << 7 | byte & 0x7F
    return position + 10 + size


def _announced_frames(header: bytes, mark: int) -> int:
    """Return the number of frames in the header of the encoder (Xing, LAME), 0 without it."""
    if not header.startswith(LENGTH_MARKS, mark) or len(header) < mark + 16 or not header[mark + 7] & HAS_FRAMES:
        return 0
    return int.from_bytes(header[mark + 8 : mark + 12], "big")


def _with_length(header: bytes, mark: int, frames: list[memoryview | bytes]) -> bytes:
    """Return the header of the encoder with the number of frames, and of their bytes if it has that."""
    sizes = len(frames).to_bytes(4, "big")
    if header[mark + 7] & HAS_BYTES:
        sizes += (len(header) + sum(map(len, frames))).to_bytes(4, "big")
    return header[: mark + 8] + sizes + header[mark + 8 + len(sizes) :]


def _length_header(frames: list[memoryview | bytes]) -> bytes:
    """Return a frame without audio that contains the number of frames, as encoders write it."""
    head = frames[0]
    content = bytes(_side_size(head)) + LENGTH_MARKS[0] + HAS_FRAMES.to_bytes(4, "big") + len(frames).to_bytes(4, "big")
    for bitrate in range(1, 15):  # the smallest frame with room for it, without a checksum
        header = bytes([0xFF, head[1] | 1, bitrate << 4 | head[2] & 0x0C, head[3]])
        if mpeg_frame_size(header) >= len(header + content):
            break
    return (header + content).ljust(mpeg_frame_size(header), b"\0")


def _side_size(frame: bytes | memoryview) -> int:
    """Return the bytes of a frame of layer III between its header and its data."""
    is_first = frame[1] >> 3 & 3 == 3
    is_mono = frame[3] >> 6 == 3
    return (17 if is_mono else 32) if is_first else (9 if is_mono else 17)


def _silence_incomplete(frames: list[memoryview | bytes]) -> int:
    """Make frames of layer III at the beginning silent whose data begin before the first one; return their number.

    Their own bytes stay, because data of the frames that follow may begin there: they say that their data, which are
    empty, begin as far back as possible, since the decoder keeps no more than that.
    """
    available = 0
    for number, frame in enumerate(frames):
        side_begin = 4 if frame[1] & 1 else 6
        size = _side_size(frame)
        begin = int.from_bytes(frame[side_begin : side_begin + 2], "big")
        bits = 9 if frame[1] >> 3 & 3 == 3 else 8
        if begin >> (16 - bits) <= available:
            return number
        farthest = min(available, (1 << bits) - 1) << (16 - bits)
        side = farthest.to_bytes(2, "big").ljust(size, b"\0")
        frames[number] = b"".join([frame[:side_begin], side, frame[side_begin + size :]])
        available += len(frame) - side_begin - size
    return len(frames)
