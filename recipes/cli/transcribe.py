"""Recognise audio files with a bundle, and print or write the words.

worked example:
  argonaut transcribe an4.argo speech.wav
prints the words of speech.wav, and
  argonaut transcribe an4.argo recordings/ --format srt -o subtitles
writes subtitles for every audio file in recordings and its folders, to files of the same names in subtitles.  `-` is
standard input, a WAV file:
  ffmpeg -i talk.mp4 -f wav -ac 1 -ar 16000 - | argonaut transcribe an4.argo -

Formats: text; json, one object per line with words, times and confidences; the subtitles srt and vtt; ctm (NIST), mlf
(HTK) and textgrid (Praat) with the times of words; slf, the lattices in HTK's format.
Without -o the result is printed; with several files, text is printed after the name of each file.
Exit status: 1 if some files could not be recognised, 2 if none could.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from readers.common.report import RunReport
from readers.errors import ConfigError
from recipes.cli.console import one_line, progress_display, show_losses

FORMATS = {
    "text": "txt", "json": "json", "srt": "srt", "vtt": "vtt", "ctm": "ctm", "textgrid": "TextGrid", "mlf": "mlf",
    "slf": "slf",
}  # fmt: skip
JOINED = ("text", "json", "ctm", "mlf")  # several recordings can be printed one after the other
STANDARD_INPUT, STDIN_NAME = "-", "stdin"
AUDIO_SUFFIXES = (
    *(".wav", ".flac", ".sph", ".nist", ".mp3", ".ogg", ".oga", ".opus", ".aiff", ".aif", ".au", ".caf", ".voc"),
)
BLOCK = 1 << 16  # samples of standard input read at a time
MAX_NBEST = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundle", metavar="BUNDLE", help="file or directory that argonaut pack made")
    parser.add_argument("audio", nargs="+", metavar="AUDIO", help="audio files, folders, or - for standard input")
    parser.add_argument("--format", choices=tuple(FORMATS), default="text", help="what is written (default text)")
    parser.add_argument(
        "--nbest", type=int, default=1, metavar="N", help="number of alternatives, with text and json (default 1)"
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="write a file for each recording to this directory, instead of printing"
    )
    parser.add_argument("--threads", type=int, metavar="N", help="number of cores to use (default: all)")


def run(arguments: argparse.Namespace) -> int:
    from decoder import Recognizer
    from readers.common.environment import available_cores, using_cores

    check_options(arguments)
    names = recordings(arguments.audio)
    if arguments.output is None and arguments.format not in JOINED and len(names) > 1:
        raise ConfigError(
            f"command line: --format {arguments.format} for {len(names)} files without -o; expected a directory"
        )
    with using_cores(available_cores() if arguments.threads is None else arguments.threads):
        return Transcription(arguments, Recognizer.load(arguments.bundle), names).run()


def check_options(arguments: argparse.Namespace) -> None:
    if not 1 <= arguments.nbest <= MAX_NBEST:
        raise ConfigError(f"command line: --nbest {arguments.nbest}; expected 1 to {MAX_NBEST}")
    if arguments.nbest > 1 and arguments.format not in ("text", "json"):
        raise ConfigError(f"command line: --nbest with --format {arguments.format}; expected text or json")
    if arguments.threads is not None and arguments.threads < 1:
        raise ConfigError(f"command line: --threads {arguments.threads}; expected at least 1")
    if arguments.output is not None and Path(arguments.output).exists() and not Path(arguments.output).is_dir():
        raise ConfigError(f"command line: -o {arguments.output}: a file; expected a directory")


def recordings(given: list[str]) -> dict[str, str]:
    """Return the recordings, name -> path; folders are searched for audio files.

    A name is that of the file without extension, and without directories except those below a given folder.  Raises
    ConfigError for two recordings of one name and for folders without audio.
    """
    names: dict[str, str] = {}
    for one in given:
        found = {one: STDIN_NAME if one == STANDARD_INPUT else Path(one).stem}
        if Path(one).is_dir():
            files = (path for path in sorted(Path(one).rglob("*")) if path.suffix.lower() in AUDIO_SUFFIXES)
            found = {str(path): path.relative_to(one).with_suffix("").as_posix() for path in files if path.is_file()}
            if not found:
                raise ConfigError(f"{one}: no audio files; expected names that end in {', '.join(AUDIO_SUFFIXES)}")
        for path, name in found.items():
            if name in names:
                raise ConfigError(f"{path}: the same name as {names[name]}; expected different names")
            names[name] = path
    return names


class Transcription:
    """Recognises all recordings in threads, and prints or writes each in order."""

    def __init__(self, arguments: argparse.Namespace, recognizer, names: dict[str, str]):
        self.arguments, self.recognizer, self.names = arguments, recognizer, names
        self.report = RunReport("files")
        self.several = len(names) > 1
        self.begun = False  # whether something has been printed

    def run(self) -> int:
        from decoder.search.batch import in_order

        with progress_display("transcribe", "files") as show:
            results = in_order(self.recognize, self.names.items(), self.arguments.threads)
            for number, ((name, path), transcript) in enumerate(results, 1):
                if isinstance(transcript, Exception):
                    self.report.fail(path, one_line(transcript))
                else:
                    self.deliver(name, path, transcript)
                    if transcript.reason:
                        self.report.mark(path, "unfinished", transcript.reason)
                    else:
                        self.report.done()
                show(number, len(self.names))
        show_losses(self.report, None, self.arguments.verbose)
        if self.several or self.arguments.output is not None:
            print(self.report.summary(), file=sys.stderr)
        return self.report.exit_status

    def recognize(self, recording: tuple[str, str]):
        _, path = recording
        if path == STANDARD_INPUT:
            return self.recognizer.transcribe(*read_standard_input())
        return self.recognizer.transcribe(path)

    def deliver(self, name: str, path: str, transcript) -> None:
        """Print one transcript, or write its file."""
        form = self.arguments.format
        if self.arguments.output is not None:
            self.write(Path(self.arguments.output) / f"{name}.{FORMATS[form]}", name, path, transcript)
            return
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / f"transcript.{FORMATS[form]}"
            self.write(file, name, path, transcript)
            text = file.read_text(encoding="utf-8")
        if form == "mlf" and self.begun:
            text = text.partition("\n")[2]  # the header stands once
        if form == "text" and self.several:
            text = "".join(f"{path}: {line}\n" for line in text.splitlines())
        self.begun = True
        print(text, end="", flush=True)

    def write(self, file: Path, name: str, path: str, transcript) -> None:
        from readers.common.files import write_lines
        from readers.htk.mlf import Label, write_mlf
        from readers.htk.slf import write_slf
        from readers.htk.units import TICKS_PER_SECOND
        from readers.results.timed_words import write_ctm, write_srt, write_textgrid, write_vtt

        form, nbest = self.arguments.format, self.arguments.nbest
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
                raise ConfigError(f"{path}: no lattice ({transcript.reason}); expected one for --format slf")
            write_slf(file, transcript.lattice)
        elif form == "ctm":
            write_ctm(file, {name: timed})
        elif form == "textgrid":
            write_textgrid(file, timed, duration=transcript.seconds)
        else:
            {"srt": write_srt, "vtt": write_vtt}[form](file, timed)


def as_json(path: str, transcript, nbest: int) -> dict[str, object]:
    words = [
        {"word": word.text, "start": round(word.start, 3), "end": round(word.end, 3)}
        | ({} if word.confidence is None else {"confidence": round(word.confidence, 4)})
        for word in transcript.words
    ]
    content = {"file": path, "text": transcript.text, "seconds": round(transcript.seconds, 3), "words": words}
    content |= {"alternatives": transcript.alternatives(nbest)} if nbest > 1 else {}
    return content | ({"reason": transcript.reason} if transcript.reason else {})


def read_standard_input():
    """Return (samples, rate) of a WAV file on standard input; samples are floating point from -1 to 1."""
    import numpy as np

    from readers.audio.audio_stream import open_audio

    audio = open_audio(STANDARD_INPUT, BLOCK)
    blocks = list(audio.blocks)
    samples = np.concatenate(blocks) if blocks else np.zeros(0, np.float32)
    return samples / np.float32(32768), audio.rate
