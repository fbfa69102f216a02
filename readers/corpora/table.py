"""Tables with a recording in each row: CSV, TSV such as those of Common Voice, and JSON lines such as those of NeMo.

The first row names the columns: the path of the audio and, optionally, the text, the speaker, the name of the
utterance, and its start with its end or duration, in seconds.  A duration without a start is that of the whole file.
Other columns are ignored; those that look like times are named in the report.  Commas, semicolons, tabs or vertical
bars separate the columns.  A line of JSON is an object with the same names.

A table without such a row is one like LJSpeech's: `id|text`, or `id|text|text as it is spoken`, of wavs/id.wav.
"""

import csv
import io
import os
import re
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

from readers.common.report import RunReport
from readers.common.text import is_number, read_text, to_number
from readers.corpora.corpus_builder import Draft, audio_path, part_name, plain_names
from readers.corpora.json_lines import json_objects
from readers.errors import FormatError

COLUMNS = {
    "path": ("path", "file", "filename", "file_name", "audio", "audio_path", "audio_file", "audio_filepath", "wav",
             "wav_filename", "wav_path"),
    "text": ("text", "sentence", "transcript", "transcription", "words"),
    "speaker": ("speaker", "client_id", "speaker_id", "spk", "spk_id", "user_id"),
    "name": ("name", "id", "utt_id", "utterance", "utterance_id", "utt"),
    "start": ("start", "start_time", "begin", "begin_time", "offset"),
    "end": ("end", "end_time", "stop"),
    "duration": ("duration", "dur"),
}  # fmt: skip
KINDS = {name: kind for kind, names in COLUMNS.items() for name in names}
CLIPS, WAVS = "clips", "wavs"  # folders with the audio of Common Voice and LJSpeech
ROUNDED = 1.0  # seconds; the duration of a whole file may be rounded
_LIKE_A_TIME = re.compile(
    "start|begin|onset|offset|end|stop|dur|duration|length|time|timestamp|m?secs?|ms|[xt]m(in|ax)"
)

Row = tuple[str, list[str]]  # place and cells


def table_drafts(source: Path, report: RunReport) -> Iterator[Draft]:
    """Yield the utterances of a table; columns that look like times and are ignored are named in the report.

    Raises FormatError, with file and line, and OSError.
    """
    source = Path(os.path.abspath(source))  # noqa: PTH100  (links stay links)
    text = read_text(source, exact=True)
    rows: Iterable[Row]
    if text.lstrip().startswith("{"):
        where = f"{source}:1"
        header, rows = _json_rows(text, source)
    elif text.lstrip().startswith("["):
        raise FormatError(f"{source}: a JSON array; expected JSON lines, an object on each line without commas between")
    else:
        where, header, rows = _table_rows(text, source)
    places = _columns(header, where)
    ignored = [name for at, name in enumerate(header) if at not in places.values() and _looks_like_a_time(name)]
    if ignored:
        shown = ", ".join(repr(name[:30]) for name in ignored[:6])
        report.remarks["columns"] = f"{shown} not used; expected start, end or duration, in seconds"
    utterances: list[tuple[str, dict[str, str]]] = []  # place, and cells by kind
    for where, cells in rows:
        if len(cells) != len(header):
            raise FormatError(f"{where}: {len(cells)} columns; expected {len(header)}, as in the first row")
        utterances.append((where, {kind: cells[at].strip() for kind, at in places.items()}))
    paths = [_audio(row["path"], source.parent, where) for where, row in utterances]
    names = plain_names(paths)
    for (where, row), path in zip(utterances, paths, strict=True):
        start, end, duration = (_time(row, kind, where) for kind in ("start", "end", "duration"))
        is_part = bool(start) or end is not None or (start is not None and duration is not None)
        if end is None and duration is not None:
            end = (start or 0.0) + duration
        name = row.get("name") or (part_name(names[path], start or 0, end) if is_part else names[path])
        speaker = row.get("speaker") or path.parent.name
        rounding = 0.0 if is_part else ROUNDED
        yield Draft(where, name, speaker, row.get("text"), path, start or 0.0, end, rounding=rounding)


def _columns(header: list[str], where: str) -> dict[str, int]:
    """Return the position of each kind of column."""
    names = [name.strip().lower() for name in header]
    places: dict[str, int] = {}
    for kind, aliases in COLUMNS.items():
        positions = [at for at, name in enumerate(names) if name in aliases]
        exact = [at for at in positions if names[at] == kind]
        if len(exact or positions) > 1:
            ambiguous = " and ".join(repr(header[at]) for at in (exact or positions)[:2])
            raise FormatError(f"{where}: columns {ambiguous}; expected one with the {kind}")
        if positions:
            places[kind] = (exact or positions)[0]
    if "path" not in places:
        shown = ", ".join(repr(name[:30]) for name in header[:6]) or "none"
        raise FormatError(
            f"{where}: columns {shown}; expected names in the first row, among them path, text and speaker, separated "
            "by commas, semicolons, tabs or vertical bars"
        )
    return places


