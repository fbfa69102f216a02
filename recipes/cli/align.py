r"""Align recordings with their transcripts: the times of words and phones, for Praat and other programs.

worked example: `corpus` has a folder for each speaker with recordings and, beside them, .txt or .lab files with the
words or .TextGrid files with utterances; words.dict has their pronunciations; english.argo is a bundle
  argonaut align corpus words.dict english.argo aligned
writes to aligned
  SPEAKER/RECORDING.TextGrid  tiers `words` and `phones`; of several speakers `SPEAKER - words`, `SPEAKER - phones`
  doubtful.csv                stretches of words that match the audio badly
  damage.csv                  if utterances of more than two minutes differ from their transcripts: where
  report                      utterances that could not be aligned, and why
and ends with
  results: aligned (130 TextGrid files)
  utterances: 130 done, 0 skipped, 0 failed; 4 doubtful
CORPUS is a folder of recordings, a single recording with its transcript beside it, a Kaldi data directory, another form
that `argonaut import` reads, or a directory that `argonaut import` has written.  Results are also written as CTM, JSON,
CSV and MLF:
  argonaut align corpus words.dict english.argo aligned --format textgrid,ctm,json,csv,mlf

Without a model, train one on the very corpus first, 20 minutes of speech or more, at least one:
  argonaut align --train corpus words.dict aligned
writes it to aligned/training/models, the MODEL for later recordings.

A second run aligns only recordings that are new, have failed or have changed, together with their transcripts, the
pronunciations of their words, the model and the options; other TextGrids stay as they are, even if they were edited.
"""

import argparse
from pathlib import Path

from readers.errors import ConfigError
from recipes.cli.dictionaries import add_dictionary_options, add_guess_option

MIXED = True  # options may stand between the positional arguments
REPORT, GUESSED = "report", "guessed.dict"
THRESHOLD = 0.1
LONG = 120.0  # seconds
MOST_SHOWN = 12  # words of a stretch in messages


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from recipes.align.output import FORMATS

    parser.add_argument("corpus", metavar="CORPUS", help="recordings with transcripts, or one recording")
    parser.add_argument("dict", metavar="DICT", help="dictionary of any form, with the phones of MODEL")
    parser.add_argument(
        "model", metavar="MODEL", nargs="?", help="bundle, or directory of argonaut flatstart; none with --train"
    )
    parser.add_argument("out", metavar="OUT", help="directory for the results")
    parser.add_argument("--train", action="store_true", help="train Gaussian models of phones on the corpus first")
    results = parser.add_argument_group("results")
    results.add_argument(
        "--format",
        default="textgrid",
        metavar="NAMES",
        help=f"formats, separated by commas: {', '.join(FORMATS)} (textgrid)",
    )
    results.add_argument(
        "--doubtful",
        type=float,
        default=THRESHOLD,
        metavar="X",
        help=f"words with a confidence below X, from 0 to 1, are doubtful ({THRESHOLD})",
    )
    results.add_argument("--doubtful-tier", action="store_true", help="add a tier of doubtful stretches to TextGrids")
    words = parser.add_argument_group("words and pronunciations")
    words.add_argument(
        "--case",
        choices=("auto", "keep", "upper", "lower"),
        default="auto",
        help="look up words in this case (auto: as DICT has the most words)",
    )
    add_dictionary_options(words, name="DICT")
    add_guess_option(words, "words of the transcripts", name="DICT")
    audio = parser.add_argument_group("audio")
    audio.add_argument(
        "--channel", metavar="N", help="channel of recordings with several, counted from 0, or mix for their mean"
    )
    audio.add_argument(
        "--upsample", action="store_true", help="accept audio of a lower sample rate than that of the model's training"
    )
    search = parser.add_argument_group("search")
    search.add_argument(
        "--beam", type=float, metavar="X", help="beam of the search, doubled while no path survives (default: exact)"
    )
    search.add_argument(
        "--long",
        type=float,
        default=LONG,
        metavar="X",
        help=f"transcripts of utterances of more than X seconds may differ from the recording ({LONG:g})",
    )
    parser.add_argument("-j", "--threads", type=int, metavar="N", help="number of threads (default: one per core)")


