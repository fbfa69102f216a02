"""`argonaut`: dispatch to the commands.

A command is a module of this package with a `COMMAND`.  It is imported only when it is called, so that `--help` answers
at once.  `cntk` and `argon` parse their own arguments, because they keep the command lines of the CNTK book.
"""

import argparse
import importlib
import sys
from types import ModuleType

from recipes.cli.command import add_verbose
from recipes.cli.console import quietly, run_guarded
from recipes.cli.extensions import take_extensions
from recipes.cli.parser import Parser, version_text

SECTIONS = {
    "use a recogniser, such as en, which is installed": {
        "transcribe": "recognise audio files with a bundle, and print or write the words",
        "align": "find the times of words and phones in a corpus, as TextGrids for Praat, CTM, JSON or CSV",
        "pronounce": "score the pronunciation of known words: phones, words and sentences",
        "serve": "recognise speech for other programs: a WebSocket and HTTP server, and a page",
        "models": "list the installed bundles, which are found by name, with what each is made of",
        "adapt": "adapt a bundle to speech and texts of its user: acoustic model, new words, language model",
        "calibrate": "fit the confidences of a bundle to audio with known words, or measure them",
    },
    "make a recogniser": {
        "recipe": "run a whole recipe, from a corpus to a scored decoding: simple2d, an4, timit and others",
        "import": "import recordings with transcripts: folders, Kaldi data directories and other manifests",
        "hcopy": "extract HTK feature files from audio files with an HCopy configuration",
        "augment": "make copies of recordings for training: other speeds, noise, babble, reverberation",
        "g2p": "guess the pronunciations of words with a model trained on a dictionary",
        "flatstart": "train Gaussian monophones from features, transcripts and a dictionary, and align with them",
        "tie": "tie the states of triphones with decision trees, given alignments and features",
        "fmllr": "adapt features to speakers: estimate LDA, MLLT and fMLLR transforms, and apply them",
        "ivector": "train an extractor of i-vectors, vectors that describe speakers, and compute them",
        "cntk": "train, test or evaluate a computational network with a CNTK configuration file",
        "denominator": "make lattices of training utterances for sequence training: MMI, MPE, sMBR",
        "chain": "make denominator and numerator graphs for training with lattice-free MMI",
        "lm": "estimate an n-gram language model, compute perplexities, rescore n-best lists",
        "graph": "build a decoding graph from a dictionary, HMM states and a language model",
        "pack": "make a bundle, one file with everything that a recogniser needs, from an experiment",
    },
    "decode and examine": {
        "argon": "decode features or audio to an MLF and lattices, or align known words",
        "lattice": "compute confidences, consensus networks and oracle error rates; convert and rescore lattices",
        "score": "compute the word or phone error rate of a hypothesis, in the format of HResults",
        "average": "average the phone boundaries of several alignments of the same utterances",
        "plot": "draw an alignment below its spectrogram, the trials of a tuning, or a lattice",
        "validate": "list every fault of a configuration and of the data that it names, before any work is done",
        "info": "show what a feature file, model, graph, language model, MLF or other file contains",
        "warmup": "compile all kernels ahead of time, so that no later command waits for the compiler",
        "completion": "print a script that completes commands and options in bash, zsh or fish",
    },
}
COMMANDS = {name: text for section in SECTIONS.values() for name, text in section.items()}
RAW_COMMANDS = ("cntk", "argon")  # parse their own arguments
MODULES = {"argon": "argon.command", "import": "import_corpus"}  # command -> module, where the names differ


def main(argv: list[str] | None = None) -> int:
    return run_guarded(run, sys.argv[1:] if argv is None else argv)


def run(argv: list[str]) -> int:
    argv = take_extensions(argv)
    if argv and argv[0] in COMMANDS:
        module = module_of(argv[0])
        if argv[0] in RAW_COMMANDS:
            return module.main(argv[1:])
        parser = command_parser(argv[0], module)
        # These commands allow options between positional arguments, which a parser with subcommands does not support,
        # nor Python's with `--`.
        is_mixed = module.COMMAND.mixed and "--" not in argv
        parse = parser.parse_intermixed_args if is_mixed else parser.parse_args
        arguments = parse(argv[1:])
        with quietly(arguments.quiet):
            return module.COMMAND(arguments)
    if argv[:1] == ["help"] and len(argv) > 1:  # `argonaut help lm estimate`
        return run([*argv[1:], "--help"])
    if argv and argv != ["help"]:
        top_level_parser().parse_args(argv)  # prints the help, or raises an error that lists the commands
    top_level_parser().print_help()
    return 0 if argv else 2


def module_of(command: str) -> ModuleType:
    """Return the module of a command."""
    return importlib.import_module(f"recipes.cli.{MODULES.get(command, command)}")


def command_parser(name: str, module: ModuleType) -> Parser:
    parser = Parser(prog=f"argonaut {name}", description=module.__doc__)
    module.COMMAND.add_arguments(parser)
    for each in parser.with_actions():
        default = False if each is parser else argparse.SUPPRESS  # that of an action would replace what is before it
        each.add_argument("-q", "--quiet", action="store_true", default=default, help="print no progress")
    add_verbose(parser)
    return parser


def top_level_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="argonaut",
        description="Speech recognition: from recordings to words, and from corpora to recognisers.",
        epilog="examples:\n"
        "  argonaut transcribe en speech.wav\n"
        "prints the words of a recording in English\n"
        "  argonaut recipe timit --out exp/demo --size demo\n"
        "synthesises a corpus, extracts features, trains, decodes and prints the phone error rate\n\n"
        + "\n\n".join(
            f"{title}:\n" + "\n".join(f"  {name:{max(map(len, COMMANDS))}} {text}" for name, text in section.items())
            for title, section in SECTIONS.items()
        )
        + "\n\n`argonaut help COMMAND` shows the options of a command and a worked example.",
    )
    parser.add_argument("--version", action="version", version=version_text("argonaut"))
    parser.add_argument("command", metavar="COMMAND", choices=tuple(COMMANDS), help="one of the commands below")
    return parser


if __name__ == "__main__":
    sys.exit(main())
