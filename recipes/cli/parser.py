"""The argument parser of `argonaut` and `argon`, whose errors are one line and suggest similar names."""

import argparse
import itertools
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from readers.common.environment import program_version
from readers.config.values import nearest
from readers.errors import ConfigError

UNKNOWN, REQUIRED = "unrecognized arguments: ", "the following arguments are required"  # as argparse begins messages
NO_NUMBER = re.compile(r"invalid (int|float) value: (.*)", re.DOTALL)
NUMBERS = {"int": "a whole number", "float": "a number"}


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line like all others, without the usage text.

    moved: choices of earlier versions -> the commands that replace them.
    """

    help_option = "--help"
    moved: Mapping[str, str] = {}

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **{"formatter_class": argparse.RawDescriptionHelpFormatter} | options)
        self._given: list[str] = []
        self._negative_number_matcher = re.compile(r"-\.?\d")  # Python 3.14's: `--snr -5:20` has a value

    def _match_arguments_partial(self, actions: Sequence[argparse.Action], pattern: str) -> list[int]:
        """Leave optional positional arguments for after the options, as Python 3.13 does: `MODEL -n 2 WORD`."""
        counts = super()._match_arguments_partial(actions, pattern)
        while "O" in pattern and counts and not counts[-1]:
            counts.pop()
        return counts

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is not among an argument's choices, and suggest a similar one."""
        if action.choices is not None and value not in action.choices:
            if value in self.moved:
                raise argparse.ArgumentError(action, f"{value!r} {moved_text(self.moved[value])}")
            choices = [str(choice) for choice in action.choices]
            close = nearest(str(value), choices)
            expected = f"did you mean {close}" if close else f"expected {', '.join(choices)}"
            raise argparse.ArgumentError(action, f"{value!r} is unknown; {expected}")

    def parse_known_args(self, args: Iterable[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:
        self._given = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(self._given, namespace)

    def error(self, message: str) -> NoReturn:
        if message.startswith(REQUIRED) and (unknown := self._unknown_options()):
            message = UNKNOWN + " ".join(unknown)  # what was misspelled may be what is required
        message = NO_NUMBER.sub(lambda found: f"{found[2]}; expected {NUMBERS[found[1]]}", message)
        hint = ""
        if message.startswith(UNKNOWN):
            words = [word.partition("=")[0] for word in message.removeprefix(UNKNOWN).split()]
            close = [nearest(word, self.options()) for word in words if word.startswith("-")]
            hint = f"; did you mean {', '.join(filter(None, close))}" if any(close) else ""
        raise ConfigError(f"{self.place()}: {message}{hint}; {self.prog} {self.help_option} shows the options")

    def _unknown_options(self) -> list[str]:
        """Return the long options on the command line that are none, nor the beginning of one."""
        before = itertools.takewhile(lambda word: word != "--", self._given)
        long = [word.partition("=")[0] for word in before if word.startswith("--")]
        return [word for word in long if not any(option.startswith(word) for option in self.options())]

    def place(self) -> str:
        """Return what error messages begin with."""
        return self.prog

    def options(self) -> list[str]:
        """Return the options of the parser and of its actions."""
        return [option for parser in self.with_actions() for option in parser._option_string_actions]

    def with_actions(self) -> list["Parser"]:
        """Return the parser and those of its actions."""
        actions = [action for action in self._actions if isinstance(action, argparse._SubParsersAction)]
        return [self, *(parser for action in actions for parser in action.choices.values())]


def moved_text(command: str) -> str:
    """Say where an experiment went that is not installed."""
    return f"is not installed any more; in a checkout of the sources run {command}"


def version_text(command: str) -> str:
    """Return the line that `COMMAND --version` prints."""
    return f"{command} {program_version()}"


def print_version(command: str) -> int:
    print(version_text(command))
    return 0
