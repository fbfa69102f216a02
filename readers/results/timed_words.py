"""Recognised words with times and confidences, in the formats of other programs.

CTM and STM (NIST sclite), Praat's TextGrid, subtitles as SubRip (SRT) and WebVTT, and JSON.  Times are seconds.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from readers.common.faults import listed
from readers.common.files import atomic_write, write_content, write_lines
from readers.common.report import Figures, rows_of
from readers.common.text import is_number, read_lines, to_numbers
from readers.errors import ConfigError, FormatError

MOST_SECONDS = 1e9
CHANNEL = "1"
STM_COMMENT = ";;"
CUE = re.compile(r"(?:\d+:)?\d+:\d\d[.,]\d{3} --> (?:(\d{1,9}):)?(\d{1,9}):(\d\d)[.,](\d{3})")
LETTERS = {"A": "1", "B": "2"}  # other names of channels
SPEAKER = "unknown"
CUE_SECONDS, CUE_CHARACTERS, PAUSE = (
    6.0,
    84,
    0.8,
)  # maximum duration and length of a subtitle; a pause that ends it (seconds)


class Word(NamedTuple):
    """A recognised or aligned word, or a phone.

    Attributes
    ----------
    text : str
    start, end : float
        Seconds.
    confidence : float or None
        In [0, 1]: the probability that the word is right if the recogniser is calibrated, otherwise the posterior
        probability of the word in the lattice.  Of an alignment: how well the audio matches the word's phones, see
        `decoder.alignment.PhoneGoodness`.  None if unknown, for instance where the decoder keeps no lattices.
    """

    text: str
    start: float
    end: float
    confidence: float | None = None


Utterances = Mapping[str, Sequence[Word]]


def write_ctm(path: str | Path, utterances: Utterances, channel: str = CHANNEL) -> None:
    """Write lines `utterance channel start duration word [confidence]`."""
    write_lines(path, (line for name, words in utterances.items() for line in ctm_lines(name, words, channel)))


def ctm_lines(name: str, words: Iterable[Word], channel: str = CHANNEL) -> Iterator[str]:
    """Yield the lines of an utterance in a CTM file."""
    for word in words:
        confidence = "" if word.confidence is None else f" {word.confidence:.4f}"
        # The duration is that of the rounded times, so that neighbours do not overlap by a millisecond.
        start, end = round(word.start, 3), round(word.end, 3)
        yield f"{_field(name)} {channel} {start:.3f} {end - start:.3f} {_field(word.text)}{confidence}"


def is_ctm(lines: Iterable[str]) -> bool:
    """Whether there are lines, comments aside, and all of them look like lines of a CTM file."""
    rows = [line.split(";;")[0].split() for line in lines]
    rows = [row for row in rows if row]
    return bool(rows) and all(len(row) in (5, 6) and is_number(row[2]) and is_number(row[3]) for row in rows)


def read_ctm(path: str | Path, beside: Iterable[str | Path] = ()) -> dict[str, list[Word]]:
    """Read a CTM file.

    Parameters
    ----------
    path : path
        Lines `utterance channel start duration word [confidence]`.
    beside : iterable of path
        CTM files with which it is compared: the channels of a file are those that any of them has.

    Returns
    -------
    dict of str to list of Word
        Words of each utterance by time.  A record belongs to a file and a channel: those of a file with one channel are
        named as the file.  Of a file with several, those of the first channel (1 or A) are, and those of another are
        named `FILE:CHANNEL`, such as `call:2` for 2 and B.

    Raises
    ------
    FormatError
        With file and line, for a malformed line.

    References
    ----------
    NIST sclite documentation.
    """
    records = _ctm_records(path)
    keys = {*records, *(key for file in beside for key in _ctm_records(file))}
    num_channels = Counter(name for name, _ in keys)
    utterances: dict[str, list[Word]] = {}
    for (name, channel), words in records.items():
        is_first = channel == CHANNEL or num_channels[name] == 1
        utterances[name if is_first else f"{name}:{channel}"] = sorted(words, key=lambda word: word.start)
    return utterances


def _ctm_records(path: str | Path) -> dict[tuple[str, str], list[Word]]:
    """Return the words of each file and channel of a CTM file, in the order of the lines."""
    records: dict[tuple[str, str], list[Word]] = {}
    for number, line in enumerate(read_lines(path), 1):
        fields = line.split(";;")[0].split()
        if not fields:
            continue
        try:
            name, channel, start, duration, word, *optional = fields
            numbers = to_numbers((start, duration, *optional[:1]))
            are_valid = all(map(math.isfinite, numbers)) and all(0 <= time < MOST_SECONDS for time in numbers[:2])
            if len(optional) > 1 or not are_valid:
                raise ValueError
        except ValueError:
            raise FormatError(
                f"{path}:{number}: {line.strip()[:60]!r}; expected utterance channel start duration word [confidence]"
            ) from None
        timed = Word(word, numbers[0], numbers[0] + numbers[1], numbers[2] if optional else None)
        records.setdefault((name, LETTERS.get(channel.upper(), channel)), []).append(timed)
    return records


def write_stm(path: str | Path, utterances: Utterances, channel: str = CHANNEL, speaker: str = SPEAKER) -> None:
    """Write lines `utterance channel speaker start end words`, as sclite reads references."""
    with atomic_write(path, "w") as file:
        for name, words in utterances.items():
            start, end = (words[0].start, words[-1].end) if words else (0.0, 0.0)
            text = " ".join(_field(word.text) for word in words) or "ignore_time_segment_in_scoring"
            file.write(f"{_field(name)} {channel} {speaker} {start:.3f} {end:.3f} {text}\n")


def label_objects(kind: str, labels: Iterable[Word]) -> list[dict[str, object]]:
    """Return labels as objects of JSON: the label itself as `kind`, start, end in seconds and, if known, confidence."""
    return [
        {kind: label.text, "start": round(label.start, 3), "end": round(label.end, 3)}
        | ({} if label.confidence is None else {"confidence": round(label.confidence, 4)})
        for label in labels
    ]


def sentence_object(words: Iterable[Word]) -> dict[str, object]:
    """Return a sentence as an object of JSON: text and words."""
    words = list(words)
    return {"text": " ".join(word.text for word in words), "words": label_objects("word", words)}


def write_json(path: str | Path, utterances: Utterances) -> None:
    """Write one object, utterance -> {"text", "words": [{"word", "start", "end"[, "confidence"]}]}."""
    content = {name: sentence_object(words) for name, words in utterances.items()}
    write_content(path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def write_textgrid(
    path: str | Path,
    words: Sequence[Word],
    phones: Sequence[Word] | None = None,
    duration: float = 0.0,
) -> None:
    """Write one utterance in Praat's long text format: a tier of words and, if they are given, one of phones.

    A tier has one interval per word, and empty intervals between them.  All tiers end at `duration` (seconds) or with
    the last word, whichever is later.
    """
    tiers = {"words": words} if phones is None else {"words": words, "phones": phones}
    write_tiers(path, tiers, duration)


def write_tiers(path: str | Path, tiers: Mapping[str, Sequence[Word]], duration: float = 0.0) -> None:
    """Write interval tiers in Praat's long text format.

    Parameters
    ----------
    path : path
        TextGrid file.
    tiers : mapping of str to sequence of Word
        Labels of each tier, by time; the time between them becomes empty intervals.
    duration : float
        Seconds; all tiers end there, and so does a label that would end later.  With labels that begin later, as
        without a duration, tiers end with the last label.

    References
    ----------
    Praat manual, "TextGrid file formats".
    """
    write_content(path, textgrid_text(tiers, duration))


def textgrid_text(tiers: Mapping[str, Sequence[Word]], duration: float = 0.0) -> str:
    """Return what `write_tiers` writes."""
    # The last frame may end after the audio, with subsampled models.
    tiers = {
        name: [word._replace(end=duration) if word.start < duration < word.end else word for word in tier]
        for name, tier in tiers.items()
    }
    # Praat does not allow empty intervals.
    end = max([0.001, duration, *(word.end for tier in tiers.values() for word in tier)])
    lines = ['File type = "ooTextFile"\nObject class = "TextGrid"\n\n', f"xmin = 0\nxmax = {_seconds(end)}\n"]
    lines.append(f"tiers? <exists>\nsize = {len(tiers)}\nitem []:\n")
    for item, (name, tier) in enumerate(tiers.items(), 1):
        intervals = _intervals(tier, end)
        lines.append(f'    item [{item}]:\n        class = "IntervalTier"\n        name = "{_praat(name)}"\n')
        lines.append(f"        xmin = 0\n        xmax = {_seconds(end)}\n        intervals: size = {len(intervals)}\n")
        for number, (start, stop, text) in enumerate(intervals, 1):
            lines.append(
                f"        intervals [{number}]:\n            xmin = {_seconds(start)}\n            xmax = "
                f'{_seconds(stop)}\n            text = "{_praat(text)}"\n'
            )
    return "".join(lines)


def _intervals(words: Sequence[Word], end: float) -> list[tuple[float, float, str]]:
    """Return (start, end, text) of the words and of the empty intervals between them, which together fill 0 .. end."""
    intervals: list[tuple[float, float, str]] = []
    time = 0.0
    for word in words:
        if word.start > time and _seconds(word.start) != _seconds(time):
            intervals.append((time, word.start, ""))
        time = max(time, word.start)
        if word.end > time:
            intervals.append((time, word.end, word.text))
            time = word.end
    if _seconds(end) != _seconds(time):
        intervals.append((time, end, ""))
    return intervals


def write_srt(path: str | Path, words: Sequence[Word]) -> None:
    """Write one utterance as SubRip subtitles."""
    with atomic_write(path, "w") as file:
        for number, (start, end, text) in enumerate(cues(words), 1):
            file.write(f"{number}\n{_clock(start, ',')} --> {_clock(end, ',')}\n{text}\n\n")


def write_vtt(path: str | Path, words: Sequence[Word]) -> None:
    """Write one utterance as WebVTT subtitles."""
    with atomic_write(path, "w") as file:
        file.write("WEBVTT\n\n")
        for start, end, text in cues(words):
            escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
            file.write(f"{_clock(start, '.')} --> {_clock(end, '.')}\n{escaped}\n\n")


def cues(words: Iterable[Word]) -> list[tuple[float, float, str]]:
    """Return (start, end, text) of subtitles; a subtitle is limited in duration and length and contains no pause."""
    subtitles: list[list[Word]] = []
    for word in words:
        last = subtitles[-1] if subtitles else []
        goes_on = bool(last) and word.start - last[-1].end < PAUSE and word.end - last[0].start <= CUE_SECONDS
        if goes_on and sum(len(spoken.text) + 1 for spoken in last) + len(word.text) <= CUE_CHARACTERS:
            last.append(word)
        else:
            subtitles.append([word])
    return [(cue[0].start, cue[-1].end, " ".join(word.text for word in cue)) for cue in subtitles]


# Suffix -> function that writes all utterances to one file (TOGETHER), or one utterance to its own file (ALONE).
TOGETHER: dict[str, Callable[..., None]] = {"ctm": write_ctm, "stm": write_stm, "json": write_json}
ALONE: dict[str, Callable[..., None]] = {"textgrid": write_textgrid, "srt": write_srt, "vtt": write_vtt}
SUFFIXES = {"textgrid": "TextGrid"}


def check_form(path: str | Path) -> str:
    """Return the format that the suffix of a name selects.

    Raises ConfigError for an unknown suffix, and a file in the place of the directory of `subtitles.srt`.
    """
    form = Path(path).suffix.lstrip(".").lower()
    if form not in TOGETHER and form not in ALONE:
        raise ConfigError(
            f"{path}: unknown format of words; expected a name that ends in .{', .'.join([*TOGETHER, *ALONE])}"
        )
    directory = Path(path).with_suffix("")
    if form in ALONE and directory.is_file():
        raise ConfigError(f"{path}: the directory of its files, {directory}, is a file; expected another name")
    return form


def write_words(
    path: str | Path,
    utterances: Utterances,
    phones: Utterances | None = None,
    durations: Mapping[str, float] | None = None,
) -> list[Path]:
    """Write words with times, in the format that the suffix of a name selects.

    Parameters
    ----------
    path : path
        `words.ctm`, `.stm`, `.json`: one file for all utterances.  `subtitles.srt`, `.vtt`, `.TextGrid`: a directory
        `subtitles` with one file per utterance.
    utterances : mapping of str to sequence of Word
        Words of each utterance.
    phones : mapping of str to sequence of Word, optional
        Phones of utterances, for the second tier of a TextGrid; other formats have no place for them.
    durations : mapping of str to float, optional
        Durations of utterances in seconds, where a TextGrid ends; by default it ends with the last word.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    ConfigError
        For an unknown suffix, and for utterances that cannot be file names or would share a file.
    """
    path, form = Path(path), check_form(path)
    if form in TOGETHER:
        TOGETHER[form](path, utterances)
        return [path]
    names = check_names(path, utterances)
    directory = path.with_suffix("")
    directory.mkdir(parents=True, exist_ok=True)
    files = []
    for name, words in utterances.items():
        files.append(directory / f"{names[name]}.{SUFFIXES.get(form, form)}")
        if form == "textgrid":
            write_textgrid(files[-1], words, (phones or {}).get(name), (durations or {}).get(name, 0.0))
        else:
            ALONE[form](files[-1], words)
    return files


def words_note(path: str | Path, written: Sequence[Path]) -> str:
    """Return a line about where words are, if `write_words` wrote them elsewhere than to `path`; "" otherwise."""
    if not written or list(written) == [Path(path)]:
        return ""
    return f"words: {listed(list(map(str, written)), 1)}"


def check_names(path: str | Path, utterances: Iterable[str]) -> dict[str, str]:
    """Return the file name of each utterance, for formats with one file per utterance.

    Raises ConfigError for an unknown suffix and for utterances that would share a file.
    """
    path, form = Path(path), check_form(path)
    names = {name: Path(name).name for name in utterances}
    if form in TOGETHER:
        return names
    counts = Counter(names.values())
    for name, short in names.items():
        if counts[short] > 1:
            raise ConfigError(
                f"{path}: two utterances are named {short}; expected names that differ without their directories"
            )
        if short in ("", ".", ".."):
            raise ConfigError(f"{path}: utterance {name!r} cannot be a file name")
    return names


def _field(text: str) -> str:
    """Format a name or word as one field of a line."""
    return "_".join(text.split()) or "_"


def _seconds(time: float) -> str:
    """Format a time with at least 3 and at most 9 decimals, enough for any sample rate."""
    text = f"{time:.9f}"
    return text[:-6] + text[-6:].rstrip("0")


def _praat(text: str) -> str:
    return text.replace('"', '""')


def _clock(seconds: float, point: str) -> str:
    thousandths = round(seconds * 1000)
    minutes, thousandths = divmod(thousandths, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{thousandths // 1000:02d}{point}{thousandths % 1000:03d}"


def ctm_summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    utterances = read_ctm(path)
    words = [word for entry in utterances.values() for word in entry]
    confidences = [word.confidence for word in words if word.confidence is not None]
    return [
        ("utterances", len(utterances)),
        ("words", f"{len(words)}, {len({word.text for word in words})} different"),
        ("ends at", f"{max(word.end for word in words):.2f} s"),
        (
            "confidence",
            f"given for {len(confidences)}"
            + (f", mean {sum(confidences) / len(confidences):.3f}" if confidences else ""),
        ),
    ]


def stm_summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    rows = [row for row in rows_of(path) if not row[0].startswith(STM_COMMENT)]
    texts = [row[6:] if row[5:] and row[5].startswith("<") else row[5:] for row in rows]  # <labels> is not a word
    return [
        ("segments", f"{len(rows)} of {len({row[0] for row in rows})} recordings"),
        ("speakers", len({row[2] for row in rows})),
        ("words", sum(map(len, texts))),
        ("ends at", f"{max(float(row[4]) for row in rows):.2f} s"),
    ]


def subtitles_summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    cues = [match for line in read_lines(path) if (match := CUE.match(line.strip()))]
    ends = [
        int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds) + int(thousandths) / 1000
        for hours, minutes, seconds, thousandths in (cue.groups() for cue in cues)
    ]
    return [("cues", len(cues)), ("ends at", f"{max(ends, default=0.0):.2f} s")]
