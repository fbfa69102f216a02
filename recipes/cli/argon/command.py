r"""Compile a decoding graph, decode, or align known words: the decoder of chapter 6 of the CNTK book.

worked example: compile the acceptor that `argonaut graph` wrote, then decode the feature files of test.scp
  argon -precompile true -infsm graph.fsa.gz -lookahead-file lookahead -transition-file transitions -graph g.dg
  argon -graph g.dg -lm words.arpa -am model.dnn -cntkmap cntkmap -infiles test.scp -outmlf test.mlf
The second command ends with a line such as
  utterances: 130 done, 0 skipped, 0 failed; frames 36064; real-time factor 0.012
After Ctrl-C, argon finishes the utterances in progress and keeps all results so far.

Options of the CNTK book have one dash, all others two.  Those of the book may also be written with two and hyphens:
--graph, --dnn-window-size.

With --words words.ctm (.json, .TextGrid, .srt, ...) it also writes the words with their times in seconds.

To decode audio files, list them in -infiles and add --features hcopy.config.

To decode a microphone, read audio from standard input with --stream -; words are printed as they are recognised:
  arecord -q -t wav -f S16_LE -r 16000 -c 1 | argon -graph g.dg -lm words.arpa -am model.dnn -cntkmap cntkmap \
        --features hcopy.config --stream -

To align transcripts, use the tables that `argonaut graph` wrote beside g.dg:
  argon -graph g.dg -alignmlf words.mlf --dict words.dict -am model.dnn -cntkmap cntkmap -infiles train.scp \
        -detailed-alignment -outmlf aligned.mlf
"""

import contextlib
import signal
import sys
from typing import TYPE_CHECKING

from decoder.recognizer.jobs.decoding.options import DecodeOptions
from readers.common.jobs.stop_signals import stopping_signal
from readers.errors import ConfigError
from readers.results.timed_words import words_note
from recipes.cli.argon.parser import ArgonParser, canonical
from recipes.cli.command import Command, Console, add_verbose
from recipes.cli.console import SIGNAL_BASE, run_guarded, show_guesses, show_losses
from recipes.cli.extensions import take_extensions
from recipes.cli.live_display import JsonDisplay, TextDisplay
from recipes.cli.machines import print_line
from recipes.cli.parser import print_version

if TYPE_CHECKING:
    from readers.common.jobs import Runner

PATIENCE = 10.0  # seconds in which a process may finish its shard after Ctrl-C


def main(argv: list[str] | None = None) -> int:
    return run_guarded(run, sys.argv[1:] if argv is None else argv)


def run(argv: list[str]) -> int:
    argv = take_extensions(argv)
    if not argv:
        raise ConfigError("command line: no options; argon -help shows them")
    if "--version" in argv:
        return print_version("argon")
    return COMMAND(make_parser().parse_args(canonical(argv)))


def make_parser() -> ArgonParser:
    usage = "argon -graph FILE [options]"
    parser = ArgonParser(prog="argon", usage=usage, description=__doc__, add_help=False, allow_abbrev=False)
    parser.add_argument("-h", "-help", action="help", help="show this help and exit")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    add_verbose(parser)
    COMMAND.add_arguments(parser)
    return parser


def run_job(options: DecodeOptions, console: Console) -> int:
    """Compile a graph, recognise a stream, align or decode, as the options say; return the exit status."""
    machines = console.machines
    list_only = "is given without a list of utterances; expected one to divide"
    for name in ("workers", "scheduler"):
        machines.require(name, options.is_list or getattr(machines, name) is None, list_only)
    if options.search.save_defaults:
        return store(options)
    if options.compiling.precompile:
        return compile_acceptor(options, console)
    return run_stream(options, console) if options.streaming.stream else run_list(options, console)


def store(options: DecodeOptions) -> int:
    from decoder.recognizer.jobs.decoding.compilation import store_defaults
    from decoder.recognizer.jobs.decoding.opening import defaults_text

    stored = store_defaults(options)
    text = defaults_text(stored.options, stored.tuned_with) if stored.options else "no defaults"
    print(f"{options.graph}: {text}")
    return 0


def compile_acceptor(options: DecodeOptions, console: Console) -> int:
    from decoder.recognizer.jobs.decoding.compilation import compile_graph

    graph = compile_graph(options, log=console.tell)
    print(
        f"graph: {options.graph}: {graph.num_states} states, {graph.num_positions} HMM positions, "
        f"{len(graph.arrays.emitting_cost)} emitting arcs, {len(graph.arrays.word_cost)} word arcs"
    )
    return 0


def run_list(options: DecodeOptions, console: Console) -> int:
    from decoder.recognizer.jobs.decoding.job import align_transcripts, decode

    job = align_transcripts if options.transcripts.alignmlf else decode
    with contextlib.ExitStack() as stack:
        machines = console.machines
        runner = None
        if machines.workers or machines.scheduler:
            runner = stack.enter_context(console.runner(patient_processes))
        progress = stack.enter_context(console.progress(runner=runner))
        result = job(options, runner=runner, progress=progress, log=console.tell)
    for line in result.guess_lines:
        print(line)
    if result.guesses:
        show_guesses(result.guesses, console.verbose)
    if options.output.words and (note := words_note(options.output.words, result.words_files)):
        console.tell(note)
    for remark in result.report.remarks.values():
        console.note(remark)
    show_losses(result.report, options.output.report_path, console.verbose, result.source)
    if console.verbose and result.num_frames:
        console.tell(f"{result.tokens_per_frame:.1f} tokens per frame")
    figures = f"frames {result.num_frames}; real-time factor {result.real_time_factor:.3f}"
    print(f"{result.report.summary()}; {figures}")
    return result.report.exit_status


def patient_processes(count: int | None) -> "Runner":
    """Return a Runner in processes, whose shards in progress may end."""
    from readers.common.jobs.places import ONE_BLAS_THREAD
    from readers.common.jobs.runner import process_runner

    return process_runner(count or 1, print_line, ONE_BLAS_THREAD, PATIENCE)


def run_stream(options: DecodeOptions, console: Console) -> int:
    from decoder.recognizer.jobs.decoding.stream import decode_stream

    display = JsonDisplay() if options.streaming.json else TextDisplay(times=True)
    result = decode_stream(options, take=display, log=console.tell)
    show_losses(result.report, None, console.verbose, options.streaming.stream)
    display.close(result.report, result.num_frames, result.real_time_factor)
    stopped = stopping_signal()
    return result.report.exit_status if stopped == signal.SIGINT else SIGNAL_BASE + stopped


COMMAND = Command("argon", DecodeOptions, run_job, machines="list")


if __name__ == "__main__":
    sys.exit(main())
