"""Decode or align the utterances of a list in threads, and report the result of each."""

import argparse
import contextlib
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from readers.common.environment import Stopwatch, one_blas_thread, quick_thread_switches, without_collections
from readers.common.names import apart_by_extension, repeated
from readers.common.report import RunReport
from readers.errors import ConfigError
from readers.htk.units import TICKS_PER_SECOND
from recipes.cli.argon.fit import NO_FIT, ScoreFit, measure, used_rows, weight_remark
from recipes.cli.argon.scores import naming, open_source
from recipes.cli.argon.setup import INPUT_FILES, open_decoder
from recipes.cli.argon.sharding import Processes, mlf_name, open_processes
from recipes.cli.console import one_line, progress_display, show_losses

UNFINISHED = "wrote the words of the best unfinished path"


@dataclass(frozen=True)
class Decoded:
    """Result of one utterance.

    labels is None if there is nothing to write; words and phones (lists of Word) are None if no output needs them.
    seconds is the duration of the utterance; fit is that of the path to the scores; wider describes how much wider the
    search was than the options say, "" if it was not; unheard says where speech is in no word.
    """

    num_frames: int
    period: int
    reason: str
    labels: list | None
    tokens_per_frame: float
    words: list | None = None
    phones: list | None = None
    seconds: float = 0.0
    fit: ScoreFit = NO_FIT
    wider: str = ""
    unheard: str = ""


class Pipeline:
    """Decodes one utterance: computes labels and writes the lattice file.  All threads share one instance."""

    guesses: tuple = ()

    def __init__(self, arguments: argparse.Namespace, guesses: tuple = ()):
        self.arguments = arguments
        self.decoder = open_decoder(arguments)
        self.source = open_source(arguments)
        if self.source.num_outputs is not None:
            self.decoder.check_outputs(self.source.num_outputs, self.source.name)
        self.rows = used_rows(self.decoder)

    def __call__(self, numbered) -> Decoded:
        from decoder.results.outputs import word_labels
        from decoder.results.unheard import unheard_speech

        number, entry = numbered
        with naming(entry):
            scores, period, seconds, last = self.source.scores(entry)
            result = self.decoder.decode(scores)
        labels = words = None
        if result.path.label.size:
            labels = self.labels(result, period, last)
            words = timed(word_labels(result, period, last)) if self.arguments.words else None
        if result.lattice is not None:
            self.write_lattice(number, entry, result.lattice, period, last)
        return Decoded(
            *(result.num_frames, period, result.reason, labels, result.tokens_per_frame, words, None, seconds),
            measure(scores, self.rows, result),
            wider_search(self.decoder.options, result.widenings),
            unheard_speech(result, period),
        )

    def labels(self, result, period: int, last: int) -> list:
        from decoder.results.outputs import state_labels, word_labels

        if self.arguments.detailed_alignment:
            return state_labels(result, self.decoder, period, last)
        return word_labels(result, period, last)

    def write_lattice(self, number: int, entry, lattice, period: int, last: int) -> None:
        from decoder.results.outputs import slf_lattice
        from readers.htk.slf import write_slf

        name = Path(self.arguments.lm or self.arguments.lm_collection).name
        options = self.decoder.options
        slf = slf_lattice(lattice, self.decoder.graph, options, entry.key, period, name, last)
        write_slf(f"{self.arguments.lattice_prefix}{number}.lat", slf)


def wider_search(options, widenings: int) -> str:
    """Describe how a search differs from its SearchOptions after so many widenings; "" for none."""
    if not widenings:
        return ""
    factor = 2**widenings
    if options.beam * factor == options.beam:  # 0 or infinite
        return f"{options.max_tokens * factor} tokens instead of {options.max_tokens}"
    return wider_beam(options.beam * factor, options.beam)


def wider_beam(beam: float, given: float) -> str:
    return f"a beam of {beam:g} instead of {given:g}"


def timed(labels: list) -> list:
    """Convert word labels to Word."""
    from readers.results.timed_words import Word

    return [Word(label.name, label.start / TICKS_PER_SECOND, label.end / TICKS_PER_SECOND) for label in labels]


