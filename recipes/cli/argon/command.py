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

import argparse
import sys

from readers.common.environment import using_cores
from readers.errors import ConfigError
from recipes.cli.argon.decoding import Pipeline, process_files
from recipes.cli.argon.options import (
    ALIGNING,
    DECODING,
    MAX_WIDENINGS,
    STREAMING,
    canonical,
    make_parser,
    refuse_streaming,
)
from recipes.cli.argon.setup import precompile_graph, save_search_defaults
from recipes.cli.argon.sharding import check_processes
from recipes.cli.command import Command
from recipes.cli.console import run_guarded
from recipes.cli.extensions import take_extensions
from recipes.cli.parser import print_version


def main(argv: list[str] | None = None) -> int:
    return run_guarded(run, sys.argv[1:] if argv is None else argv)


def run(argv: list[str]) -> int:
    argv = take_extensions(argv)
    if not argv:
        raise ConfigError("command line: no options; argon -help shows them")
    if "--version" in argv:
        return print_version("argon")
    parser = make_parser(__doc__)
    arguments = parser.parse_args(canonical(argv, parser))
    if not arguments.graph:
        raise ConfigError("command line: -graph is missing; expected the compiled graph to read or to write")
    if arguments.save_defaults:
        return save_search_defaults(arguments, parser)
    defaults = ALIGNING if arguments.alignmlf else STREAMING if arguments.stream else DECODING
    for name, value in defaults.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    if not 0 <= arguments.widenings <= MAX_WIDENINGS:
        raise ConfigError(f"command line: --widenings {arguments.widenings}; expected 0 to {MAX_WIDENINGS}")
    check_processes(arguments)
    if arguments.threads is None:
        return run_mode(arguments, parser)
    if arguments.threads < 1:
        raise ConfigError(f"command line: --threads {arguments.threads}; expected at least 1")
    with using_cores(arguments.threads):
        return run_mode(arguments, parser)


def run_mode(arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Compile a graph, recognise a stream, align or decode, as the arguments say; return the exit status."""
    if arguments.stream and not arguments.precompile:
        from recipes.cli.argon.streaming import stream

        return stream(arguments)
    refuse_streaming(arguments, parser)
    if arguments.g2p and not arguments.alignmlf:
        raise ConfigError("command line: --g2p without -alignmlf; expected transcripts whose words need pronunciations")
    if arguments.precompile:
        return precompile_graph(arguments)
    if arguments.alignmlf:
        from recipes.cli.argon.alignment import AlignmentPipeline

        return process_files(arguments, AlignmentPipeline)
    return process_files(arguments, Pipeline)


COMMAND = Command("argon", run=lambda options, console: run(options.to_flags()))


if __name__ == "__main__":
    sys.exit(main())