def _looks_like_a_time(name: str) -> bool:
    """Whether the name of a column, such as `endTime` or `offset (ms)`, is that of a time."""
    return any(_LIKE_A_TIME.fullmatch(part.lower()) for part in re.findall("[A-Z]?[a-z]+|[A-Z]+", name))


def _json_rows(text: str, path: Path) -> tuple[list[str], list[Row]]:
    """Return the names in JSON objects, one object on each line, and their values, empty where a name is missing."""
    objects = [
        (where, {name: _json_cell(value, name, item, where) for name, value in item.items()})
        for where, item in json_objects(text.split("\n"), path)
    ]
    names = list(dict.fromkeys(name for _, item in objects for name in item))
    return names, [(where, [item.get(name, "") for name in names]) for where, item in objects]


def _json_cell(value: object, name: str, item: Container[str], where: str) -> str:
    if isinstance(value, str) or value is None:
        return value or ""
    kind = KINDS.get(name.lower())
    # `argonaut transcribe` writes a list of words beside the text.
    is_used = kind is not None and (name == kind or kind not in item)
    if isinstance(value, (list, dict)) and is_used:
        raise FormatError(f"{where}: {name[:30]} {value!r:.40}; expected a text or a number")
    return repr(value)


def _table_rows(text: str, path: Path) -> tuple[str, list[str], Iterable[Row]]:
    """Return the place and the names of the columns of a table, and its rows."""
    first = next((line for line in text.split("\n") if line.strip()), "")
    marks = ",;\t|" if path.suffix.lower() == ".csv" else "\t,;|"
    names = {mark: {cell.strip().strip('"').lower() for cell in first.split(mark)} for mark in marks}
    mark = next((mark for mark in marks if not names[mark].isdisjoint(COLUMNS["path"])), None)
    if mark is None and 1 <= first.count("|") <= 2 and (path.parent / WAVS).is_dir():
        rows = _plain_rows(text, path, "|")
        folder = path.parent.name
        return f"{path}:1", ["path", "text", "speaker"], (
            (where, [cells[0], cells[-1], folder] if len(cells) in (2, 3) else cells) for where, cells in rows
        )  # fmt: skip
    mark = mark or marks[0]
    rows = _quoted_rows(text, path, mark) if mark in ",;" else _plain_rows(text, path, mark)
    return *next(rows, (f"{path}:1", [])), rows


def _quoted_rows(text: str, path: Path, mark: str) -> Iterator[Row]:
    """Yield the rows of a table with cells quoted as in CSV; blank lines are skipped."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    first = 1
    try:
        for row in reader:
            if row:
                yield f"{path}:{first}", row
            first = reader.line_num + 1
    except csv.Error as fault:
        between = "commas" if mark == "," else "semicolons"
        raise FormatError(
            f"{path}:{first}: {fault}; expected cells separated by {between}, quoted as in RFC 4180"
        ) from fault


def _plain_rows(text: str, path: Path, mark: str) -> Iterator[Row]:
    """Yield the rows of a table with tabs or vertical bars.

    A quote has no meaning inside a cell: sentences contain them.  A cell that is quoted as a whole, with quotes doubled
    inside, is unquoted.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield f"{path}:{number}", [_unquoted(cell) for cell in line.split(mark)]


def _unquoted(cell: str) -> str:
    inner = cell.strip()[1:-1]
    if cell.strip() != f'"{inner}"' or '"' in inner.replace('""', ""):
        return cell
    return inner.replace('""', '"')


def _audio(text: str, base: Path, where: str) -> Path:
    """Return the path of the audio of a row, beside the table or in the folder of Common Voice or LJSpeech."""
    path = audio_path(text, base, where)
    if os.path.exists(path):  # noqa: PTH110  (no error for long names)
        return path
    candidates = (base / CLIPS / text, base / WAVS / f"{text}.wav")
    usual = [candidate for candidate in candidates if os.path.isdir(candidate.parent)]  # noqa: PTH112
    # Of a file that is nowhere, the place where the corpus keeps the others.
    return Path(os.path.abspath(next(filter(os.path.exists, usual), [*usual, path][0])))  # noqa: PTH100


def _time(row: dict[str, str], kind: str, where: str) -> float | None:
    text = row.get(kind, "")
    if not text:
        return None
    if not is_number(text):
        raise FormatError(f"{where}: {kind} {text[:40]!r}; expected a number of seconds")
    return to_number(text)