def run(arguments: argparse.Namespace) -> int:
    from decoder.recognizer.forced_aligner import ForcedAligner
    from decoder.recognizer.recording import AudioOptions
    from readers.audio.audio_file import MIX
    from readers.common.environment import available_cores, using_cores
    from readers.common.files import require_writable
    from recipes.align.corpora import in_case, open_corpus, with_channel
    from recipes.align.recordings import check_output, recordings_of
    from recipes.align.training import Training
    from recipes.cli.dictionaries import open_dictionary, with_guesses
    from recipes.cli.raw_audio import channel_of

    formats = check_options(arguments)
    channel, out = channel_of(arguments.channel), Path(arguments.out)
    require_writable(out / REPORT)
    dictionary = open_dictionary(arguments)
    cores = available_cores() if arguments.threads is None else arguments.threads
    with using_cores(cores):
        known = {entry.word for entry in dictionary}
        corpus, case = open_corpus(Path(arguments.corpus), known, arguments.case)
        if case not in ("keep", arguments.case):
            print(f"{arguments.corpus}: words are looked up in {case} case, of which the dictionary has more")
        corpus = with_channel(corpus, channel)
        recordings = recordings_of(corpus, Path(arguments.corpus))
        check_output(recordings, out)
        if arguments.g2p:
            spoken = [word for utterance in in_case(corpus, case).utterances for word in utterance.words or ()]
            dictionary = with_guesses(arguments, dictionary, spoken, out / GUESSED)
        if arguments.train:
            arguments.model = Training(in_case(corpus, case), dictionary, out, cores).run()
        # A number is the channel of recordings with several; the others keep theirs.
        audio = AudioOptions(channel=channel if channel == MIX else None, upsample=arguments.upsample)
        aligner = ForcedAligner.load(arguments.model, dictionary, arguments.beam, audio, case)
        return Run(arguments, formats, aligner, recordings, corpus.report.lost).run()


