"""The formats of transcripts of recordings, and how they are written."""

import json
from pathlib import Path

from decoder.recognizer.jobs.recordings import RecordingFile
from decoder.recognizer.transcript import Transcript
from readers.common.files import write_lines

# Format -> extension of its files.
FORMATS = {
    "text": "txt", "json": "json", "srt": "srt", "vtt": "vtt", "ctm": "ctm", "textgrid": "TextGrid", "mlf": "mlf",
    "slf": "slf",
}  # fmt: skip


def write_transcript(file: Path, form: str, recording: RecordingFile, transcript: Transcript, nbest: int = 1) -> None:
    """Write the transcript of one recording to a file with the extension of the format.

    nbest: number of alternatives, in text and JSON.  Raises ConfigError for a lattice that does not exist.
    """
    if form == "json":
        content = {"file": recording.path} | transcript.as_dict(nbest)
        write_lines(file, [json.dumps(content, ensure_ascii=False)])
    elif form == "text" and nbest > 1:
        write_lines(file, transcript.alternatives(nbest))
    else:
        transcript.save(file, recording.name)
