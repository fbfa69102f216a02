"""Parts of audio files by name, in the manner of HTK's extended file names: `PATH[first,last]`, counted in samples."""

import os
import re
from pathlib import Path
from typing import NamedTuple

from readers.errors import FormatError

_PART = re.compile(r"(.+)\[([0-9]{1,18}),([0-9]{1,18})(?:,([0-9]{1,4}))?\]", re.DOTALL)


class AudioPart(NamedTuple):
    """A part of an audio file.

    Attributes
    ----------
    path : str
        The file.
    first, last : int, int or None
        First and last sample, counted from 0, inclusive; last None for the end of the file.
    channel : int or None
        Channel, counted from 0; None if the name contains none.
    """

    path: str
    first: int = 0
    last: int | None = None
    channel: int | None = None


def audio_part(name: str | Path) -> AudioPart:
    """Return the part of a file that a name describes.

    Parameters
    ----------
    name : path
        `PATH`, `PATH[first,last]` or `PATH[first,last,channel]`; the name of a file that exists is a path.

    Returns
    -------
    AudioPart

    Raises
    ------
    FormatError
        For a part that ends before it begins.

    Examples
    --------
    >>> audio_part("a.wav[16000,31999]")
    AudioPart(path='a.wav', first=16000, last=31999, channel=None)
    """
    name = os.fspath(name)
    match = _PART.fullmatch(name) if name.endswith("]") else None
    if match is None or Path(name).is_file():
        return AudioPart(name)
    first, last = int(match[2]), int(match[3])
    if first > last:
        raise FormatError(f"{name}: samples [{first},{last}]; expected first <= last")
    return AudioPart(match[1], first, last, None if match[4] is None else int(match[4]))
