"""`argonaut`: the umbrella over every command.

A command is a module of this package with `add_arguments(parser)` and `run(arguments) -> exit status`; it is imported
only when it is asked for, so that `--help` answers at once.  `cntk` and `argon` keep the command lines of the book and
get their arguments untouched.
"""

import argparse
import importlib
import sys

from readers.errors import ConfigError
from recipes.cli.console import run_guarded

COMMANDS = {
    "hcopy": "audio files to HTK feature files, by an HCopy configuration",
    "cntk": "train, test or write a computational network, by a configuration file",
    "graph": "build a decoding graph from dictionary, HMM states and language model",
    "tie": "tie triphones' states by decision trees, from alignments to an HTK donor",
    "lm": "estimate an n-gram language model, report perplexities, rescore n-best lists",
    "argon": "decode features or audio to an MLF and lattices",
    "lattice": "confidences, consensus networks and oracle error rates of lattices",
    "score": "word or phone error rate of a hypothesis MLF, in HResults' form",
    "recipe": "run a whole recipe, from a corpus to a scored decoding: simple2d, an4, timit and others",
    "validate": "every fault of a configuration and of the data it names, before any work is done",
    "info": "what is inside a feature file, model, graph, language model or MLF",
}
RAW_COMMANDS = ("cntk", "argon")
MODULES = {"argon": "argon.command"}  # of commands that are not a module of their own name


def main(argv: list[str] | None = None) -> int:
    return run_guarded(run, sys.argv[1:] if argv is None else argv)


def run(argv: list[str]) -> int:
    if argv and argv[0] in COMMANDS:
        module = importlib.import_module(f"recipes.cli.{MODULES.get(argv[0], argv[0])}")
        if argv[0] in RAW_COMMANDS:
            return module.main(argv[1:])
        parser = command_parser(argv[0], module)
        # Options may stand between settings; a parser with subcommands cannot have that.
        parse = parser.parse_intermixed_args if getattr(module, "MIXED", False) else parser.parse_args
        return module.run(parse(argv[1:]))
    if argv:
        umbrella_parser().parse_args(argv)  # prints help, or says which commands there are
    umbrella_parser().print_help()
    return 2


class Parser(argparse.ArgumentParser):
    """A parser whose faults are one line like all others, instead of the usage before a line."""

    def error(self, message: str) -> None:
        raise ConfigError(f"{self.prog}: {message}; {self.prog} --help shows the options")


def command_parser(name: str, module) -> argparse.ArgumentParser:
    parser = Parser(
        prog=f"argonaut {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    parser.add_argument("-v", "--verbose", action="count", default=0, help="tell more")
    return parser


def umbrella_parser() -> argparse.ArgumentParser:
    from importlib.metadata import version

    parser = Parser(
        prog="argonaut",
        description="Hybrid speech recognition: HTK data in, transcripts and lattices out.",
        epilog="example:\n"
        "  argonaut recipe timit --out exp/demo --size demo\n"
        "synthesises a corpus, extracts features, trains, decodes and ends with the phone error rate\n\n"
        "commands:\n"
        + "\n".join(f"  {name:8} {text}" for name, text in COMMANDS.items())
        + "\n\n`argonaut COMMAND --help` shows a command's options and a worked example.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"argonaut {version('argonaut-asr')}")
    parser.add_argument("command", metavar="COMMAND", choices=tuple(COMMANDS), help="one of the commands below")
    return parser


if __name__ == "__main__":
    sys.exit(main())
