"""The formats of transcripts of recordings, and how they are written."""

import json
from pathlib import Path

from decoder.recognizer.jobs.recordings import RecordingFile
from decoder.recognizer.transcript import Transcript
from readers.common.files import write_lines
from readers.common.text import in_unicode

# Format -> extension of its files.
FORMATS = {
    "text": "txt", "json": "json", "srt": "srt", "vtt": "vtt", "ctm": "ctm", "textgrid": "TextGrid", "mlf": "mlf",
    "slf": "slf",
}  # fmt: skip


def transcript_lines(form: str, recording: RecordingFile, transcript: Transcript, nbest: int = 1) -> list[str] | None:
    """Return the lines of a transcript as text or JSON, with so many alternatives; None for other formats."""
    if form == "text":
        return transcript.alternatives(nbest) if nbest > 1 else [transcript.text]
    if form == "json":
        return [json.dumps({"file": in_unicode(recording.path)} | transcript.as_dict(nbest), ensure_ascii=False)]
    return None


def write_transcript(file: Path, form: str, recording: RecordingFile, transcript: Transcript, nbest: int = 1) -> None:
    """Write the transcript of one recording to a file with the extension of the format.

    nbest: number of alternatives, in text and JSON.  Raises ConfigError for a lattice that does not exist.
    """
    lines = transcript_lines(form, recording, transcript, nbest)
    if lines is None:
        transcript.save(file, recording.name)
    else:
        write_lines(file, lines)
