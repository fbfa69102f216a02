"""Decodes or aligns the utterances of a list in threads or by a runner, and reports the result of each."""

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decoder.recognizer.jobs.decoding.fit import NO_FIT, weight_remark
from decoder.recognizer.jobs.decoding.options import DecodeOptions, flag_of
from decoder.recognizer.jobs.decoding.utterances import Decoded, DecodingPipeline, Numbered, mlf_name
from decoder.search.batch import in_order
from readers.common.environment import (
    Stopwatch,
    one_blas_thread,
    quick_thread_switches,
    using_cores,
    without_collections,
)
from readers.common.faults import one_line
from readers.common.file_part import FilePart
from readers.common.files import require_writable, write_lines
from readers.common.jobs.stop_signals import interrupts_noted
from readers.common.names import apart_by_extension, repeated
from readers.common.report import Log, Progress, RunReport, silent
from readers.errors import ConfigError
from readers.htk.mlf import Label, write_mlf
from readers.htk.units import TICKS_PER_SECOND
from readers.results.timed_words import Word, check_form, check_names, write_words

if TYPE_CHECKING:
    from decoder.g2p.completion import Guesses
    from readers.common.jobs.runner import Runner

UNFINISHED = "wrote the words of the best unfinished path"
WEIGHT = "acoustic weight"  # name of the remark of a report about it


@dataclass(frozen=True)
class DecodeResult:
    """What decoding or aligning the utterances of a list gave, besides the files.

    Attributes
    ----------
    report : RunReport
        The utterances that were done, and those that were not, with the reasons.  It is written, too, to
        `options.output.report_path`.
    num_frames : int
    tokens_per_frame : float
        In the mean.
    real_time_factor : float
        Seconds that it took per second of speech.
    source : str
        The list of the utterances, or the archive of their scores.
    words_files : tuple of Path
        Files with the times of words, of `options.output.words`.
    guesses : Guesses or None
        Pronunciations that were guessed for the words of transcripts.
    guess_lines : tuple of str
        What there is to say about them.
    """

    report: RunReport
    num_frames: int = 0
    tokens_per_frame: float = 0.0
    real_time_factor: float = 0.0
    source: str = ""
    words_files: tuple[Path, ...] = ()
    guesses: "Guesses | None" = None
    guess_lines: tuple[str, ...] = ()


def decode(
    options: DecodeOptions, *, runner: "Runner | None" = None, progress: Progress = silent, log: Log = silent
) -> DecodeResult:
    """Decode the utterances of a list; write words, states and lattices.

    Ctrl-C ends it after the utterances in progress; the results so far are kept.

    Parameters
    ----------
    options : DecodeOptions
    runner : Runner, optional
        Decodes shards of the list, in processes or on a cluster; by default threads of this process do it.
    progress : callable
        Called as ``progress(utterances done, utterances, frames_per_second=...)``.
    log : callable
        Receives notes on the search and on the inputs.

    Returns
    -------
    DecodeResult

    Raises
    ------
    ArgonautError, OSError
        For a fault in the files that all utterances share; the report lists faults of single utterances.
    KeyboardInterrupt
        If Ctrl-C left utterances undone, with a text about what was written.

    Examples
    --------
    ``scores = AcousticOptions(am="net.dnn", cntkmap="exp/graph/cntkmap", infiles="test.scp")``

    ``options = DecodeOptions(graph="exp/graph/graph.dg", lm="words.arpa", acoustic=scores, output=outputs)``

    ``decode(options).real_time_factor``
    """
    options.require("alignmlf", options.transcripts.alignmlf is None, "is given; expected no transcripts to decode")
    return _process(options, DecodingPipeline, runner, progress, log)


