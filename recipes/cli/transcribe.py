"""Recognise audio files with a bundle, and print or write the words.

worked example:
  argonaut transcribe an4.argo speech.wav
prints the words of speech.wav, and
  argonaut transcribe an4.argo recordings/ --format srt -o subtitles
writes subtitles for every audio file in recordings and its folders, to files of the same names in subtitles.  `-` is
standard input:
  ffmpeg -i talk.mp4 -f wav - | argonaut transcribe an4.argo - --channel mix
  arecord -q -t wav -f S16_LE -r 16000 | argonaut transcribe an4.argo - --stream

Audio may have any format that libsndfile reads (WAV, FLAC, Ogg, Opus, MP3, SPHERE, AIFF, ...).  A higher sample rate
than that of the training is resampled; a lower one needs --upsample, and several channels need --channel.
Formats: text; json, one object per line with words, times and confidences; the subtitles srt and vtt; ctm (NIST), mlf
(HTK) and textgrid (Praat) with the times of words; slf, the lattices in HTK's format.
Without -o the result is printed; with several files, text is printed after the name of each file.
With --grammar, a recording that matches no sentence of the grammar is listed as rejected; json has its `grammar_score`.
In folders, hidden files and files without an extension of audio are ignored; formats that cannot be read, such as .m4a,
are listed.
Exit status: 0 if every file was recognised, 1 if some were not or all are unfinished, 2 if none was.
"""

import argparse
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple

from readers.common.audio_format import AUDIO_SUFFIXES, UNREADABLE_SUFFIXES
from readers.common.report import IRREGULAR, RunReport
from readers.errors import ArgonautError, ConfigError
from recipes.cli.console import SIGNAL_BASE, one_line, progress_display, show_losses
from recipes.cli.hotwords import add_hotword_options, with_hotwords
from recipes.cli.live_display import JsonDisplay, TextDisplay, recognised
from recipes.cli.raw_audio import add_audio_options, add_raw_options, channel_of, raw_format
from recipes.cli.transcript_files import FORMATS, JOINED, NAMED, WITH_ALTERNATIVES, write_transcript

STANDARD_INPUT, STDIN_NAME = "-", "stdin"
RAW_SUFFIXES = (".raw", ".pcm")  # in folders, with --rate
BLOCK = 1600  # samples of a live stream read at a time
MAX_NBEST = 10_000


class Recording(NamedTuple):
    """A recording to recognise.

    name: of the file without extension, and without directories except those below a given folder.
    """

    name: str
    path: str


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
    parser.add_argument(
        "--grammar",
        metavar="FILE",
        help="recognise sentences of a grammar only: JSGF, HParse's notation, an SLF network or a JSON list of phrases",
    )
    parser.add_argument(
        "--stream",
        action="store_true",
        help="recognise one recording while it arrives, and print the words of each utterance when it has ended",
    )
    parser.add_argument(
        "--whole",
        action="store_true",
        help="recognise recordings of more than 2 minutes as a whole, too, not divided at pauses; needs more memory",
    )
    parser.add_argument("-j", "--threads", type=int, metavar="N", help="number of cores to use (default: all)")
    add_hotword_options(parser, g2p=True)
    audio = parser.add_argument_group("audio")
    add_audio_options(audio)
    add_raw_options(audio, channels=True)


def run(arguments: argparse.Namespace) -> int:
    from decoder import Recognizer
    from readers.common.environment import available_cores, using_cores
    from readers.common.files import require_writable

    check_options(arguments)
    raw, channel = raw_format(arguments), channel_of(arguments.channel)
    found, unread = recordings(arguments.audio, raw is not None)
    check_recordings(arguments, found)
    if arguments.output is not None:
        require_writable(Path(arguments.output) / "transcript")
    with using_cores(available_cores() if arguments.threads is None else arguments.threads):
        recognizer = Recognizer.load(arguments.bundle).with_audio(channel=channel, upsample=arguments.upsample, raw=raw)
        if arguments.grammar is not None:
            recognizer = recognizer.with_grammar(arguments.grammar)
        recognizer = with_hotwords(arguments, recognizer, guesses=True)
        if arguments.stream:
            return Live(arguments, recognizer, found[0].path, raw).run()
        if arguments.whole:
            recognizer = recognizer.with_audio(longest=None)
        return Transcription(arguments, recognizer, found, unread).run()


