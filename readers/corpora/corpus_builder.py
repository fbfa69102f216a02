"""Makes a corpus from what the readers of the kinds of corpora have found; they yield a Draft for each utterance."""

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from readers.common.faults import os_reason
from readers.common.report import RunReport
from readers.corpora.corpus import AudioHeaders, Corpus, Utterance, by_name, usable_name
from readers.corpora.words import WordForms
from readers.errors import ArgonautError, FormatError

LATEST = 1e9  # seconds
ROUNDING = 1e-5  # seconds, less than half a sample
MAX_OVERSHOOT = 0.5  # seconds that a part may end after its file, as in Kaldi's extract-segments
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

Progress = Callable[..., None]


class Draft(NamedTuple):
    """An utterance as a source describes it; nothing has been checked.

    where: the place of the description, for messages.
    text: the transcript, None without one.
    start, end: seconds; end None for the end of the file.
    side: the channel, if the file has several; ignored for other files.
    recording: the name of the audio file in the source, "" if it has none.
    rounding: seconds between `end` and the end of the file within which the second is meant.
    """

    where: str
    name: str
    speaker: str
    text: str | None
    audio: Path
    start: float = 0.0
    end: float | None = None
    channel: int | None = None
    side: int | None = None
    recording: str = ""
    rounding: float = 0.0


def finish(drafts: Iterable[Draft], forms: WordForms, report: RunReport, progress: Progress | None = None) -> Corpus:
    """Return the corpus of the drafts; those that cannot be used are listed in the report."""
    headers = AudioHeaders()
    drafts = list(drafts)
    utterances: dict[str, Utterance] = {}
    places: dict[str, str] = {}
    for number, draft in enumerate(drafts, 1):
        try:
            utterance = _utterance(draft, forms, headers)
            if utterance.name in utterances:
                raise FormatError(
                    f"{draft.where}: the name {utterance.name!r} is also that of {places[utterance.name]}; "
                    "expected each name once"
                )
        except (ArgonautError, OSError) as fault:
            report.fail(draft.name, reason(fault))
        else:
            utterances[utterance.name] = utterance
            places[utterance.name] = draft.where
            report.done()
        if progress:
            progress(number, len(drafts))
    report.lost[:] = [(_printable(name), outcome, _printable(text)) for name, outcome, text in report.lost]
    return Corpus(by_name(utterances.values()), report, headers)


def reason(fault: Exception) -> str:
    """Return the message of a fault as one line."""
    if isinstance(fault, OSError):
        return f"{fault.filename}: {os_reason(fault)}"
    return " ".join(str(fault).split())


def plain_names(paths: Iterable[Path]) -> dict[Path, str]:
    """Return a name for each file: its own without extension or, where several files have that, with its folders."""
    paths = list(dict.fromkeys(paths))
    counts = Counter(path.stem for path in paths)
    if all(count == 1 for count in counts.values()):
        return {path: path.stem for path in paths}
    base = os.path.commonpath([path.parent for path in paths])
    return {
        path: path.stem if counts[path.stem] == 1 else "_".join(path.with_suffix("").relative_to(base).parts)
        for path in paths
    }


def part_name(name: str, start: float, end: float | None) -> str:
    """Return the name of a part of a recording, with its times in milliseconds: `name-0001200-0002500`."""
    start = from_zero(start)
    if not start and end is None:
        return name
    times = [start, *([] if end is None else [end])]
    if not all(0 <= time < LATEST for time in times):
        return name  # reported later
    return "-".join([name, *(f"{round(1000 * time):07}" for time in times)])


def from_zero(time: float) -> float:
    """Return a time in seconds; one that a rounding error has put before 0 is 0."""
    return 0.0 if -ROUNDING < time < 0 else time


def audio_path(text: str, base: Path, where: str, also_here: bool = False) -> Path:
    """Return the absolute path of an audio file that a manifest names.

    Parameters
    ----------
    text : str
        The path; a relative one begins at `base`.
    base : Path
        The directory of the manifest.
    where : str
        The place, for messages.
    also_here : bool
        Whether a relative path that does not exist there may begin at the current directory.

    Raises
    ------
    FormatError
        For an empty path, and control characters.
    """
    if not text or _CONTROL.search(text):
        raise FormatError(f"{where}: path {text[:60]!r}; expected an audio file, without control characters")
    path = Path(os.path.abspath(base / text))  # noqa: PTH100  (links stay links)
    from_current = Path(os.path.abspath(text))  # noqa: PTH100
    return from_current if also_here and not os.path.exists(path) and os.path.exists(from_current) else path  # noqa: PTH110


def _printable(text: str) -> str:
    """Return text in which control characters and those that are no UTF-8 are shown by their codes."""
    text = _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
    return text.encode("utf-8", "backslashreplace").decode()


def _utterance(draft: Draft, forms: WordForms, headers: AudioHeaders) -> Utterance:
    for what, text in (("a file name", os.fspath(draft.audio)), ("text", f"{draft.name} {draft.speaker} {draft.text}")):
        try:
            text.encode()
        except UnicodeEncodeError as fault:
            raise FormatError(f"{draft.where}: {what} that is not UTF-8; expected UTF-8") from fault
    if _CONTROL.search(os.fspath(draft.audio)):
        raise FormatError(f"{draft.where}: a file name with control characters; expected none; rename the file")
    name = usable_name(draft.name, draft.where)
    speaker = usable_name(draft.speaker, f"{draft.where}: speaker")
    header = headers[draft.audio]
    channel = draft.side if draft.channel is None and header.channels > 1 else draft.channel
    if channel is not None and not 0 <= channel < header.channels:
        raise FormatError(
            f"{draft.where}: channel {channel} of {draft.audio}, which has {header.channels}; expected 0 to "
            f"{header.channels - 1}"
        )
    if header.channels == 1:
        channel = None
    start, end = _place(draft, header.rate, header.num_samples)
    words = None if draft.text is None else forms.split(draft.text)
    recording = usable_name(draft.recording, f"{draft.where}: recording") if draft.recording else ""
    return Utterance(name, speaker, words, draft.audio, start, end, channel, recording)


def _place(draft: Draft, rate: int, num_samples: int) -> tuple[float, float | None]:
    """Return start and end in seconds, as whole samples of the file; end None for the end of the file."""
    length = num_samples / rate
    end = length if draft.end is None or abs(draft.end - length) <= draft.rounding else draft.end
    start = from_zero(draft.start)
    if not (math.isfinite(start) and math.isfinite(end) and 0 <= start < end):
        raise FormatError(f"{draft.where}: from {draft.start:g} to {end:g} s; expected times from 0, the start first")
    if start >= length or end > length + MAX_OVERSHOOT:
        raise FormatError(
            f"{draft.where}: from {draft.start:g} to {end:g} s, but {draft.audio} has {length:g} s; expected a part of "
            "the file"
        )
    first = round(start * rate)
    stop = min(round(end * rate), num_samples)
    if first >= stop:
        raise FormatError(f"{draft.where}: from {draft.start:g} to {end:g} s; expected at least one sample")
    return first / rate, None if stop == num_samples else stop / rate
