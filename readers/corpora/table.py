"""Tables with a recording in each row: CSV, or TSV such as those of Common Voice.

The first row names the columns: the path of the audio and, optionally, the text, the speaker, the name of the
utterance, and start and end in seconds.  Other columns are ignored.  Commas separate the columns of a file that ends in
.csv, tabs those of any other.
"""

import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path

from readers.common.text import is_number, read_text, to_number
from readers.corpora.drafts import Draft, audio_path, part_name, plain_names
from readers.errors import FormatError

COLUMNS = {
    "path": ("path", "file", "filename", "file_name", "audio", "audio_path", "audio_file", "audio_filepath", "wav",
             "wav_filename", "wav_path"),
    "text": ("text", "sentence", "transcript", "transcription", "words"),
    "speaker": ("speaker", "client_id", "speaker_id", "spk", "spk_id", "user_id"),
    "name": ("name", "id", "utt_id", "utterance", "utterance_id", "utt"),
    "start": ("start", "start_time", "begin", "offset"),
    "end": ("end", "end_time", "stop"),
}  # fmt: skip
CLIPS = "clips"  # folder of Common Voice's audio

Row = tuple[str, list[str]]


def table_drafts(source: Path) -> Iterator[Draft]:
    """Yield the utterances of a table.  Raises FormatError, with file and line, and OSError."""
    source = Path(os.path.abspath(source))  # noqa: PTH100  (links stay links)
    rows = _csv_rows(source) if source.suffix.lower() == ".csv" else _tsv_rows(source)
    where, header = next(rows, (f"{source}:1", []))
    places = _columns(header, where)
    cells = []
    for where, row in rows:
        if len(row) != len(header):
            raise FormatError(f"{where}: {len(row)} columns; expected {len(header)}, as in the first row")
        cells.append((where, {kind: row[at].strip() for kind, at in places.items()}))
    paths = [_audio(row["path"], source.parent, where) for where, row in cells]
    names = plain_names(paths)
    for (where, row), path in zip(cells, paths, strict=True):
        start, end = _time(row, "start", where), _time(row, "end", where)
        name = row.get("name") or (
            names[path] if end is None and not start else part_name(names[path], start or 0, end)
        )
        speaker = row.get("speaker", path.parent.name)
        yield Draft(where, name, speaker, row.get("text"), path, start or 0.0, end)


def _columns(header: list[str], where: str) -> dict[str, int]:
    """Return the position of each kind of column."""
    names = [name.strip().lower() for name in header]
    places: dict[str, int] = {}
    for kind, known in COLUMNS.items():
        found = [at for at, name in enumerate(names) if name in known]
        exact = [at for at in found if names[at] == kind]
        if len(exact or found) > 1:
            both = " and ".join(repr(header[at]) for at in (exact or found)[:2])
            raise FormatError(f"{where}: columns {both}; expected one with the {kind}")
        if found:
            places[kind] = (exact or found)[0]
    if "path" not in places:
        shown = ", ".join(repr(name[:30]) for name in header[:6]) or "none"
        raise FormatError(
            f"{where}: columns {shown}; expected names in the first row, among them path, text and speaker, separated "
            "by commas in .csv and by tabs in other files"
        )
    return places


def _csv_rows(path: Path) -> Iterator[Row]:
    """Yield (place, cells) of the rows of a CSV file; blank lines are skipped."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    first = 1
    try:
        for row in reader:
            if row:
                yield f"{path}:{first}", row
            first = reader.line_num + 1
    except csv.Error as fault:
        raise FormatError(
            f"{path}:{first}: {fault}; expected cells separated by commas, quoted as in RFC 4180"
        ) from fault


def _tsv_rows(path: Path) -> Iterator[Row]:
    """Yield (place, cells) of the rows of a table with tabs.

    A quote has no meaning inside a cell: sentences contain them.  A cell that is quoted as a whole, with quotes doubled
    inside, is unquoted.
    """
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip():
            yield f"{path}:{number}", [_unquoted(cell) for cell in line.split("\t")]


def _unquoted(cell: str) -> str:
    inner = cell.strip()[1:-1]
    if cell.strip() != f'"{inner}"' or '"' in inner.replace('""', ""):
        return cell
    return inner.replace('""', '"')


def _audio(text: str, base: Path, where: str) -> Path:
    path = audio_path(text, base, where)
    clip = base / CLIPS / text
    is_clip = not os.path.exists(path) and os.path.exists(clip)  # noqa: PTH110  (no error for long names)
    return Path(os.path.abspath(clip)) if is_clip else path  # noqa: PTH100


def _time(row: dict[str, str], kind: str, where: str) -> float | None:
    text = row.get(kind, "")
    if not text:
        return None
    if not is_number(text):
        raise FormatError(f"{where}: {kind} {text[:40]!r}; expected a number of seconds")
    return to_number(text)