def check_options(arguments: argparse.Namespace) -> None:
    if "" in (arguments.bundle, arguments.output, *arguments.audio):  # pathlib would take the current directory
        raise ConfigError("command line: an empty file name; expected BUNDLE and AUDIO, and a directory after -o")
    if arguments.audio.count(STANDARD_INPUT) > 1:
        raise ConfigError(f"command line: {STANDARD_INPUT} twice; expected standard input once")
    if not 1 <= arguments.nbest <= MAX_NBEST:
        raise ConfigError(f"command line: --nbest {arguments.nbest}; expected 1 to {MAX_NBEST}")
    if arguments.nbest > 1 and arguments.format not in WITH_ALTERNATIVES:
        raise ConfigError(f"command line: --nbest with --format {arguments.format}; expected text or json")
    if arguments.threads is not None and arguments.threads < 1:
        raise ConfigError(f"command line: --threads {arguments.threads}; expected at least 1")
    if arguments.output is not None and Path(arguments.output).exists() and not Path(arguments.output).is_dir():
        raise ConfigError(f"command line: -o {arguments.output}: a file; expected a directory")
    if arguments.stream:
        if arguments.format not in ("text", "json"):
            raise ConfigError(f"command line: --stream with --format {arguments.format}; expected text or json")
        for option, given in (("-o", arguments.output), ("--nbest", arguments.nbest > 1), ("--whole", arguments.whole)):
            if given:
                raise ConfigError(f"command line: --stream with {option}; expected only one of them")


def recordings(given: list[str], raw: bool) -> tuple[list[Recording], list[str]]:
    """Return the recordings, and files in folders that are audio of formats that cannot be read.

    Folders are searched for audio files, with `raw` also for those of raw samples; hidden files are ignored.
    Raises ConfigError for folders without audio.
    """
    suffixes = (*AUDIO_SUFFIXES, *(RAW_SUFFIXES if raw else ()))
    found, unread = [], []
    for one in given:
        if not Path(one).is_dir():
            found.append(Recording(STDIN_NAME if one == STANDARD_INPUT else Path(one).stem, one))
            continue
        inside = [path for path in sorted(Path(one).rglob("*")) if not _is_hidden(path.relative_to(one))]
        files = [path for path in inside if path.suffix.lower() in suffixes and path.is_file()]
        found += [Recording(path.relative_to(one).with_suffix("").as_posix(), str(path)) for path in files]
        others = [str(path) for path in inside if path.suffix.lower() in UNREADABLE_SUFFIXES and path.is_file()]
        if not files and not others:
            raise ConfigError(f"{one}: no audio files; expected names that end in {', '.join(suffixes)}")
        unread += others
    return found, unread


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def check_recordings(arguments: argparse.Namespace, found: list[Recording]) -> None:
    """Raise ConfigError if the results of the recordings cannot be told apart."""
    form, separate = arguments.format, arguments.output is not None
    if arguments.stream and len(found) != 1:
        raise ConfigError(f"command line: --stream for {len(found)} files; expected one")
    if not separate and form not in JOINED and len(found) > 1:
        raise ConfigError(f"command line: --format {form} for {len(found)} files without -o; expected a directory")
    paths: dict[str, str] = {}
    for name, path in found if separate or form in NAMED else ():
        if name in paths:
            raise ConfigError(f"{path}: the same name as {paths[name]}; expected different names")
        paths[name] = path


