"""Checks MPEG audio (MP3) before it is decoded.

Its decoder skips what is damaged, prints messages on the terminal, and guesses the length of files without a header
that contains it.
"""

import os
from pathlib import Path

from readers.common.audio_format import mpeg_frame_samples, mpeg_frame_size
from readers.errors import FormatError

ID3 = b"ID3"
ENDINGS = (b"TAG", b"APETAGEX", b"LYRICSBEGIN")  # tags after the last frame
LENGTH_MARKS = (b"Xing", b"Info")  # in the first frame, before flags and the number of frames
MOST_SILENCE = 8  # frames that a decoder removes, which encoders have added


def least_samples(path: str | os.PathLike) -> int:
    """Return how many samples (per channel) the frames of a file give at least; 0 if it contains no MPEG frames.

    Raises FormatError for bytes between two frames that belong to neither, and for fewer frames than announced.
    """
    data = Path(path).read_bytes()
    position = first = _first_frame(data)
    if first < 0:
        return 0
    kind = _kind(data, first)
    frames, samples = 0, mpeg_frame_samples(data[first : first + 4])
    while position < len(data):
        size = mpeg_frame_size(data[position : position + 4])
        if size and _kind(data, position) == kind:
            position, frames = position + size, frames + 1
        elif data.startswith(ID3, position):  # of files that were put together
            position = _after_id3(data, position)
        elif data.startswith(ENDINGS, position) or not data[position:].strip(b"\0") or len(data) - position < 4:
            break
        else:
            raise FormatError(
                f"{path}: no MPEG frame at byte {position}; expected frames without a gap; the file is damaged"
            )
    announced = _announced_frames(data[first : first + mpeg_frame_size(data[first : first + 4])])
    if announced and frames < announced:
        raise FormatError(f"{path}: truncated, {frames} MPEG frames; expected {announced}, as its header says")
    return max(0, frames - MOST_SILENCE) * samples


def _kind(data: bytes, position: int) -> tuple[int, int]:
    """Return the bits of a frame's header that all frames share: version, layer and sampling rate."""
    return data[position + 1] & 0xFE, data[position + 2] & 0x0C


def _first_frame(data: bytes) -> int:
    """Return the position of the first frame, after tags, where the decoder expects it; -1 if there is none."""
    position = 0
    while data.startswith(ID3, position):
        position = _after_id3(data, position)
    return position if mpeg_frame_size(data[position : position + 4]) else -1


def _after_id3(data: bytes, position: int) -> int:
    """Return the end of a tag, whose size is stored in four times seven bits."""
    size = 0
    for byte in data[position + 6 : position + 10]:
        size = size << 7 | byte & 0x7F
    return position + 10 + size


def _announced_frames(frame: bytes) -> int:
    """Return the number of frames in the header of the encoder (Xing, LAME), 0 without it."""
    for mark in LENGTH_MARKS:
        at = frame.find(mark)
        if at >= 0 and len(frame) >= at + 12 and frame[at + 7] & 1:
            return int.from_bytes(frame[at + 8 : at + 12], "big")
    return 0
