"""The command line of `argon`, which is that of the CNTK book: single dashes for its options."""

from typing import Any

from decoder.recognizer.jobs.decoding.options import DecodeOptions, StreamOptions
from recipes.cli.command import Console
from recipes.cli.parser import Parser

BOOK_FLAGS = tuple(
    flag
    for declared in DecodeOptions.with_groups()
    for flag in declared.flags
    if flag.startswith("-") and not flag.startswith("--")
)
SPELLINGS = {f"-{flag.replace('_', '-')}": flag for flag in (*BOOK_FLAGS, "-help")}
# Version 0.1 ran with these options, although they did nothing: (option, with or without which other).  In Python they
# are faults.
IDLE = (
    ("--strip-stress", "without", "--dict"),
    ("--map-phones", "without", "--dict"),
    ("--encoding", "without", "--features"),
    ("--channels", "without", "--features"),
    ("--hotwords-score", "with", "-alignmlf"),
    *((declared.flag, "with", "-precompile") for declared in StreamOptions.declared()),
)
REFUSAL, OLD_DEFAULT = "--no-partial", "--partial"


class ArgonParser(Parser):
    """A parser that begins its messages as other commands of raw command lines do."""

    help_option = "-help"

    def place(self) -> str:
        return "command line"

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Leave out options that have no effect beside the others, with a note."""
        arguments, unknown = super().parse_known_args(args, namespace)
        fields = {flag: action.dest for flag, action in self._option_string_actions.items()}
        for flag, relation, reason_flag in IDLE:
            is_given = bool(getattr(arguments, fields[reason_flag], None))
            if hasattr(arguments, fields[flag]) and is_given == (relation == "with"):
                delattr(arguments, fields[flag])
                Console("argon").note(f"{flag} has no effect {relation} {reason_flag}")
        return arguments, unknown


def canonical(argv: list[str]) -> list[str]:
    """Rewrite `--graph`, `--dnn-window-size`, ... to the spelling of the CNTK book: `-graph`, `-dnn_window_size`."""
    words = []
    for argument in argv:
        flag, equals, value = argument.partition("=")
        words.append(SPELLINGS.get(flag, flag) + equals + value)
    while OLD_DEFAULT in words:
        before = words[: words.index(OLD_DEFAULT)]
        words = [word for word in before if word != REFUSAL] + words[len(before) + 1 :]
    return words