def align_transcripts(
    options: DecodeOptions, *, runner: "Runner | None" = None, progress: Progress = silent, log: Log = silent
) -> DecodeResult:
    """Align the utterances of a list with their transcripts; write words, phones or states with times.

    Parameters
    ----------
    options : DecodeOptions
        With `transcripts.alignmlf`; the graph is in a directory of `make_graph`.
    runner : Runner, optional
    progress : callable
    log : callable
        As those of `decode`.

    Returns
    -------
    DecodeResult

    Raises
    ------
    ArgonautError, OSError
        For a fault in the files that all utterances share; the report lists faults of single utterances.
    KeyboardInterrupt
        If Ctrl-C left utterances undone, with a text about what was written.
    """
    from decoder.recognizer.jobs.decoding.alignment import AlignmentPipeline

    options.require("alignmlf", options.transcripts.alignmlf is not None, "is missing; expected transcripts")
    return _process(options, AlignmentPipeline, runner, progress, log)


def _process(
    options: DecodeOptions, make_pipeline: Callable[..., Any], runner: "Runner | None", progress: Progress, log: Log
) -> DecodeResult:
    """Decode or align all utterances."""
    _check_files(options)
    with contextlib.ExitStack() as stack:
        if options.search.threads:
            stack.enter_context(using_cores(options.search.threads))
        with without_collections():
            pipeline = make_pipeline(options, log)
            entries = pipeline.source.entries()
        if not entries:
            raise ConfigError(f"{pipeline.source.list}: no files; expected at least one")
        if options.output.words:
            check_names(options.output.words, (entry.key for entry in entries))
        shards = None
        if runner is not None:
            # These import pools of processes.
            from decoder.recognizer.jobs.decoding.shards import decode_shards, open_settings

            guessed = pipeline.guesses.for_decoding() if pipeline.guesses else ()
            settings = stack.enter_context(open_settings(runner, make_pipeline, options, guessed))
            shards = partial(decode_shards, runner, settings)
        stack.enter_context(one_blas_thread)  # each utterance has one thread
        stack.enter_context(quick_thread_switches())
        interrupted = stack.enter_context(interrupts_noted())
        decoding = _Run(options, pipeline, entries, interrupted, shards)
        with contextlib.suppress(_NothingToWrite):
            results = decoding.results(progress)
            if options.output.outmlf:
                write_mlf(options.output.outmlf, results)
            else:
                for _ in results:
                    pass
        return decoding.close()


def _check_files(options: DecodeOptions) -> None:
    """Raise ConfigError unless all inputs are given, and the outputs can be written."""
    acoustic = options.acoustic
    output = options.output
    for name in ("cntkmap",) if acoustic.scores else ("am", "cntkmap", "infiles"):
        options.require(name, getattr(acoustic, name) is not None, "is missing; expected it for decoding")
    has_output = bool(output.outmlf or output.lattice_prefix or output.words)
    expected = "expected an output file: it, {lattice_prefix} or {words}"
    options.require("outmlf", has_output, f"is missing; {expected}")
    if output.words:
        check_form(output.words)
    for path in (output.outmlf, output.words, output.index_path, output.report_path):
        if path:
            require_writable(path, options.inputs)


class _NothingToWrite(Exception):
    """Raised if every utterance was lost, so that an existing MLF is kept."""


