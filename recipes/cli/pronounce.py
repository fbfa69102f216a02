"""Score the pronunciation of known words: each phone from 0 to 2, each word and the sentence from 0 to 10.

worked example:
  argonaut pronounce en speech.wav --text "it is only for you"
prints
  8.1 it is only for you
    it 10.0: IH 2.0, T 2.0
    is 9.9: IH 2.0, Z 1.7
    only 7.0: OW>AH 1.1, N 1.5, L>T 1.2, IY>UW 1.2
    for 10.0: F 2.0, AO 2.0, R 1.9
    you 10.0: Y 2.0, UW 1.9
The score of a phone is near 2 if it is right, 1 with a heavy accent and 0 if it is wrong or missing.  L>T is an L that
was probably said as T; `>-` is a phone that was probably left out.
  argonaut pronounce en recordings/ --transcripts text --format csv -o scores
writes a table for each recording of a folder, with the times of its words and phones; `text` has lines NAME WORDS.
Other formats are json and textgrid, for Praat.  --picture draws one recording.

The bundle needs a map to scores, which is fitted to recordings of speakers whom its network never heard, and to scores
that experts gave them, a file such as scores.json of the corpus speechocean762:
  argonaut pronounce en recordings/ --train scores.json --folds 6 -o scored.argo
With --folds, it is measured on speakers that are left out; --test SCORES measures it on other speakers.  Speakers whom
the network heard count, too, with a network that did not hear them:
  argonaut pronounce en recordings/ --train unheard.jsonl --also other.argo --also-scores heard.jsonl -o scored.argo
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from decoder.recognizer.jobs.pronunciation.options import PronounceOptions, TrainPronunciationOptions
from readers.common.files import require_writable
from readers.config.options import like, option
from recipes.cli.command import Command, Console
from recipes.cli.console import files_of, show_losses
from recipes.pictures.job import is_png

if TYPE_CHECKING:
    from decoder.recognizer.jobs.pronunciation.job import PronouncedFile


@dataclass(frozen=True, kw_only=True)
class CommandOptions(PronounceOptions):
    """Options of the command: those of both jobs, and a picture."""

    picture: Path | None = option(
        None, "drawing of the recording, coloured by scores", check=is_png, expected="the name of a PNG file",
        metavar="PNG", heading="picture",
    )  # fmt: skip
    train: Path | None = option(
        None,
        "fit a map to scores of experts, scores.json as of speechocean762, and write the bundle with it to {output}",
        metavar="SCORES",
        heading="training",
    )
    also: tuple[Path, ...] = like(TrainPronunciationOptions, "also")
    also_scores: tuple[Path, ...] = like(TrainPronunciationOptions, "also_scores")
    test: Path | None = like(TrainPronunciationOptions, "test")
    speakers: Path | None = like(TrainPronunciationOptions, "speakers")
    folds: int = like(TrainPronunciationOptions, "folds")

    def _check(self) -> None:
        for name in ("also", "also_scores", "test", "speakers", "folds"):
            self.require(name, self.train is not None or not getattr(self, name), "is given without {train}")
        if self.train is None:
            super()._check()
            return
        self.require("output", self.output is not None, "is missing; expected the name of the new bundle")
        for name in ("text", "transcripts", "picture"):
            self.require(name, getattr(self, name) is None, "is given with {train}; expected only one of them")


def run(options: CommandOptions, console: Console) -> int:
    return _score(options, console) if options.train is None else _train(options, console)


def _score(options: CommandOptions, console: Console) -> int:
    from decoder.recognizer.jobs.pronunciation.job import pronounce

    _check_outputs(options)
    printer = Printer(options)
    with console.progress("files") as progress:
        result = pronounce(options, take=printer, progress=progress)
    show_losses(result.report, None, console.verbose)
    files = [] if options.output is None or not result.paths else [files_of(result.paths, options.output)]
    if options.picture is not None and printer.count:
        files.append(f"{options.picture}")
    if files:
        console.tell(f"results: {', '.join(files)}")
    if result.num_files > 1 or options.output is not None:
        console.tell(result.report.summary())
    return result.report.exit_status


def _check_outputs(options: CommandOptions) -> None:
    """Raise OptionFault for a picture or printed TextGrids of several recordings, and OSError for a picture in place of
    an input.
    """
    from decoder.recognizer.jobs.recordings import STANDARD_INPUT, find_recordings

    recordings, _ = find_recordings(options.audio, options.reading.raw is not None)
    is_printed = options.output is None and options.format == "textgrid" and len(recordings) > 1
    options.require("format", not is_printed, "is textgrid for several recordings; expected {output}, too")
    if options.picture is None:
        return
    paths = [recording.path for recording in recordings]
    is_drawn = len(paths) == 1 and paths[0] != STANDARD_INPUT
    options.require("picture", is_drawn, "is a drawing of one recording; expected one audio file, not standard input")
    require_writable(options.picture, [options.bundle, options.transcripts, *paths])


class Printer:
    """Prints scores one after the other, and draws them."""

    def __init__(self, options: CommandOptions):
        self.options = options
        self.count = 0

    def __call__(self, file: "PronouncedFile") -> None:
        """Print the scores of a recording, unless they have been written."""
        from decoder.recognizer.jobs.pronunciation.job import EXTENSIONS
        from decoder.recognizer.jobs.pronunciation.result import text_of

        options = self.options
        self.count += 1
        if options.output is None:
            text = text_of(EXTENSIONS[options.format], file.recording.path, file.pronunciation, self.count == 1)
            heading = f"{file.recording.path}: " if options.format == "text" and file.num_files > 1 else ""
            print(f"{heading}{text}", end="", flush=True)
        if options.picture is not None:
            from recipes.pictures.pronunciation import draw_pronunciation

            reading = options.reading
            draw_pronunciation(file.pronunciation, file.recording.path, options.picture, reading.channel, reading.raw)


def _train(options: CommandOptions, console: Console) -> int:
    from decoder.recognizer.jobs.pronunciation.training_job import train_pronunciation

    assert options.train is not None
    assert options.output is not None
    training = TrainPronunciationOptions(
        bundle=options.bundle, audio=options.audio, threads=options.threads, scores=options.train,
        output=options.output, also=options.also, also_scores=options.also_scores, test=options.test,
        speakers=options.speakers, folds=options.folds,
        reading=options.reading,
    )  # fmt: skip
    with console.progress("files") as progress:
        result = train_pronunciation(training, progress=progress)
    for title, figures in (("speakers left out", result.cross_validated), (f"{options.test}", result.tested)):
        for kind, agreement in figures.items():
            print(f"{title}: {kind}: correlation {agreement}")
    if shared := result.shared_speakers:
        print(f"note: --test has {len(shared)} speakers of --train, such as {shared[0]}; its figures are too good")
    print(
        f"{result.bundle.path}: {result.bundle.size / 1e6:.1f} MB, scores of {result.num_utterances} utterances of "
        f"{result.num_speakers} speakers"
    )
    show_losses(result.report, None, console.verbose)
    return result.report.exit_status


COMMAND = Command("pronounce", CommandOptions, run)
