"""The formats in which `argonaut transcribe` prints and writes transcripts."""

import json
from pathlib import Path

# Format -> extension of its files.
FORMATS = {
    "text": "txt", "json": "json", "srt": "srt", "vtt": "vtt", "ctm": "ctm", "textgrid": "TextGrid", "mlf": "mlf",
    "slf": "slf",
}  # fmt: skip
JOINED = ("text", "json", "ctm", "mlf")  # several recordings can be printed one after the other
NAMED = ("ctm", "mlf")  # contain the name of the recording, by which its words are found
WITH_ALTERNATIVES = ("text", "json")


def write_transcript(file: Path, form: str, name: str, path: str, transcript, nbest: int = 1) -> None:
    """Write the transcript of one recording to a file with the extension of the format.

    name, path: of the recording, for formats that contain them.  nbest: number of alternatives, in text and JSON.
    Raises ConfigError for a lattice that does not exist.
    """
    from readers.common.files import write_lines

    if form == "json":
        content = {"file": path} | transcript.as_dict(nbest)
        write_lines(file, [json.dumps(content, ensure_ascii=False)])
    elif form == "text" and nbest > 1:
        write_lines(file, transcript.alternatives(nbest))
    else:
        transcript.save(file, name)
