"""The formats in which `argonaut transcribe` prints and writes transcripts."""

import json
import math
from pathlib import Path

from readers.errors import ConfigError
from recipes.cli.live_display import json_words

# Format -> extension of its files.
FORMATS = {
    "text": "txt", "json": "json", "srt": "srt", "vtt": "vtt", "ctm": "ctm", "textgrid": "TextGrid", "mlf": "mlf",
    "slf": "slf",
}  # fmt: skip
JOINED = ("text", "json", "ctm", "mlf")  # several recordings can be printed one after the other
NAMED = ("ctm", "mlf")  # contain the name of the recording, by which its words are found
WITH_ALTERNATIVES = ("text", "json")


def write_transcript(file: Path, form: str, name: str, path: str, transcript, nbest: int = 1) -> None:
    """Write the transcript of one recording.

    name, path: of the recording, for formats that contain them.  nbest: number of alternatives, in text and JSON.
    Raises ConfigError for a lattice that does not exist.
    """
    from readers.common.files import write_lines
    from readers.htk.mlf import Label, write_mlf
    from readers.htk.slf import write_slf
    from readers.htk.units import TICKS_PER_SECOND
    from readers.results.timed_words import write_ctm, write_srt, write_textgrid, write_vtt

    timed = [word.timed for word in transcript.words]
    if form == "text":
        write_lines(file, transcript.alternatives(nbest) if nbest > 1 else [transcript.text])
    elif form == "json":
        write_lines(file, [json.dumps(as_json(path, transcript, nbest), ensure_ascii=False)])
    elif form == "mlf":
        ticks = [(round(word.start * TICKS_PER_SECOND), round(word.end * TICKS_PER_SECOND)) for word in timed]
        labels = [Label(start, end, word.word) for (start, end), word in zip(ticks, timed, strict=True)]
        write_mlf(file, [(f"*/{name}.rec", labels)])
    elif form == "slf":
        if transcript.lattice is None:
            why = f" ({transcript.reason})" if transcript.reason else ", as the recording is long"
            raise ConfigError(
                f"{path}: no lattice{why}; expected one for --format slf; --whole keeps that of any length"
            )
        write_slf(file, transcript.lattice)
    elif form == "ctm":
        write_ctm(file, {name: timed})
    elif form == "textgrid":
        write_textgrid(file, timed, duration=transcript.seconds)
    else:
        {"srt": write_srt, "vtt": write_vtt}[form](file, timed)


def as_json(path: str, transcript, nbest: int = 1) -> dict[str, object]:
    """Return the transcript of one recording as an object of JSON."""
    content = {"file": path, "text": transcript.text, "seconds": round(transcript.seconds, 3)}
    content["words"] = json_words([word.timed for word in transcript.words])
    if nbest > 1:
        content["alternatives"] = [
            {"text": one.text, "words": json_words([word.timed for word in one.words])}
            for one in transcript.hypotheses(nbest)
        ]
    if transcript.accepted is not None:
        score = transcript.grammar_score
        content |= {"accepted": transcript.accepted, "grammar_score": round(score, 3) if math.isfinite(score) else None}
    content |= {"notes": list(transcript.notes)} if transcript.notes else {}
    return content | ({"reason": transcript.reason} if transcript.reason else {})