def process_files(arguments: argparse.Namespace, make_pipeline: Callable) -> int:
    """Decode or align all utterances; return the exit status."""
    from readers.common.files import require_writable
    from readers.common.stop_signals import interrupts_noted
    from readers.htk.mlf import write_mlf
    from readers.results.timed_words import check_form, check_names

    for name in ("cntkmap",) if arguments.scores else ("am", "cntkmap", "infiles"):
        if not getattr(arguments, name):
            raise ConfigError(
                f"command line: -{name} is missing; expected it for decoding; argon -help shows the options"
            )
    if not arguments.outmlf and not arguments.lattice_prefix and not arguments.words:
        raise ConfigError("command line: no output file; expected -outmlf, -lattice-prefix or --words")
    if arguments.words:
        check_form(arguments.words)
        if arguments.words == arguments.outmlf:
            raise ConfigError(f"command line: -outmlf and --words are both {arguments.words}; expected two files")
    read = [getattr(arguments, name, None) for name in INPUT_FILES]
    for path in (arguments.outmlf, arguments.words, index_path(arguments), report_path(arguments)):
        if path:
            require_writable(path, read)
    given = sorted(vars(arguments).items())
    with without_collections():
        pipeline = make_pipeline(arguments)
        entries = pipeline.source.entries()
    if not entries:
        raise ConfigError(f"{pipeline.source.list}: no files; expected at least one")
    if arguments.words:
        check_names(arguments.words, (entry.key for entry in entries))
    with (
        open_processes(arguments, make_pipeline, given, pipeline.guesses) as processes,
        one_blas_thread,  # each utterance has one thread
        quick_thread_switches(),
        interrupts_noted() as interrupted,
    ):
        decoding = Run(arguments, pipeline, entries, interrupted, processes)
        runner = processes.runner if processes else None
        with progress_display("argon", "utterances", runner) as show, contextlib.suppress(NothingToWrite):
            decoded = decoding.results(show)
            if arguments.outmlf:
                write_mlf(arguments.outmlf, decoded)
            else:
                for _ in decoded:
                    pass
        return decoding.close()


def note_files(path: str, written: list[Path]) -> None:
    """Tell the user where the words are, if they are not in the file that --words names."""
    if written and written != [Path(path)]:
        more = f" and {len(written) - 1} more" if len(written) > 1 else ""
        print(f"words: {written[0]}{more}", file=sys.stderr)


def index_path(arguments: argparse.Namespace) -> str:
    """Return the index file, which maps lattice files to utterances; "" without lattices."""
    return f"{arguments.lattice_prefix}.index" if arguments.lattice_prefix else ""


def report_path(arguments: argparse.Namespace) -> str:
    return arguments.report or f"{arguments.outmlf or arguments.lattice_prefix or arguments.words}.report"


class NothingToWrite(Exception):
    """Raised if every utterance was lost, so that an existing MLF is kept."""