def check_options(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the formats.  Raises ConfigError for options out of range and an output directory in the corpus."""
    from readers.audio.audio_file import MIX
    from recipes.align.output import FORMATS

    formats = tuple(dict.fromkeys(filter(None, map(str.strip, arguments.format.lower().split(",")))))
    unknown = [form for form in formats if form not in FORMATS]
    if unknown or not formats:
        found = unknown[0] if unknown else "no format"
        raise ConfigError(f"command line: --format: {found}; expected {', '.join(FORMATS)}, separated by commas")
    if not 0 <= arguments.doubtful <= 1:
        raise ConfigError(f"command line: --doubtful {arguments.doubtful:g}; expected a confidence from 0 to 1")
    if arguments.threads is not None and arguments.threads < 1:
        raise ConfigError(f"command line: -j {arguments.threads}; expected at least 1")
    if not arguments.long >= 0:
        raise ConfigError(f"command line: --long {arguments.long:g}; expected seconds, at least 0")
    if arguments.train and (arguments.model or arguments.channel == MIX):
        found = f"MODEL {arguments.model}" if arguments.model else "--channel mix"
        raise ConfigError(f"command line: --train with {found}; expected only one of them")
    if not arguments.train and not arguments.model:
        raise ConfigError("command line: three names; expected CORPUS DICT MODEL OUT, or --train CORPUS DICT OUT")
    if not arguments.out:
        raise ConfigError("command line: an empty name; expected a directory OUT for the results")
    corpus, out = Path(arguments.corpus).resolve(), Path(arguments.out).resolve()
    if out.is_relative_to(corpus):
        raise ConfigError(
            f"{arguments.out}: inside of {arguments.corpus}, where TextGrids are transcripts; expected a directory "
            "outside of it"
        )
    if out.exists() and not out.is_dir():
        raise ConfigError(f"{arguments.out}: a file; expected a directory")
    return formats


def shown_words(words: str) -> str:
    """Return words for a message, without the middle ones of many."""
    parts = words.split()
    if len(parts) <= MOST_SHOWN:
        return words
    half = MOST_SHOWN // 2
    return " ".join((*parts[:half], "...", *parts[-half:], f"({len(parts)} words)"))


class Run:
    """Aligns the recordings that are new or have changed, and writes everything."""

    def __init__(self, arguments: argparse.Namespace, formats: tuple[str, ...], aligner, recordings: list, lost: list):
        from readers.common.report import RunReport
        from recipes.align.output import SEPARATE
        from recipes.align.results import KeptResults, file_marks

        self.arguments, self.formats, self.out = arguments, formats, Path(arguments.out)
        self.recordings, self.report = recordings, RunReport("utterances")
        self.report.lost.extend(lost)
        self.aligner = aligner
        options = (arguments.beam, arguments.channel, arguments.upsample, arguments.long)
        common = (file_marks(Path(arguments.model)), *options)
        self.kept = KeptResults(self.out, common, aligner.pronunciations)
        tier = arguments.doubtful_tier
        self.doubtful = arguments.doubtful, tier
        # What the files of each format depend on, apart from the results.
        depend = {"textgrid": [arguments.doubtful] if tier else [], "json": [arguments.doubtful]}
        self.shown = {form: depend[form] for form in formats if form in SEPARATE}

    def run(self) -> int:
        from decoder.search.batch import in_order
        from recipes.align.output import DOUBTFUL, places_of, write_together
        from recipes.align.results import has_failed
        from recipes.cli.console import one_line, progress_display, show_losses

        earlier = {one.name: kept for one in self.recordings if (kept := self.kept.read(one))}
        # Failed ones are tried again, since what they lacked, such as a model of a phone, is not part of the digest.
        waiting = [one for one in self.recordings if one.name not in earlier or has_failed(earlier[one.name][0])]
        again = {one.name for one in waiting}
        results = {name: result for name, (result, _) in earlier.items() if name not in again}
        faults = {}
        for recording in self.recordings:
            if recording.name in results:
                self._write(recording, *earlier[recording.name])
        with progress_display("align", "recordings") as show:
            align = self._recording_aligner(len(waiting), show)
            for number, (recording, result) in enumerate(in_order(align, waiting, self.arguments.threads), 1):
                if isinstance(result, Exception):
                    faults[recording.name] = one_line(result)
                else:
                    results[recording.name] = result
                    same = recording.name in earlier and earlier[recording.name][0] == result
                    self._write(recording, result, earlier[recording.name][1] if same else None)
                show(number, len(waiting))
        ordered = [results[one.name] for one in self.recordings if one.name in results]
        stretches = write_together(ordered, self.formats, self.out, self.arguments.doubtful)
        self._count(results, faults, stretches)
        self.report.write(self.out / REPORT)
        show_losses(self.report, self.out / REPORT, self.arguments.verbose, self.arguments.corpus)
        if unchanged := len(self.recordings) - len(waiting):
            print(f"{unchanged} of {len(self.recordings)} recordings are unchanged and were not aligned again")
        if stretches:
            print(f"doubtful stretches: {self.out / DOUBTFUL}")
        if self.arguments.train:
            print(f"model: {self.arguments.model}")
        if results:
            print(f"results: {', '.join(places_of(list(results), self.formats, self.out))}")
        print(self.report.summary())
        return self.report.exit_status

    def _recording_aligner(self, num_recordings: int, show):
        from readers.common.environment import available_cores
        from recipes.align.aligning import RecordingAligner

        def progress(name: str, seconds: float) -> None:
            show(0, num_recordings, **{name: f"{seconds / 60:.1f} minutes"})

        threads = max(1, available_cores() // max(1, num_recordings))
        return RecordingAligner(self.aligner, self.arguments.long, threads, progress if num_recordings == 1 else None)

    def _write(self, recording, result, shown: dict[str, object] | None) -> None:
        """Write the files of a recording that are not as wanted.

        shown: the options of the files of an earlier run with this very result; None if there was none.
        """
        from recipes.align.output import files_of, write_recording

        files, before = files_of(recording.name, self.formats, self.out), shown or {}
        stale = [form for form, path in files.items() if before.get(form) != self.shown[form] or not path.exists()]
        write_recording(result, files if shown is None else stale, self.out, *self.doubtful)
        if shown is None or before | self.shown != before:
            self.kept.write(recording, result, before | self.shown)

    def _count(self, results: dict, faults: dict[str, str], stretches: list) -> None:
        """Enter every utterance into the report."""
        from recipes.align.output import DAMAGE
        from recipes.align.results import NO_TRANSCRIPT

        doubtful: dict[str, list[str]] = {}
        for one in stretches:
            doubtful.setdefault(one.utterance, []).append(f"{one.start:.2f}-{one.end:.2f} s {shown_words(one.words)}")
        for recording in self.recordings:
            if recording.name in faults:
                for one in recording.utterances:
                    self.report.fail(one.name, faults[recording.name])
                continue
            for one in results[recording.name].utterances:
                if one.reason == NO_TRANSCRIPT:
                    self.report.skip(one.name, one.reason)
                elif one.reason:
                    self.report.fail(one.name, one.reason)
                elif one.damage:
                    first, more = one.damage[0], len(one.damage) - 1
                    text = f"{first.start:.2f}-{first.end:.2f} s {first.kind} {shown_words(first.words)}".rstrip()
                    self.report.mark(one.name, "damaged", text + (f" and {more} more, see {DAMAGE}" if more else ""))
                elif one.name in doubtful:
                    self.report.mark(one.name, "doubtful", "; ".join(doubtful[one.name]))
                else:
                    self.report.done()
