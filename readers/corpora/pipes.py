"""What to write instead of a command in wav.scp: commands are never run, and most of them only decode a file.

A command may also select a channel or a part: `sph2pipe -c 1`, `ffmpeg -ss 10 -t 5`, `sox a.wav -t wav - trim 10 5`.
Source: the manuals of sph2pipe 2.5, FFmpeg 7 and SoX 14.4.
"""

import re
from pathlib import Path
from typing import NamedTuple

from readers.audio.header import AudioHeader, read_audio_header
from readers.corpora.corpus_builder import audio_path
from readers.errors import ArgonautError

_AUDIO_WORD = re.compile(r"\S+\.(?:wav|flac|ogg|opus|mp3|sph|aiff?)(?!\S)", re.IGNORECASE)
_TIME = r"(?:[0-9]+:){0,2}[0-9]+(?:\.[0-9]*)?"
# Program -> the options with which it selects; `number` is that of a channel, counted from 1, `channel` one from 0.
_OPTIONS = {
    "sph2pipe": rf"-c\s*(?P<number>[12])|-t\s*(?P<start>{_TIME})?:(?P<end>{_TIME})?"
    r"|-s\s*(?P<first>\d+)?:(?P<last>\d+)?",
    "ffmpeg": rf"-map_channel\s+0\.0\.(?P<channel>\d)|-ss\s+(?P<start>{_TIME})|-t\s+(?P<length>{_TIME})"
    rf"|-to\s+(?P<end>{_TIME})",
    "sox": rf"remix\s+(?P<number>[1-9])(?!\s+[\d-])|trim\s+(?P<start>{_TIME})(?:\s+(?P<length>{_TIME}))?(?!\s+[=\d-])",
}
# What else a command does to audio, other than decoding it.
_CHANGE = re.compile(
    r"(?<!\S)(?:speed|tempo|pitch|vol|gain|trim|remix|norm|pad|fade|silence|reverse|highpass|lowpass|compand|wav-reverberate"
    r"|-v|-af|-filter\S*|-map_channel|-ss|-sseof|-to|--skip\S*|--until\S*)(?!\S)"
)


class Selection(NamedTuple):
    """A part of a file, in seconds or samples, and a channel, counted from 0; None for everything."""

    start: float | None = None
    end: float | None = None
    first: int | None = None
    last: int | None = None
    channel: int | None = None

    def numbers(self, header: AudioHeader) -> str | None:
        """Return the form of lists, `[first,last]` or `[first,last,channel]`, in samples of a file with this header.

        None if the file does not have what is selected.
        """
        first, last = self.first or 0, header.num_samples - 1
        if self.start is not None:
            first = round(self.start * header.rate)
        if self.last is not None:
            last = min(last, self.last)
        elif self.end is not None:
            last = min(last, round(self.end * header.rate) - 1)
        if first > last or (self.channel or 0) >= header.channels:
            return None
        return f"[{first},{last}]" if self.channel is None else f"[{first},{last},{self.channel}]"


STORE = "store its output in a file and name that"


def way_without(command: str, key: str, base: Path) -> str:
    """Return what to do instead of a command, for a message.

    Parameters
    ----------
    command : str
        Of a line of wav.scp.
    key : str
        The recording.
    base : Path
        The directory where relative paths begin, if not at the current one.

    Returns
    -------
    str
        The line that names the file or the part that the command selects, or the advice to store its output.
    """
    files = _AUDIO_WORD.findall(command)
    selection = _selection(command)
    if len(files) != 1 or selection is None:
        return STORE
    if selection == Selection():
        return f"name the file itself, `{key} {files[0]}`"
    try:
        numbers = selection.numbers(read_audio_header(audio_path(files[0], base, key, also_here=True)))
        line = f"`{key} {files[0]}{numbers}`"
    except (ArgonautError, OSError):
        channel = "" if selection.channel is None else f",{selection.channel}"
        numbers = f"[first,last{channel}]"
        line = f"`{key} {files[0]}{numbers}`, in samples counted from 0"
    if numbers is None:
        return STORE
    return f"name the {'channel' if selection == Selection(channel=selection.channel) else 'part'} of the file, {line}"


def _selection(command: str) -> Selection | None:
    """Return what a command selects; None for one that does something else, or cannot be understood."""
    values: list[tuple[str, str]] = []
    for program, options in _OPTIONS.items():
        if not re.search(rf"(?:^|[\s/|]){program}\s", command):
            continue
        pattern = re.compile(rf"(?<!\S)(?:{options})(?!\S)")
        ends = {
            match.start() < command.find(" -i ")
            for match in pattern.finditer(command)
            if match[0][:3] in ("-ss", "-to")
        }
        if len(ends) > 1:  # the end is counted from the start that was chosen
            return None
        values += [item for match in pattern.finditer(command) for item in match.groupdict().items() if item[1]]
        command = pattern.sub(" ", command)
    chosen = dict(values)
    if _CHANGE.search(command) or len(chosen) < len(values) or chosen.keys() >= {"number", "channel"}:
        return None
    start, end, length = (_seconds(chosen.get(name)) for name in ("start", "end", "length"))
    first, last, number, channel = (int(chosen[name]) if name in chosen else None for name in
                                    ("first", "last", "number", "channel"))  # fmt: skip
    return Selection(
        start,
        end if length is None else (start or 0.0) + length,
        first,
        last,
        channel if number is None else number - 1,
    )


def _seconds(text: str | None) -> float | None:
    """Return a time such as 75 or 0:01:15.0 in seconds."""
    if text is None:
        return None
    seconds = 0.0
    for part in text.split(":"):
        seconds = 60 * seconds + float(part)
    return seconds