class Run:
    """One run over all utterances: results, losses and speed.

    interrupted is a function that returns True after Ctrl-C; then no more utterances are started, and those in progress
    are finished.
    """

    def __init__(
        self,
        arguments: argparse.Namespace,
        pipeline: Pipeline,
        entries: list,
        interrupted: Callable[[], bool],
        processes: Processes | None = None,
    ):
        self.processes = processes
        self.arguments, self.pipeline, self.entries, self.interrupted = arguments, pipeline, entries, interrupted
        self.report = RunReport("utterances")
        self.fit = NO_FIT
        self.num_frames, self.ticks, self.num_tokens = 0, 0, 0.0
        self.ended = bytearray(len(entries) + 1)  # by number from 1: 1 for the entries that were done or lost
        self.num_ended = 0
        self.repeated: deque[tuple[int, str]] = deque()  # numbers of entries that were left out, and the reasons
        self.num_written = 0
        self.lattices: list[str] = []
        self.words: dict[str, list] = {}
        self.phones: dict[str, list] = {}
        self.words_file = ""  # the first one that was written
        self.durations: dict[str, float] = {}
        self.stopwatch = Stopwatch()

    def results(self, show) -> Iterator[tuple[str, list]]:
        """Yield (MLF name, labels) of every utterance that has labels, in order."""
        for (number, entry), result in self.decoded():
            if result is None:
                continue
            self.fail_repeated(number)
            self.end(number)
            if isinstance(result, Exception):
                self.report.fail(entry.key, one_line(result))
            else:
                self.count(number, entry, result)
                if result.words is not None:
                    self.words[entry.key] = result.words
                    self.durations[entry.key] = result.seconds
                if result.phones is not None:
                    self.phones[entry.key] = result.phones
                if result.labels is not None:
                    self.num_written += 1
                    yield mlf_name(entry.key), result.labels
            rate = self.num_frames / self.stopwatch.seconds
            show(self.num_ended, len(self.entries), frames_per_second=rate)
        self.fail_repeated(len(self.entries))
        if not self.num_written:
            raise NothingToWrite

    def decoded(self) -> Iterator[tuple]:
        """Yield ((number, entry), Decoded, exception or None) of every utterance, in order."""
        from decoder.search.batch import in_order

        if self.processes:
            return self.processes.results(self.unique(), len(self.entries), self.interrupted)
        return in_order(self.attempt, self.unique(), self.arguments.threads)

    def attempt(self, numbered) -> Decoded | None:
        """Process one entry; None if Ctrl-C came before it was started."""
        return None if self.interrupted() else self.pipeline(numbered)

    def end(self, number: int) -> None:
        """Note that an entry was done or lost."""
        self.num_ended += not self.ended[number]
        self.ended[number] = 1

    def fail_repeated(self, number: int) -> None:
        """Report entries up to a number that were left out; entries are read ahead, but reported in their order."""
        while self.repeated and self.repeated[0][0] <= number:
            left_out, reason = self.repeated.popleft()
            self.end(left_out)
            self.report.fail(self.entries[left_out - 1].key, reason)

    def unique(self) -> Iterator[tuple]:
        """Yield (index from 1, entry), leaving out entries with a repeated name: names are unique in an MLF."""
        names = (entry.key for entry in self.entries)
        others = dict(repeated(names, lambda index: self.entries[index].key))
        for number, entry in enumerate(self.entries, start=1):
            if self.interrupted():
                return
            if number - 1 in others:
                other = self.entries[others[number - 1]]
                fault = f"{entry.where}: same name as at {other.where}; expected unique names"
                self.repeated.append((number, fault + apart_by_extension(entry, other)))
            else:
                yield number, entry

    def count(self, number: int, entry, result: Decoded) -> None:
        self.num_frames += result.num_frames
        self.ticks += result.num_frames * result.period
        self.num_tokens += result.num_frames * result.tokens_per_frame
        self.fit = self.fit.plus(result.fit)
        reason = result.reason
        if result.wider:
            reason += f" with {result.wider}" if reason else result.wider
        if result.labels is None:
            hint = "; try a larger -beam, or omit --no-partial" if self.arguments.no_partial else ""
            self.report.fail(entry.key, reason + hint)
            return
        if result.reason:
            self.report.mark(entry.key, "unfinished", f"{reason}; {UNFINISHED}")
        elif result.unheard:
            self.report.mark(entry.key, "unfinished", "; ".join(filter(None, (result.unheard, reason))))
        elif reason:
            self.report.mark(entry.key, "widened", reason)
        else:
            self.report.done()
        if self.arguments.lattice_prefix:
            self.lattices.append(f"{number}\t{entry.key}\n")

    def close(self) -> int:
        """Write words, index and report, print the summary and return the exit status.

        Raises KeyboardInterrupt, with a message about what was written, if Ctrl-C left utterances unprocessed.
        """
        from readers.common.files import atomic_write
        from readers.results.timed_words import write_words

        seconds = self.stopwatch.seconds
        if self.words:
            written = write_words(self.arguments.words, self.words, self.phones, self.durations)
            note_files(self.arguments.words, written)
            self.words_file = str(written[0])
        if self.lattices:
            with atomic_write(index_path(self.arguments), "w") as file:
                file.writelines(self.lattices)
        path = report_path(self.arguments)
        if self.num_ended < len(self.entries):
            raise KeyboardInterrupt(self._cut_short(path))
        remark = weight_remark(self.fit, self.arguments.acweight)
        if remark:
            self.report.remarks["acoustic weight"] = remark
            print(f"note: {remark}", file=sys.stderr)
        self.report.write(path)
        show_losses(self.report, path, self.arguments.verbose, self.pipeline.source.list)
        if self.arguments.verbose and self.num_frames:
            print(f"{self.num_tokens / self.num_frames:.1f} tokens per frame", file=sys.stderr)
        factor = seconds * TICKS_PER_SECOND / self.ticks if self.ticks else 0.0
        print(f"{self.report.summary()}; frames {self.num_frames}; real-time factor {factor:.3f}")
        return self.report.exit_status

    def _cut_short(self, path: str) -> str:
        """List the unprocessed utterances in the report, and return the message for the user."""
        for number, entry in enumerate(self.entries, start=1):
            if not self.ended[number]:
                self.report.skip(entry.key, "not done: interrupted")
        mlf = self.arguments.outmlf if self.num_written else ""
        index = index_path(self.arguments) if self.lattices else ""
        written = [name for name in (mlf, self.words_file, index) if name]
        count = f"{self.report.num_done} of {len(self.entries)} utterances done"
        if not written:
            return f"{count}, nothing written"
        self.report.write(path)
        return f"{count}, written to {', '.join(written)}; the others are listed in {path}"
