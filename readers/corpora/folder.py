"""Folders of recordings with transcripts beside them, in the layout of the Montreal Forced Aligner.

SPEAKER/NAME.wav has its words in SPEAKER/NAME.lab or NAME.txt.  If there are several, .TextGrid is preferred to .lab
and .lab to .txt.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from readers.common.report import RunReport
from readers.common.text import read_text
from readers.corpora.drafts import Draft, reason
from readers.errors import ArgonautError, FormatError

AUDIO = (
    *(".wav", ".flac", ".ogg", ".opus", ".oga", ".mp3", ".sph", ".nist", ".aif", ".aiff", ".aifc", ".au", ".snd"),
    *(".caf", ".w64", ".rf64", ".voc"),
)
TEXTS = (".lab", ".txt")  # in order of preference
NO_TRANSCRIPTS = ("readme", "license", "licence", "copying", "notes", "changelog")  # names of .txt files
LONGEST_TEXT = 1 << 22  # bytes of the transcript of one recording; an hour of speech has 60,000


def folder_drafts(source: Path, report: RunReport, speaker_characters: int = 0) -> Iterator[Draft]:
    """Yield the utterances of a folder.  Recordings that cannot be used are listed in the report.

    Raises OSError if the folder is missing.
    """
    recordings, texts = _files(source, report)
    counts = Counter(path.stem for path in recordings)
    used = set()
    for path in recordings:
        place = path.with_suffix("")
        name = path.stem if counts[path.stem] == 1 else "_".join(place.relative_to(source).parts)
        speaker = path.stem[:speaker_characters] if speaker_characters else _folder_name(path)
        transcript = texts.get(place)
        try:
            text = None if transcript is None else _read_transcript(transcript)
        except (ArgonautError, OSError) as fault:
            report.fail(name, reason(fault))
        else:
            yield Draft(os.fspath(path), name, speaker, text, path)
        used.add(place)
    for place, transcript in texts.items():
        if place not in used:
            report.skip(place.name, f"{transcript}: a transcript without a recording; expected one beside it")


def _files(source: Path, report: RunReport) -> tuple[list[Path], dict[Path, Path]]:
    """Return the audio files below a directory, and the transcripts by their paths without extension."""
    source = Path(os.path.abspath(source))  # noqa: PTH100  (links stay links)
    if not source.is_dir():
        source.stat()
        raise FormatError(f"{source}: a file; expected a folder of recordings")
    recordings: list[Path] = []
    texts: dict[Path, Path] = {}
    seen: set[tuple[int, int]] = set()

    def refused(fault: OSError) -> None:
        report.fail(Path(fault.filename).name, reason(fault))

    for directory, folders, files in os.walk(source, onerror=refused, followlinks=True):
        try:
            about = Path(directory).stat()
        except OSError as fault:  # removed in the meantime
            refused(fault)
            continue
        if (about.st_dev, about.st_ino) in seen:  # a link to a folder above, or a second one to the same
            folders.clear()
            continue
        seen.add((about.st_dev, about.st_ino))
        files += [name for name in folders if Path(name).suffix.lower() in (*AUDIO, *TEXTS)]  # reported when opened
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in files)
        for name in sorted(name for name in files if not name.startswith(".")):
            path = Path(directory, name)
            extension = path.suffix.lower()
            if extension in AUDIO:
                recordings.append(path)
            elif extension in TEXTS and path.stem.lower() not in NO_TRANSCRIPTS:
                place = path.with_suffix("")
                other = texts.get(place)
                if other is None or TEXTS.index(extension) < TEXTS.index(other.suffix.lower()):
                    texts[place] = path
    return recordings, texts


def _folder_name(path: Path) -> str:
    return path.parent.name or "speaker"


def _read_transcript(path: Path) -> str:
    size = path.stat().st_size
    if size > LONGEST_TEXT:
        raise FormatError(f"{path}: {size} bytes; expected a transcript of at most {LONGEST_TEXT}")
    return read_text(path)
