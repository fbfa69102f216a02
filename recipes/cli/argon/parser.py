"""The command line of `argon`, which is that of the CNTK book: single dashes for its options."""

from decoder.recognizer.jobs.decoding.options import DecodeOptions
from recipes.cli.parser import Parser

BOOK_FLAGS = tuple(
    flag
    for declared in DecodeOptions.with_groups()
    for flag in declared.flags
    if flag.startswith("-") and not flag.startswith("--")
)
SPELLINGS = {f"-{flag.replace('_', '-')}": flag for flag in (*BOOK_FLAGS, "-help")}
OLD = ("--partial",)  # the default since 0.1.0


class ArgonParser(Parser):
    """A parser that begins its messages as other commands of raw command lines do."""

    help_option = "-help"

    def place(self) -> str:
        return "command line"


def canonical(argv: list[str]) -> list[str]:
    """Rewrite `--graph`, `--dnn-window-size`, ... to the spelling of the CNTK book: `-graph`, `-dnn_window_size`."""
    words = []
    for argument in argv:
        flag, equals, value = argument.partition("=")
        words.append(SPELLINGS.get(flag, flag) + equals + value)
    return [word for word in words if word not in OLD]