class Transcription:
    """Recognises all recordings in threads, and prints or writes each in order."""

    def __init__(self, arguments: argparse.Namespace, recognizer, found: list[Recording], unread: list[str]):
        self.arguments, self.recognizer, self.recordings = arguments, recognizer, found
        self.report = RunReport("files")
        for path in unread:
            self.report.skip(path, f"{path}: {Path(path).suffix} cannot be read; convert it to WAV")
        self.several = len(found) > 1
        self.begun = False  # whether something has been printed
        self.progress = _Progress(len(found))

    def run(self) -> int:
        from decoder.search.batch import in_order

        with progress_display("transcribe", "files" if self.several else "seconds") as self.progress.show:
            results = in_order(self.recognize, self.recordings, self.arguments.threads)
            for recording, transcript in results:
                self.take(recording, transcript)
                self.progress.done()
        show_losses(self.report, None, self.arguments.verbose)
        if self.several or self.arguments.output is not None:
            print(self.report.summary(), file=sys.stderr)
        return self.report.exit_status

    def recognize(self, recording: Recording):
        def progress(seconds: float, total: float | None) -> None:
            self.progress.heard(recording.path, seconds, total)

        transcript = self.recognizer.transcribe(recording.path, progress=progress)
        self.progress.heard(recording.path, transcript.seconds, transcript.seconds)
        return transcript

    def take(self, recording: Recording, transcript) -> None:
        """Deliver a transcript, or an error in its place, and count it."""
        path = "standard input" if recording.path == STANDARD_INPUT else recording.path
        if not isinstance(transcript, Exception):
            self.report.marked += [(path, IRREGULAR, note) for note in transcript.notes]
            try:
                self.deliver(recording, transcript)
            except BrokenPipeError:
                raise
            except (ArgonautError, OSError) as fault:
                transcript = fault
        if isinstance(transcript, Exception):
            self.report.fail(path, one_line(transcript))
        elif transcript.reason:
            self.report.mark(path, "unfinished", transcript.reason)
        elif transcript.accepted is False:
            score, threshold = transcript.grammar_score, self.recognizer.grammar.options.threshold
            self.report.mark(path, "rejected", f"grammar score {score:.2f}; expected at least {threshold:g}")
        else:
            self.report.done()

    def deliver(self, recording: Recording, transcript) -> None:
        """Print one transcript, or write its file."""
        form, (name, path), nbest = self.arguments.format, recording, self.arguments.nbest
        if self.arguments.output is not None:
            file = Path(self.arguments.output) / f"{name}.{FORMATS[form]}"
            write_transcript(file, form, name, path, transcript, nbest)
            return
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / f"transcript.{FORMATS[form]}"
            write_transcript(file, form, name, path, transcript, nbest)
            text = file.read_text(encoding="utf-8")
        if form == "mlf" and self.begun:
            text = text.partition("\n")[2]  # the header stands once
        if form == "text" and self.several:
            text = "".join(f"{path}: {line}\n" for line in text.splitlines())
        self.begun = True
        print(text, end="", flush=True)


class _Progress:
    """Displays how many recordings are done, or of a single one, how many seconds."""

    def __init__(self, total: int):
        self.total, self.count = total, 0
        self.show = lambda *_, **__: None
        self.seconds: dict[str, float] = {}
        self.lock = threading.Lock()

    def heard(self, path: str, seconds: float, total: float | None) -> None:
        """Take how many seconds of a recording are done; called by any thread."""
        with self.lock:
            self.seconds[path] = seconds
            if self.total == 1:
                self.show(round(seconds), None if total is None else round(total))
            else:
                self.show(self.count, self.total, audio=_clock(sum(self.seconds.values())))

    def done(self) -> None:
        with self.lock:
            self.count += 1
            if self.total > 1:
                self.show(self.count, self.total, audio=_clock(sum(self.seconds.values())))


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"


class Live:
    """Recognises one recording while it arrives."""

    def __init__(self, arguments: argparse.Namespace, recognizer, path: str, raw):
        from readers.audio.audio_stream import open_audio

        self.verbose = arguments.verbose
        self.name, front_end = "standard input" if path == STANDARD_INPUT else path, recognizer.front_end
        channel = channel_of(arguments.channel)
        channel = front_end.config.channel if channel is None else channel
        self.audio = open_audio(path, BLOCK, *(raw or (None,)), channel=channel)
        self.period = front_end.period(front_end.target_rate(self.audio.rate, self.name, arguments.upsample))
        self.recognition = recognizer.stream(self.audio.rate)
        self.display = JsonDisplay() if arguments.format == "json" else TextDisplay(times=False)
        self.report = RunReport("utterances")

    def run(self) -> int:
        from readers.common.environment import Stopwatch
        from readers.common.stop_signals import stopping_signal
        from readers.htk.units import TICKS_PER_SECOND

        stopwatch, full_scale = Stopwatch(), 32768
        try:
            for event in recognised(self.recognition, (block / full_scale for block in self.audio.blocks)):
                self.display(event)
                if event.is_final and event.reason:
                    name = f"{self.name} {event.start:.2f}-{event.end:.2f} s"
                    self.report.mark(name, "unfinished", event.reason)
                elif event.is_final:
                    self.report.done()
        except ArgonautError as fault:  # the words recognised before have been printed
            self.report.fail(self.name, one_line(fault))
        self.report.marked += [(self.name, IRREGULAR, note) for note in self.audio.notes]
        frames = self.recognition.num_frames
        show_losses(self.report, None, self.verbose)
        seconds = frames * self.period / TICKS_PER_SECOND
        self.display.close(self.report, frames, stopwatch.seconds / seconds if frames else 0.0)
        stopped = stopping_signal()
        return self.report.exit_status if stopped == signal.SIGINT else SIGNAL_BASE + stopped