class _Run:
    """One run over all utterances: results, losses and speed.

    interrupted is a function that returns True after Ctrl-C; then no more utterances are started, and those in progress
    are finished.
    """

    def __init__(
        self,
        options: DecodeOptions,
        pipeline: Any,
        entries: Sequence[Any],
        interrupted: Callable[[], bool],
        shards: Callable[..., Iterator[tuple[Numbered, Any]]] | None = None,
    ):
        self.options = options
        self.output = options.output
        self.pipeline = pipeline
        self.entries = entries
        self.interrupted = interrupted
        self.shards = shards
        self.report = RunReport("utterances")
        self.fit = NO_FIT
        self.num_frames = self.ticks = 0
        self.num_tokens = 0.0
        self.ended = bytearray(len(entries) + 1)  # by number from 1: 1 for the entries that were done or lost
        self.num_ended = 0
        self.repeated: deque[tuple[int, str]] = deque()  # numbers of entries that were left out, and the reasons
        self.num_written = 0
        self.lattices: list[str] = []
        self.words: dict[str, list[Word]] = {}
        self.phones: dict[str, list[Word]] = {}
        self.words_files: list[Path] = []
        self.durations: dict[str, float] = {}
        self.stopwatch = Stopwatch()

    def results(self, progress: Progress) -> Iterator[tuple[str, list[Label] | FilePart]]:
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
            progress(self.num_ended, len(self.entries), frames_per_second=rate)
        self.fail_repeated(len(self.entries))
        if not self.num_written:
            raise _NothingToWrite

    def decoded(self) -> Iterator[tuple[Numbered, Any]]:
        """Yield ((number, entry), Decoded, exception or None) of every utterance, in order."""
        if self.shards:
            return self.shards(self.unique(), len(self.entries), self.interrupted)
        return in_order(self.attempt, self.unique(), self.options.search.threads)

    def attempt(self, numbered: Numbered) -> Decoded | None:
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

    def unique(self) -> Iterator[Numbered]:
        """Yield (index from 1, entry), leaving out entries with a repeated name: names are unique in an MLF."""
        names = (entry.key for entry in self.entries)
        first_index_of = dict(repeated(names, lambda index: self.entries[index].key))
        for number, entry in enumerate(self.entries, start=1):
            if self.interrupted():
                return
            if number - 1 in first_index_of:
                first_entry = self.entries[first_index_of[number - 1]]
                fault = f"{entry.where}: same name as at {first_entry.where}; expected unique names"
                self.repeated.append((number, fault + apart_by_extension(entry, first_entry)))
            else:
                yield number, entry

    def count(self, number: int, entry: Any, result: Decoded) -> None:
        self.num_frames += result.num_frames
        self.ticks += result.num_frames * result.period
        self.num_tokens += result.num_frames * result.tokens_per_frame
        self.fit = self.fit.plus(result.fit)
        reason = result.reason
        if result.wider:
            reason += f" with {result.wider}" if reason else result.wider
        if result.labels is None:
            hint = f"; try a larger {flag_of('beam')}, or omit {flag_of('partial')}" if not self.output.partial else ""
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
        if self.output.lattice_prefix:
            self.lattices.append(f"{number}\t{entry.key}")

    def close(self) -> DecodeResult:
        """Write words, index and report.

        Raises KeyboardInterrupt, with a message about what was written, if Ctrl-C left utterances unprocessed.
        """
        seconds = self.stopwatch.seconds
        if self.words:
            assert self.output.words is not None
            self.words_files = write_words(self.output.words, self.words, self.phones, self.durations)
        if self.lattices:
            assert self.output.index_path is not None
            write_lines(self.output.index_path, self.lattices)
        if self.num_ended < len(self.entries):
            raise KeyboardInterrupt(self._cut_short())
        if remark := weight_remark(self.fit, self.pipeline.acweight):
            self.report.remarks[WEIGHT] = remark
        self.report.write(self.output.report_path)
        return DecodeResult(
            self.report,
            self.num_frames,
            self.num_tokens / self.num_frames if self.num_frames else 0.0,
            seconds * TICKS_PER_SECOND / self.ticks if self.ticks else 0.0,
            str(self.pipeline.source.list),
            tuple(self.words_files),
            self.pipeline.guesses,
            tuple(self.pipeline.guess_lines),
        )

    def _cut_short(self) -> str:
        """List the unprocessed utterances in the report, and return the message for the user."""
        for number, entry in enumerate(self.entries, start=1):
            if not self.ended[number]:
                self.report.skip(entry.key, "not done: interrupted")
        mlf = self.output.outmlf if self.num_written else None
        index = self.output.index_path if self.lattices else None
        written = [f"{path}" for path in (mlf, *self.words_files[:1], index) if path]
        count = f"{self.report.num_done} of {len(self.entries)} utterances done"
        if not written:
            return f"{count}, nothing written"
        self.report.write(self.output.report_path)
        return f"{count}, written to {', '.join(written)}; the others are listed in {self.output.report_path}"
